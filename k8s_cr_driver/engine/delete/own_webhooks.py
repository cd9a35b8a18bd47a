# SPDX-License-Identifier: Apache-2.0
"""
Webhooks of the instance that go, and that do not respond to the deletion of an object that goes before them.

They go last, as they may protect what their server needs. If that server never comes back, nothing would ever go: a user would
have to delete the configuration on the cluster. A webhook that responds, also one that denies, is left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from k8s_cr_driver import logs
from k8s_cr_driver.engine.run.loop import Run
from k8s_cr_driver.engine.run.nodes import Phase, ToDelete
from k8s_cr_driver.kube.refusals import unanswered_webhook
from k8s_cr_driver.objects.fields import entries
from k8s_cr_driver.objects.keys import ObjectKey

LOG = logs.logger(__name__)

SILENT_FOR = 30.0
"""Seconds, or a part of the time that is left if that is shorter, for which a webhook may not respond: it may be starting."""


class OwnWebhooks:
    """`nodes`: what the run has yet to delete; `free` is called with a configuration that is not to wait any more."""

    def __init__(self, run: Run, nodes: Mapping[ObjectKey, ToDelete], free: Callable[[ToDelete], None]) -> None:
        self._operation, self._loop, self._nodes, self._free = run.operation, run.loop, nodes, free
        self._timed: set[ObjectKey] = set()

    def mind(self, node: ToDelete) -> None:
        """Looks again later at the webhook that has not responded to the deletion of `node`, if it is one that waits."""
        name = unanswered_webhook(str(node.error))
        for one in self._nodes.values() if name else ():
            if one.phase is Phase.BLOCKED and one.key not in self._timed and _has(one, name):
                self._timed.add(one.key)
                self._loop.after(self._operation.share(SILENT_FOR), self._look, one, name)

    def _look(self, configuration: ToDelete, name: str) -> None:
        stopped = [one.key for one in self._nodes.values() if one.error and unanswered_webhook(str(one.error)) == name]
        self._timed.discard(configuration.key)
        if stopped and configuration.phase is Phase.BLOCKED:
            LOG.warning("%s is deleted before %s, as it does not respond", configuration.key, stopped[0])
            self._free(configuration)


def _has(node: ToDelete, name: str) -> bool:
    return any(webhook.get("name") == name for webhook in entries(node.live, "webhooks"))
