# SPDX-License-Identifier: Apache-2.0
"""
Writes one object: create it, or find out whose it is and apply.

An object that is not known to be ours is written by an apply that can only create: for an existing object the server
responds 409, for the resourceVersion or for conflicting fields, and writes nothing. Then one read decides whether it
is ours, shared, another instance's, or somebody else's. An apply to an existing object names its uid, so that it neither
creates one that no longer exists by then, nor changes another object of its name.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from oslo_log import log as logging

from k8s_cr_driver.errors import ApiError, Conflict, DriverError, NotOurs, passes
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.discovery import Resource, Resources
from k8s_cr_driver.objects.crds import served_versions
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, annotations_of, labels
from k8s_cr_driver.ownership.inventory import Inventory
from k8s_cr_driver.ownership.labels import (
    CREATED_BY_US,
    INSTANCE_LABEL,
    PART_OF_LABEL,
    SHARED,
    is_created,
    is_managed,
    manager,
    used_by,
    users,
)
from k8s_cr_driver.ownership.released import hand_to_keeper, may_take_back, take_back
from k8s_cr_driver.ownership.shared import is_co_user, join
from k8s_cr_driver.ownership.write_errors import NEVER_CHANGED, NOT_RESTORED, Replaced, conflicting, explained
from k8s_cr_driver.redaction import printable
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.replicas import without_replicas

LOG = logging.getLogger(__name__)

SHOWN = 63
"""Characters that are logged of a label's value: the API server allows no more."""


class NotAdopted(DriverError):
    """The object of that uid may be adopted: record that in the inventory, see `adopt`, and write it again."""

    def __init__(self, key: ObjectKey, uid: str) -> None:
        super().__init__(f"{key} is not adopted yet")
        self.uid = uid


@dataclass(frozen=True)
class WriteContext:
    """Where and as whom objects are written; one per run, used by all its threads."""

    client: Client
    inventory: Inventory
    force: bool = False
    adopt: bool = False
    keep_autoscaled: bool = True
    """Leave a replica count to the autoscaler that owns it; False in SCALE, which then fails and names it."""
    delete_guests: bool = False
    """Delete Namespaces and CRDs of this instance together with objects of others in them or of them."""
    is_trial: bool = False
    """Nothing is stored, so nothing is logged as done."""
    lock: threading.Lock = field(default_factory=lambda: threading.Lock())  # `threading` may be patched

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
    """The label selector that finds an instance's objects of a kind."""
    return used_by(instance) if kind in SHARED else f"{INSTANCE_LABEL}={instance}"


def write(
    context: WriteContext,
    obj: CustomResource,
    resource: Resource,
    known: Object | None,
    *,
    vanished: bool = False,
    finished: bool = False,
) -> Object:
    """Creates or applies `obj`; returns the live object. `known`: the live object if a watch reports it as ours.

    `vanished`: the watch has reported that the object was deleted, perhaps by a worker that has taken over.
    `finished`: the object has run to its end. Replaced if it no longer exists: it is not created again.
    """
    if vanished:
        context.inventory.fence.before_recreate()
    context.inventory.fence.before_write()
    if known is not None and is_managed(known, context.instance) and not context.inventory.is_foreign(known):
        try:
            applied = _apply(context, obj, resource, known)
            context.inventory.wrote(obj.key)
            return applied
        except Replaced:
            if finished:
                raise
            context.inventory.fence.before_recreate()
    try:
        return _create(context, obj, resource)
    except ApiError as error:
        if error.status != 409:
            raise explained(error, obj, context.instance) from None
        exists = error
    try:
        live = context.client.read(resource, obj.key)
    except ApiError as error:
        raise (exists if error.status == 404 else error) from None  # it no longer exists: a 409 is retried, a 404 is not
    if may_take_back(live, context.instance):
        live = take_back(context.client, context.instance, resource, live)
    else:
        live = _admitted(context, obj, resource, live)
    context.inventory.wrote(obj.key)
    return _apply(context, obj, resource, live)


def _create(context: WriteContext, obj: CustomResource, resource: Resource) -> Object:
    note_creation = obj.key.group_kind in SHARED or obj.key in context.inventory.content.adopted
    try:
        made = context.client.create(resource, with_owner_labels(context, obj, made=note_creation).manifest, context.manager)
    except DriverError as error:
        if passes(error):
            context.inventory.tried(obj.key)
        raise
    context.inventory.created(obj.key)
    return made


def adopt(context: WriteContext, uids: Mapping[ObjectKey, str]) -> None:
    """Records that the objects of these uids are adopted, before the first write to them."""
    for key in sorted(uids):
        LOG.warning("%s existed before and is adopted: it will be released, not deleted", key)
    with context.lock:
        context.inventory.adopt(uids)


def record_finished(context: WriteContext) -> None:
    """Writes which objects have run to their end."""
    with context.lock:
        context.inventory.write_finished()


