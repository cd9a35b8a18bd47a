# SPDX-License-Identifier: Apache-2.0
"""
Applies an object that exists, and that the instance may write: without force, unless the request allows it.

A shared object of others only gets the label: so no instance changes the schema, the conversion webhook or the labels that
others rely on. An apply names the uid, so that it neither creates an object that no longer exists by then, nor changes another
object of its name.

No server-side apply can touch an object whose lists repeat a merge key, such as two names of one container port. A create
accepts it, so an instance of Tacker's own driver may have some (kubernetes/kubernetes#113482). Its count alone is written; all
else stays as it is until a change brings a manifest without the repetition.
"""

from __future__ import annotations

from k8s_cr_driver import logs
from k8s_cr_driver.errors import ApiError, Conflict, DriverError, Forbidden, passes
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.objects.crds import served_versions, with_stored_versions
from k8s_cr_driver.objects.derived import leaves, stale_fields
from k8s_cr_driver.objects.fields import field, mapping
from k8s_cr_driver.objects.immutable import ignored_fields, staying_fields
from k8s_cr_driver.objects.keys import CRD, NAMESPACE, Object, annotations_of, bare, key_of, kind_of, labels
from k8s_cr_driver.objects.managed_fields import appliers_of, holds, managers_of, succeeded
from k8s_cr_driver.objects.marks import KEEP, SHARED, has_applied, is_created, is_kept, is_released, used_by, users
from k8s_cr_driver.package.crd_changes import narrowed
from k8s_cr_driver.package.merge_keys import repeated_merge_keys
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.replicas import explicit_count, without_replicas
from k8s_cr_driver.writes import crd_losses, one_way
from k8s_cr_driver.writes.conflicts import changed, exactly, is_autoscaled, of_count, read_now, resolved, sent
from k8s_cr_driver.writes.context import WriteContext, marked, with_owner_labels
from k8s_cr_driver.writes.guests import claimed_by_others
from k8s_cr_driver.writes.release import (
    belongs_to,
    has_been_kept,
    keep_taken,
    move_to_version,
    own_fields,
    take_back,
    taken_beyond,
)
from k8s_cr_driver.writes.replacement import may_be_replaced
from k8s_cr_driver.writes.write_errors import (
    MIGRATE,
    NEVER_CHANGED,
    LeftAsItIs,
    NoDryRun,
    OtherOwners,
    Unchangeable,
    autoscaled,
    explained,
    immutable,
    is_of_fields,
    is_of_version,
    not_in_version,
)

LOG = logs.logger(__name__)

_IDENTITY = ("name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields")


def differs(context: WriteContext, obj: CustomResource, live: Object | None) -> bool:
    """
    Whether a write may change anything of the object as it is, None if there is none. By what a watch has reported.

    False if its applier owns exactly the fields of the manifest, with the same values, in the same version of the kind. What
    cannot be said so counts as a difference, such as a quantity that the server writes in another form.
    """
    applied = appliers_of(live, context.manager) if live is not None else []
    if live is None or len(applied) != 1:
        return True
    if {applied[0].get("apiVersion"), live.get("apiVersion")} != {obj.manifest["apiVersion"]}:
        return True
    manifest = marked(context, obj, live).manifest
    wanted = {name: one for name, one in manifest.items() if name not in ("apiVersion", "kind", "status")}
    wanted["metadata"] = {name: one for name, one in manifest["metadata"].items() if name not in _IDENTITY}
    return any(stale_fields(live, obj.manifest)) or not holds(mapping(applied[0], "fieldsV1"), wanted, live)


def apply(
    context: WriteContext, obj: CustomResource, resource: Resource, live: Object, *, takes_back: bool = False
) -> Object:
    """
    Returns the object as it is then, `live` itself if nothing was sent as it is so already.

    Errors: Conflict, Immutable, Refused, Forbidden or ApiError, see `explained`; Superseded. `takes_back`: `live` has just been
    taken back.
    """
    obj = _with_stored_versions(context, obj, live)
    is_alone = belongs_to(live, context.instance)
    is_to_be_taken = takes_back or (is_alone and not context.yields)
    if not (is_to_be_taken or repetition(obj) or differs(context, obj, live)):
        _note_creation(context, live)
        return live  # a policy may deny a write that changes nothing, too
    if repetition(obj):
        return counted(context, obj, resource, live)  # by no apply
    if takes_back or context.inventory.content.is_adopted(live):
        return _applied(context, obj, resource, live, takes_back=takes_back)
    if is_alone and not claimed_by_others(context.inventory, live):
        if crd_losses.stays(context, obj, live):
            return joined(context, obj, resource, live)
        live = take_back(context, resource, live)
        return _applied(context, obj, resource, live, takes_back=True)
    if _is_co_user(live, context.instance) or (is_alone and not has_applied(live, context.instance)):
        return joined(context, obj, resource, live)
    return _applied(context, obj, resource, live)


