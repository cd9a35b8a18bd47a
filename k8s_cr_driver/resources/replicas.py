"""The replica count of an object: reads it, sets it, removes it."""

from __future__ import annotations

import copy
from collections.abc import Mapping

from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.objects.fields import type_name
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.resources.base import CustomResource


def without_replicas(obj: CustomResource) -> CustomResource:
    path = obj.replicas() or ()
    manifest = copy.deepcopy(obj.manifest)
    parent = manifest
    for step in path[:-1]:
        parent = parent[step]
    parent.pop(path[-1])
    return type(obj)(manifest, obj.crd)


def with_replicas(obj: CustomResource, count: int) -> CustomResource:
    """The same object with another count; unchanged if its kind cannot be scaled."""
    path = obj.replicas()
    if not path:
        return obj
    manifest: Object = copy.deepcopy(obj.manifest)
    parent = manifest
    for step in path[:-1]:
        if parent.get(step) is None:
            parent[step] = {}
        parent = parent[step]
        if not isinstance(parent, dict):
            where = ".".join(path)
            raise InvalidPackage(f"{obj.key}: {step}: is {type_name(parent)}, must be a mapping with the count at {where}")
    parent[path[-1]] = count
    return type(obj)(manifest, obj.crd)


def count(obj: CustomResource, live: Object | None = None) -> int:
    """The replica count of the object; 1 if it names none."""
    value: object = live or obj.manifest
    for step in obj.replicas() or ():
        value = value.get(step) if isinstance(value, Mapping) else None
    return value if isinstance(value, int) else 1
