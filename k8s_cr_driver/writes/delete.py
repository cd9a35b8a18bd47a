# SPDX-License-Identifier: Apache-2.0
"""
Removes one object of an instance: deletes it if the instance created it, releases it if it is shared or adopted.

A shared object is released on the condition of the resourceVersion that was read, so that of two instances that release
it at the same time exactly one is the last, and deletes it.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable
from typing import NamedTuple

from k8s_cr_driver import logs
from k8s_cr_driver.errors import ApiError, Contended
from k8s_cr_driver.journal.stored_form import INVENTORY_MANAGER
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.objects.api_groups import is_builtin
from k8s_cr_driver.objects.crds import defined_by, is_refused
from k8s_cr_driver.objects.fields import field
from k8s_cr_driver.objects.keys import (
    CRD,
    NAMESPACE,
    GroupKind,
    Object,
    ObjectKey,
    annotations_of,
    key_of,
    kind_of,
)
from k8s_cr_driver.objects.marks import KEEPS, SHARED, has_applied, is_created, is_kept, is_released, users
from k8s_cr_driver.objects.marks import manager as manager_of
from k8s_cr_driver.plan.actions import Way, decide, stays
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.writes.context import WriteContext, has_gone
from k8s_cr_driver.writes.guests import Guests
from k8s_cr_driver.writes.release import release_account, release_adopted, release_kept, release_shared
from k8s_cr_driver.writes.write_errors import is_denied

LOG = logs.logger(__name__)


class Removal(NamedTuple):
    """What has become of an object."""

    stays: str = ""
    """Why it was released and stays; "" if it is deleted."""
    lingers: bool = False
    """Whether it still exists, until others have acted."""


def withdraw(context: WriteContext, shared: Collection[Object]) -> None:
    """
    Removes Namespaces and CRDs from the inventory that the instance is about to `remove`, by one write.

    Only then may their other users be looked up: else of two instances that leave at once each would find the other.
    The kind of a refused CRD stays: the instance may have objects of the CRD that has its names.
    """
    kinds = {defined_by(live) for live in shared if kind_of(live) == CRD and not is_refused(live)}
    namespaces = {key_of(live).name for live in shared if kind_of(live) == NAMESPACE}
    context.inventory.fence.before_write()
    context.inventory.withdraw(kinds, namespaces)


def remove(
    context: WriteContext,
    obj: CustomResource,
    resource: Resource,
    live: Object,
    grace_period: int | None,
    *,
    why: str = "",
) -> Removal | None:
    """Requests the deletion or release; the watch of its kind reports when it is done.

    A Namespace or CRD that nothing of the instance uses must be withdrawn before, see `withdraw`. `why` it stays, if it does.
    Returns None if the object no longer exists. ApiError 409: it has changed, call again.
    """
    was_kept = obj.key.group_kind in SHARED and is_kept(live)
    removal = functools.partial(_remove, context, obj, resource, grace_period, was_kept=was_kept, why=why)
    try:
        try:
            return removal(live)
        except ApiError as error:
            if error.status != 409 or obj.key.group_kind in SHARED:  # whatever has changed of these may keep them
                raise
            return removal(_now(context, resource, live, error))
    except ApiError as error:
        if error.status != 404:
            raise
        is_named = error.subject == (resource.plural, obj.key.name) and not is_denied(error)
        if not is_named and not has_gone(context, obj.key, resource, live["metadata"]["uid"]):
            raise Contended(f"{obj.key}: a 404 that is not of this object: {error.message}") from None
    return None


def _now(context: WriteContext, resource: Resource, live: Object, conflict: ApiError) -> Object:
    """The object as it is now: it may have been annotated meanwhile. Raises `conflict` if only its watch may report that."""
    try:
        return context.client.read_again(resource, live)
    except ApiError as error:
        raise (conflict if error.status == 403 else error) from None


def _remove(
    context: WriteContext,
    obj: CustomResource,
    resource: Resource,
    grace_period: int | None,
    live: Object,
    *,
    was_kept: bool,
    why: str,
) -> Removal:
    context.inventory.fence.before_write()
    instance = context.instance
    way, reason = decide(context.inventory.content, instance, live, why)
    if was_kept and not stays(context.inventory.content, live):
        raise Contended(f"{obj.key} is not to be kept any more: it is withdrawn first")
    if way is Way.KEEP:
        _mark_namespace(context, live)
        release_kept(context, resource, live)
    elif way is Way.GIVE_BACK:
        _mark_namespace(context, live)
        release_adopted(context, resource, live)
    elif way is Way.GIVE_UP:  # Pods of others use it, too
        release_account(context, resource, context.client.read_again(resource, live))
    elif way is Way.LEAVE_TO_OTHERS:  # they may rely on what it has applied
        release_shared(context, resource, live, is_last=False)
    elif way is Way.LEAVE:
        is_ours = is_created(live) or (is_released(live) and has_applied(live, instance))  # else it is a user's
        release_shared(context, resource, live, is_last=is_ours)
    else:
        return _deleted(context, resource, live, grace_period)
    return Removal(reason)


def _mark_namespace(context: WriteContext, live: Object) -> None:
    """Notes in the Namespace of an object that is about to be released that it stays, too: whoever deletes that finds it."""
    resource, mark = context.resources.find(NAMESPACE), f"{KEEPS}/{context.instance}"
    name = key_of(live).namespace
    if resource is None or not name:
        return
    try:
        namespace = context.client.read(resource, ObjectKey(*NAMESPACE, "", name))
        if mark in annotations_of(namespace) or not (users(namespace) or is_created(namespace)):  # no instance deletes it
            return
        metadata = {"uid": namespace["metadata"]["uid"], "annotations": {mark: "true"}}
        context.client.patch_metadata(resource, namespace, INVENTORY_MANAGER, **metadata)
    except ApiError as error:
        if error.status == 404:
            return
        if error.status != 403:
            raise
        LOG.warning("%s stays, and another instance may delete its Namespace, which cannot be marked: %s", key_of(live), error)


def announce(context: WriteContext, shared: Iterable[Object], guests: Guests) -> None:
    """Logs what of others the deletion of Namespaces and CRDs of this instance takes along, before anything is deleted."""
    content, instance = context.inventory.content, context.instance
    going = [live for live in shared if decide(content, instance, live).way is Way.DELETE]
    for key, why in guests.reasons(going).items():
        if not why and (taken := guests.taken_with(key)):
            LOG.warning("%s is to be deleted %s", key, taken)


def why_it_stays(context: WriteContext, shared: Iterable[Object], guests: Guests) -> dict[ObjectKey, str]:
    """
    Of Namespaces and CRDs, which are withdrawn, and that nothing of the instance uses; "" for one that is to be deleted.

    And for one that others use: they may leave it before its label goes, and then this instance is the last.
    """
    content, instance = context.inventory.content, context.instance
    lives = list(shared)
    found = {key_of(live): decide(content, instance, live) for live in lives}
    looked = [live for live in lives if found[key_of(live)].way is Way.DELETE]
    reasons = {key: one.why if one.way is Way.LEAVE else "" for key, one in found.items()}
    return reasons | (guests.reasons(looked) if looked else {})


def _deleted(context: WriteContext, resource: Resource, live: Object, grace_period: int | None = None) -> Removal:
    response = context.client.delete(resource, live, propagation=_propagation(live), grace_period=grace_period)
    return Removal(lingers=field(response, "metadata", "deletionTimestamp") is not None)


def _propagation(live: Object) -> str:
    """Foreground for objects that may have dependents, so that these are deleted before the object.

    Not for an object with finalizers: its controller deletes the dependents in an order of its own, and the garbage
    collector would interfere (a Cluster of Cluster API then never goes). Not for kinds that own nothing: the collector
    handles 20 objects a second at its default limits. Not for a custom resource that no controller has written to: the
    collector resyncs its kinds every 30 s, so it sees a new CRD late and a deleted one never.
    """
    kind = kind_of(live)
    workload = kind.group in ("apps", "batch") or kind == GroupKind("", "ReplicationController")
    may_own = workload or (not is_builtin(kind) and _has_controller(live))
    held = set(live["metadata"].get("finalizers") or []) - {"foregroundDeletion"}  # set by an earlier request of ours
    return "Foreground" if may_own and not held else "Background"


def _has_controller(live: Object) -> bool:
    """Whether anybody but VNF instances has written it, as a controller does that manages the object."""
    managers = [str(entry.get("manager")) for entry in live["metadata"].get("managedFields") or []]
    return not all(name.startswith(manager_of("")) for name in managers)
