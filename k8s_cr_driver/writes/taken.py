# SPDX-License-Identifier: Apache-2.0
"""
Fields of an object of others that the instance has taken by force: a release must not remove them.

The API server removes a field with its last owner, and forgets who had it before. So an annotation of the object names such
fields from before the instance takes them, as paths in the form of a conflict (structured-merge-diff, fieldpath.Path.String).
"""

from __future__ import annotations

import functools
import json
from collections.abc import Collection, Iterable

from k8s_cr_driver.objects.decoding import decoded
from k8s_cr_driver.objects.fields import mapping
from k8s_cr_driver.objects.keys import Object, annotations_of
from k8s_cr_driver.objects.managed_fields import appliers_of, union
from k8s_cr_driver.writes.paths import without

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
