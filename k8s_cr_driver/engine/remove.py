"""
Removing one object: deletion of what we made, a quiet leave of what we share or have adopted.

Shared objects are left with the resourceVersion that was read, so that of two instances that leave at once one is
always the last, and deletes.
"""

from __future__ import annotations

from k8s_cr_driver.discovery import Resource
from k8s_cr_driver.engine.write import SHARED, Target
from k8s_cr_driver.errors import ApiError
from k8s_cr_driver.inventory import MADE_BY_US, users
from k8s_cr_driver.keys import NAMESPACE, Object, annotations_of
from k8s_cr_driver.resources.base import CustomResource


def remove(target: Target, obj: CustomResource, resource: Resource, live: Object, grace_period: int | None) -> None:
    """Asks for the removal; the stream of its kind tells when it is done. Errors as in `CustomResource.delete`."""
    target.inventory.confirm()
    try:
        if obj.key in target.inventory.record.adopted:
            _release(target, obj, resource)
        elif obj.key.of in SHARED:
            _leave(target, obj, resource)
        else:
            obj.delete(target.connection, resource, live, grace_period=grace_period)
    except ApiError as error:
        if error.status != 404:
            raise


def _leave(target: Target, obj: CustomResource, resource: Resource) -> None:
    if obj.key.of == NAMESPACE:
        with target.lock:
            target.inventory.leave(obj.key.name)  # before the last user is looked for, or two would take each other for it
    while True:
        live = obj.read(target.connection, resource)
        try:
            if _is_last(target, obj, live):
                obj.delete(target.connection, resource, live, unchanged=True)
            else:
                _release_at(target, obj, resource, live)
            return
        except ApiError as error:
            if error.status != 409:
                raise


def _is_last(target: Target, obj: CustomResource, live: Object) -> bool:
    if annotations_of(live).get(MADE_BY_US) != "true" or users(live) - {target.instance}:
        return False
    return obj.key.of != NAMESPACE or obj.key.name not in target.inventory.used_namespaces()


def _release(target: Target, obj: CustomResource, resource: Resource) -> None:
    while True:
        try:
            _release_at(target, obj, resource, obj.read(target.connection, resource))
            return
        except ApiError as error:
            if error.status != 409:
                raise


def _release_at(target: Target, obj: CustomResource, resource: Resource, live: Object) -> None:
    obj.release(target.connection, resource, target.manager, live["metadata"]["resourceVersion"])
