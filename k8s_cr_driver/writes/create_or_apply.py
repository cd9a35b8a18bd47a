# SPDX-License-Identifier: Apache-2.0
"""
Writes one object: create it, or find out whose it is and apply.

An object that is not known to be ours is written by an apply that can only create: for an existing object the server
responds 409, for the resourceVersion or for conflicting fields, and writes nothing. Then one read decides whether it
is ours, shared, another instance's, or somebody else's.
"""

from __future__ import annotations

from dataclasses import replace

from k8s_cr_driver import logs
from k8s_cr_driver.errors import ApiError, Contended, DriverError, NotOurs, may_have_taken_effect
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.kube.dry_run import DryRun
from k8s_cr_driver.objects.fields import field
from k8s_cr_driver.objects.keys import (
    CRD,
    NAMESPACE,
    Object,
    ObjectKey,
    annotations_of,
    is_of_every_namespace,
    key_of,
    labels,
)
from k8s_cr_driver.objects.marks import (
    INSTANCE_LABEL,
    RELEASED_BY,
    SHARED,
    appliers,
    is_copy,
    is_created,
    is_managed,
    used_by,
    users,
)
from k8s_cr_driver.redaction import printable
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.writes import crd_losses
from k8s_cr_driver.writes.apply import apply, joined
from k8s_cr_driver.writes.context import WriteContext, is_selected, with_owner_labels
from k8s_cr_driver.writes.manifest_digest import is_webhooks_doing
from k8s_cr_driver.writes.members import reclaim
from k8s_cr_driver.writes.release import hand_to_keeper, has_been_kept, may_take_back, take_back
from k8s_cr_driver.writes.replacement import refused
from k8s_cr_driver.writes.write_errors import (
    Immutable,
    LeftAsItIs,
    NoDryRun,
    Replaced,
    Unchangeable,
    deleted,
    explained,
    is_undeclared,
)

LOG = logs.logger(__name__)

SHOWN = 63
"""Characters that are logged of a label's value: the API server allows no more."""


class NotAdopted(DriverError):
    """The object of that uid may be adopted: record that in the inventory, and write it again."""

    def __init__(self, key: ObjectKey, uid: str) -> None:
        super().__init__(f"{key} is not adopted yet")
        self.uid = uid


def write(
    context: WriteContext,
    obj: CustomResource,
    resource: Resource,
    known: Object | None,
    *,
    vanished: bool = False,
    finished: bool = False,
) -> Object:
    """Creates or applies `obj`; returns the live object. `known`: the live object if a watch reports it as ours, which is
    returned itself, without a request, if it is as the manifest says.

    `vanished`: the watch has reported that the object was deleted, perhaps by a worker that has taken over.
    `finished`: the object has run to its end. Replaced if it no longer exists: it is not created again, and left as it is if a
    webhook has made another of it, as is a Pod or Job of the same manifest. Immutable if it is to be replaced, and the API
    server would create it.
    """
    try:
        return _written(context, obj, resource, known, vanished=vanished, finished=finished)
    except Unchangeable as error:
        is_refused = bool(error.error and error.error.causes) and not error.is_forced
        if finished or (is_refused and is_webhooks_doing(error.live, obj.manifest, context.instance)):
            return _labelled(context, resource, error.live)
        if isinstance(error, Immutable):
            raise refused(context, obj, resource, error) or error from None
        raise


def _labelled(context: WriteContext, resource: Resource, live: Object) -> Object:
    """An object that stays as it is, with the label by which a watch finds it."""
    labelled = live if is_selected(context.instance, live) else reclaim(context, resource, live)
    if labelled is None:
        raise deleted(key_of(live))
    return labelled


def _written(
    context: WriteContext,
    obj: CustomResource,
    resource: Resource,
    known: Object | None,
    *,
    vanished: bool,
    finished: bool,
) -> Object:
    if vanished:
        context.inventory.fence.before_recreate()
    if known is not None and is_managed(known, context.instance) and not context.inventory.is_foreign(known):
        try:
            applied = apply(context, obj, resource, known)
            context.inventory.wrote(obj.key)
            return applied
        except Replaced:
            if finished:
                raise
            context.inventory.fence.before_recreate()
    context.inventory.fence.before_write()
    try:
        return _create(context, obj, resource)
    except ApiError as error:
        if error.status != 409 and not is_undeclared(error):  # that is said of what exists in another version
            raise explained(error, obj, context.instance) from None
        exists = error
    try:
        live = context.client.read(resource, obj.key)
    except ApiError as error:
        raise (exists if error.status == 404 else error) from None  # it no longer exists: a 409 is retried, a 404 is not
    content = context.inventory.content
    if context.yields and content.has_adopted(live) and not content.may_change_adopted(live):
        LOG.warning("%s: others have created it in place of the one that was adopted: a rollback leaves it as it is", obj.key)
        raise LeftAsItIs(f"{obj.key} is left to others")
    is_others_crd = obj.key.group_kind == CRD and annotations_of(live).get(RELEASED_BY) != context.instance
    may_be_ours = obj.key.group_kind in SHARED or content.was_member(obj.key)  # else it was released for good
    takes_back = may_be_ours and may_take_back(live, context.instance) and (context.adopts_crds or not is_others_crd)
    if takes_back and crd_losses.stays(context, obj, live):
        context.inventory.wrote(obj.key)
        return joined(context, obj, resource, live)
    live = _taken_back(context, resource, live) if takes_back else _admitted(context, obj, resource, live)
    context.inventory.wrote(obj.key)
    return apply(context, obj, resource, live, takes_back=takes_back)


