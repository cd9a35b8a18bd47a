# SPDX-License-Identifier: Apache-2.0
"""
The event loop of a run: one thread owns the run's state.

Watches, workers and timers post actions; the loop executes them one after another. So the rest of the engine needs no
locks. Workers send the requests, at most THREADS at a time. What takes several steps is a coroutine of this loop, which
awaits responses and pauses; it is none of asyncio.
"""

from __future__ import annotations

import contextlib
import functools
import heapq
import itertools
import math
import queue
import threading
import time
import types
from collections.abc import Callable, Coroutine, Generator, Iterator
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from k8s_cr_driver import logs
from k8s_cr_driver.engine.run.operation import Operation
from k8s_cr_driver.errors import DriverError, Stopped, Superseded, passes
from k8s_cr_driver.kube import backoff, threads
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.discovery import Resources
from k8s_cr_driver.redaction import redact
from k8s_cr_driver.writes.context import WriteContext

Action = Callable[[], None]
Result = TypeVar("Result")
P = ParamSpec("P")
Resume = Callable[[Any, "BaseException | None"], None]
"""Resumes a coroutine with what it waits for, or with an error."""
Begin = Callable[[Resume], None]
Steps = Coroutine[Begin, Any, Result]

THREADS = 8

WAKE_UP = 1.0
"""Seconds between two looks at the operation's stop event."""


FINISH_LIMIT = 120.0
"""Seconds for which the end of a run waits for its workers. A request has at most 60, and a job a few of them."""


class Overdue(Exception):
    """The run ends before what it waits for: after so many `seconds` at its deadline, or, with a `headline`, before that."""

    def __init__(self, seconds: float = 0.0, headline: str = "") -> None:
        super().__init__(headline or f"after {seconds:.0f} s")
        self.seconds, self.headline = seconds, headline


