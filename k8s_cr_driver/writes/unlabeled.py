# SPDX-License-Identifier: Apache-2.0
"""
Members that have lost the instance's label, for example by `kubectl replace` with another manifest.

Watches select by label and miss them, but `managedFields` still names our field manager. Their label is restored before a
prune, so that they are deleted, waited for and reported as all members are.
"""

from __future__ import annotations

from k8s_cr_driver.errors import ApiError, Contended
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.objects.keys import Object, ObjectKey, key_of, labels
from k8s_cr_driver.objects.marks import INSTANCE_LABEL, SHARED, appliers, is_managed, used_by
from k8s_cr_driver.writes.context import WriteContext, has_gone


def is_hidden(live: Object, instance: str) -> bool:
    """Whether the instance has applied the object, and no other one whose label it has."""
    label = labels(live).get(INSTANCE_LABEL)
    return is_managed(live, instance) and label != instance and label not in appliers(live)


def read_unlabeled(context: WriteContext, resource: Resource, key: ObjectKey) -> Object | None:
    """The object if it exists, has no label of an instance that owns it, and this instance has applied it; else None."""
    try:
        live = context.client.read(resource, key)
    except ApiError as error:
        if error.status != 404:
            raise
        return None
    if key.group_kind not in SHARED:
        return live if is_hidden(live, context.instance) else None
    return live if used_by(context.instance) not in labels(live) and is_managed(live, context.instance) else None


def reclaim(context: WriteContext, resource: Resource, live: Object) -> Object | None:
    """Restores the label and returns the object; None if it no longer exists. Idempotent, so it may be repeated.

    A merge patch: an apply that names the label alone would drop our other fields. An adopted object is released and not
    deleted, so it is only read.
    """
    key, uid = key_of(live), live["metadata"]["uid"]
    if context.inventory.content.is_adopted(live):
        return read_unlabeled(context, resource, key)
    label = {INSTANCE_LABEL: context.instance}
    try:
        whole = context.client.read_again(resource, live)  # an error names no value of it
        context.inventory.fence.before_write()
        return context.client.patch_metadata(resource, whole, context.manager, uid=uid, labels=label)
    except ApiError as error:
        if error.status in (404, 409, 422) and has_gone(context, key, resource, uid):
            return None
        raise (Contended(f"{key} is changed by others all the time") if error.status == 409 else error) from None
