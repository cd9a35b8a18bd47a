# SPDX-License-Identifier: Apache-2.0
"""Requests of the last phase of a run. With `abandon` one that fails is logged only, and leaves time for the deletions."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from k8s_cr_driver import logs
from k8s_cr_driver.engine.report.not_ready import NotReady
from k8s_cr_driver.engine.run.loop import Run
from k8s_cr_driver.errors import DriverError, Stopped, Superseded
from k8s_cr_driver.redaction import redact

LOG = logs.logger(__name__)

Result = TypeVar("Result")


class Attempts:
    """`timeout`: the error at the deadline, after so many seconds of the run."""

    def __init__(self, run: Run, timeout: Callable[[float], NotReady]) -> None:
        self._operation, self._loop, self._timeout = run.operation, run.loop, timeout
        self._until: float | None = None

    def request(self, request: Callable[[], Result]) -> Result:
        """With `abandon` none is repeated in the second half of the time that the first one has: it is for the deletions."""
        self._loop.check(self._timeout)
        operation = self._operation
        if self._until is None:
            self._until = time.monotonic() + operation.remaining() / 2 if operation.abandon else math.inf
        return operation.persist(request, self._until - time.monotonic())

    @contextlib.contextmanager
    def abandonable(self, what: str) -> Iterator[None]:
        """With `abandon` a failure within it is logged only."""
        try:
            yield
        except (NotReady, Stopped, Superseded):
            raise
        except DriverError as error:
            if not self._operation.abandon:
                raise
            LOG.warning("%s: %s are abandoned: %s", self._operation.id, what, redact(str(error)))
