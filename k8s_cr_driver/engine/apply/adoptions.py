# SPDX-License-Identifier: Apache-2.0
"""Adoption of objects that somebody else has created: those of a short time are recorded in one write of the inventory."""

from __future__ import annotations

import functools
from collections.abc import Callable

from k8s_cr_driver.engine.run.loop import Run
from k8s_cr_driver.engine.run.nodes import Desired
from k8s_cr_driver.errors import DriverError
from k8s_cr_driver.writes.create_or_apply import adopt

COLLECT_FOR = 0.3
"""Seconds for which adoptions are collected."""


class Adoptions:
    """`retry` is called with each object that is adopted, `failed` with each that is not."""

    def __init__(self, run: Run, retry: Callable[[Desired], None], failed: Callable[[Desired, DriverError], None]) -> None:
        self._loop, self._context, self._retry, self._failed = run.loop, run.context, retry, failed
        self._collected: list[tuple[Desired, str]] = []

    def add(self, node: Desired, uid: str) -> None:
        """`uid` is that of the live object."""
        if not self._collected:
            self._loop.after(COLLECT_FOR, self._adopt)
        self._collected.append((node, uid))

    def _adopt(self) -> None:
        found, self._collected = self._collected, []
        nodes, uids = [node for node, _ in found], {node.key: uid for node, uid in found}

        def adopted(_: None) -> None:
            for node in nodes:
                self._retry(node)

        def failed(error: DriverError) -> None:
            for node in nodes:
                self._failed(node, error)

        self._loop.send(functools.partial(adopt, self._context, uids), adopted, failed)
