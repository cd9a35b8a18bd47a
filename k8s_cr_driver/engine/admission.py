# SPDX-License-Identifier: Apache-2.0
"""
The instance's webhooks and policies that the set does not have: they are deleted before anything is applied.

They would judge the set by rules that are no longer the package's. A rollback brings what the newer package's policy refuses,
and a change may bring what the former one's did.
"""

from __future__ import annotations

import functools
from collections.abc import Collection

from oslo_log import log as logging

from k8s_cr_driver.engine.operation import Operation
from k8s_cr_driver.objects.keys import GroupKind, ObjectKey, key_of
from k8s_cr_driver.ownership.context import WriteContext, selector
from k8s_cr_driver.ownership.delete import remove
from k8s_cr_driver.ownership.labels import is_kept, is_managed
from k8s_cr_driver.resources.registry import resource_for

LOG = logging.getLogger(__name__)

_KINDS = frozenset(
    GroupKind("admissionregistration.k8s.io", kind)
    for kind in (
        *("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"),
        *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
        *("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"),
    )
)


def delete_former(operation: Operation, context: WriteContext, desired: Collection[ObjectKey]) -> bool:
    """Whether any was deleted. Kept and adopted ones are left to the end of the run, as all that is only released."""
    content, found = context.inventory.content, False
    for kind in sorted(content.kinds & _KINDS):
        resource = context.resources.find(kind)
        if resource is None:
            continue
        request = functools.partial(context.client.list, resource, "", selector(context.instance, kind))
        for live in operation.persist(request):
            is_former = key_of(live) not in desired and is_managed(live, context.instance)
            if is_former and not (is_kept(live) or content.is_adopted(live) or context.inventory.is_foreign(live)):
                operation.persist(functools.partial(remove, context, resource_for(live), resource, live, None))
                LOG.info("%s: %s is not in the set, so it was deleted before the set is applied", operation.id, key_of(live))
                found = True
    return found
