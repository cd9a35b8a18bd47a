"""
The one thread that owns a run's state.

Streams, workers and timers put actions into an inbox; the loop runs them one after another. So the rest of the engine has
no locks and no order of events to fear.
"""

from __future__ import annotations

import contextlib
import functools
import heapq
import itertools
import queue
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from k8s_cr_driver.engine.not_ready import NotReady
from k8s_cr_driver.engine.operation import Operation
from k8s_cr_driver.errors import DriverError, Stopped

Action = Callable[[], None]
Answer = TypeVar("Answer")

THREADS = 8

WAKE_UP = 1.0
"""Seconds after which the loop looks whether it was told to stop."""


class Loop:
    """Runs actions until something is done, the deadline has passed, or a refusal ends the run."""

    def __init__(self, operation: Operation) -> None:
        self._operation = operation
        self._inbox: queue.SimpleQueue[Action] = queue.SimpleQueue()
        self._timers: list[tuple[float, int, Action]] = []
        self._count = itertools.count()
        self._workers = Workers()
        self._sending = 0
        self.refusals: list[DriverError] = []

    def post(self, action: Action) -> None:
        """Has the loop run `action`; from any thread."""
        self._inbox.put(action)

    def after(self, seconds: float, action: Action) -> None:
        """Has the loop run `action` later; from the loop's thread."""
        heapq.heappush(self._timers, (time.monotonic() + seconds, next(self._count), action))

    def send(
        self,
        request: Callable[[], Answer],
        then: Callable[[Answer], None],
        failed: Callable[[DriverError], None],
    ) -> None:
        """Has a worker do `request` and the loop run what follows; any other exception ends the run."""

        def job() -> None:
            try:
                answer = request()
            except DriverError as error:
                self.post(functools.partial(self._sent, functools.partial(failed, error)))
            except Exception as error:  # a bug must end the run, not hang it
                self.post(functools.partial(self._sent, functools.partial(_throw, error)))
            else:
                self.post(functools.partial(self._sent, functools.partial(then, answer)))

        self._sending += 1
        self._workers.submit(job)

    def refuse(self, error: DriverError) -> None:
        """Ends the run with `error` as soon as the requests that are under way have ended, at the deadline in any case.

        None begins any more.
        """
        self.refusals.append(error)
        self._sending -= self._workers.drop()

    def run(self, done: Callable[[], bool], late: Callable[[float], NotReady]) -> None:
        """Until `done`; `late(seconds)` makes the error of a deadline that has passed."""
        started = time.monotonic()
        while self.refusals or not done():
            if self.refusals and not (self._sending and self._operation.remaining()):
                raise self.refusals[0]
            if self._operation.stop.is_set():
                raise Stopped("The operation was stopped; retry or rollback takes it up again.")
            if self._operation.remaining() == 0:
                raise late(time.monotonic() - started)
            self._step()

    def finish(self) -> None:
        """Waits for the requests that are under way: no write happens after a run has ended."""
        self._workers.finish()

    def _step(self) -> None:
        """One action, for after each all may be done."""
        if self._timers and self._timers[0][0] <= time.monotonic():
            heapq.heappop(self._timers)[2]()
            return
        wait = min(WAKE_UP, self._operation.remaining())
        if self._timers:
            wait = min(wait, max(0.0, self._timers[0][0] - time.monotonic()))
        try:
            action = self._inbox.get(timeout=wait)
        except queue.Empty:
            return
        action()

    def _sent(self, action: Action) -> None:
        self._sending -= 1
        action()


def _throw(error: Exception) -> None:
    raise error


class Workers:
    """Runs jobs in parallel; every job must post its own outcome and raise nothing."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []

    def submit(self, job: Callable[[], None]) -> None:
        if len(self._threads) < THREADS:
            thread = threading.Thread(target=self._run, name="k8s-cr worker", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._jobs.put(job)

    def drop(self) -> int:
        """Forgets the jobs that have not begun; how many there were."""
        dropped = 0
        with contextlib.suppress(queue.Empty):
            while True:
                self._jobs.get_nowait()
                dropped += 1
        return dropped

    def finish(self) -> None:
        """Waits for the jobs that have begun, whose requests have time limits of their own, and forgets the others."""
        self.drop()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
