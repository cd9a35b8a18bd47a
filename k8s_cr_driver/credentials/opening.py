# SPDX-License-Identifier: Apache-2.0
"""Opens the clusters of an instance by a few threads, however many a server reports.

A cluster that does not open yet is tried again with backoff, after all others that are due: silent ones hold a thread for the
time of one attempt only.
"""

from __future__ import annotations

import heapq
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from k8s_cr_driver.credentials.post import NotDelivered
from k8s_cr_driver.errors import ApiError, DriverError, passes
from k8s_cr_driver.kube import backoff, threads

THREADS = 16
Opened = TypeVar("Opened")


@dataclass(order=True)
class _Turn:
    at: float
    """A time.monotonic()."""
    cluster: str
    failures: int = 0


@dataclass
class Opening(Generic[Opened]):
    """The results of `attempt` for each cluster, until `end`, a time.monotonic(): iterate over them as they come."""

    clusters: Iterable[str]
    attempt: Callable[[str], Opened]
    """Raises DriverError."""
    end: float
    _results: queue.SimpleQueue[Opened | Exception] = field(default_factory=queue.SimpleQueue)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def __post_init__(self) -> None:
        self._turns = [_Turn(0.0, cluster) for cluster in sorted(self.clusters)]
        self._count = self._left = len(self._turns)
        for _ in range(min(THREADS, self._count)):
            threads.start(self._work, "open clusters")

    def __iter__(self) -> Iterator[Opened | Exception]:
        for _ in range(self._count):
            yield self._results.get()

    def _work(self) -> None:
        while turn := self._next():
            result = self._result(turn)
            with self._changed:
                if isinstance(result, _Turn):
                    heapq.heappush(self._turns, result)
                else:
                    self._left -= 1
                    self._results.put(result)
                self._changed.notify_all()

    def _next(self) -> _Turn | None:
        """The next cluster when it is due; None when all have a result."""
        with self._changed:
            while self._left:
                wait = self._turns[0].at - time.monotonic() if self._turns else None
                if wait is not None and wait <= 0:
                    return heapq.heappop(self._turns)
                self._changed.wait(wait)
            return None

    def _result(self, turn: _Turn) -> Opened | Exception | _Turn:
        if time.monotonic() > self.end:
            return NotDelivered(f"{turn.cluster}: the deadline has come before the cluster was opened")
        try:
            return self.attempt(turn.cluster)
        except DriverError as error:
            again = time.monotonic() + backoff.delay(turn.failures + 1, error)
            if _may_pass(error) and again <= self.end:
                return _Turn(again, turn.cluster, turn.failures + 1)
            return NotDelivered(f"{turn.cluster}: its kubeconfig does not open the cluster: {error}")
        except Exception as error:
            return error


def _may_pass(error: DriverError) -> bool:
    """Cluster API may be about to write the kubeconfig, and its server may restart."""
    return passes(error) or (isinstance(error, ApiError) and error.status == 404)
