# SPDX-License-Identifier: Apache-2.0
"""
The Namespaces and CRDs that an instance leaves: it withdraws them from its inventory, and looks into them, before they go.

A write costs as much as the inventory is long, and a look some ten lists. So one is on its way at a time, for all that are to
go by then, and begins when no deletion is unanswered, with which others may come.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from k8s_cr_driver import logs
from k8s_cr_driver.engine.run.loop import Run
from k8s_cr_driver.engine.run.nodes import ToDelete
from k8s_cr_driver.errors import DriverError
from k8s_cr_driver.objects.keys import Object, ObjectKey
from k8s_cr_driver.writes.delete import why_it_stays, withdraw
from k8s_cr_driver.writes.guests import Guests

LOG = logs.logger(__name__)


class Departures:
    """`looked` is called with each object, and with why it stays or "", `failed` with each that could not be looked into."""

    def __init__(
        self, run: Run, looked: Callable[[ToDelete, str], None], failed: Callable[[ToDelete, DriverError], None]
    ) -> None:
        self._loop, self._context, self._looked, self._failed = run.loop, run.context, looked, failed
        self.guests = Guests(run.context)
        self._waiting: list[ToDelete] = []
        self._unanswered = 0

    def add(self, node: ToDelete) -> None:
        self._waiting.append(node)
        self._loop.post(self._begin)  # after all that are to go now

    def send(self, request: Callable[[], object], then: Callable[..., None], failed: Callable[[DriverError], None]) -> None:
        """Sends a deletion."""
        self._unanswered += 1
        self._loop.send(request, functools.partial(self._answered, then), functools.partial(self._answered, failed))

    def _answered(self, then: Callable[..., None], response: object) -> None:
        self._unanswered -= 1
        then(response)
        self._loop.post(self._begin)  # after what the watches have reported

    def _begin(self) -> None:
        if self._unanswered or not self._waiting or self._loop.refusals:
            return
        nodes, self._waiting = self._waiting, []
        lives = [node.live for node in nodes if node.live is not None]

        def ended(found: dict[ObjectKey, str]) -> None:
            for node in nodes:
                taken = self.guests.taken_with(node.key)
                if taken and not found[node.key]:
                    LOG.warning("%s is deleted %s", node.key, taken)
                self._looked(node, found[node.key])

        def failed(error: DriverError) -> None:
            for node in nodes:
                self._failed(node, error)

        self.send(functools.partial(self._look, lives), ended, failed)

    def _look(self, lives: list[Object]) -> dict[ObjectKey, str]:
        withdraw(self._context, lives)
        return why_it_stays(self._context, lives, self.guests)
