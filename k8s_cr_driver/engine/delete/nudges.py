# SPDX-License-Identifier: Apache-2.0
"""Has the API server look again at a CRD that a run deletes and that still stands; why, says `writes.crd_cleanup`."""

from __future__ import annotations

import functools
from collections.abc import Callable

from k8s_cr_driver.engine.run.loop import Run
from k8s_cr_driver.engine.run.nodes import ToDelete
from k8s_cr_driver.errors import DriverError, Superseded
from k8s_cr_driver.writes.crd_cleanup import is_in_cleanup, nudge

NUDGE_EVERY = 10.0
"""Seconds for which a CRD without custom resources may stand until the API server is made to look at it again."""


class Nudges:
    """`stands`: whether the run still waits until that CRD is gone."""

    def __init__(self, run: Run, stands: Callable[[ToDelete], bool]) -> None:
        self._loop, self._context, self._stands = run.loop, run.context, stands

    def later(self, node: ToDelete) -> None:
        self._loop.after(NUDGE_EVERY, functools.partial(self._nudge, node))

    def _nudge(self, node: ToDelete) -> None:
        if not self._stands(node) or self._loop.refusals or node.live is None:
            return

        def failed(error: DriverError) -> None:
            if isinstance(error, Superseded):
                self._loop.refuse(error)
            else:
                self.later(node)

        if is_in_cleanup(node.live):
            request = functools.partial(nudge, self._context, node.resource, node.live)
            self._loop.send(request, lambda _: self.later(node), failed)
