# SPDX-License-Identifier: Apache-2.0
"""
Releases objects that stay on the cluster and must outlive the instance: kept ones, adopted ones, and shared ones that hold
objects of others.

Fields that the instance has brought stay, as those of KEPT_BY. The mark RELEASED_BY on the object itself names the instance.
So whoever deletes the Namespace later, in another operation or as another instance, finds the object and leaves the Namespace.
A kept object that the instance needs again is taken back.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Collection, Sequence
from typing import Any

from k8s_cr_driver import logs
from k8s_cr_driver.errors import ApiError, Contended
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.objects.decoding import decoded
from k8s_cr_driver.objects.fields import mapping
from k8s_cr_driver.objects.keys import Object, annotations_of, key_of, kind_of, labels, references
from k8s_cr_driver.objects.managed_fields import (
    appliers_of,
    beyond,
    common,
    handed,
    has_applier,
    managers_of,
    of_version,
    owning,
    union,
)
from k8s_cr_driver.objects.marks import (
    ADOPTED,
    CREATED_BY_US,
    INSTANCE_LABEL,
    KEEP,
    KEPT_BY,
    PART_OF_LABEL,
    RELEASED_BY,
    SHARED,
    bringers,
    has_applied,
    is_kept,
    is_older_than,
    is_released,
    used_by,
    users,
)
from k8s_cr_driver.writes.context import WriteContext
from k8s_cr_driver.writes.write_errors import is_denied_for_good, is_undeclared

LOG = logs.logger(__name__)

TAKEN = "k8s-cr-driver/taken"
"""Annotation: what others owned, as FieldsV1, of an object of theirs from which the instance has taken fields by force."""
LONGEST = 64 * 1024
"""Characters of the annotation; of 256 KiB for all. A longer one keeps all that the instance applies."""


def release_kept(context: WriteContext, resource: Resource, live: Object) -> None:
    """
    Removes our labels and hands our fields to KEPT_BY: a release would remove the fields that only we have applied.

    A co-user of a shared object leaves the mark to the instance that has brought it, which may take it back. `live`: as it is
    now.
    """
    instance, is_shared = context.instance, kind_of(live) in SHARED
    others = (users(live) | bringers(live)) - {instance} if is_shared else set()
    is_brought_by_others = is_released(live) or has_left_fields(live) or bool(others)
    is_co_users = is_shared and not has_applied(live, instance) and is_brought_by_others
    marks: dict[str, str | None] = {} if is_co_users else {RELEASED_BY: instance}
    if is_shared and not others:
        marks[CREATED_BY_US] = None  # as `release_shared` does: it stays also when nobody says any more that it is kept
    if is_co_users and others and managers_of(live, ("metadata", "annotations", KEEP)) == [context.manager]:
        marks[KEEP] = None  # whoever has brought it decides how long it stays when this user has left
    hand_to_keeper(context, resource, live, labels=_no_labels(instance), annotations=marks)


def release_adopted(context: WriteContext, resource: Resource, live: Object) -> None:
    """
    Gives up our fields. An object of the cluster needs no mark: no Namespace takes it along.

    Where the API server or a webhook does not let them go, as of a field that must exist or never changes, they stay as
    those of KEPT_BY.
    """
    instance = context.instance
    if key_of(live).namespace and annotations_of(live).get(RELEASED_BY) != instance:
        live = _patch(context, resource, live, annotations={RELEASED_BY: instance})
    try:
        _give_up(context, resource, live)
    except ApiError as error:
        if error.status != 422 and not is_undeclared(error) and not is_denied_for_good(error):
            raise
        LOG.warning("%s keeps the fields of VNF instance %s: %s", key_of(live), instance, error)
        hand_to_keeper(context, resource, live, labels=_no_labels(instance), annotations={ADOPTED: None})


def release_shared(context: WriteContext, resource: Resource, live: Object, *, is_last: bool) -> None:
    """
    Removes our label from a Namespace or CRD that stays, and hands our fields to KEPT_BY; ApiError 409 if it has changed.

    So nothing of it changes while others use it: the last of them may, see `belongs_to`. When the last instance leaves that
    one of us has created, others may put more into it, so it is no longer one that an instance has created, nor deletes.
    """
    marks: Object = {"annotations": {RELEASED_BY: context.instance, CREATED_BY_US: None}} if is_last else {}
    hand_to_keeper(context, resource, live, labels={used_by(context.instance): None}, **marks)


def release_account(context: WriteContext, resource: Resource, live: Object) -> None:
    """Gives up our fields of what Kubernetes puts into each Namespace, and our labels, also as fields of others."""
    live = _give_up(context, resource, live)
    if INSTANCE_LABEL in labels(live):
        _patch(context, resource, live, labels=_no_labels(context.instance))


def hand_to_keeper(context: WriteContext, resource: Resource, live: Object, **metadata: Any) -> Object:
    """Makes what the instance has applied, or what `managedFields` says of a copy, KEPT_BY's, so that it stays."""
    fields = handed(_fields(live), context.manager, KEPT_BY) or [{}]  # an empty list changes nothing
    return _patch(context, resource, live, managedFields=fields, **metadata)