def _applied(
    context: WriteContext, obj: CustomResource, resource: Resource, live: Object, *, takes_back: bool = False
) -> Object:
    """`takes_back`: nothing may have changed since, as others may have begun to use it."""
    live = _with_taken_kept(context, obj, resource, _with_derived_owned(context, obj, resource, live))
    _note_creation(context, live)
    if "patch" not in resource.verbs:
        return live
    labelled = exactly(live, marked(context, obj, live), unchanged=takes_back)
    _check_left_out(context, obj, live, is_adopted=context.inventory.content.is_adopted(live))
    try:
        applied = sent(context, resource, labelled.manifest, live)
    except ApiError as error:
        conflict = error
    else:
        if ignored := ignored_fields(applied, obj.manifest):
            raise immutable(f"{obj.key}: the API server leaves {', '.join(ignored)} as it was", obj, live)
        return applied
    if context.keep_autoscaled and obj.scaling().autoscaler() and of_count(conflict, obj):
        return _applied(context, without_replicas(obj), resource, live, takes_back=takes_back)
    try:
        if is_of_version(conflict, live, resource.api_version):
            return _applied_in_version(context, obj, resource, live, conflict, takes_back=takes_back)
        return resolved(context, obj, resource, live, labelled.manifest, conflict, takes_back=takes_back)
    except ApiError as error:
        if (autoscaler := context.autoscalers.get(obj.key)) and is_autoscaled(error, obj):
            raise autoscaled(obj.key, error, autoscaler) from None
        refusal = explained(error, obj, context.instance, live)
        if isinstance(refusal, Unchangeable):
            refusal.is_forced = (context.force or context.yields) and is_of_fields(conflict)
        return _kept(context, obj, resource, live, error, refusal)


def _kept(
    context: WriteContext, obj: CustomResource, resource: Resource, live: Object, error: ApiError, refusal: DriverError
) -> Object:
    """Applies the object with the values that the API server does not take back; raises the refusal if that is no remedy."""
    kept = one_way.kept(context, obj, live, error, refusal)
    if kept is None:
        raise refusal from None
    labelled = exactly(live, marked(context, kept, live), unchanged=False)
    try:
        applied = sent(context, resource, labelled.manifest, live)
    except ApiError as again:
        raise (again if passes(again) else refusal) from None
    if not context.is_trial:
        LOG.warning("%s keeps what it has where the API server does not take it back: %s", obj.key, refusal)
    if context.yields:
        raise LeftAsItIs(f"{obj.key} is left with what the failed change has set")
    return applied


def _note_creation(context: WriteContext, live: Object) -> None:
    """Of an object whose creation may have had no response."""
    if is_created(live) and not context.inventory.content.is_adopted(live):
        context.inventory.created(key_of(live))


def _with_stored_versions(context: WriteContext, obj: CustomResource, live: Object) -> CustomResource:
    if not context.keeps_versions or obj.key.group_kind != CRD:
        return obj
    manifest, kept = with_stored_versions(obj.manifest, live)
    if kept and not context.is_trial:
        LOG.warning("%s keeps %s, served, as objects may be stored in it. %s", obj.key, ", ".join(kept), MIGRATE)
    return obj.with_manifest(manifest) if kept else obj


def _with_derived_owned(context: WriteContext, obj: CustomResource, resource: Resource, live: Object) -> Object:
    """Takes over what the API server has derived from the former manifest, so that the apply removes it."""
    stale = list(stale_fields(live, obj.manifest))
    owners = [set(managers_of(live, leaf)) for path in stale for leaf in leaves(field(live, *path), path)]
    is_ours = has_applied(live, context.instance) and all(one <= {context.manager} for one in owners)
    if all(owners) or not is_ours:
        return live
    if context.is_trial:
        raise OtherOwners(f"{obj.key}: what the API server says is not known before derived fields are the instance's")
    return changed(context, resource, live, own_fields, stale)


def _with_taken_kept(context: WriteContext, obj: CustomResource, resource: Resource, live: Object) -> Object:
    """Hands fields that were taken from others to a keeper, if the manifest does not set them any more."""
    manifest = marked(context, obj, live).manifest
    if context.is_trial or not taken_beyond(context, live, manifest):
        return live
    return changed(context, resource, live, keep_taken, manifest)


def _check_left_out(context: WriteContext, obj: CustomResource, live: Object, *, is_adopted: bool) -> None:
    """Raises Immutable, or NotReplaced, for a field of ours that the API server would leave as it is."""
    left_out = staying_fields(live, obj.manifest)
    if any(context.manager in managers_of(live, path.split(".")) for path in left_out):
        stays = is_adopted or is_kept(obj.manifest) or is_kept(live) or not may_be_replaced(obj, live)
        if not (context.yields and stays):
            raise immutable(f"{obj.key}: the API server would leave {', '.join(left_out)} as it is", obj, live)


