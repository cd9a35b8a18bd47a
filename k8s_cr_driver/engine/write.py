"""
Writing one object: create only, find out whose it is, apply; and what an error of it means.

An object that is not known to be ours is written by an apply that can only create. If one of that name exists the server
answers 409, be it for the resourceVersion or for fields in conflict, and has written nothing. Then one read decides:
ours, shared, another instance's, or somebody else's.
"""

from __future__ import annotations

import copy
import re
import threading
from collections.abc import Collection
from dataclasses import dataclass, field

from oslo_log import log as logging

from k8s_cr_driver.connection import Connection
from k8s_cr_driver.discovery import Resource
from k8s_cr_driver.errors import ApiError, Conflict, DriverError, Forbidden, NotOurs, Refused, passes
from k8s_cr_driver.inventory import Inventory
from k8s_cr_driver.keys import CRD, NAMESPACE, Key, Kind, Object, annotations_of, bare, labels
from k8s_cr_driver.marks import INSTANCE_LABEL, MADE_BY_US, PART_OF_LABEL, is_made, is_managed, manager, used_by, users
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.registry import resource_for

SHARED = frozenset({NAMESPACE, CRD})
"""Kinds that several instances may bring; see `marks.USED_BY`."""
NOT_RESTORED = "Values of others that were taken over by force are restored by neither rollback nor terminate."

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Target:
    """Where and as whom objects are written; one per run, used by all its threads."""

    connection: Connection
    inventory: Inventory
    force: bool = False
    adopt: bool = False
    keep_autoscaled: bool = True
    """Leave a count to the autoscaler that owns it; False in SCALE, which then fails and names it."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def instance(self) -> str:
        return self.inventory.instance

    @property
    def manager(self) -> str:
        return manager(self.inventory.instance)


def selector(instance: str, kind: Kind) -> str:
    """Of the labels by which an instance's objects of a kind are found."""
    return used_by(instance) if kind in SHARED else f"{INSTANCE_LABEL}={instance}"


class Immutable(Refused):
    """The change touches a field that cannot change; the object's kind or annotation may allow to replace it."""


def write(target: Target, obj: CustomResource, resource: Resource, known: Object | None) -> Object:
    """Makes `obj` real and returns what the server has now. `known`: the live object if a stream says it is ours."""
    target.inventory.before_write()
    if known is not None and is_managed(known, target.instance):
        return _apply(target, obj, resource, known)
    is_told = obj.key.of in SHARED or obj.key in target.inventory.record.adopted
    try:
        made = with_marks(target, obj, made=is_told).create(target.connection, resource, target.manager)
    except ApiError as error:
        if error.status != 409:
            raise _explained(error, obj, target) from None
        exists = error
    else:
        with target.lock:
            target.inventory.own(obj.key)
        return made
    try:
        live = obj.read(target.connection, resource)
    except ApiError as error:
        raise (exists if error.status == 404 else error) from None  # it has gone meanwhile: 409 passes, 404 does not
    _check_owner(target, obj, live)
    return _apply(target, obj, resource, live)


def _apply(target: Target, obj: CustomResource, resource: Resource, live: Object) -> Object:
    marked = with_marks(target, obj, made=is_made(live))
    if is_made(live):  # the answer to its making may have been lost
        with target.lock:
            target.inventory.own(obj.key)
    if "patch" not in resource.verbs:
        return live
    try:
        return marked.apply(target.connection, resource, target.manager, force=False)
    except ApiError as error:
        refusal = error
    if target.force and refusal.status == 409 and refusal.causes:
        LOG.warning("%s takes over what others manage: %s. %s", obj.key, _told(refusal), NOT_RESTORED)
        try:
            return marked.apply(target.connection, resource, target.manager, force=True)
        except ApiError as error:
            refusal = error
    elif target.keep_autoscaled and _is_autoscaled(refusal, obj):
        return _without_replicas(marked).apply(target.connection, resource, target.manager, force=False)
    raise _explained(refusal, obj, target, live)