def _no_labels(instance: str) -> dict[str, None]:
    """A patch that removes all labels of the instance."""
    return dict.fromkeys((INSTANCE_LABEL, PART_OF_LABEL, used_by(instance)))


def _give_up(context: WriteContext, resource: Resource, live: Object) -> Object:
    """Gives up the instance's fields, which may have been applied in another version, but for those taken from others."""
    if TAKEN in annotations_of(live):
        marks = {"metadata": {"labels": _no_labels(context.instance)}}
        live = keep_taken(context, resource, live, marks, is_last=True)
    try:
        return release(context, resource, live)
    except ApiError as error:
        if not is_undeclared(error):
            raise
    return release(context, resource, move_to_version(context, resource, context.client.read_again(resource, live)))


def release(context: WriteContext, resource: Resource, live: Object) -> Object:
    """Gives up all that only the instance owns, on the same conditions as `_patch`."""
    context.inventory.fence.before_write()
    return context.client.release(resource, live, context.manager)


def note_taken(context: WriteContext, resource: Resource, live: Object) -> Object:
    """
    Notes what others own before the instance takes some of it by force; ApiError 409 if the object has changed.

    The API server removes a field with its last owner, and forgets who had it before.
    """
    others = (mapping(one, "fieldsV1") for one in _fields(live) if one.get("manager") != context.manager)
    note = json.dumps(functools.reduce(union, others, _taken(live) or {}))
    return _patch(context, resource, live, annotations={TAKEN: note if len(note) <= LONGEST else "all"})


def keep_taken(context: WriteContext, resource: Resource, live: Object, manifest: Object, *, is_last: bool = False) -> Object:
    """
    Makes fields that the instance has taken, and that the manifest does not set any more, those of KEPT_BY, too.

    `is_last`: the note of them is removed.
    """
    fields = handed([*taken_beyond(context, live, manifest), *_fields(live)], KEPT_BY, KEPT_BY)
    marks: Object = {"annotations": {TAKEN: None}} if is_last else {}
    return _patch(context, resource, live, managedFields=fields, **marks)


def taken_beyond(context: WriteContext, live: Object, manifest: Object) -> list[Object]:
    """What the instance has applied and taken from others, and the manifest does not set, as entries of KEPT_BY."""
    if TAKEN not in annotations_of(live):
        return []
    taken, ours = _taken(live), [(entry, mapping(entry, "fieldsV1")) for entry in appliers_of(live, context.manager)]
    left = [(entry, beyond(one if taken is None else common(one, taken), manifest)) for entry, one in ours]
    return [{**entry, "manager": KEPT_BY, "fieldsV1": one} for entry, one in left if one]


def _taken(live: Object) -> Object | None:
    """What is noted; None for all, as of a note that makes no sense: others may have written it."""
    try:
        found = decoded(annotations_of(live).get(TAKEN) or "{}")
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def belongs_to(live: Object, instance: str) -> bool:
    """Whether the instance alone uses a shared object of which another has left fields: it may take these back."""
    is_alone = kind_of(live) in SHARED and users(live) == {instance}
    return is_alone and not is_kept(live) and has_left_fields(live)


