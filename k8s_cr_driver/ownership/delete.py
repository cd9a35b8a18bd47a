"""
Removing one object: deletion of what we made, a quiet leave of what we share or have adopted.

Shared objects are left with the resourceVersion that was read, so that of two instances that leave at once one is
always the last, and deletes.
"""

from __future__ import annotations

from k8s_cr_driver.errors import ApiError
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.objects.api_groups import is_builtin
from k8s_cr_driver.objects.crds import defined_by
from k8s_cr_driver.objects.keys import NAMESPACE, GroupKind, Object, annotations_of, kind_of, labels
from k8s_cr_driver.ownership.labels import is_made, used_by, users
from k8s_cr_driver.ownership.labels import manager as manager_of
from k8s_cr_driver.ownership.write import SHARED, WriteContext
from k8s_cr_driver.resources.base import CustomResource


def remove(target: WriteContext, obj: CustomResource, resource: Resource, live: Object, grace_period: int | None) -> str:
    """Asks for the removal; the stream of its kind tells when it is done. ApiError 409: it has changed, ask again.

    Returns "" for a deletion, else why the object stays.
    """
    target.inventory.before_delete()
    try:
        if target.inventory.record.keeps(live):
            target.client.release(resource, target.client.read(resource, obj.key), target.manager)
            return "it was there before"
        if obj.key.group_kind in SHARED:
            return _leave(target, obj, resource)
        target.client.delete(resource, live, propagation=_propagation(live), grace_period=grace_period)
    except ApiError as error:
        if error.status != 404:
            raise
    return ""


def _leave(target: WriteContext, obj: CustomResource, resource: Resource) -> str:
    live = target.client.read(resource, obj.key)
    with target.lock:  # before the last user is looked for, or two would take each other for it
        if obj.key.group_kind == NAMESPACE:
            target.inventory.leave(namespace=obj.key.name)
        else:
            target.inventory.leave(kind=defined_by(live))
    if others := users(live) - {target.instance}:
        target.client.release(resource, live, target.manager)
        return f"used by VNF instance {', '.join(sorted(others))}"
    if not is_made(live) or _has_guests(target, obj, live):
        _unmark(target, resource, live)
        return "others use it"
    target.client.delete(resource, live, propagation=_propagation(live), unchanged=True)
    return ""


def _has_guests(target: WriteContext, obj: CustomResource, live: Object) -> bool:
    """Whether another instance, without a label on what is shared, has objects in it or of it."""
    others = target.inventory.others()
    if obj.key.group_kind == NAMESPACE:
        return any(obj.key.name in record.namespaces for record in others)
    return any(defined_by(live) in record.kinds for record in others)


def _unmark(target: WriteContext, resource: Resource, live: Object) -> None:
    """Takes only our label off what guests need: nobody else has applied its fields, which would go with a release."""
    marks = {name: value for name, value in labels(live).items() if name != used_by(target.instance)}
    # An empty map in an apply is a field of its own, which would stand against whoever fills the map later.
    maps = {field: value for field, value in (("labels", marks), ("annotations", annotations_of(live))) if value}
    metadata = {"name": live["metadata"]["name"], "resourceVersion": live["metadata"]["resourceVersion"], **maps}
    left = {"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": metadata, "spec": live.get("spec") or {}}
    target.client.apply(resource, left, target.manager, force=False)


def _propagation(live: Object) -> str:
    """Foreground for what may have dependents, so that being gone means that these are gone too.

    Not for an object with finalizers: its controller takes the dependents down in an order of its own, which the garbage
    collector would run ahead of (a Cluster of Cluster API never goes then). Nor for kinds that own nothing: the collector
    takes 20 objects a second at its usual limits. Nor for a custom resource that no controller has ever written to: the
    collector learns of a new CRD up to 30 s late, and of one that has gone meanwhile never.
    """
    kind = kind_of(live)
    workload = kind.group in ("apps", "batch") or kind == GroupKind("", "ReplicationController")
    may_own = workload or (not is_builtin(kind) and _has_controller(live))
    held = set(live["metadata"].get("finalizers") or []) - {"foregroundDeletion"}  # our own of an earlier request
    return "Foreground" if may_own and not held else "Background"


def _has_controller(live: Object) -> bool:
    """Whether anybody but VNF instances has written it, as a controller does when it takes an object on."""
    managers = [str(entry.get("manager")) for entry in live["metadata"].get("managedFields") or []]
    return not all(name.startswith(manager_of("")) for name in managers)
