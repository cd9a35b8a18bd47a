# SPDX-License-Identifier: Apache-2.0
"""
An object's `managedFields`: who owns a field, and the transfer from one field manager to another.

Server-side apply removes fields that a manager no longer applies, and reports a conflict for fields that another manager
owns. So a new manager needs the entries of the former one. client-go's csaupgrade does the same for `kubectl apply`.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from k8s_cr_driver.objects.fields import ListEntry, entries, field, mapping
from k8s_cr_driver.objects.keys import Object

_INHERITED = ("", "scale")
"""Subresources whose fields are also fields of the object itself; `status` stays with its writer."""


def succeeded(
    found: Sequence[Object], intree_driver: str, manager: str, defaults: Collection[str] = ()
) -> list[Object] | None:
    """
    The managedFields with `manager` as the applier of what `intree_driver` created, updated or scaled; None if nothing.

    `defaults` are fields of the spec that the API server has set, perhaps: who creates an object by an update owns these, too.

    An applier has one entry, of one API version; fields written in another version have no owner then.
    """
    theirs = [entry for entry in found if _is_update(entry, intree_driver)]
    if not theirs:
        return None
    ours = [entry for entry in found if is_applier(entry, manager)]
    first = [*ours, *theirs][0]
    written = [*(entry["fieldsV1"] for entry in ours), *(_without(entry, defaults) for entry in theirs)]
    fields = [one for entry, one in zip((*ours, *theirs), written, strict=True) if entry["apiVersion"] == first["apiVersion"]]
    joined = {**first, "manager": manager, "operation": "Apply", "fieldsV1": functools.reduce(union, fields)}
    joined.pop("subresource", None)
    return [joined, *(entry for entry in found if entry not in theirs and entry not in ours)]


def _without(entry: Object, defaults: Collection[str]) -> Object:
    named = {f"f:{name}" for name in defaults}
    spec = {name: inner for name, inner in mapping(entry, "fieldsV1", "f:spec").items() if name not in named}
    return {**entry["fieldsV1"], **({"f:spec": spec} if spec else {})}


def handed(found: Sequence[Object], before: str, after: str) -> list[Object]:
    """The managedFields with what `before` has applied as applied by `after`, too; updates of either are nobody's."""
    others = [entry for entry in found if entry.get("manager") not in (before, after)]
    joined: dict[str, Object] = {}  # an applier has one entry for each API version
    for entry in found:
        if is_applier(entry, before) or is_applier(entry, after):
            version = str(entry.get("apiVersion"))
            fields = [mapping(one, "fieldsV1") for one in (joined.get(version), entry) if one]
            joined[version] = {**entry, "manager": after, "fieldsV1": functools.reduce(union, fields)}
    return [*joined.values(), *others]


def of_version(found: Sequence[Object], api_version: str) -> list[Object]:
    """The managedFields with all entries as of that version of the kind, so that each manager has one."""
    joined: dict[tuple[str, ...], Object] = {}
    for entry in found:
        who = tuple(str(entry.get(name)) for name in ("manager", "operation", "subresource"))
        several = [mapping(one, "fieldsV1") for one in (joined.get(who), entry) if one]
        fields = functools.reduce(union, several)
        joined[who] = {**entry, "apiVersion": api_version, "fieldsV1": fields}
    return list(joined.values())


def owning(live: Object, manager: str, paths: Iterable[Sequence[str]]) -> list[Object]:
    """The managedFields with the fields at `paths` as applied by `manager`, too; nothing if it has applied nothing."""
    found = entries(live, "metadata", "managedFields")
    ours = appliers_of(live, manager)
    added = functools.reduce(union, (_nested(path, _members(field(live, *path))) for path in paths))
    joined = [{**entry, "fieldsV1": union(mapping(entry, "fieldsV1"), added)} for entry in ours[:1]]
    return [*joined, *(entry for entry in found if entry not in ours[:1])] if ours else []


def _nested(path: Sequence[str], fields: Object) -> Object:
    for step in reversed(path):
        fields = {f"f:{step}": fields}
    return fields


def _members(value: Any) -> Object:
    """The FieldsV1 of a value and all that is in it; a list is one field."""
    return {".": {}, **{f"f:{name}": _members(one) for name, one in value.items()}} if isinstance(value, dict) else {}