def may_take_back(live: Object, instance: str) -> bool:
    """
    Whether this instance has kept the object, or any has released a shared object that none uses now.

    A copy, and an adopted object, may have the annotations of such a one, but nothing that was applied to it.
    """
    if is_kept(live):
        is_ours = annotations_of(live).get(RELEASED_BY) == instance and not has_applied(live, instance)
        is_others = bringers(live) or labels(live).get(INSTANCE_LABEL, instance) != instance  # such as one that has adopted it
        return is_ours and has_been_kept(live) and not is_others
    is_left = any(entry.get("manager") == KEPT_BY for entry in _fields(live)) and not is_older_than(live, KEPT_BY)
    return kind_of(live) in SHARED and is_released(live) and not users(live) and is_left


def has_been_kept(live: Object) -> bool:
    """Whether an instance has released the object because it is to be kept."""
    return is_kept(live) and is_released(live) and has_left_fields(live)


def take_back(context: WriteContext, resource: Resource, live: Object) -> Object:
    """Makes a released object the instance's: it has our label, and the fields of KEPT_BY are ours again.

    The mark of a shared one remains, so that two instances may do so at the same time, as a field of the instance, see
    `with_owner_labels`: with no field at all the API server would record no manager. Contended if it has been deleted.
    """
    fields, instance = _fields(live), context.instance
    if kind_of(live) in SHARED:
        marks: Object = {"labels": {used_by(instance): ""}}
        mark: Object = {"f:metadata": {"f:annotations": {f"f:{RELEASED_BY}": {}}}} if is_released(live) else {}
        left = next(entry for entry in fields if entry.get("manager") == KEPT_BY)
        fields = [{**left, "operation": "Apply", "fieldsV1": mark}, *fields]
    else:
        marks = {"labels": {INSTANCE_LABEL: instance}, "annotations": {RELEASED_BY: None}}
    fields = handed(fields, KEPT_BY, context.manager)
    try:
        return _patch(context, resource, live, context.manager, managedFields=fields, **marks)
    except ApiError as error:
        if error.status != 404:
            raise
        raise Contended(f"{key_of(live)} was deleted while it was about to be taken back") from None


def move_to_version(context: WriteContext, resource: Resource, live: Object) -> Object:
    """
    Makes the version of `resource` that of the fields of all managers; ApiError 409 if the object has changed.

    In an apply the API server converts the object to each version in which fields were written before. Without a conversion
    webhook it fails then if only one of the two has a field with a default (fluxcd/flux2#5715), or if one is served no more.
    """
    fields = of_version(_fields(live), resource.api_version)
    return _patch(context, resource, live, context.manager, managedFields=fields)


def own_fields(context: WriteContext, resource: Resource, live: Object, paths: Sequence[Sequence[str]]) -> Object:
    """Makes fields of an object that nobody has applied the instance's; ApiError 409 if the object has changed."""
    return _patch(context, resource, live, context.manager, managedFields=owning(live, context.manager, paths))


def disown(context: WriteContext, resource: Resource, live: Object, owners: Collection[str]) -> None:
    """
    Removes the references to these owners from an object, if it exists; Contended if others write it at the same time.

    A Namespace or CRD of others that may not be patched stays as it is if another owner keeps it.
    """
    others: list[Object] = []
    try:
        live = context.client.read_again(resource, live)
        found = references(live)
        others = [one for one in found if one.get("uid") not in owners]
        if others != found:
            _patch(context, resource, live, ownerReferences=others)
    except ApiError as error:
        if error.status == 409:
            raise Contended(str(error)) from None
        if others and kind_of(live) in SHARED and not users(live) and error.status in (403, 422):
            LOG.warning("%s is not released from an owner that goes; another one keeps it: %s", key_of(live), error)
        elif error.status != 404:
            raise


def _patch(context: WriteContext, resource: Resource, live: Object, writer: str = KEPT_BY, **metadata: object) -> Object:
    """A merge patch on the condition that the object is still as `live`, ApiError 409, and the instance this run's."""
    context.inventory.fence.before_write()
    seen = live["metadata"]["resourceVersion"]
    return context.client.patch_metadata(resource, live, writer, resourceVersion=seen, **metadata)


def has_left_fields(live: Object) -> bool:
    """Whether there are fields of KEPT_BY, which a copy of a released object does not have."""
    return has_applier(live, KEPT_BY) and not is_older_than(live, KEPT_BY)


def _fields(live: Object) -> list[Object]:
    return live["metadata"].get("managedFields") or []
