"""
Removing one object: deletion of what we made, a quiet leave of what we share or have adopted.

Shared objects are left with the resourceVersion that was read, so that of two instances that leave at once one is
always the last, and deletes.
"""

from __future__ import annotations

from k8s_cr_driver.discovery import Resource
from k8s_cr_driver.engine.write import SHARED, Target
from k8s_cr_driver.errors import ApiError
from k8s_cr_driver.fields import defined_by
from k8s_cr_driver.keys import NAMESPACE, Object, annotations_of, labels
from k8s_cr_driver.marks import is_made, used_by, users
from k8s_cr_driver.resources.base import CustomResource


def remove(target: Target, obj: CustomResource, resource: Resource, live: Object, grace_period: int | None) -> str:
    """Asks for the removal; the stream of its kind tells when it is done. ApiError 409: it has changed, ask again.

    Returns "" for a deletion, else why the object stays.
    """
    target.inventory.before_delete()
    try:
        if target.inventory.record.keeps(live):
            _release(target, obj, resource, obj.read(target.connection, resource))
            return "it was there before"
        if obj.key.of in SHARED:
            return _leave(target, obj, resource)
        obj.delete(target.connection, resource, live, grace_period=grace_period)
    except ApiError as error:
        if error.status != 404:
            raise
    return ""


def _leave(target: Target, obj: CustomResource, resource: Resource) -> str:
    live = obj.read(target.connection, resource)
    with target.lock:  # before the last user is looked for, or two would take each other for it
        if obj.key.of == NAMESPACE:
            target.inventory.leave(namespace=obj.key.name)
        else:
            target.inventory.leave(kind=defined_by(live))
    if others := users(live) - {target.instance}:
        _release(target, obj, resource, live)
        return f"used by VNF instance {', '.join(sorted(others))}"
    if not is_made(live) or _has_guests(target, obj, live):
        _unmark(target, obj, resource, live)
        return "others use it"
    obj.delete(target.connection, resource, live, unchanged=True)
    return ""


def _has_guests(target: Target, obj: CustomResource, live: Object) -> bool:
    """Whether another instance, without a label on what is shared, has objects in it or of it."""
    others = target.inventory.others()
    if obj.key.of == NAMESPACE:
        return any(obj.key.name in record.namespaces for record in others)
    return any(defined_by(live) in record.kinds for record in others)


def _unmark(target: Target, obj: CustomResource, resource: Resource, live: Object) -> None:
    """Takes only our label off what guests need: nobody else has applied its fields, which would go with a release."""
    marks = {name: value for name, value in labels(live).items() if name != used_by(target.instance)}
    # An empty map in an apply is a field of its own, which would stand against whoever fills the map later.
    maps = {field: value for field, value in (("labels", marks), ("annotations", annotations_of(live))) if value}
    metadata = {"name": obj.key.name, "resourceVersion": live["metadata"]["resourceVersion"], **maps}
    left = {"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": metadata, "spec": live.get("spec") or {}}
    type(obj)(left).apply(target.connection, resource, target.manager, force=False)


def _release(target: Target, obj: CustomResource, resource: Resource, live: Object) -> None:
    obj.release(target.connection, resource, target.manager, live["metadata"]["resourceVersion"])