def _apply(context: WriteContext, obj: CustomResource, resource: Resource, live: Object) -> Object:
    if is_co_user(live, context.instance) and obj.key not in context.inventory.content.adopted:
        return _join(context, obj, resource, live)
    if is_created(live) and not context.inventory.content.is_adopted(live):  # the response to its creation may be lost
        context.inventory.created(obj.key)
    if "patch" not in resource.verbs:
        return live
    labelled = _exactly(live, with_owner_labels(context, obj, made=is_created(live)))
    try:
        return context.client.apply(resource, labelled.manifest, context.manager, force=False, live=live)
    except ApiError as error:
        refusal = error
    if context.keep_autoscaled and obj.autoscaler() and _of_count(refusal, obj):
        return _apply(context, without_replicas(obj), resource, live)
    is_used = obj.key.group_kind in SHARED and users(live) - {context.instance}
    by_force = context.force and refusal.status == 409 and bool(refusal.causes) and not is_used
    if by_force:
        if not context.is_trial:
            fields = conflicting(refusal, context.instance)
            LOG.warning("%s: fields of other managers are taken by force: %s. %s", obj.key, fields, NOT_RESTORED)
    elif context.keep_autoscaled and _is_autoscaled(refusal, obj):
        labelled = without_replicas(labelled)
    else:
        raise explained(refusal, obj, context.instance, live)
    try:
        return context.client.apply(resource, labelled.manifest, context.manager, force=by_force, live=live)
    except ApiError as error:
        raise explained(error, obj, context.instance, live) from None


def _exactly(live: Object, obj: CustomResource) -> CustomResource:
    """The object with the uid of `live` as a precondition."""
    metadata = {**obj.manifest["metadata"], "uid": live["metadata"]["uid"]}
    return obj.with_manifest({**obj.manifest, "metadata": metadata})


def _join(context: WriteContext, obj: CustomResource, resource: Resource, live: Object) -> Object:
    """Labels a shared object of others. Conflict if the manifest has other values, or serves more versions, than they have."""
    manifest = with_owner_labels(context, obj, made=False).manifest
    try:
        context.client.apply(resource, manifest, context.manager, force=False, dry_run=True, live=live)
    except ApiError as error:
        if error.status == 409 and error.causes:
            raise explained(error, obj, context.instance, live) from None
    if absent := sorted(served_versions(manifest).keys() - served_versions(live).keys()):
        raise Conflict(f"{obj.key}: does not serve {', '.join(absent)}. {NEVER_CHANGED}")
    absent = sorted(labels(manifest).keys() - labels(live).keys() - {used_by(context.instance)})
    if absent and used_by(context.instance) not in labels(live):
        LOG.warning("%s belongs to other VNF instances, too, and does not get these labels: %s", obj.key, ", ".join(absent))
    LOG.info("%s is used by other VNF instances: it gets the label of this one, and stays as it is", obj.key)
    return join(context.client, context.instance, resource, live)


def has_gone(context: WriteContext, key: ObjectKey, resource: Resource, uid: str) -> bool:
    """Whether the object of that uid no longer exists; another one may have its name."""
    try:
        live = context.client.read(resource, key)
    except ApiError as error:
        if error.status != 404:
            raise
        return True
    return bool(live["metadata"]["uid"] != uid)


def with_owner_labels(context: WriteContext, obj: CustomResource, *, made: bool) -> CustomResource:
    """The object with the labels of its owner, and with `made` the annotation that we have created it."""
    metadata = dict(obj.manifest["metadata"])
    if obj.key.group_kind in SHARED:
        own_labels = {used_by(context.instance): ""}
    else:
        own_labels = {INSTANCE_LABEL: context.instance, PART_OF_LABEL: context.inventory.applyset}
    if made:
        metadata["annotations"] = {**annotations_of(obj.manifest), CREATED_BY_US: "true"}
    metadata["labels"] = {**labels(obj.manifest), **own_labels}
    return obj.with_manifest({**obj.manifest, "metadata": metadata})


def _admitted(context: WriteContext, obj: CustomResource, resource: Resource, live: Object) -> Object:
    """The object if the instance may write it. An adopted copy of a member keeps the values that came with it."""
    _check_owner(context, obj, live)
    is_copied = is_managed(live, context.instance) and context.inventory.is_foreign(live)
    return hand_to_keeper(context.client, context.instance, resource, live) if is_copied else live


def _check_owner(context: WriteContext, obj: CustomResource, live: Object) -> None:
    is_foreign = context.inventory.is_foreign(live)
    shared = obj.key.group_kind in SHARED and (users(live) or is_created(live))
    if (shared or is_managed(live, context.instance)) and not (is_foreign and _has_marks(live, context.instance)):
        return
    owner = labels(live).get(INSTANCE_LABEL)
    if owner and owner != context.instance:
        context.inventory.disclaim(obj.key)
        LOG.warning("VNF instance %s: %s belongs to VNF instance %s", context.instance, obj.key, printable(owner)[:SHOWN])
        raise NotOurs(
            f"{obj.key} belongs to another VNF instance. Give this one another name or namespace, or terminate that instance."
        )
    if (owner and not is_foreign) or obj.key in context.inventory.content.adopted:
        return
    if not context.adopt:
        context.inventory.disclaim(obj.key)
        raise NotOurs(
            f"{obj.key} exists already and was not created by this instance. Give it another name, delete it, or set "
            "additionalParams adopt-existing: true to adopt it (terminate will release it, not delete it)."
        )
    raise NotAdopted(obj.key, live["metadata"]["uid"])


def _has_marks(live: Object, instance: str) -> bool:
    marks = labels(live)
    return is_managed(live, instance) or marks.get(INSTANCE_LABEL) == instance or used_by(instance) in marks


def _is_autoscaled(error: ApiError, obj: CustomResource) -> bool:
    """Whether nothing but the count is in conflict, as another manager has written it through the subresource `scale`."""
    return bool(error.causes) and len(_of_count(error, obj)) == len(error.causes)


def _of_count(error: ApiError, obj: CustomResource) -> list[str]:
    """The conflicts about a count that another manager has written through the subresource `scale`."""
    path = ".".join(["", *(obj.replicas() or ())])
    if error.status != 409 or not path:
        return []
    return [message for _, where, message in error.causes if where == path and 'subresource "scale"' in message]
