# SPDX-License-Identifier: Apache-2.0
"""
Fields that the API server does not take back: the size of a volume claim, what a rule of a CRD lets grow or be set only once.

A change that fails for another reason has written them by then. Its rollback would be refused for good, and a heal after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from k8s_cr_driver.errors import ApiError, DriverError, Refused
from k8s_cr_driver.objects.fields import field
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.writes.context import WriteContext
from k8s_cr_driver.writes.replacement import is_exchanged
from k8s_cr_driver.writes.write_errors import Unchangeable, is_denied


def kept(
    context: WriteContext, obj: CustomResource, live: Object, error: ApiError, refusal: DriverError
) -> CustomResource | None:
    """
    The object with the live values of the fields that a 422 names; None if that is no remedy.

    Only in a rollback and a heal. A heal keeps no field that never changes: others may have created the object again. What a
    webhook or policy denies may be allowed later.
    """
    if not context.keeps_versions or error.status != 422 or is_denied(error) or not isinstance(refusal, Refused):
        return None
    if isinstance(refusal, Unchangeable) and (not context.yields or is_exchanged(context, obj, live)):
        return None
    manifest = with_kept(obj.manifest, live, [where for _, where, _ in error.causes])
    return None if manifest == obj.manifest else obj.with_manifest(manifest)


def with_kept(manifest: Object, live: Object, fields: Sequence[str]) -> Object:
    """
    The manifest with the values of `live` in these fields, and with what it does not name of a mapping there.

    A field of metadata or within a list, or one that `live` does not have, is left as it is.
    """
    for where in sorted(fields, key=len):
        path = where.partition("[")[0].split(".")
        if path[0] != "metadata" and field(live, *path) is not None:
            manifest = _with(manifest, live, path)
    return manifest


def _with(manifest: Any, live: Any, path: Sequence[str]) -> Any:
    if path:
        outer: Mapping[str, Any] = manifest if isinstance(manifest, Mapping) else {}
        return {**outer, path[0]: _with(outer.get(path[0]), live[path[0]], path[1:])}
    return _added(live, manifest) if isinstance(live, Mapping) and isinstance(manifest, Mapping) else live


def _added(live: Mapping[str, Any], manifest: Mapping[str, Any]) -> dict[str, Any]:
    both = {name: (live[name], value) for name, value in manifest.items() if name in live}
    merged = {name: _added(*pair) for name, pair in both.items() if all(isinstance(one, Mapping) for one in pair)}
    return {**live, **manifest, **merged}