class Loop:
    """Runs actions until a condition holds, the deadline has passed, or an error ends the run."""

    def __init__(self, operation: Operation) -> None:
        self._operation, self._began = operation, time.monotonic()
        self._inbox: queue.SimpleQueue[Action] = queue.SimpleQueue()
        self._timers: list[tuple[float, int, Action]] = []
        self._count = itertools.count()
        self._workers = Workers(THREADS)
        self._sending = 0
        self.refusals: list[DriverError] = []

    def post(self, action: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        """Queues `action` with its arguments; callable from any thread."""
        self._inbox.put(functools.partial(action, *args, **kwargs))

    def after(self, seconds: float, action: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        """Runs `action` after so many seconds; callable from the loop's thread only."""
        later: Action = functools.partial(action, *args, **kwargs)
        heapq.heappush(self._timers, (time.monotonic() + seconds, next(self._count), later))

    def start(self, steps: Steps[None]) -> None:
        """Runs a coroutine until it waits, and then from response to response. What it raises ends the run at once."""
        self._resume(steps)

    async def call(self, request: Callable[P, Result], *args: P.args, **kwargs: P.kwargs) -> Result:
        """What `request` returns or raises on a worker. One that is no DriverError ends the run, else this hides a bug."""

        def begin(resume: Resume) -> None:
            def job() -> None:
                try:
                    response = request(*args, **kwargs)
                except DriverError as error:
                    self.post(self._sent, resume, None, error)
                except Exception as error:
                    self.post(_throw, error)
                else:
                    self.post(self._sent, resume, response, None)

            self._sending += 1
            self._workers.submit(job)

        result: Result = await until(begin)
        return result

    async def repeat(self, request: Callable[P, Result], *args: P.args, **kwargs: P.kwargs) -> Result:
        """The same, repeated while the error passes."""
        for failures in itertools.count(1):
            try:
                return await self.call(request, *args, **kwargs)
            except DriverError as error:
                if not passes(error):
                    raise
                await self.pause(backoff.delay(failures, error))
        raise AssertionError("an endless loop has ended")

    async def pause(self, seconds: float) -> None:
        """Returns after so many seconds."""
        await until(lambda resume: self.after(seconds, resume, None, None))

    def refuse(self, error: DriverError) -> None:
        """Ends the run with `error` once the requests in flight have ended, at the deadline in any case.

        Requests that have not begun are dropped.
        """
        self.refusals.append(error)
        self._sending -= self._workers.drop()

    def run(self, done: Callable[[], bool]) -> None:
        """Runs actions until `done`; Overdue when the deadline passes."""
        while self.refusals or not done():
            if self.refusals and not (self._sending and self._operation.remaining()):
                raise self.refusals[0]
            self._step(self.check())

    def check(self) -> float:
        """The seconds until the deadline; Stopped or Overdue if the run may not go on."""
        left = self._operation.left_to_run()
        if left == 0:
            raise Overdue(time.monotonic() - self._began)
        return left

    def let_pass(self, seconds: float) -> None:
        """Runs actions for so many seconds, and lets the deadline pass so much later."""
        self._operation.extend(seconds)
        passed: list[bool] = []
        self.after(seconds, lambda: passed.append(True))
        self.run(lambda: bool(passed))

    def catch_up(self, done: Callable[[], bool]) -> None:
        """Runs the actions that are queued by now, as during a request of the loop's own thread, and then until `done`."""
        caught_up: list[bool] = []
        self.post(lambda: caught_up.append(True))
        self.run(lambda: bool(caught_up) and done())

    def finish(self) -> bool:
        """Waits FINISH_LIMIT seconds at most for the requests in flight; False if some are not known to have ended then."""
        return self._workers.finish(FINISH_LIMIT)

    def _step(self, left: float) -> None:
        """Runs one action, for which it waits so many seconds at most: `done` is checked after each."""
        if self._timers and self._timers[0][0] <= time.monotonic():
            heapq.heappop(self._timers)[2]()
            return
        wait = min(WAKE_UP, left)
        if self._timers:
            wait = min(wait, max(0.0, self._timers[0][0] - time.monotonic()))
        try:
            action = self._inbox.get(timeout=wait)
        except queue.Empty:
            return
        action()

    def _sent(self, resume: Resume, response: Any, error: BaseException | None) -> None:
        self._sending -= 1
        resume(response, error)

    def _resume(self, steps: Steps[None], value: Any = None, error: BaseException | None = None) -> None:
        try:
            begin = steps.send(value) if error is None else steps.throw(error)
        except StopIteration:
            return
        begin(lambda value, error: self._resume(steps, value, error))


@types.coroutine
def until(begin: Begin) -> Generator[Begin, Any, Any]:
    """In a coroutine of a loop: waits until that is called which `begin` gets, in the loop's thread."""
    return (yield begin)


def _throw(error: Exception) -> None:
    raise error


class Workers:
    """A pool of at most `size` threads. A job posts its own outcome and raises nothing."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []

    def submit(self, job: Callable[[], None]) -> None:
        if len(self._threads) < self._size:
            self._threads.append(threads.start(self._run, "k8s-cr worker"))
        self._jobs.put(job)

    def drop(self) -> int:
        """Removes the jobs that have not begun; returns their number."""
        dropped = 0
        with contextlib.suppress(queue.Empty):
            while True:
                self._jobs.get_nowait()
                dropped += 1
        return dropped

    def finish(self, seconds: float) -> bool:
        """Waits for the jobs that have begun, and removes the others; False if some have not ended after so many seconds."""
        self.drop()
        for _ in self._threads:
            self._jobs.put(None)
        until = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()


@dataclass(frozen=True)
class Run:
    """One run of the engine: its operation, the loop that owns its state, and the context of its writes."""

    operation: Operation
    loop: Loop
    context: WriteContext

    @property
    def client(self) -> Client:
        return self.context.client

    @property
    def resources(self) -> Resources:
        return self.context.client.resources


LOG = logs.logger(__name__)


class Attempts:
    """Requests of the last phase of a run. With `abandon` one that fails is logged only, and leaves time for the deletions."""

    def __init__(self, run: Run) -> None:
        self._operation, self._loop = run.operation, run.loop
        self._until: float | None = None

    def request(self, request: Callable[P, Result], *args: P.args, **kwargs: P.kwargs) -> Result:
        """With `abandon` none is repeated in the second half of the time that the first one has: it is for the deletions."""
        self._loop.check()
        operation = self._operation
        if self._until is None:
            self._until = time.monotonic() + operation.remaining() / 2 if operation.abandon else math.inf
        return operation.persist(lambda: request(*args, **kwargs), self._until - time.monotonic())

    @contextlib.contextmanager
    def abandonable(self, what: str) -> Iterator[None]:
        """With `abandon` a failure within it is logged only."""
        try:
            yield
        except (Stopped, Superseded):
            raise
        except DriverError as error:
            if not self._operation.abandon:
                raise
            LOG.warning("%s: %s are abandoned: %s", self._operation.id, what, redact(str(error)))
