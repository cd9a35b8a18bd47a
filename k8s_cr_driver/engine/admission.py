# SPDX-License-Identifier: Apache-2.0
"""
The instance's webhooks and policies that the set does not have: one that denies an object of the set is deleted at once.

They judge the set by rules that are no longer the package's. A rollback brings what the newer package's policy refuses, and a
change may bring what the former one's did. What denies nothing stays until the rest is deleted: until the set is ready,
nobody knows that the change will stay.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator

from oslo_log import log as logging

from k8s_cr_driver.engine.nodes import Desired
from k8s_cr_driver.engine.run import Run
from k8s_cr_driver.engine.tolerance import Tolerance
from k8s_cr_driver.errors import ApiError, DriverError, Said, passes
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.objects.fields import entries, text
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, key_of
from k8s_cr_driver.ownership.context import WriteContext, selector
from k8s_cr_driver.ownership.delete import remove
from k8s_cr_driver.ownership.labels import is_kept, is_managed
from k8s_cr_driver.resources.registry import resource_for

LOG = logging.getLogger(__name__)

KINDS = frozenset(
    GroupKind("admissionregistration.k8s.io", kind)
    for kind in (
        *("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"),
        *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
        *("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"),
    )
)


class FormerAdmission:
    """Deletes what denies an object of the set; `try_later` and `refused` are called with that object."""

    def __init__(
        self,
        run: Run,
        desired: Collection[ObjectKey],
        tolerance: Tolerance,
        *,
        try_later: Callable[[Desired], None],
        refused: Callable[[DriverError], None],
    ) -> None:
        self._loop, self._context, self._desired, self._tolerance = run.loop, run.context, desired, tolerance
        self._try_later, self._refused = try_later, refused
        self.is_pruned = False
        """Whether the run deletes what the set does not have."""

    def may_deny(self, error: DriverError) -> bool:
        """Whether the error may be a denial by a former webhook or policy."""
        has_any = not self._context.inventory.content.kinds.isdisjoint(KINDS)
        return self.is_pruned and has_any and Said.DENIED in Said.of(str(error))

    def relax(self, node: Desired, error: DriverError) -> None:
        """Deletes what the error names, and has the object tried again; else it is refused."""
        request = functools.partial(_delete_denying, self._context, str(error), self._desired)

        def deleted(found: bool) -> None:
            if found:
                self._tolerance.relaxed()
                self._try_later(node)
            else:
                self._refused(error)

        def failed(other: DriverError) -> None:
            if passes(other) or (isinstance(other, ApiError) and other.status in (404, 409)):
                self._try_later(node)
            else:
                self._refused(error)

        self._loop.send(request, deleted, failed)


def _delete_denying(context: WriteContext, denial: str, desired: Collection[ObjectKey]) -> bool:
    denying = [one for one in _former(context, desired) if any(_is_named(name, denial) for name in _names(one[1]))]
    for resource, live in denying:
        LOG.warning("%s is not in the set and denies an object of it, so it is deleted first", key_of(live))
        remove(context, resource_for(live), resource, live, None)
    return bool(denying)


def _former(context: WriteContext, desired: Collection[ObjectKey]) -> Iterator[tuple[Resource, Object]]:
    """Without kept and adopted ones, which are only released at the end of the run."""
    content = context.inventory.content
    for kind in sorted(content.kinds & KINDS):
        resource = context.resources.find(kind)
        if resource is None:
            continue
        for live in context.client.list(resource, "", selector(context.instance, kind)):
            is_former = key_of(live) not in desired and is_managed(live, context.instance)
            if is_former and not (is_kept(live) or content.is_adopted(live) or context.inventory.is_foreign(live)):
                yield resource, live


def _names(live: Object) -> list[str]:
    """As a denial names it: a policy and a binding by their own names, a webhook by that of its entry."""
    return [text(one, "name") for one in entries(live, "webhooks")] or [live["metadata"]["name"]]


def _is_named(name: str, denial: str) -> bool:
    return any(f"{quote}{name}{quote}" in denial for quote in "'\"")
