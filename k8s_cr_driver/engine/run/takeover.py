# SPDX-License-Identifier: Apache-2.0
"""
Takeover of the objects that Tacker's in-tree driver has created for an instance.

They are found by the instance's label and that driver's field manager, and are recorded in the inventory first. Then the
`managedFields` of each object are patched, on the condition of its resourceVersion. No field of a spec changes. Repeating
it, also after a crash in the middle, changes nothing that is done.
"""

from __future__ import annotations

import functools
from collections.abc import Collection
from dataclasses import dataclass

from k8s_cr_driver import logs
from k8s_cr_driver.engine.report import permissions
from k8s_cr_driver.engine.run.operation import Operation
from k8s_cr_driver.errors import ApiError, Contended, Forbidden
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.kube.responses import understood
from k8s_cr_driver.objects.fields import field
from k8s_cr_driver.objects.keys import NAMESPACE, GroupKind, Object, ObjectKey, bare, controller_of, key_of, labels
from k8s_cr_driver.objects.managed_fields import succeeded
from k8s_cr_driver.objects.marks import INSTANCE_LABEL, SHARED, is_managed, used_by
from k8s_cr_driver.resources.builtin import RETAINED, RETENTION
from k8s_cr_driver.resources.registry import resource_for
from k8s_cr_driver.writes.context import WriteContext, with_owner_labels

LOG = logs.logger(__name__)


@dataclass(frozen=True)
class InTreeDriver:
    """A driver that labels the objects it creates with the VNF instance's id, as Tacker's in-tree driver does."""

    name: str
    """Its name in errors."""
    manager: str
    """Its field manager."""
    kinds: Collection[GroupKind]
    """The kinds that it can create."""
    namespace: str
    """Where its objects are of the kinds that it places, and of all for accounts that may not list all namespaces."""
    placed: Collection[GroupKind] = ()
    """The kinds whose objects it puts into that namespace, so that those elsewhere are somebody else's."""
    recorded: frozenset[ObjectKey] = frozenset()
    """Objects that Tacker's record names: members with the instance's label alone, as when others have created them again."""


def take_over(operation: Operation, context: WriteContext, intree_driver: InTreeDriver) -> None:
    """Makes the in-tree driver's objects of this instance ours; Forbidden if they cannot be listed."""
    served = [resource for kind in sorted(intree_driver.kinds) if (resource := context.resources.find(kind))]
    found = [
        (resource, key)
        for resource in served
        if "list" in resource.verbs
        for key in operation.persist(functools.partial(_written_by, context, resource, intree_driver))
    ]
    kinds = {key.group_kind for _, key in found}
    namespaces = {key.name if key.group_kind == NAMESPACE else key.namespace for _, key in found} - {""}
    inventory = context.inventory
    operation.persist(lambda: inventory.claim(operation.id, kinds, namespaces, create=bool(found)))
    operation.persist(lambda: inventory.add_members(key for _, key in found))
    for resource, key in found:
        operation.persist(functools.partial(_transfer, context, resource, key, intree_driver))
    if found:
        LOG.info("%s: %d objects of %s were taken over", operation.id, len(found), intree_driver.name)


def _written_by(context: WriteContext, resource: Resource, intree_driver: InTreeDriver) -> list[ObjectKey]:
    """The objects of a kind that have the instance's label and were written by the in-tree driver.

    Its field manager is that of every Python client. What such a controller has created has an owner that controls it, and
    may have the label of that owner.
    """
    return [
        key_of(live)
        for live in _labelled(context, resource, intree_driver)
        if (key_of(live) in intree_driver.recorded or _successor_fields(context, live, intree_driver))
        and (not controller_of(live) or is_managed(live, context.instance))
    ]


def _labelled(context: WriteContext, resource: Resource, intree_driver: InTreeDriver) -> list[Object]:
    places = ("", intree_driver.namespace) if resource.namespaced else ("",)
    if resource.group_kind in intree_driver.placed:
        places = (intree_driver.namespace,)
    for place in places:
        try:
            return context.client.list(resource, place, f"{INSTANCE_LABEL}={context.instance}")
        except ApiError as error:
            if error.status != 403:
                raise
    # An account that may create a kind but not list it may have created objects that cannot be found now.
    if permissions.may(context.connection, "create", resource, places[-1]):
        raise Forbidden(
            f"The driver must be allowed to list {resource.plural} to take over what {intree_driver.name} may have created."
        )
    return []


def _transfer(context: WriteContext, resource: Resource, key: ObjectKey, intree_driver: InTreeDriver) -> None:
    """Transfers one object; one that was deleted is skipped. Contended if it has changed or was deleted since it was read."""
    context.inventory.fence.before_write()
    try:
        live = context.client.read(resource, key)
    except ApiError as error:
        if error.status != 404:
            raise
        return
    try:
        if key.group_kind in SHARED and used_by(context.instance) not in labels(live):
            live = _mark(context, resource, key, live)
        if fields := _successor_fields(context, live, intree_driver):
            _patch(context, resource, live, fields)
    except ApiError as error:
        raise (Contended(str(error)) if error.status in (404, 409) else error) from None


def _successor_fields(context: WriteContext, live: Object, intree_driver: InTreeDriver) -> list[Object] | None:
    is_default = field(live, "spec", RETENTION) == RETAINED
    with understood("managedFields"):
        found = live["metadata"].get("managedFields") or []
        return succeeded(found, intree_driver.manager, context.manager, [RETENTION] if is_default else [])


def _mark(context: WriteContext, resource: Resource, key: ObjectKey, live: Object) -> Object:
    """Labels a shared object. Must precede the transfer: an apply that names only labels would drop transferred fields.

    Without the uid an apply would create an object that no longer exists, empty.
    """
    found = live["metadata"]
    named = resource_for(bare(key, resource.api_version, uid=found["uid"], resourceVersion=found["resourceVersion"]))
    labelled = with_owner_labels(context, named, made=True)
    return context.client.apply(resource, labelled.manifest, context.manager, force=False, live=live)


def _patch(context: WriteContext, resource: Resource, live: Object, fields: list[Object]) -> None:
    seen = live["metadata"]["resourceVersion"]
    context.client.patch_metadata(resource, live, context.manager, resourceVersion=seen, managedFields=fields)