def _taken_back(context: WriteContext, resource: Resource, live: Object) -> Object:
    try:
        return take_back(context, resource, live)
    except DriverError as error:
        if may_have_taken_effect(error):
            context.inventory.wrote(key_of(live))
        raise


def _create(context: WriteContext, obj: CustomResource, resource: Resource) -> Object:
    note_creation = obj.key.group_kind in SHARED or obj.key in context.inventory.content.adopted
    try:
        made = context.client.create(resource, with_owner_labels(context, obj, made=note_creation).manifest, context.manager)
    except DriverError as error:
        if may_have_taken_effect(error):
            context.inventory.tried(obj.key)
        raise
    context.inventory.created(obj.key)
    return made


def _admitted(context: WriteContext, obj: CustomResource, resource: Resource, live: Object) -> Object:
    """The object if the instance may write it. An adopted copy of a member keeps the values that came with it."""
    _check_owner(context, obj, live)
    is_copied = is_managed(live, context.instance) and context.inventory.is_foreign(live)
    return hand_to_keeper(context, resource, live) if is_copied else live


def _check_owner(context: WriteContext, obj: CustomResource, live: Object) -> None:
    content, is_foreign = context.inventory.content, context.inventory.is_foreign(live)
    owner = labels(live).get(INSTANCE_LABEL)
    is_joined = not owner and content.was_member(obj.key)  # all marks may have been taken off
    shared = obj.key.group_kind in SHARED and (users(live) or is_created(live) or has_been_kept(live) or is_joined)
    if (shared or is_managed(live, context.instance)) and not (is_foreign and _has_marks(live, context.instance)):
        return
    if others := ({owner} if owner else _appliers_without_label(live)) - {context.instance}:
        _check_stays(obj, live)
        context.inventory.disclaim(obj.key)
        LOG.warning("VNF instance %s: %s belongs to VNF instance %s", context.instance, obj.key, printable(min(others))[:SHOWN])
        raise NotOurs(
            f"{obj.key} belongs to another VNF instance. Give this one another name or namespace, or terminate that instance."
        )
    if (owner and not is_foreign) or content.may_change_adopted(live) or _comes_with_own(context, obj.key):
        return
    _check_stays(obj, live)
    is_adoptable = context.adopts_crds or obj.key.group_kind != CRD
    if not (context.adopt and is_adoptable):
        context.inventory.disclaim(obj.key)
        or_adopt = ", or set additionalParams adopt-existing: true in a new request to adopt it (terminate will release it)"
        if not is_adoptable:
            or_adopt = ", or take it out of the package; only admins may adopt a CRD"
        raise NotOurs(
            f"{obj.key} exists already and was not created by this instance. Give it another name, or delete it"
            f"{' and roll back again' if context.yields else or_adopt}."
        )
    raise NotAdopted(obj.key, live["metadata"]["uid"])


def _check_stays(obj: CustomResource, live: Object) -> None:
    """Contended for an object of others that goes: its name is free soon."""
    if field(live, "metadata", "deletionTimestamp"):
        raise Contended(f"{obj.key}: an object of others has its name, and is being deleted")


def _appliers_without_label(live: Object) -> set[str]:
    """The instances to which an object belongs that has lost its label. A copy belongs to none."""
    return {one for one in appliers(live) if not is_copy(live, one)}


def _comes_with_own(context: WriteContext, key: ObjectKey) -> bool:
    """Whether Kubernetes has put the object into a Namespace that the instance has made and nobody else uses."""
    if not is_of_every_namespace(key):
        return False
    home = context.client.find(context.resources.find(NAMESPACE), ObjectKey(*NAMESPACE, "", key.namespace))
    return home is not None and is_created(home) and users(home) == {context.instance}


def _has_marks(live: Object, instance: str) -> bool:
    marks = labels(live)
    return is_managed(live, instance) or marks.get(INSTANCE_LABEL) == instance or used_by(instance) in marks


_REPEATED = (403, 404, 409, 410)
"""Refusals that the engine repeats until the deadline, as something of the set may be missing yet."""


def trial_of(context: WriteContext) -> WriteContext:
    """The same context for writes that store nothing: what the inventory notes of them is forgotten."""
    client = Client(DryRun.over(context.connection), context.resources)
    return replace(context, client=client, inventory=context.inventory.trial(), is_trial=True)


def refusal(
    trial: WriteContext, obj: CustomResource, resource: Resource, live: Object | None, *, finished: bool = False
) -> DriverError | None:
    """
    Why the server would refuse to write an object; None also if that is not known, or may pass until it is written.

    An object that would be replaced is none that is refused. An error after which the request is to be repeated is raised by
    nobody, but returned: `passes` is true of it.
    """
    try:
        write(trial, obj, resource, live, finished=finished)
    except (Immutable, LeftAsItIs, NoDryRun, NotAdopted):
        return None
    except DriverError as error:
        return None if isinstance(error, ApiError) and error.status in _REPEATED else error
    return None
