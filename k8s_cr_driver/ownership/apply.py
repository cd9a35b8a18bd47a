# SPDX-License-Identifier: Apache-2.0
"""
Applies an object that exists, and that the instance may write: without force, unless the request allows it.

A shared object of others only gets the label. A count that an autoscaler owns is left out. An apply names the uid, so that it
neither creates an object that no longer exists by then, nor changes another object of its name.
"""

from __future__ import annotations

from oslo_log import log as logging

from k8s_cr_driver.errors import ApiError, Conflict
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.kube.responses import understood
from k8s_cr_driver.objects.crds import served_versions
from k8s_cr_driver.objects.keys import Object, key_of, kind_of, labels
from k8s_cr_driver.ownership.context import WriteContext, with_owner_labels
from k8s_cr_driver.ownership.labels import SHARED, is_created, is_kept, used_by, users
from k8s_cr_driver.ownership.managed_fields import without_conflicts
from k8s_cr_driver.ownership.released import belongs_to, take_back
from k8s_cr_driver.ownership.shared import claimed_by_others, is_co_user, join
from k8s_cr_driver.ownership.write_errors import (
    NEVER_CHANGED,
    NOT_RESTORED,
    NoDryRun,
    conflicting,
    explained,
    is_left_by_keeper,
)
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.replicas import without_replicas

LOG = logging.getLogger(__name__)


def apply(context: WriteContext, obj: CustomResource, resource: Resource, live: Object) -> Object:
    """Returns the object as it is then; Conflict, Immutable, Refused, Forbidden or ApiError, see `explained`."""
    takes_back = False
    if not context.inventory.content.is_adopted(live):
        if is_co_user(live, context.instance):
            return _join(context, obj, resource, live)
        takes_back = belongs_to(live, context.instance)
        if takes_back and claimed_by_others(context.inventory, live):  # one of them may have lost its label
            return _join(context, obj, resource, live)
        if takes_back:
            live = take_back(context.client, context.instance, resource, live)
    return _applied(context, obj, resource, live, takes_back=takes_back)


def _applied(
    context: WriteContext, obj: CustomResource, resource: Resource, live: Object, *, takes_back: bool = False
) -> Object:
    """`takes_back`: nothing may have changed since, as others may have begun to use it."""
    if is_created(live) and not context.inventory.content.is_adopted(live):  # the response to its creation may be lost
        context.inventory.created(obj.key)
    if "patch" not in resource.verbs:
        return live
    labelled = _exactly(live, with_owner_labels(context, obj, made=is_created(live)), unchanged=takes_back)
    try:
        return context.client.apply(resource, labelled.manifest, context.manager, force=False, live=live)
    except ApiError as error:
        refusal = error
    if context.keep_autoscaled and obj.autoscaler() and _of_count(refusal, obj):
        return _applied(context, without_replicas(obj), resource, live)
    by_force = (takes_back and is_left_by_keeper(refusal, live)) or _takes_by_force(context, refusal, live)
    if not by_force and context.keep_autoscaled and _is_autoscaled(refusal, obj):
        labelled = without_replicas(labelled)
    elif not by_force and context.yields and refusal.status == 409 and refusal.causes:
        labelled = _yielding(context, obj, resource, live, refusal)
    elif not by_force:
        raise explained(refusal, obj, context.instance, live)
    context.inventory.fence.before_write()
    try:
        return context.client.apply(resource, labelled.manifest, context.manager, force=by_force, live=live)
    except ApiError as error:
        raise explained(error, obj, context.instance, live) from None


def _yielding(
    context: WriteContext, obj: CustomResource, resource: Resource, live: Object, conflict: ApiError
) -> CustomResource:
    """Without the fields of a conflict. Others have set them since; the change that is rolled back has not."""
    now = context.client.read_again(resource, live)
    if not context.is_trial:
        LOG.warning("%s: a rollback leaves what others have set: %s", obj.key, conflicting(conflict, context.instance))
    with understood("managedFields"):
        remaining = obj.with_manifest(without_conflicts(obj.manifest, now, context.manager))
    return _exactly(live, with_owner_labels(context, remaining, made=is_created(live)), unchanged=False)


def _takes_by_force(context: WriteContext, refusal: ApiError, live: Object) -> bool:
    if refusal.status != 409 or not refusal.causes:
        return False
    is_used = kind_of(live) in SHARED and users(live) - {context.instance}
    if context.force and not (is_used or context.is_trial):
        fields = conflicting(refusal, context.instance)
        LOG.warning("%s: fields of other managers are taken by force: %s. %s", key_of(live), fields, NOT_RESTORED)
    return context.force and not is_used


def _exactly(live: Object, obj: CustomResource, *, unchanged: bool) -> CustomResource:
    """The object with the uid of `live` as a precondition, and with its resourceVersion if it must be `unchanged`."""
    wanted = ("uid", "resourceVersion") if unchanged else ("uid",)
    metadata = {**obj.manifest["metadata"], **{name: live["metadata"][name] for name in wanted}}
    return obj.with_manifest({**obj.manifest, "metadata": metadata})


def _join(context: WriteContext, obj: CustomResource, resource: Resource, live: Object) -> Object:
    """Labels a shared object of others. A rollback of one that uses it already asks no more."""
    is_user = used_by(context.instance) in labels(live)
    if not (is_user and context.yields):
        _check_brought(context, obj, resource, live)
    absent = sorted(labels(obj.manifest).keys() - labels(live).keys())
    if absent and not is_user:
        LOG.warning("%s belongs to other VNF instances, too, and does not get these labels: %s", obj.key, ", ".join(absent))
    LOG.info("%s is used by other VNF instances: it gets the label of this one, and stays as it is", obj.key)
    return join(context.client, context.instance, resource, live, keeps=is_kept(obj.manifest))


def _check_brought(context: WriteContext, obj: CustomResource, resource: Resource, live: Object) -> None:
    """Conflict if the manifest of a shared object has other values, or serves more versions, than others have brought."""
    manifest = with_owner_labels(context, obj, made=False).manifest
    try:
        merged = context.client.apply(resource, manifest, context.manager, force=False, dry_run=True, live=live)
    except ApiError as error:
        refusal = explained(error, obj, context.instance, live)
        if not isinstance(refusal, NoDryRun):
            raise refusal from None
    else:
        if merged.get("spec") != live.get("spec") and merged.get("spec") != _spec_now(context, resource, live):
            raise Conflict(f"{obj.key}: the manifest sets fields that it does not have on the cluster. {NEVER_CHANGED}")
    if absent := sorted(served_versions(manifest).keys() - served_versions(live).keys()):
        raise Conflict(f"{obj.key}: does not serve {', '.join(absent)}. {NEVER_CHANGED}")


def _spec_now(context: WriteContext, resource: Resource, live: Object) -> object:
    """Of an object that a watch may have reported late."""
    return context.client.read_again(resource, live).get("spec")


def _is_autoscaled(error: ApiError, obj: CustomResource) -> bool:
    """Whether nothing but the count is in conflict, as another manager has written it through the subresource `scale`."""
    return bool(error.causes) and len(_of_count(error, obj)) == len(error.causes)


def _of_count(error: ApiError, obj: CustomResource) -> list[str]:
    """The conflicts about a count that another manager has written through the subresource `scale`."""
    path = ".".join(["", *(obj.replicas() or ())])
    if error.status != 409 or not path:
        return []
    return [message for _, where, message in error.causes if where == path and 'subresource "scale"' in message]
