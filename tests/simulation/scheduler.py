# SPDX-License-Identifier: Apache-2.0
"""
Virtual time, and tasks of which exactly one runs at any moment.

A task is a greenlet; it runs until it waits. What happens next is the earliest event, and which of several at one time
is a matter of the seed. So a run is a function of its seed, and an hour of waiting costs nothing.
"""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Callable, Iterator
from heapq import heappop, heappush

from greenlet import GreenletExit, getcurrent, greenlet

Action = Callable[[], None]
Moment = tuple[float, float]
"""A time, and the place among what happens at that time."""


class Process:
    """What dies together: a conductor's worker with all its threads. `crash` lets none of them go on, nor clean up."""

    def __init__(self, name: str) -> None:
        self.name, self.is_alive = name, True
        self.tasks: list[Task] = []
        self.at_crash: Action = lambda: None

    def crash(self) -> None:
        if self.is_alive:
            self.is_alive = False
            self.at_crash()


class Task:
    """One thread of a process. `resume` goes on with it, from the scheduler's own greenlet."""

    __slots__ = "_body", "_joining", "_scheduler", "greenlet", "is_done", "process"

    def __init__(self, scheduler: Scheduler, process: Process, body: Action) -> None:
        self.process, self._body = process, body
        self.is_done = False
        self._scheduler = scheduler
        self._joining: list[Waiter] = []
        self.greenlet = greenlet(self._run, parent=scheduler.hub)
        process.tasks.append(self)
        scheduler.after(0, self.resume)

    def _run(self) -> None:
        try:
            self._body()
        except GreenletExit:
            pass
        finally:
            self.is_done = True
            for waiter in self._joining:
                waiter.wake()

    def resume(self) -> None:
        if self.process.is_alive and not self.is_done:
            self._scheduler.current = self
            self.greenlet.switch()
            self._scheduler.current = None

    def join(self) -> None:
        if not self.is_done:
            waiter = self._scheduler.waiter()
            self._joining.append(waiter)
            waiter.wait()


class Waiter:
    """One wait of the task that made it; woken at most once."""

    __slots__ = "_scheduler", "_task", "is_over", "is_woken"

    def __init__(self, scheduler: Scheduler, task: Task) -> None:
        self._scheduler, self._task = scheduler, task
        self.is_over, self.is_woken = False, False

    def wait(self, timeout: float | None = None) -> bool:
        """False if the time is over."""
        if not self._task.process.is_alive:
            raise GreenletExit
        if timeout is not None:
            self._scheduler.after(max(0.0, timeout), self._expire)
        self._scheduler.hub.switch()
        return self.is_woken

    def wake(self) -> None:
        """Lets the task go on soon; others may come first."""
        if not self.is_over:
            self.is_over = self.is_woken = True
            self._scheduler.after(0, self._task.resume)

    def _expire(self) -> None:
        if not self.is_over:
            self.is_over = True
            self._task.resume()


class Scheduler:
    """`now` is in seconds since the beginning; `random` is where all chance comes from."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)
        self._tie = self.random.random
        self.now = 0.0
        self.hub = getcurrent()
        self.current: Task | None = None
        self.processes: list[Process] = []
        self._events: list[tuple[float, float, int, Action]] = []
        self._number = itertools.count().__next__
        self._is_stopped = False

    def after(self, seconds: float, action: Action) -> None:
        heappush(self._events, (self.now + seconds, self._tie(), self._number(), action))

    def put(self, moment: Moment, action: Action) -> None:
        """At a moment that `moment` has given."""
        heappush(self._events, (*moment, self._number(), action))

    def moment(self, when: float) -> Moment:
        return when, self._tie()

    def process(self, name: str) -> Process:
        self.processes.append(Process(name))
        return self.processes[-1]

    def spawn(self, process: Process, body: Action) -> Task:
        return Task(self, process, body)

    def here(self) -> Task:
        """The task that calls."""
        assert self.current is not None, "only a task may wait"
        return self.current

    def waiter(self) -> Waiter:
        return Waiter(self, self.here())

    def sleep(self, seconds: float) -> None:
        self.waiter().wait(seconds)

    def run(self) -> None:
        """Until somebody stops it, or nothing is left to happen."""
        events = self._events
        while events and not self._is_stopped:
            self.now, _, _, action = heappop(events)
            action()

    def stop(self) -> None:
        self._is_stopped = True

    def bury(self) -> None:
        """Ends all greenlets that are left, without letting them do anything."""
        for process in self.processes:
            process.crash()
            for task in process.tasks:
                if not task.greenlet.dead:
                    self.current = task
                    task.greenlet.throw(GreenletExit)
        self.current = None


_active: list[Scheduler] = []


def now() -> float:
    """The time of the life that runs."""
    return _active[-1].now


def active() -> Scheduler:
    """The scheduler of the life that runs."""
    return _active[-1]


@contextlib.contextmanager
def activated(scheduler: Scheduler) -> Iterator[None]:
    _active.append(scheduler)
    try:
        yield
    finally:
        scheduler.bury()
        _active.pop()
