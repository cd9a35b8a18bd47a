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
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.objects.api_groups import is_builtin
from k8s_cr_driver.objects.crds import defined_by, is_refused
from k8s_cr_driver.objects.fields import field
from k8s_cr_driver.objects.keys import CRD, NAMESPACE, GroupKind, Object, is_of_every_namespace, key_of, kind_of
from k8s_cr_driver.ownership.context import WriteContext, has_gone
from k8s_cr_driver.ownership.guests import Guests
from k8s_cr_driver.ownership.labels import KEEP, SHARED, has_applied, is_created, is_kept, is_released, users
from k8s_cr_driver.ownership.labels import manager as manager_of
from k8s_cr_driver.ownership.released import release_account, release_adopted, release_kept, release_shared
from k8s_cr_driver.ownership.write_errors import is_denied
from k8s_cr_driver.resources.base import CustomResource

LOG = logs.logger(__name__)

EXISTED, IN_USE, ANNOTATED = "it existed before the instance", "it holds objects of this instance", f"annotated with {KEEP}"
"""Why an object stays when its instance releases it."""


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
    context.inventory.fence.before_delete()
    with context.lock:
        context.inventory.withdraw(kinds, namespaces)


def remove(
    context: WriteContext,
    obj: CustomResource,
    resource: Resource,
    live: Object,
    grace_period: int | None,
    *,
    is_used: bool = False,
    guests: Guests | None = None,
    owners: Collection[str] = (),
) -> Removal | None:
    """Requests the deletion or release; the watch of its kind reports when it is done.

    A Namespace or CRD that nothing of the instance uses must be withdrawn before, see `withdraw`.
    Returns None if the object no longer exists. `is_used`: a Namespace or CRD without
    which objects that the instance keeps would be deleted, so it is released. `guests` are those of the run, `owners` the
    uids of the objects that it deletes. ApiError 409: it has changed, call again.
    """
    removal = functools.partial(
        _remove, context, obj, resource, grace_period, was_kept=is_kept(live), is_used=is_used, guests=guests, owners=owners
    )
    try:
        try:
            return removal(live)
        except ApiError as error:
            if error.status != 409:
                raise
        return removal(_judged_again(context, resource, live))
    except ApiError as error:
        if error.status != 404:
            raise
        is_named = error.subject == (resource.plural, obj.key.name) and not is_denied(error)
        if not is_named and not has_gone(context, obj.key, resource, live["metadata"]["uid"]):
            raise Contended(f"{obj.key}: a 404 that is not of this object: {error.message}") from None
    return None


def _judged_again(context: WriteContext, resource: Resource, live: Object) -> Object:
    """The object as it is now: it may have been annotated meanwhile. An account that may not read it has the last state."""
    try:
        return context.client.read_again(resource, live)
    except ApiError as error:
        if error.status != 403:
            raise
    metadata = {name: value for name, value in live["metadata"].items() if name != "resourceVersion"}
    return {**live, "metadata": metadata}


def _remove(
    context: WriteContext,
    obj: CustomResource,
    resource: Resource,
    grace_period: int | None,
    live: Object,
    *,
    was_kept: bool,
    is_used: bool,
    guests: Guests | None,
    owners: Collection[str],
) -> Removal:
    context.inventory.fence.before_delete()
    is_shared = obj.key.group_kind in SHARED
    if is_shared or is_kept(live) or context.inventory.content.is_adopted(live):
        live = context.client.read_again(resource, live)  # it may have been annotated meanwhile
    if context.inventory.content.is_adopted(live):
        if is_shared and users(live) - {context.instance}:  # they may rely on what it has applied
            release_shared(context.client, context.instance, resource, live, is_last=False)
        else:
            release_adopted(context.client, context.instance, resource, live, owners)
        return Removal(EXISTED)
    if is_kept(live):
        release_kept(context.client, context.instance, resource, live, owners)
        return Removal(ANNOTATED)
    if is_of_every_namespace(obj.key):  # Pods of others use it, too
        release_account(context.client, context.instance, resource, context.client.read_again(resource, live))
        return Removal("Kubernetes puts it into each Namespace")
    if is_shared and was_kept:
        raise Contended(f"{obj.key} is not to be kept any more: it is withdrawn first")
    if is_shared:
        return _release_shared(context, obj, resource, live, guests or Guests(context), is_used=is_used)
    return _deleted(context, resource, live, grace_period)


def announce(context: WriteContext, shared: Iterable[Object], guests: Guests) -> None:
    """Logs what of others the deletion of Namespaces and CRDs of this instance takes along, before anything is deleted."""
    for live in shared:
        goes = is_created(live) and not users(live) - {context.instance} and not guests.reason(live)
        if goes and (taken := guests.taken_with(key_of(live))):
            LOG.warning("%s is to be deleted %s", key_of(live), taken)


def used_by_others(others: Collection[str]) -> str:
    """Why a shared object stays that other instances use."""
    return f"used by VNF instance {', '.join(sorted(others))}"


def _release_shared(
    context: WriteContext, obj: CustomResource, resource: Resource, live: Object, guests: Guests, *, is_used: bool
) -> Removal:
    if others := users(live) - {context.instance}:
        release_shared(context.client, context.instance, resource, live, is_last=False)
        return Removal(used_by_others(others))
    stays = _why_it_stays(context, guests, live, is_used=is_used)
    context.inventory.fence.before_delete()  # its lists may have taken minutes
    if stays:
        is_ours = is_created(live) or (is_released(live) and has_applied(live, context.instance))  # else it is a user's
        release_shared(context.client, context.instance, resource, live, is_last=is_ours)
        return Removal(stays)
    if taken := guests.taken_with(obj.key):
        LOG.warning("%s is deleted %s", obj.key, taken)
    return _deleted(context, resource, live)


def _deleted(context: WriteContext, resource: Resource, live: Object, grace_period: int | None = None) -> Removal:
    response = context.client.delete(resource, live, propagation=_propagation(live), grace_period=grace_period)
    return Removal(lingers=field(response, "metadata", "deletionTimestamp") is not None)


def _why_it_stays(context: WriteContext, guests: Guests, live: Object, *, is_used: bool) -> str:
    """Of a Namespace or CRD that no other instance brings; "" if it goes."""
    if is_used:
        return IN_USE
    if not is_created(live):
        return EXISTED
    return guests.reason(live)


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