def is_applier(entry: Object, manager: str) -> bool:
    """Whether the entry holds what `manager` has applied."""
    return (entry.get("manager"), entry.get("operation")) == (manager, "Apply")


def appliers_of(live: Object, manager: str) -> list[Object]:
    """The entries of what `manager` has applied: one for each version of the kind."""
    return [entry for entry in entries(live, "metadata", "managedFields") if is_applier(entry, manager)]


def has_applier(live: Object, manager: str) -> bool:
    """Whether the object has fields that `manager` has applied."""
    return bool(appliers_of(live, manager))


def _is_update(entry: Object, manager: str) -> bool:
    written = (entry["manager"], entry["operation"]) == (manager, "Update")
    return written and entry.get("subresource", "") in _INHERITED


def managers_of(live: Object, path: Iterable[str]) -> list[str]:
    """The managers that own the field at `path`."""
    steps = [f'k:{{"name":{json.dumps(step)}}}' if isinstance(step, ListEntry) else f"f:{step}" for step in path]
    owning = (entry for entry in entries(live, "metadata", "managedFields") if field(entry, "fieldsV1", *steps) is not None)
    return sorted({str(entry.get("manager")) for entry in owning})


def holds(fields: Object, wanted: Any, live: Any) -> bool:
    """
    Whether a manager owns exactly the fields of `wanted`, by its FieldsV1 of them, and `live` has their values.

    False also where that cannot be said.
    """
    inner = {step: one for step, one in fields.items() if step != "."}
    if not inner or not isinstance(wanted, (dict, list)):
        return not inner and is_same(wanted, live)
    if isinstance(wanted, dict):
        named = {f"f:{name}": name for name in wanted}
        has_all = isinstance(live, dict) and named.keys() == inner.keys() and live.keys() >= wanted.keys()
        return has_all and all(holds(inner[step], wanted[name], live[name]) for step, name in named.items())
    if not isinstance(live, list) or len(inner) != len(wanted):
        return False
    if all(step.startswith("v:") for step in inner):
        return all(one in live and f"v:{json.dumps(one)}" in inner for one in wanted)
    return all(step.startswith("k:") and _holds_entry(step, inner[step], wanted, live) for step in inner)


def _holds_entry(step: str, fields: Object, wanted: Sequence[Any], live: Sequence[Any]) -> bool:
    """An entry may leave a key out that has its default, such as the protocol of a port."""
    keys = json.loads(step[2:])
    ours, theirs = (
        [one for one in several if isinstance(one, dict) and keys.items() <= {**keys, **one}.items()]
        for several in (wanted, live)
    )
    return len(ours) == len(theirs) == 1 and holds(fields, ours[0], theirs[0])


def is_same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal: 1 and true are not."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def union(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Of two FieldsV1. A field without children is a member; one with children is a member if "." is among them."""
    joined = {**one, **other}
    for step in one.keys() & other.keys():
        joined[step] = union(one[step], other[step])
    if joined and not (one and other):
        joined["."] = {}
    return joined


def common(one: Object, other: Object) -> Object:
    """What two FieldsV1 have both; all of `one` that is in a field which the other has as a whole."""
    found = {step: inner if not other[step] else common(inner, other[step]) for step, inner in one.items() if step in other}
    return {step: inner for step, inner in found.items() if inner or not one[step]}


def beyond(fields: Object, manifest: Any) -> Object:
    """Of a FieldsV1 what the manifest does not set."""
    found: Object = {}
    for step, inner in fields.items():
        part = _part(step, manifest)
        rest = inner if part is None else beyond(inner, part)
        if step != "." and (rest or part is None):
            found[step] = rest
    return found


def _part(step: str, value: Any) -> Any:
    """What a step leads to; None if that is not there."""
    kind, _, name = step.partition(":")
    if isinstance(value, dict):
        return value.get(name) if kind == "f" else None
    if not isinstance(value, list) or kind not in ("k", "v"):
        return None
    wanted = json.loads(name)
    if kind == "v":
        return wanted if wanted in value else None
    return next((one for one in value if isinstance(one, dict) and wanted.items() <= {**wanted, **one}.items()), None)
