# SPDX-License-Identifier: Apache-2.0
"""
Pods of a former revision that keep their owner from its rollout: they are deleted, as the rollout would delete them.

A StatefulSet whose Pods start in order replaces none while one is not ready, and one with a broken image never is. So the
return to a good template has no effect until somebody deletes that Pod (StatefulSet, "Forced rollback";
kubernetes/kubernetes#67250).
"""

from __future__ import annotations

from k8s_cr_driver import logs
from k8s_cr_driver.engine.run.loop import Run
from k8s_cr_driver.engine.run.nodes import Desired
from k8s_cr_driver.errors import ApiError, DriverError, passes
from k8s_cr_driver.objects.fields import entries, text
from k8s_cr_driver.objects.keys import Object, ObjectKey, controller_of, key_of, labels
from k8s_cr_driver.objects.marks import is_kept
from k8s_cr_driver.redaction import redact
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.health.builtin import condition
from k8s_cr_driver.resources.health.conditions import status_of
from k8s_cr_driver.resources.health.workloads import STARTING
from k8s_cr_driver.resources.registry import health_of_made

LOG = logs.logger(__name__)

PATIENCE = 30.0
"""Seconds for which an owner is not ready before its Pods are looked at, and between two looks."""
_REVISION = "controller-revision-hash"
"""The label of a Pod with the revision of its template."""


class StuckPods:
    """Looks at the Pods of owners that wait, and deletes what holds them up, one Pod at a time."""

    def __init__(self, run: Run) -> None:
        self._operation, self._loop, self._context = run.operation, run.loop, run.context
        self._watched: set[ObjectKey] = set()
        self._deleted: set[tuple[ObjectKey, str]] = set()
        """Each Pod is deleted once for a revision: it may come back as it was."""

    def watch(self, node: Desired, live: Object) -> None:
        """The object is not ready."""
        if node.key not in self._watched and node.obj.scaling().awaited_revision(live):
            self._watched.add(node.key)
            self._loop.start(self._follow(node))

    async def _follow(self, node: Desired) -> None:
        stuck = ""  # the uid of the Pod that held the owner up at the last look
        while True:
            await self._loop.pause(self._operation.share(PATIENCE))
            is_waiting, scaling = node.live is not None and not node.health.settled, node.obj.scaling()
            revision = scaling.awaited_revision(node.live) if node.live is not None and is_waiting else ""
            if node.live is None or not revision or self._loop.refusals:
                self._watched.discard(node.key)
                return
            try:
                stuck = await self._loop.call(self._delete_stuck, node.obj, node.live, revision, stuck)
            except DriverError as error:
                has_changed = isinstance(error, ApiError) and error.status in (404, 409)
                if not (passes(error) or has_changed):  # the report at the deadline names the Pod
                    LOG.warning("%s: whether its Pods hold it up cannot be seen, or changed: %s", node.key, redact(str(error)))
                    return

    def _delete_stuck(self, obj: CustomResource, owner: Object, revision: str, before: str) -> str:
        """Deletes the Pod that holds up the owner if it is the one of `before`; returns its uid, "" if there is none."""
        context, children = self._context, obj.children(owner)
        resource = context.resources.find(children.kind, children.version) if children else None
        if children is None or resource is None:
            return ""
        found = context.client.list(resource, children.namespace, children.selector)
        own = [one for one in found if controller_of(one) == owner["metadata"]["uid"]]
        in_order = reversed(obj.scaling().removal_order(own) or [])
        first = next((one for one in in_order if not health_of_made(one).settled), None)
        if first is None or labels(first).get(_REVISION) == revision or is_kept(first) or not _is_stuck(first):
            return ""
        if first["metadata"]["uid"] == before and (key_of(first), revision) not in self._deleted:
            context.inventory.fence.before_write()
            context.client.delete(resource, first, propagation="Background")
            self._deleted.add((key_of(first), revision))
            LOG.warning(
                "%s is of a former revision of %s and not ready (%s), so it was deleted: it would hold up the rollout for ever",
                key_of(first), obj.key, redact(health_of_made(first).reason),
            )  # fmt: skip
        return str(first["metadata"]["uid"])


def _is_stuck(pod: Object) -> bool:
    """Whether it has failed or has no node, or a container waits. One that starts, or runs again, may become ready."""
    statuses = [one for name in ("initContainerStatuses", "containerStatuses") for one in entries(pod, "status", name)]
    is_waiting = any(text(one, "state", "waiting", "reason") not in ("", *STARTING) for one in statuses)
    has_no_node = status_of(condition(pod, "PodScheduled")) == "false"
    is_going = pod["metadata"].get("deletionTimestamp") is not None
    return (is_waiting or has_no_node or text(pod, "status", "phase") == "Failed") and not is_going
