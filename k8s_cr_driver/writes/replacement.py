# SPDX-License-Identifier: Apache-2.0
"""
Whether an object may be deleted to be created again: a change of it touches a field that never changes, or a heal wants it.

What the API server would not create must not be deleted. So its creation is tried first, as a dry run, which fails at
last because the name is taken. An update shows less: it skips fields that never change, and values that were wrong before
(KEP-4008).
"""

from __future__ import annotations

from k8s_cr_driver.errors import ApiError, Contended, DriverError, Refused, Said, passes
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.objects.api_groups import is_builtin
from k8s_cr_driver.objects.fields import entries, integer, mapping, sequence, text
from k8s_cr_driver.objects.immutable import is_replaced
from k8s_cr_driver.objects.keys import GroupKind, Object, is_of_every_namespace, kind_of
from k8s_cr_driver.objects.marks import is_created
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.writes.context import WriteContext, with_owner_labels
from k8s_cr_driver.writes.write_errors import Immutable, NotReplaced, may_pass, other_faults

_SERVICE = GroupKind("", "Service")
_STATEFUL_SET = GroupKind("apps", "StatefulSet")


def refused(context: WriteContext, obj: CustomResource, resource: Resource, refusal: Immutable) -> DriverError | None:
    """The error if the object of an Immutable change is not to be replaced, ApiError if that is not known yet."""
    live = refusal.live
    if context.inventory.content.is_adopted(live):
        why = "It was adopted, so it is never deleted, nor replaced. Leave the field as it is."
        return NotReplaced(refusal.what, why, live)
    if is_of_every_namespace(obj.key) or not is_exchanged(context, obj, live):
        return NotReplaced(refusal.what, refusal.remedy, live)
    return not_created(context, obj, resource, live, refusal.error)


def is_exchanged(context: WriteContext, obj: CustomResource, live: Object) -> bool:
    """Whether it may be replaced; a rollback also replaces a ConfigMap or Secret that the failed change has made immutable."""
    is_frozen = live.get("immutable") is True and obj.manifest.get("immutable") is not True and is_builtin(kind_of(live))
    return may_be_replaced(obj, live) or (context.yields and is_frozen)


def may_be_replaced(obj: CustomResource, live: Object) -> bool:
    """A rollback must be able to undo what only the new manifest allowed."""
    return is_replaced(obj.manifest) or is_replaced(live)


def not_created(
    context: WriteContext, obj: CustomResource, resource: Resource, live: Object, update: ApiError | None = None
) -> DriverError | None:
    """
    Why the API server would not create the object in place of `live`, if it would not.

    `update`: its refusal of a change; None for a heal, which applies nothing before.
    """
    if held := _holds_claims(obj, live):
        return held
    manifest = with_owner_labels(context, obj, made=is_created(live)).manifest
    trial = _without_own(manifest, live)
    tried = error = _tried(context, resource, trial, live)
    is_final = update is None and error is not None and Said.UNSPECIFIED in error.said
    if error is not None and not _is_transient(error) and not _is_fault(error):
        error = None
    if error is not None:
        why = f"{obj.key}: {error.message}. So it is not replaced: delete it yourself, or change the manifest."
        return error if _is_transient(error) and not is_final else Refused(why)
    is_shown = tried is None and trial == manifest
    if update is not None and not is_shown and other_faults(update, manifest, live):
        return Refused(f"{obj.key}: {update.message}")
    return None


def _holds_claims(obj: CustomResource, live: Object) -> DriverError | None:
    """The error if its volume claims, and what is in them, would be deleted with it (StatefulSet, "PVC retention")."""
    spec = mapping(live, "spec")
    if kind_of(live) != _STATEFUL_SET or not sequence(spec, "volumeClaimTemplates"):
        return None
    if text(spec, "persistentVolumeClaimRetentionPolicy", "whenDeleted") == "Delete":
        return Refused(
            f"{obj.key}: it is not replaced, because its volume claims would be deleted with it: "
            "spec.persistentVolumeClaimRetentionPolicy.whenDeleted is Delete. Set that to Retain first; "
            f"where a rollback needs it: kubectl -n {obj.key.namespace} patch statefulset {obj.key.name} --type merge -p "
            """'{"spec": {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain"}}}'."""
        )
    if integer(live, "status", "observedGeneration") != integer(live, "metadata", "generation"):
        return Contended(f"{obj.key}: its controller has not seen yet whether its volume claims stay when it is deleted")
    return None


def _tried(context: WriteContext, resource: Resource, manifest: Object, live: Object) -> ApiError | None:
    """Why a creation in place of `live` is refused."""
    try:
        context.client.try_creation(resource, manifest, context.manager, live)
    except ApiError as error:
        return error
    return None


def _without_own(manifest: Object, live: Object) -> Object:
    """Leaves out what exists once and is the live object's: the default PriorityClass, addresses and ports of a Service."""
    if live.get("globalDefault") is True:
        manifest = _without(manifest, "globalDefault")
    if kind_of(live) != _SERVICE:
        return manifest
    spec, before = dict(mapping(manifest, "spec")), mapping(live, "spec")
    used = [before.get("healthCheckNodePort"), *(one.get("nodePort") for one in entries(before, "ports"))]
    # What the new type forbids is tried: an update drops it unseen (dropTypeDependentFields), a creation refuses it
    if spec.get("type") != "ExternalName" and set() < _addresses(spec) <= _addresses(before):
        spec = _without(spec, "clusterIP", "clusterIPs")
    if spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local":
        spec = _without(spec, *(["healthCheckNodePort"] if spec.get("healthCheckNodePort") in used else []))
    if spec.get("type") in ("NodePort", "LoadBalancer"):
        ports = entries(spec, "ports")
        spec["ports"] = [_without(one, *(["nodePort"] if one.get("nodePort") in used else [])) for one in ports]
    return {**manifest, "spec": spec}


def _without(fields: Object, *names: str) -> Object:
    return {name: value for name, value in fields.items() if name not in names}


def _addresses(spec: Object) -> set[str]:
    return {str(one) for one in [spec.get("clusterIP"), *sequence(spec, "clusterIPs")] if one} - {"None"}


def _is_transient(error: ApiError) -> bool:
    if error.said & {Said.UNDECLARED, Said.DENIED}:
        return False
    return passes(error) or (error.status == 403 and may_pass(error)) or error.status == 409


def _is_fault(error: ApiError) -> bool:
    """
    False for a creation that could not be tried because of a webhook, or that a quota refuses beside the live object.

    The deletion makes room for one like that. What needs more waits for it until the deadline.
    """
    return Said.DENIED in error.said or not error.said & {Said.QUOTA, Said.NO_DRY_RUN}
