# SPDX-License-Identifier: Apache-2.0
"""
Fields of an object of others that the instance has taken by force: a release must not remove them.

The API server removes a field with its last owner, and forgets who had it before. So an annotation of the object names such
fields from before the instance takes them, as paths in the form of a conflict (structured-merge-diff, fieldpath.Path.String).
"""

from __future__ import annotations

import ast
import copy
import functools
import itertools
import json
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from k8s_cr_driver.objects.decoding import decoded
from k8s_cr_driver.objects.fields import mapping
from k8s_cr_driver.objects.keys import Object, annotations_of
from k8s_cr_driver.objects.managed_fields import appliers_of, union

TAKEN = "k8s-cr-driver/taken"
"""The annotation: a JSON list of paths."""
LONGEST = 64 * 1024
"""Characters of the annotation; of 256 KiB for all."""
ALL = ""
"""The path of the object itself: of too many fields, all that the instance has applied are kept."""


def paths_of(live: Object) -> list[str]:
    """The paths that the annotation of an object names. Others may have written it."""
    try:
        paths = decoded(annotations_of(live).get(TAKEN) or "[]")
    except ValueError:
        return [ALL]
    return [one for one in paths if isinstance(one, str)] if isinstance(paths, list) else [ALL]


def noted(live: Object, paths: Iterable[str]) -> str:
    """The value of the annotation with these paths, too."""
    text = json.dumps(sorted({*paths_of(live), *paths}))
    return text if len(text) <= LONGEST else json.dumps([ALL])


def dropped(live: Object, manifest: Object) -> list[str]:
    """Those of the paths that the manifest does not set any more."""
    return [path for path in paths_of(live) if path != ALL and without(manifest, [path]) == manifest]


def kept(live: Object, manager: str, keeper: str, paths: Collection[str]) -> list[Object]:
    """The managedFields with the fields at these paths, as far as `manager` has applied them, as applied by `keeper`, too."""
    found: list[Object] = live["metadata"].get("managedFields") or []
    added = []
    for entry in appliers_of(live, manager):
        fields = mapping(entry, "fieldsV1")
        chosen = fields if ALL in paths else _at(fields, frozenset(paths), "")
        before = [one for one in appliers_of(live, keeper) if one.get("apiVersion") == entry.get("apiVersion")]
        if chosen:
            all_kept = functools.reduce(union, [*(mapping(one, "fieldsV1") for one in before), chosen])
            added.append({**entry, "manager": keeper, "fieldsV1": all_kept})
            found = [one for one in found if one not in before]
    return [*added, *found]


def _at(fields: Object, paths: Collection[str], path: str) -> Object:
    """Of a FieldsV1 what is at these paths."""
    chosen: Object = {}
    for name, inner in fields.items():
        place = path + _step(name)
        found = inner if place in paths else _at(inner, paths, place)
        if name != "." and (found or place in paths):
            chosen[name] = found
    return chosen


def _step(name: str) -> str:
    """A step of a FieldsV1 as a path has it."""
    kind, _, rest = name.partition(":")
    if kind == "f":
        return f".{rest}"
    if kind != "k":
        return f"[={rest}]" if kind == "v" else f"[{rest}]"
    keys = json.loads(rest)
    return "[" + ",".join(f"{key}={json.dumps(value)}" for key, value in sorted(keys.items())) + "]"


LONGEST_PATH = 2000
"""Characters."""

KEYS = 8
"""Of a list's entry; the most in Kubernetes are two."""
_NAME, _VALUE = r"[\w.-]+", r'"(?:[^"\\]|\\.)*"|[^",\]]+'
_KEY = f"{_NAME}=(?:{_VALUE})"
_ENTRY = re.compile(rf"\[({_KEY}(?:,{_KEY})*)\]")
_KEYS = re.compile(f"({_NAME})=({_VALUE})")
_ABSENT = ""

_Index = dict[tuple[int, tuple[str, ...]], dict[tuple[str, ...], list[Object]]]


def without(manifest: Object, paths: Iterable[str]) -> Object:
    """
    The manifest without the fields at these paths, and without what they leave empty.

    The paths are written as structured-merge-diff does (fieldpath.Path.String): `.spec.containers[name="web"].image`. One that
    does not lead to a field is left out, and one to an entry of a list by its index.
    """
    kept, index = copy.deepcopy(manifest), _Index()
    for path in paths:
        if len(path) <= LONGEST_PATH:
            _remove(kept, path, index)
    return kept


def _remove(value: Any, path: str, index: _Index) -> bool:
    """Whether the field was there. Several paths may lead to one place only if names have dots in them."""
    if isinstance(value, dict):
        return any(_remove_field(value, name, path[len(name) + 1 :], index) for name in _names(value, path))
    match = _ENTRY.match(path) if isinstance(value, list) else None
    entry = _entry(value, match[1], index) if match else None
    if match is None or entry is None:
        return False
    if rest := path[match.end() :]:
        return _remove(entry, rest, index)
    value[:] = [one for one in value if one is not entry]
    return True


def _remove_field(parent: Object, name: str, rest: str, index: _Index) -> bool:
    if rest and not _remove(parent[name], rest, index):
        return False
    if not rest or not parent[name]:
        del parent[name]
    return True


def _names(fields: Object, path: str) -> Iterator[str]:
    """The fields with which a path may begin, the longest name first: a label has dots in it."""
    ends = [*(match.start() for match in re.finditer(r"[.\[]", path[1:])), len(path) - 1]
    names = (path[1 : end + 1] for end in reversed(ends) if path.startswith("."))
    return (name for name in names if name in fields)


def _entry(entries: list[Any], text: str, index: _Index) -> Object | None:
    """The entry of a list with these keys; one that it does not name may have its default, if no other entry has all."""
    keys = {name: _comparable(_read(value)) for name, value in sorted(_KEYS.findall(text))}
    names = tuple(keys)
    if len(keys) > KEYS:
        return None
    if (id(entries), names) not in index:
        of = index[id(entries), names] = {}
        for entry in filter(lambda one: isinstance(one, dict), entries):
            of.setdefault(tuple(_comparable(entry[name]) if name in entry else _ABSENT for name in names), []).append(entry)
    of = index[id(entries), names]
    exact = of.get(tuple(keys.values()))
    if exact:
        return exact[0] if len(exact) == 1 else None
    partly = [of.get(some, []) for some in itertools.product(*((value, _ABSENT) for value in keys.values())) if any(some)]
    found = list(itertools.chain.from_iterable(partly))
    return found[0] if len(found) == 1 else None


def _read(value: str) -> Any:
    """Of a text as Go quotes it, or of any other value; None if it makes no sense."""
    try:
        return ast.literal_eval(value) if value.startswith('"') else json.loads(value)
    except (ValueError, SyntaxError):
        return None


def _comparable(value: Any) -> str:
    """The same for equal values: 80 and 80.0 are, 1 and true are not."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return repr(float(value))
    return f"{type(value).__name__} {value}"
