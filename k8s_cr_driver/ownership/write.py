"""
Writing one object: create only, find out whose it is, apply; and what an error of it means.

An object that is not known to be ours is written by an apply that can only create. If one of that name exists the server
answers 409, be it for the resourceVersion or for fields in conflict, and has written nothing. Then one read decides:
ours, shared, another instance's, or somebody else's.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from oslo_log import log as logging

from k8s_cr_driver.errors import ApiError, NotOurs
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.discovery import Resource, Resources
from k8s_cr_driver.objects.keys import CRD, NAMESPACE, GroupKind, Object, ObjectKey, annotations_of, labels
from k8s_cr_driver.ownership.inventory import Inventory
from k8s_cr_driver.ownership.labels import (
    INSTANCE_LABEL,
    MADE_BY_US,
    PART_OF_LABEL,
    is_made,
    is_managed,
    manager,
    used_by,
    users,
)
from k8s_cr_driver.ownership.write_errors import NOT_RESTORED, conflicting, explained
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.replicas import without_replicas

SHARED = frozenset({NAMESPACE, CRD})
"""Kinds that several instances may bring; see `marks.USED_BY`."""

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class WriteContext:
    """Where and as whom objects are written; one per run, used by all its threads."""

    client: Client
    inventory: Inventory
    force: bool = False
    adopt: bool = False
    keep_autoscaled: bool = True
    """Leave a count to the autoscaler that owns it; False in SCALE, which then fails and names it."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def connection(self) -> Connection:
        return self.client.connection

    @property
    def resources(self) -> Resources:
        return self.client.resources

    @property
    def instance(self) -> str:
        return self.inventory.instance

    @property
    def manager(self) -> str:
        return manager(self.inventory.instance)


def selector(instance: str, kind: GroupKind) -> str:
    """Of the labels by which an instance's objects of a kind are found."""
    return used_by(instance) if kind in SHARED else f"{INSTANCE_LABEL}={instance}"


def write(target: WriteContext, obj: CustomResource, resource: Resource, known: Object | None) -> Object:
    """Makes `obj` real and returns what the server has now. `known`: the live object if a stream says it is ours."""
    target.inventory.before_write()
    if known is not None and is_managed(known, target.instance):
        return _apply(target, obj, resource, known)
    is_told = obj.key.group_kind in SHARED or obj.key in target.inventory.record.adopted
    try:
        made = target.client.create(resource, with_marks(target, obj, made=is_told).manifest, target.manager)
    except ApiError as error:
        if error.status != 409:
            raise explained(error, obj, target.instance) from None
        exists = error
    else:
        with target.lock:
            target.inventory.own(obj.key)
        return made
    try:
        live = target.client.read(resource, obj.key)
    except ApiError as error:
        raise (exists if error.status == 404 else error) from None  # it has gone meanwhile: 409 passes, 404 does not
    _check_owner(target, obj, live)
    return _apply(target, obj, resource, live)


def _apply(target: WriteContext, obj: CustomResource, resource: Resource, live: Object) -> Object:
    marked = with_marks(target, obj, made=is_made(live))
    if is_made(live):  # the answer to its making may have been lost
        with target.lock:
            target.inventory.own(obj.key)
    if "patch" not in resource.verbs:
        return live
    try:
        return target.client.apply(resource, marked.manifest, target.manager, force=False)
    except ApiError as error:
        refusal = error
    if target.force and refusal.status == 409 and refusal.causes:
        LOG.warning("%s takes over what others manage: %s. %s", obj.key, conflicting(refusal), NOT_RESTORED)
        try:
            return target.client.apply(resource, marked.manifest, target.manager, force=True)
        except ApiError as error:
            refusal = error
    elif target.keep_autoscaled and _is_autoscaled(refusal, obj):
        return target.client.apply(resource, without_replicas(marked).manifest, target.manager, force=False)
    raise explained(refusal, obj, target.instance, live)


def has_gone(target: WriteContext, key: ObjectKey, resource: Resource, uid: str) -> bool:
    """Whether there is no object of that uid any more; another one may have its name."""
    try:
        live = target.client.read(resource, key)
    except ApiError as error:
        if error.status != 404:
            raise
        return True
    return bool(live["metadata"]["uid"] != uid)


def with_marks(target: WriteContext, obj: CustomResource, *, made: bool) -> CustomResource:
    """The object with the labels that tell whose it is; `made` is that it shall say who has made it."""
    metadata = dict(obj.manifest["metadata"])
    if obj.key.group_kind in SHARED:
        marks = {used_by(target.instance): ""}
    else:
        marks = {INSTANCE_LABEL: target.instance, PART_OF_LABEL: target.inventory.applyset}
    if made:
        metadata["annotations"] = {**annotations_of(obj.manifest), MADE_BY_US: "true"}
    metadata["labels"] = {**labels(obj.manifest), **marks}
    return type(obj)({**obj.manifest, "metadata": metadata}, obj.crd)


def _check_owner(target: WriteContext, obj: CustomResource, live: Object) -> None:
    shared = obj.key.group_kind in SHARED and (users(live) or is_made(live))
    if shared or is_managed(live, target.instance):
        return
    owner = labels(live).get(INSTANCE_LABEL)
    if owner == target.instance or obj.key in target.inventory.record.adopted:
        return
    if owner:
        raise NotOurs(
            f"{obj.key} belongs to VNF instance {owner}. Give this one another name or namespace, or terminate that instance."
        )
    if not target.adopt:
        raise NotOurs(
            f"{obj.key} exists already and was not made by this instance. Give it another name, delete it, or set "
            "additionalParams adopt-existing: true to take it over (it will not be deleted at terminate)."
        )
    LOG.warning("%s was there before and is adopted: it will be let go, not deleted", obj.key)
    with target.lock:
        target.inventory.adopt(obj.key)


def _is_autoscaled(error: ApiError, obj: CustomResource) -> bool:
    path = obj.replicas()
    return bool(
        path
        and error.status == 409
        and error.causes
        and all(
            where == "." + ".".join(path) and 'subresource "scale"' in message for _, where, message in error.causes
        )
    )
