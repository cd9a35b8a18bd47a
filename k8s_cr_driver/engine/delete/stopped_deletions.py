# SPDX-License-Identifier: Apache-2.0
"""
Deletions that a webhook stops. One that denies may admit it when others are gone.

Webhooks of the instance go last, as they may protect what their server needs. If that server never comes back, nothing would
ever go, and a user would have to delete the configuration on the cluster: one that does not respond goes first.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from k8s_cr_driver import logs
from k8s_cr_driver.engine.run.loop import Run
from k8s_cr_driver.engine.run.nodes import Phase, ToDelete
from k8s_cr_driver.errors import DriverError
from k8s_cr_driver.kube.refusals import unanswered_webhook
from k8s_cr_driver.objects.fields import entries
from k8s_cr_driver.objects.keys import ObjectKey
from k8s_cr_driver.writes.write_errors import is_denied

LOG = logs.logger(__name__)

DENIED_GRACE = 10.0
"""Seconds after a deletion for which a webhook may still deny another one: it may see the cluster through a cache."""
SILENT_FOR = 30.0
"""Seconds, or a part of the time that is left if that is shorter, for which a webhook may not respond: it may be starting."""


class StoppedDeletions:
    """`nodes`: what the run has yet to delete."""

    def __init__(self, run: Run, nodes: Mapping[ObjectKey, ToDelete]) -> None:
        self._run, self._nodes = run, nodes
        self._timed: set[ObjectKey] = set()

    def may_be_admitted_later(self, node: ToDelete, error: DriverError, last_gone_at: float) -> bool:
        """Whether a webhook has denied the deletion, and an object still goes that may be the reason: a user of this one."""
        if not is_denied(error):
            return False
        others = (other for other in self._nodes.values() if other is not node)
        return time.monotonic() - last_gone_at < DENIED_GRACE or any(not is_denied(other.error) for other in others)

    async def silent(self, node: ToDelete) -> list[ToDelete]:
        """The configurations that have not responded to the deletion of `node`, and that do not respond later either."""
        name = unanswered_webhook(str(node.error))
        found = [one for one in self._nodes.values() if _waits(one) and _has(one, name)] if name else []
        asked = {one.key: one for one in found if one.key not in self._timed}
        if not asked:
            return []
        self._timed |= asked.keys()
        await self._run.loop.pause(self._run.operation.share(SILENT_FOR))
        self._timed -= asked.keys()
        stopped = [one.key for one in self._nodes.values() if one.error and unanswered_webhook(str(one.error)) == name]
        silent = [one for one in asked.values() if stopped and _waits(one)]
        for one in silent:
            LOG.warning("%s is deleted before %s, as it does not respond", one.key, stopped[0])
        return silent


def _waits(node: ToDelete) -> bool:
    return node.phase is Phase.BLOCKED


def _has(node: ToDelete, name: str) -> bool:
    return any(webhook.get("name") == name for webhook in entries(node.live, "webhooks"))