def has_gone(target: Target, key: Key, resource: Resource, uid: str) -> bool:
    """Whether there is no object of that uid any more; another one may have its name."""
    try:
        live = resource_for(bare(key, resource.api_version)).read(target.connection, resource)
    except ApiError as error:
        if error.status != 404:
            raise
        return True
    return bool(live["metadata"]["uid"] != uid)


def with_marks(target: Target, obj: CustomResource, *, made: bool) -> CustomResource:
    """The object with the labels that tell whose it is; `made` is that it shall say who has made it."""
    metadata = dict(obj.manifest["metadata"])
    if obj.key.of in SHARED:
        marks = {used_by(target.instance): ""}
    else:
        marks = {INSTANCE_LABEL: target.instance, PART_OF_LABEL: target.inventory.applyset}
    if made:
        metadata["annotations"] = {**annotations_of(obj.manifest), MADE_BY_US: "true"}
    metadata["labels"] = {**labels(obj.manifest), **marks}
    return type(obj)({**obj.manifest, "metadata": metadata}, obj.crd)


def _check_owner(target: Target, obj: CustomResource, live: Object) -> None:
    shared = obj.key.of in SHARED and (users(live) or is_made(live))
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


def _without_replicas(obj: CustomResource) -> CustomResource:
    path = obj.replicas() or ()
    manifest = copy.deepcopy(obj.manifest)
    parent = manifest
    for step in path[:-1]:
        parent = parent[step]
    parent.pop(path[-1])
    return type(obj)(manifest, obj.crd)


def _explained(error: ApiError, obj: CustomResource, target: Target, live: Object | None = None) -> ApiError | Refused:
    """The error as a user should read it; ApiError itself where `is_transient` has yet to decide."""
    if error.status == 409 and error.causes:
        others = sorted(users(live or {}) - {target.instance})
        whose = f" It is shared with VNF instance {', '.join(others)}." if others else ""
        return Conflict(
            f"{obj.key}: others manage fields that the manifest sets: {_told(error)}.{whose} Remove them from the "
            f"manifest, or set additionalParams force-conflicts: true to take them over. {NOT_RESTORED}",
            [where for _, where, _ in error.causes],
        )
    if error.status == 422 and re.search(r"immutable|may not change|forbidden: updates to", error.message):
        return Immutable(
            f"{obj.key}: {error.message}. Annotate it with k8s-cr-driver/replace: \"true\" to have it deleted and made again."
        )
    if error.status == 403 and not _passes(error.message):
        return Forbidden(f"{obj.key}: {error.message}")
    if error.status in (400, 413, 415, 422) or _is_wrong(error):
        return Refused(f"{obj.key}: {error.message or error.reason}")
    return error


def _told(conflict: ApiError) -> str:
    """The fields of a conflict, with their managers and without their values."""
    return "; ".join(f"{where} ({message})" for _, where, message in conflict.causes)


def _is_wrong(error: ApiError) -> bool:
    """500s that no retry mends: a manifest that cannot be merged (structured-merge-diff's typed errors), or is more than
    etcd takes in one request (kubernetes/kubernetes#112152).
    """
    wrong = r"typed patch object|duplicate entries|request is too large|message larger than max"
    return error.status == 500 and bool(re.search(wrong, error.message))


def _passes(message: str) -> bool:
    """403s that are about order, not about rights.

    A namespace on its way out, an account or class not there yet, a quota that nobody has counted yet, or one for what a
    LimitRange not there yet sets.
    """
    return bool(re.search("being terminated|not found|status unknown for quota|failed quota", message))


def is_transient(error: Exception, obj: CustomResource, kinds: Collection[Kind], namespaces: Collection[str]) -> bool:
    """Whether the same request may succeed later. `kinds` and `namespaces` are those that this run itself brings."""
    if isinstance(error, ApiError) and error.status == 404:
        return obj.key.of in kinds or obj.key.namespace in namespaces
    return passes(error) or (isinstance(error, ApiError) and error.status in (403, 409, 410))


def missing(error: DriverError, key: Key) -> DriverError:
    """A 404 that will not pass, in words that help."""
    if isinstance(error, ApiError) and error.status == 404:
        return Refused(f"{key}: {error.message}. Add the namespace or the CRD to the package, or make it first.")
    return error
