# SPDX-License-Identifier: Apache-2.0
"""
The Namespaces and CRDs that an instance leaves: it withdraws them from its inventory before they are deleted or released.

A write costs as much as the inventory is long, so one is on its way at a time, and takes along all that are to go by then.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from k8s_cr_driver.engine.nodes import ToDelete
from k8s_cr_driver.engine.run import Run
from k8s_cr_driver.errors import DriverError
from k8s_cr_driver.ownership.delete import withdraw


class Departures:
    """`withdrawn` is called with each object that the inventory no longer names, `failed` with each that it does."""

    def __init__(
        self, run: Run, withdrawn: Callable[[ToDelete], None], failed: Callable[[ToDelete, DriverError], None]
    ) -> None:
        self._loop, self._context, self._withdrawn, self._failed = run.loop, run.context, withdrawn, failed
        self._waiting: list[ToDelete] = []
        self._is_writing = False

    def add(self, node: ToDelete) -> None:
        self._waiting.append(node)
        if not self._is_writing:
            self._write()

    def _write(self) -> None:
        nodes, self._waiting, self._is_writing = self._waiting, [], True
        lives = [node.live for node in nodes if node.live is not None]

        def ended() -> None:
            self._is_writing = False
            if self._waiting and not self._loop.refusals:
                self._write()

        def written(_: None) -> None:
            ended()
            for node in nodes:
                self._withdrawn(node)

        def failed(error: DriverError) -> None:
            ended()
            for node in nodes:
                self._failed(node, error)

        self._loop.send(functools.partial(withdraw, self._context, lives), written, failed)
