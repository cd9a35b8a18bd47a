# SPDX-License-Identifier: Apache-2.0
"""
What a change of a CustomResourceDefinition takes from the objects that exist, as pure functions of the old and the new CRD.

A field that the new schema does not have is dropped at the next read, a value that it does not allow makes every later write
of the object fail, and a version that is not served any more hides the objects from who uses it. The API server allows all
three. CEL rules and formats are not evaluated: `narrowed` names them, `losses` does not.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from k8s_cr_driver.objects.crds import PRESERVE, served_schema, served_versions, stored_version
from k8s_cr_driver.objects.fields import Path, entries, field, mapping, sequence, shown, texts
from k8s_cr_driver.objects.keys import Object, ObjectKey, key_of, split
from k8s_cr_driver.package.structural import Budget, Node, TooMuch, child, items, unknown_fields, with_defaults
from k8s_cr_driver.package.validation import Validation

STEPS = 5_000_000
"""Pairs of a value and a part of a schema that are compared for one CRD: some seconds."""
OF_OBJECT = 3
"""Losses that are returned of one object, a version or a kind of loss at a time."""

_OF_SERVER = frozenset({"apiVersion", "kind", "metadata"})
_BOUNDS = tuple(f"{end}{of}" for end in ("min", "max") for of in ("imum", "Length", "Items", "Properties"))
_OTHERS = (
    *("pattern", "format", "multipleOf", "exclusiveMinimum", "exclusiveMaximum", "allOf", "anyOf", "oneOf", "not"),
    *("x-kubernetes-list-type", "x-kubernetes-list-map-keys"),
)
"""Constraints of which a changed one may be narrower."""
_EMBEDDED = "x-kubernetes-embedded-resource"
_RULES = "x-kubernetes-validations"
_WIDER = {"integer": {"integer", "number"}}
"""The types that allow all values of another one."""


class Narrowing(NamedTuple):
    """What the new schema of a version has less than the old one, or changes in objects that are as they were.

    `path` is empty for the version itself.
    """

    version: str
    path: Path
    what: str

    def __str__(self) -> str:
        return f"{shown(self.path)} ({self.version}) {self.what}" if self.path else f"version {self.version} {self.what}"


class Loss(NamedTuple):
    """What an object loses: `effect` is "drop", "refuse" or "not serve"."""

    key: ObjectKey
    version: str
    path: Path
    effect: str


def narrowed(old: Object, new: Object) -> list[Narrowing]:
    """What the CRD `new` has less than `old`, of the versions that `old` serves."""
    return list(dict.fromkeys(_narrowed(old, new)))


def losses(old: Object, new: Object, objects: Iterable[Object]) -> list[Loss]:
    """
    What `objects` lose by the change, each read in a version that `old` serves.

    Without a webhook for conversion an object is stored with the fields that the stored version has. Values that cannot be
    validated in seconds are left to the API server.
    """
    budget, found = Budget(STEPS), list[Loss]()
    for obj in objects:
        found += _losses(old, new, obj, budget)
    return found


def _narrowed(old: Object, new: Object) -> Iterator[Narrowing]:
    for version, entry in served_versions(old).items():
        before, after = served_schema(old, version), served_schema(new, version)
        if after is None or before is None:
            yield Narrowing(version, (), "is not served any more")
            continue
        former, kept = mapping(entry, "subresources").keys(), mapping(served_versions(new)[version], "subresources").keys()
        for name in sorted(former - kept):
            yield Narrowing(version, ("subresources", name), "is missing")
        if "status" in kept - former:
            yield Narrowing(version, ("subresources", "status"), "is new, so that a write of an object leaves its status out")
        yield from (Narrowing(version, path, what) for path, what, _ in _less(before, after, ()))
        if (stored := _stored_otherwise(old, new)) is not None:
            for path, what, is_part in _less(before, stored, ()):
                if is_part:
                    yield Narrowing(version, path, f"{what} of the stored version")


def _stored_otherwise(old: Object, new: Object) -> Node | None:
    """The schema in which objects are stored, if that is another one or no webhook converts from it any more."""
    stored = stored_version(new)
    if _has_webhook(new) or (stored == stored_version(old) and not _has_webhook(old)):
        return None
    return served_schema(new, stored)


def _has_webhook(crd: Object) -> bool:
    return bool(field(crd, "spec", "conversion", "strategy") == "Webhook")


def _less(old: Node, new: Node, path: Path) -> Iterator[tuple[Path, str, bool]]:
    """(path, what, is_part) of each part of a schema that is less than it was.

    `is_part` for a field or a type that is missing, and not a constraint on values.
    """
    before, after = _types(old), _types(new)
    if after and not (before and all(after & _WIDER.get(name, {name}) for name in before)):
        yield path, f"must be {' or '.join(sorted(after))}, and was {' or '.join(sorted(before)) or 'of any type'}", True
        return
    if _keeps(old) and not _keeps(new):
        yield path, "keeps no unknown fields", True
    elif _keeps(old):
        for name in sorted(mapping(new, "properties").keys() - mapping(old, "properties").keys()):
            yield (*path, name), "was of any form", True
    if old.get(_EMBEDDED, False) != new.get(_EMBEDDED, False):
        yield path, f"has another {_EMBEDDED}", True
    yield from ((path, what, False) for what in _constraints(old, new))
    for name, node in mapping(old, "properties").items():
        if (path or name not in _OF_SERVER) and isinstance(node, Mapping):
            yield from _less_of_field(node, new, name, (*path, name))
    if isinstance(additional := old.get("additionalProperties"), Mapping):
        yield from _less_of_field(additional, {**new, "properties": {}}, "*", (*path, "*"))
    if (entry := items(old)) is not None:
        yield from _less(entry, items(new) or {}, (*path, "*"))


def _less_of_field(node: Node, parent: Node, name: str, path: Path) -> Iterator[tuple[Path, str, bool]]:
    """Of a field with the schema `node`, whose holder has the schema `parent` now."""
    if name in mapping(parent, "properties") or parent.get("additionalProperties"):
        yield from _less(node, child(parent, name) or {}, path)
    elif not _keeps(parent):
        yield path, "is not in the schema", True


def _types(node: Node) -> set[str]:
    if node.get("x-kubernetes-int-or-string") is True:
        return {"integer", "string"}
    name = node.get("type")
    return {name} if isinstance(name, str) else set()


def _keeps(node: Node) -> bool:
    """Whether fields are kept that the schema does not name. An additionalProperties with a schema judges each."""
    return node.get(PRESERVE) is True or node.get("additionalProperties") is True


def _constraints(old: Node, new: Node) -> Iterator[str]:
    """What is asked of values that was not asked before."""
    if old.get("nullable") is True and new.get("nullable") is not True:
        yield "may not be null"
    yield from (f"has another {keyword}" for keyword in (*_BOUNDS, *_OTHERS) if _is_narrower(keyword, old, new))
    allowed, former = sequence(new, "enum"), sequence(old, "enum")
    if allowed and (not former or any(one not in allowed for one in former)):
        yield "allows fewer values"
    if new.get("default") != old.get("default"):
        yield "has another default"
    if set(texts(new, "required")) - set(texts(old, "required")):
        yield "has more required fields"
    rules = [one.get("rule") for one in entries(old, _RULES)]
    if any(one.get("rule") not in rules for one in entries(new, _RULES)):
        yield f"has other {_RULES}"


def _is_narrower(keyword: str, old: Node, new: Node) -> bool:
    bound, former = new.get(keyword), old.get(keyword)
    if keyword in _BOUNDS and isinstance(bound, (int, float)) and isinstance(former, (int, float)):
        return bound > former if keyword.startswith("min") else bound < former
    return bool(bound or (keyword in _BOUNDS and bound is not None)) and bound != former and bound != "atomic"


def _losses(old: Object, new: Object, obj: Object, budget: Budget) -> Iterator[Loss]:
    key, version = key_of(obj), split(str(obj.get("apiVersion")))[1]
    before, after = served_schema(old, version), served_schema(new, version)
    if before is None:
        return
    schemas = [one for one in (after, _stored_otherwise(old, new)) if one is not None]
    former = {one.path for one in unknown_fields(before, obj)}
    lost = dict.fromkeys(one.path for schema in schemas for one in unknown_fields(schema, obj) if one.path not in former)
    yield from (Loss(key, version, path, "drop") for path in islice(lost, OF_OBJECT))
    if after is not None:
        with contextlib.suppress(TooMuch):
            refused = islice(_refused(before, after, obj, budget), OF_OBJECT)
            yield from (Loss(key, version, path, "refuse") for path in refused)
    elif _is_written_in(obj, version):
        yield Loss(key, version, (), "not serve")


def _refused(before: Node, after: Node, obj: Object, budget: Budget) -> Iterator[Path]:
    """The fields that the schema `after` does not allow, and `before` did."""
    validation = Validation(budget)
    found = validation.violations(after, with_defaults(after, obj, budget))
    new = [one for one in islice(found, 100) if one.path[:1] != ("metadata",)]
    if new:
        former = {(one.path, one.keyword) for one in validation.violations(before, with_defaults(before, obj, budget))}
        yield from dict.fromkeys(one.path for one in new if (one.path, one.keyword) not in former)


def _is_written_in(obj: Object, version: str) -> bool:
    """Whether somebody writes the object in that version; also if nobody can say in which."""
    written = [split(str(one.get("apiVersion")))[1] for one in entries(obj, "metadata", "managedFields")]
    return not written or version in written
