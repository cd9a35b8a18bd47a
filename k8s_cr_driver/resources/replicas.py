# SPDX-License-Identifier: Apache-2.0
"""The replica count of an object: reads it, sets it, removes it."""

from __future__ import annotations

import copy
from itertools import pairwise
from typing import Any

from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.objects.fields import ListEntry, field, type_name
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.resources.base import CustomResource


def without_replicas(obj: CustomResource) -> CustomResource:
    path = obj.replicas() or ()
    manifest = copy.deepcopy(obj.manifest)
    parent = manifest
    for step in path[:-1]:
        parent = parent[step]
    parent.pop(path[-1])
    return obj.with_manifest(manifest)


def set_count(obj: CustomResource, count: int) -> None:
    """Writes another count into the manifest; none if its kind cannot be scaled."""
    path = obj.replicas() or ()
    parent: Any = obj.manifest
    for step, following in pairwise(path):
        if isinstance(parent, dict) and parent.get(step) is None:
            parent[step] = {}
        parent = field(parent, step)
        if not isinstance(parent, list if isinstance(following, ListEntry) else dict):
            where = ".".join(path)
            raise InvalidPackage(f"{obj.key}: {step}: is {type_name(parent)}, must be a mapping with the count at {where}")
    if path:
        parent[path[-1]] = count


def count(obj: CustomResource, live: Object | None = None) -> int:
    """The replica count in the manifest, or in the live object if that is given; 1 if the field is absent."""
    found = explicit_count(obj, live)
    return 1 if found is None else found


def explicit_count(obj: CustomResource, live: Object | None = None) -> int | None:
    """The same; None if the field is absent: the API server sets a default, which the kind or its CRD defines."""
    is_converted = live is not None and live["apiVersion"] != obj.manifest["apiVersion"]
    path = (obj.with_manifest(live) if live and is_converted else obj).replicas()
    value = field(live or obj.manifest, *path) if path else None
    return value if isinstance(value, int) else None
