# SPDX-License-Identifier: Apache-2.0
"""
Shared objects, Namespaces and CRDs, that another instance has brought: this one adds its label to them and nothing else.

So no instance changes the schema, the conversion webhook or the labels that others rely on.
"""

from __future__ import annotations

from collections.abc import Iterable

from k8s_cr_driver.journal.entries import InventoryContent
from k8s_cr_driver.journal.inventory import Inventory
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.objects.crds import defined_by, is_refused
from k8s_cr_driver.objects.keys import NAMESPACE, Object, bare, key_of, kind_of
from k8s_cr_driver.objects.marks import KEEP, SHARED, has_applied, is_created, is_released, manager, used_by, users
from k8s_cr_driver.writes.release import has_been_kept


def is_co_user(live: Object, instance: str) -> bool:
    """Whether the object is shared, others use, keep or have made it, and the instance has applied no more than its marks."""
    is_theirs = bool(users(live) - {instance}) or not (is_created(live) or is_released(live)) or has_been_kept(live)
    return kind_of(live) in SHARED and is_theirs and not has_applied(live, instance)


def claimed_by_others(inventory: Inventory, live: Object) -> str:
    """Why other instances may use a shared object, by their inventories, with or without their label; "" if none does."""
    return claim_of(inventory.others(), live)


def claim_of(others: Iterable[InventoryContent | None], live: Object) -> str:
    """
    The same by these inventories.

    They name kinds: what others have of the kind of a refused CRD is of the CRD that has its names.
    """
    if is_refused(live):
        return ""
    key, kind = key_of(live), defined_by(live)
    for other in others:
        if other is None:
            return "another instance, whose inventory makes no sense, may use it"
        if (key.name in other.namespaces) if key.group_kind == NAMESPACE else (kind in other.kinds):
            return "other instances use it"
    return ""


def join(client: Client, instance: str, resource: Resource, live: Object, *, keeps: bool) -> Object:
    """Adds the label of this instance, and that it `keeps` the object; ApiError 409 if it has changed since it was read."""
    metadata = {name: live["metadata"][name] for name in ("uid", "resourceVersion")}
    metadata |= {"annotations": {KEEP: "true"}} if keeps else {}
    body = bare(key_of(live), resource.api_version, **metadata, labels={used_by(instance): ""})
    return client.apply(resource, body, manager(instance), force=False, live=live)
