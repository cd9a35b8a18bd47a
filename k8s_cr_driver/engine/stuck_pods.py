# SPDX-License-Identifier: Apache-2.0
"""
Pods of a former revision that keep their owner from its rollout: they are deleted, as the rollout would delete them.

A StatefulSet whose Pods start in order replaces none while one is not ready, and one with a broken image never is. So the
return to a good template has no effect until somebody deletes that Pod (StatefulSet, "Forced rollback";
kubernetes/kubernetes#67250).
"""

from __future__ import annotations

import functools

from oslo_log import log as logging

from k8s_cr_driver.engine.nodes import Desired
from k8s_cr_driver.engine.run import Run
from k8s_cr_driver.errors import DriverError, passes
from k8s_cr_driver.objects.keys import Object, ObjectKey, controller_of, key_of, labels
from k8s_cr_driver.ownership.context import WriteContext
from k8s_cr_driver.redaction import redact
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.health import State
from k8s_cr_driver.resources.registry import resource_for

LOG = logging.getLogger(__name__)

PATIENCE = 30.0
"""Seconds for which an owner is not ready before its Pods are looked at, and between two looks."""
_REVISION = "controller-revision-hash"
"""The label of a Pod with the revision of its template."""


class StuckPods:
    """Looks at the Pods of owners that wait, and deletes what holds them up, one Pod at a time."""

    def __init__(self, run: Run) -> None:
        self._loop, self._context = run.loop, run.context
        self._watched: set[ObjectKey] = set()

    def watch(self, node: Desired, live: Object) -> None:
        """The object is not ready."""
        if node.key not in self._watched and node.obj.awaited_revision(live):
            self._watched.add(node.key)
            self._loop.after(PATIENCE, functools.partial(self._look, node))

    def _look(self, node: Desired) -> None:
        revision = node.obj.awaited_revision(node.live) if node.live is not None and not node.health.settled else ""
        if node.live is None or not revision:
            self._watched.discard(node.key)
            return
        request = functools.partial(_delete_stuck, self._context, node.obj, node.live, revision)
        again = functools.partial(self._loop.after, PATIENCE, functools.partial(self._look, node))
        self._loop.send(request, lambda _: again(), lambda error: self._failed(node, error))

    def _failed(self, node: Desired, error: DriverError) -> None:
        if passes(error):
            self._loop.after(PATIENCE, functools.partial(self._look, node))
        else:  # the report at the deadline names the Pod
            LOG.warning("%s: whether its Pods hold it up cannot be seen, or changed: %s", node.key, redact(str(error)))


def _delete_stuck(context: WriteContext, obj: CustomResource, owner: Object, revision: str) -> None:
    children = obj.children(owner)
    resource = context.resources.find(children.kind, children.version) if children else None
    if children is None or resource is None:
        return
    found = context.client.list(resource, children.namespace, children.selector)
    own = [one for one in found if controller_of(one) == owner["metadata"]["uid"]]
    in_order = reversed(obj.removal_order(own) or [])
    first = next((one for one in in_order if not resource_for(one).health(one).settled), None)
    if first is None or labels(first).get(_REVISION) == revision:
        return
    health = resource_for(first).health(first)
    if (health.trouble or health.state is State.FAILED) and not first["metadata"].get("deletionTimestamp"):
        context.inventory.fence.before_delete()
        context.client.delete(resource, first, propagation="Background")
        LOG.warning(
            "%s is of a former revision of %s and not ready (%s), so it was deleted: it would hold up the rollout for ever",
            key_of(first), obj.key, redact(health.reason),
        )  # fmt: skip
