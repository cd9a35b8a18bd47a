"""
Objects of this instance that another program has made become this driver's.

They are found by the instance's label and the program's field manager, named in the inventory, and only then handed over,
one by one: each with a patch of its `managedFields` that holds for the resourceVersion that was read. Doing it again, also
after a crash in the middle, changes nothing that is done. No field of a spec is touched.
"""

from __future__ import annotations

import functools
from collections.abc import Collection
from dataclasses import dataclass

from oslo_log import log as logging

from k8s_cr_driver.engine import permissions
from k8s_cr_driver.engine.operation import Operation
from k8s_cr_driver.errors import ApiError, Contended, Forbidden
from k8s_cr_driver.kube.connection import MERGE
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.kube.responses import understood
from k8s_cr_driver.objects.keys import NAMESPACE, GroupKind, Object, ObjectKey, bare, key_of, labels
from k8s_cr_driver.ownership.labels import INSTANCE_LABEL, used_by
from k8s_cr_driver.ownership.managed_fields import succeeded
from k8s_cr_driver.ownership.write import SHARED, WriteContext, with_marks
from k8s_cr_driver.resources.registry import resource_for

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class InTreeDriver:
    """A program that labels what it makes with the VNF instance's id, as Tacker's own driver does."""

    name: str
    """As errors tell it."""
    manager: str
    """Its field manager."""
    kinds: Collection[GroupKind]
    """What it can make."""
    namespace: str
    """Where its objects are if not all namespaces may be looked through."""


def take_over(operation: Operation, target: WriteContext, intree_driver: InTreeDriver) -> None:
    """Makes the predecessor's objects of this instance ours, wherever they are. Forbidden if they cannot be looked for."""
    served = [resource for kind in sorted(intree_driver.kinds) if (resource := target.resources.find(kind))]
    found = [
        (resource, key)
        for resource in served
        if "list" in resource.verbs
        for key in operation.persist(functools.partial(_made, target, resource, intree_driver))
    ]
    kinds = {key.group_kind for _, key in found}
    namespaces = {key.name if key.group_kind == NAMESPACE else key.namespace for _, key in found} - {""}
    operation.persist(lambda: target.inventory.claim(operation.id, kinds, namespaces, create=bool(found)))
    for resource, key in found:
        operation.persist(functools.partial(_hand_over, target, resource, key, intree_driver))
    if found:
        LOG.info("%s: %d objects of %s were taken over", operation.id, len(found), intree_driver.name)


def _made(target: WriteContext, resource: Resource, intree_driver: InTreeDriver) -> list[ObjectKey]:
    """The objects of a kind that have the instance's label and were written by the predecessor."""
    return [
        key_of(live)
        for live in _labelled(target, resource, intree_driver)
        if _successor_fields(target, live, intree_driver)
    ]


def _labelled(target: WriteContext, resource: Resource, intree_driver: InTreeDriver) -> list[Object]:
    places = ("", intree_driver.namespace) if resource.namespaced else ("",)
    for place in places:
        try:
            return target.client.list(resource, place, f"{INSTANCE_LABEL}={target.instance}")
        except ApiError as error:
            if error.status != 403:
                raise
    # Who may not list a kind, but may create it, may have made objects that cannot be found now.
    if permissions.may(target.connection, "create", resource, places[-1]):
        raise Forbidden(
            f"The driver must be allowed to list {resource.plural} to take over what {intree_driver.name} may have made of it."
        )
    return []


def _hand_over(target: WriteContext, resource: Resource, key: ObjectKey, intree_driver: InTreeDriver) -> None:
    """What has gone meanwhile is well; Contended: what has changed is to be read again."""
    try:
        live = target.client.read(resource, key)
        if key.group_kind in SHARED and used_by(target.instance) not in labels(live):
            live = _mark(target, resource, key, live)
        if fields := _successor_fields(target, live, intree_driver):
            _patch(target, resource, key, live, fields)
    except ApiError as error:
        if error.status == 409:
            raise Contended(str(error)) from None
        if error.status != 404:
            raise


def _successor_fields(target: WriteContext, live: Object, intree_driver: InTreeDriver) -> list[Object] | None:
    with understood("managedFields"):
        return succeeded(live["metadata"].get("managedFields") or [], intree_driver.manager, target.manager)


def _mark(target: WriteContext, resource: Resource, key: ObjectKey, live: Object) -> Object:
    """Before it is handed over, for these marks are all that this apply names."""
    named = resource_for(bare(key, resource.api_version, resourceVersion=live["metadata"]["resourceVersion"]))
    marks = with_marks(target, named, made=True)
    return target.client.apply(resource, marks.manifest, target.manager, force=False)


def _patch(target: WriteContext, resource: Resource, key: ObjectKey, live: Object, fields: list[Object]) -> None:
    metadata = {"resourceVersion": live["metadata"]["resourceVersion"], "managedFields": fields}
    target.connection.request(
        "PATCH",
        resource.path(key.namespace, key.name),
        query=[("fieldManager", target.manager)],
        body={"metadata": metadata},
        content_type=MERGE,
    )
