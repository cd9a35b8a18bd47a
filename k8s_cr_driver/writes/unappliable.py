# SPDX-License-Identifier: Apache-2.0
"""
Objects that no server-side apply can touch, as their lists repeat a merge key, such as two names of one container port.

A create accepts them, so an instance of Tacker's own driver may have some (kubernetes/kubernetes#113482). Their count alone
is written; all else stays as it is until a change brings a manifest without the repetition.
"""

from __future__ import annotations

from k8s_cr_driver import logs
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.objects.managed_fields import succeeded
from k8s_cr_driver.package.merge_keys import repeated_merge_keys
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.replicas import explicit_count
from k8s_cr_driver.writes.context import WriteContext

LOG = logs.logger(__name__)


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
