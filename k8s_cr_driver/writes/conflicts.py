# SPDX-License-Identifier: Apache-2.0
"""
What becomes of an apply that fields of other managers are in conflict with.

A count that an autoscaler owns is left out. With `force-conflicts`, and in a rollback, the fields are taken over, after a
WARNING that names them; never those of an object that other instances use.
"""

from __future__ import annotations

from collections.abc import Callable

from k8s_cr_driver import logs
from k8s_cr_driver.errors import ApiError, Conflict, Contended
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.objects.keys import Object, is_of_every_namespace, key_of, kind_of
from k8s_cr_driver.objects.marks import RELEASED_BY, SHARED, users
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.replicas import without_replicas
from k8s_cr_driver.writes.context import WriteContext
from k8s_cr_driver.writes.guests import claimed_by_others
from k8s_cr_driver.writes.release import note_taken
from k8s_cr_driver.writes.write_errors import (
    NEVER_CHANGED,
    NOT_RESTORED,
    conflicting,
    deleted,
    is_left_by_keeper,
    is_of_fields,
)

LOG = logs.logger(__name__)

_MARK = f".metadata.annotations.{RELEASED_BY}"


def resolved(
    context: WriteContext,
    obj: CustomResource,
    resource: Resource,
    live: Object,
    manifest: Object,
    refusal: ApiError,
    *,
    takes_back: bool,
) -> Object:
    """
    Repeats an apply that other managers' fields are in conflict with, by force or without the count.

    Raises the refusal if neither helps.
    """
    if is_of_fields(refusal) and all(where == _MARK for _, where, _ in refusal.causes):
        raise Contended(f"{key_of(live)} is released, or taken back, by others at the same time")
    if takes_back and is_left_by_keeper(refusal, live):
        return sent(context, resource, manifest, live, force=True)
    if not context.force and context.keep_autoscaled and is_autoscaled(refusal, obj):
        return sent(context, resource, without_replicas(obj.with_manifest(manifest)).manifest, live)
    if not (context.force or context.yields) or not is_of_fields(refusal):
        raise refusal
    try:
        now = _check_forced(context, resource, refusal, live, manifest)
    except Conflict as used:
        if not context.yields:
            raise
        LOG.warning("%s. A rollback leaves it as it is", used)
        return live
    if not context.is_trial and (context.inventory.content.is_adopted(now) or is_of_every_namespace(obj.key)):
        now = changed(context, resource, now, note_taken)  # the instance releases it
    forced = exactly(now, obj.with_manifest(manifest), unchanged=kind_of(now) in SHARED)
    return sent(context, resource, forced.manifest, live, force=True)


def _check_forced(context: WriteContext, resource: Resource, conflict: ApiError, live: Object, manifest: Object) -> Object:
    """The object as it is, for an apply by force; Conflict if other instances use it."""
    fields = conflicting(conflict, context.instance, manifest)
    if kind_of(live) in SHARED:
        live = read_now(context, resource, live)
        if users(live) - {context.instance} or claimed_by_others(context.inventory, live):
            raise Conflict(f"{key_of(live)}: others manage fields that the manifest sets: {fields}. {NEVER_CHANGED}")
    if not context.is_trial:
        LOG.warning("%s: fields of other managers are taken by force: %s. %s", key_of(live), fields, NOT_RESTORED)
    return live


def sent(context: WriteContext, resource: Resource, manifest: Object, live: Object, *, force: bool = False) -> Object:
    """Applies the manifest to `live`; Superseded if the instance is no longer this run's."""
    context.inventory.fence.before_write()
    return context.client.apply(resource, manifest, context.manager, force=force, live=live)


def exactly(live: Object, obj: CustomResource, *, unchanged: bool) -> CustomResource:
    """The object with the uid of `live` as a precondition, and with its resourceVersion if it must be `unchanged`."""
    wanted = ("uid", "resourceVersion") if unchanged else ("uid",)
    metadata = {**obj.manifest["metadata"], **{name: live["metadata"][name] for name in wanted}}
    return obj.with_manifest({**obj.manifest, "metadata": metadata})


def changed(context: WriteContext, resource: Resource, live: Object, change: Callable[..., Object], *about: object) -> Object:
    """Changes the owners of the object's fields as they are now, by a function of `release`."""
    try:
        return change(context, resource, read_now(context, resource, live), *about)
    except ApiError as error:
        raise (deleted(key_of(live)) if error.status == 404 else error) from None


def read_now(context: WriteContext, resource: Resource, live: Object) -> Object:
    """An object that a watch may have reported late; Replaced if it no longer exists."""
    try:
        return context.client.read_again(resource, live)
    except ApiError as error:
        raise (deleted(key_of(live)) if error.status == 404 else error) from None


def is_autoscaled(error: ApiError, obj: CustomResource) -> bool:
    """Whether nothing but the count is in conflict, as another manager has written it through the subresource `scale`."""
    return bool(error.causes) and len(of_count(error, obj)) == len(error.causes)


def of_count(error: ApiError, obj: CustomResource) -> list[str]:
    """The conflicts about a count that another manager has written through the subresource `scale`."""
    path = ".".join(["", *(obj.replicas() or ())])
    if error.status != 409 or not path:
        return []
    return [message for _, where, message in error.causes if where == path and 'subresource "scale"' in message]
