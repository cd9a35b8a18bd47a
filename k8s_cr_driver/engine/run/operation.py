# SPDX-License-Identifier: Apache-2.0
"""
One LCM operation as the engine sees it: its instance, its deadline, its stop event, its progress callback.

It is the first argument of everything that may wait, so that no wait outlives the deadline.
"""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from typing import TypeVar

from k8s_cr_driver.engine.report.not_ready import Report
from k8s_cr_driver.errors import DriverError, Stopped, Superseded, passes
from k8s_cr_driver.kube import backoff
from k8s_cr_driver.kube.connection import Traffic
from k8s_cr_driver.objects.keys import ObjectKey


@dataclass(frozen=True)
class WatchLimits:
    """How many watches may be open, see `reflectors`: the limits that options of tacker.conf set."""

    operation: int = 50
    process: int = 250


WATCH_LIMITS = WatchLimits()
"""The defaults."""

Result = TypeVar("Result")

Progress = Callable[[ObjectKey, str, str], None]
"""Called with (object, state, message) on every change of state, from the thread that called `reconcile`."""


SHARE = 0.25
"""Of the time that is left, see `Operation.share`."""


@dataclass
class Operation:
    """
    It lasts so many `seconds`, until `deadline`, a time of time.monotonic(); `stop` ends the run within a second. With
    `abandon` the caller completes the operation whatever is left at the deadline: an object or kind that cannot be listed or
    deleted then does not keep others from being deleted.
    """

    id: str
    instance: str
    seconds: InitVar[float]
    deadline: float = field(init=False)
    stop: threading.Event = field(default_factory=lambda: threading.Event())  # `threading` may be patched
    progress: Progress = lambda *_: None
    abandon: bool = False
    traffic: Traffic = field(default_factory=Traffic)
    is_current: Callable[[], bool] = lambda: True
    """Whether nobody has retried or rolled back the operation since this worker began; asked before
    and after the claim, and before what is written without one."""
    watches: WatchLimits = WATCH_LIMITS
    no_activity: float | None = None
    """Seconds without any movement after which a run ends, see `activity`; None: it lasts until the deadline."""
    left: list[Report] = field(default_factory=list)
    """The optional objects that were not ready at the end of its last run, worst first."""

    def __post_init__(self, seconds: float) -> None:
        self.deadline = time.monotonic() + seconds

    def persist(self, request: Callable[[], Result], patience: float = math.inf) -> Result:
        """Repeats a request while its error is transient, for at most `patience` seconds and until the deadline."""
        until = min(self.deadline, time.monotonic() + patience)
        for failures in itertools.count(1):
            try:
                return request()
            except DriverError as error:
                wait = backoff.delay(failures, error)
                if not passes(error) or time.monotonic() + wait >= until or self.stop.wait(wait):
                    raise
        raise AssertionError("an endless loop has ended")

    def check_current(self) -> None:
        """Superseded if others have retried the operation, or rolled it back, since this worker began."""
        if not self.is_current():
            raise Superseded(f"{self.id} was retried or rolled back before this worker had claimed the instance.")

    def check_stopped(self) -> None:
        """Stopped if somebody has stopped it."""
        if self.stop.is_set():
            raise Stopped("The operation was stopped; retry it or roll it back.")

    def left_to_run(self) -> float:
        """Seconds until the deadline; Stopped if somebody has stopped it."""
        self.check_stopped()
        return self.remaining()

    def remaining(self) -> float:
        """Seconds until the deadline, never negative."""
        return max(0.0, self.deadline - time.monotonic())

    def extend(self, seconds: float) -> None:
        """Lets the deadline pass so much later: for a wait that no cluster and no user has caused."""
        self.deadline += seconds

    def share(self, longest: float) -> float:
        """So many seconds, or a part of the time that is left, if that is shorter: what follows needs some, too."""
        return min(longest, SHARE * self.remaining())


@dataclass
class Statistics:
    """
    How long an operation took, and what it did, for its last log line.

    Its `progress` is called for each change of an object, from one thread; `traffic` counts the requests.
    """

    traffic: Traffic = field(default_factory=Traffic)
    _begun: float = field(default_factory=time.monotonic)
    _first: dict[ObjectKey, float] = field(default_factory=dict)
    _last: dict[ObjectKey, tuple[str, float]] = field(default_factory=dict)
    """The newest state of each object, and when it entered it."""

    def progress(self, key: ObjectKey, state: str, message: str) -> None:
        del message
        now = time.monotonic()
        self._first.setdefault(key, now)
        if key not in self._last or self._last[key][0] != state:
            self._last[key] = state, now

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._begun

    def __str__(self) -> str:
        took = {key: until - self._first[key] for key, (_, until) in self._last.items()}
        slowest = max(took, key=lambda key: took[key], default=None)
        longest = f", slowest {slowest} ({took[slowest]:.1f} s)" if slowest else ""
        requests = f"{self.traffic.requests} requests, {self.traffic.failed} of them repeated"
        return f"in {self.seconds:.1f} s: {len(took)} objects, {requests}{longest}"
