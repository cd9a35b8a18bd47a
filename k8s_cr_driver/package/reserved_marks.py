# SPDX-License-Identifier: Apache-2.0
"""
What only the driver may say of an object: the marks of ownership, and the inventories.

A terminate deletes an object because of its marks, and an inventory says which objects are whose. So a package that brings
them could delete, or keep, the objects of others. Finalizers and owners hold or delete an object without the driver: on an
object that others use as well they are refused, too.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator

from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.objects.fields import field, shown, walk
from k8s_cr_driver.objects.keys import CRD, NAMESPACE, GroupKind, Object, key_of, kind_of

OURS = "k8s-cr-driver/"
OF_AUTHORS = frozenset(
    OURS + name
    for name in (
        *("vdu", "keep", "replace", "optional", "external-etcd", "unreachable"),
        *("ready-when", "failed-when", "suspended-when", "ignore-generation", "no-activity-timeout"),
    )
)
"""The annotations of this driver that a manifest may have."""
INVENTORY_PREFIX = "k8s-cr-driver-"
"""Begins the name of every inventory's ConfigMap."""

_PREFIXES = (OURS, f"used-by.{OURS}", f"keeps.{OURS}", "applyset.kubernetes.io/")
_INSTANCE = "tacker_vnf_instance_id"
_HOLDERS = ("ownerReferences", "finalizers")
_SHARED = frozenset({NAMESPACE, CRD})


def check(obj: Object) -> None:
    """Raise InvalidPackage for a mark of the driver, also in templates of other objects, and for what is like an inventory."""
    name = obj["metadata"]["name"]
    if kind_of(obj) == GroupKind("", "ConfigMap") and name.startswith(INVENTORY_PREFIX):
        raise InvalidPackage(
            f"metadata.name: {name} is the name of an inventory of this driver; choose one that does not begin with "
            f"{INVENTORY_PREFIX}"
        )
    for place, mark in _marks(obj):
        if wanted := meant(mark):
            raise InvalidPackage(f"{place}: {mark} is unknown; write {wanted}")
        raise InvalidPackage(f"{place}: {mark} is a mark that only the driver may set; remove it from the manifest")
    if kind_of(obj) in _SHARED:
        for place in _holders(obj):
            raise InvalidPackage(f"{place}: is not possible in a {obj['kind']}, which instances share; remove it")


def meant(annotation: str) -> str:
    """The annotation for authors that is meant by one which nobody knows; "" if none is."""
    if annotation in OF_AUTHORS or not annotation.startswith(OURS):
        return ""
    known = {name[len(OURS) :]: name for name in sorted(OF_AUTHORS)}
    near = difflib.get_close_matches(annotation[len(OURS) :][:40].lower(), known, n=1, cutoff=0.8)
    return known[near[0]] if near else ""


def check_adoptable(objects: Iterable[Object]) -> None:
    """Raise InvalidPackage for an object that is to be adopted if it exists, and that others could then not delete."""
    for obj in objects:
        for place in _holders(obj):
            raise InvalidPackage(
                f"{key_of(obj)}: {place}: is not possible with adopt-existing, because the object may belong to others; "
                "remove it from the manifest, or do without adopt-existing"
            )


def _holders(obj: Object) -> Iterator[str]:
    """The fields by which others hold or delete the object; every Namespace has the server's own finalizer."""
    yield from (f"metadata.{name}" for name in _HOLDERS if obj["metadata"].get(name))
    if kind_of(obj) == NAMESPACE and field(obj, "spec", "finalizers") not in (None, [], ["kubernetes"]):
        yield "spec.finalizers"


def _marks(obj: Object) -> Iterator[tuple[str, str]]:
    """(field, mark) in the metadata of an object and of the templates within it."""
    for path, value in walk(obj):
        match path:
            case (*_, "metadata", "labels" | "annotations" as holder) if isinstance(value, dict):
                for name in value:
                    is_mark = name == _INSTANCE or name.startswith(_PREFIXES)
                    if is_mark and not (holder == "annotations" and name in OF_AUTHORS):
                        yield shown(path), name