def _applied_in_version(
    context: WriteContext, obj: CustomResource, resource: Resource, live: Object, refusal: ApiError, *, takes_back: bool
) -> Object:
    if context.is_trial:
        raise OtherOwners(f"{obj.key}: what the API server says is not known before its fields are moved to the version")
    moved = changed(context, resource, live, move_to_version)
    if is_of_version(refusal, moved, resource.api_version):  # the server has not moved them
        raise not_in_version(refusal, obj, moved)
    try:
        return _applied(context, obj, resource, moved, takes_back=takes_back)
    except ApiError as error:
        raise not_in_version(error, obj, moved) from None


def _is_co_user(live: Object, instance: str) -> bool:
    """Whether the object is shared, others use, keep or have made it, and the instance has applied no more than its marks."""
    is_theirs = bool(users(live) - {instance}) or not (is_created(live) or is_released(live)) or has_been_kept(live)
    return kind_of(live) in SHARED and is_theirs and not has_applied(live, instance)


def joined(context: WriteContext, obj: CustomResource, resource: Resource, live: Object) -> Object:
    """Labels a shared object of others. A rollback of one that uses it already asks no more."""
    key, is_user = obj.key, used_by(context.instance) in labels(live)
    if key.group_kind == NAMESPACE and key.name in context.makes and not is_user:
        raise Forbidden(f"{key}: another VNF instance has made it while this operation ran; retry to have it judged again")
    if not (context.yields and (is_user or context.inventory.content.was_member(key))):
        _check_brought(context, obj, resource, live)
    absent = sorted(labels(obj.manifest).keys() - labels(live).keys())
    if absent and not is_user:
        LOG.warning("%s belongs to other VNF instances, too, and does not get these labels: %s", key, ", ".join(absent))
    LOG.info("%s is used by other VNF instances: it gets the label of this one, and stays as it is", key)
    keeps = is_kept(obj.manifest) and not (context.yields and annotations_of(live).get(KEEP, "true") != "true")
    try:
        return _join(context, resource, live, keeps=keeps)
    except ApiError as error:
        raise explained(error, obj, context.instance, live) from None


def _join(context: WriteContext, resource: Resource, live: Object, *, keeps: bool) -> Object:
    """Adds the label of this instance, and that it `keeps` the object; ApiError 409 if it has changed since it was read."""
    metadata = {name: live["metadata"][name] for name in ("uid", "resourceVersion")}
    metadata |= {"annotations": {KEEP: "true"}} if keeps else {}
    body = bare(key_of(live), resource.api_version, **metadata, labels={used_by(context.instance): ""})
    return sent(context, resource, body, live)


def _check_brought(context: WriteContext, obj: CustomResource, resource: Resource, live: Object) -> None:
    """Conflict if the manifest of a shared object has other values, or serves more versions, than others have brought."""
    manifest = with_owner_labels(context, obj, made=False).manifest
    try:
        merged = context.client.apply(resource, manifest, context.manager, force=False, dry_run=True, live=live)
    except ApiError as error:
        refusal = explained(error, obj, context.instance, live)
        if not (isinstance(refusal, NoDryRun) or _is_wider(error, obj.manifest, live)):
            raise refusal from None
    else:
        if merged.get("spec") != live.get("spec") and merged.get("spec") != read_now(context, resource, live).get("spec"):
            raise Conflict(f"{obj.key}: the manifest sets fields that it does not have on the cluster. {NEVER_CHANGED}")
    if absent := sorted(served_versions(manifest).keys() - served_versions(live).keys()):
        raise Conflict(f"{obj.key}: does not serve {', '.join(absent)}. {NEVER_CHANGED}")


def _is_wider(error: ApiError, manifest: Object, live: Object) -> bool:
    """Whether others have only added to what a CRD's manifest brings: to the API server its versions are one field."""
    is_of_versions = is_of_fields(error) and all(where == ".spec.versions" for _, where, _ in error.causes)
    return is_of_versions and kind_of(manifest) == CRD and not narrowed(manifest, live)


def repetition(obj: CustomResource) -> str:
    """The field of a manifest that an apply refuses; "" for none."""
    return next((field for field, _ in repeated_merge_keys(obj.manifest)), "")


def counted(context: WriteContext, obj: CustomResource, resource: Resource, live: Object) -> Object:
    """Writes the count of the manifest, if it is another one; returns the object as it is then."""
    count, path = explicit_count(obj), obj.replicas() or ()
    if not context.is_trial:
        LOG.warning("%s: %s repeats a merge key, so no more than the count is written", obj.key, repetition(obj))
    if count is not None and count != explicit_count(obj, live):
        context.inventory.fence.before_write()
        live = context.client.set_count(resource, live, path, count, context.manager)
    # The API server notes an update, with which a later apply of another count would be in conflict.
    fields = succeeded(live["metadata"].get("managedFields") or [], context.manager, context.manager)
    if context.is_trial or not fields:
        return live
    context.inventory.fence.before_write()
    seen = live["metadata"]["resourceVersion"]
    return context.client.patch_metadata(resource, live, context.manager, resourceVersion=seen, managedFields=fields)
