"""One run of one LCM operation: who it is for, how long it may take, who wants to hear of it."""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from k8s_cr_driver.errors import DriverError, passes
from k8s_cr_driver.objects.keys import ObjectKey

Answer = TypeVar("Answer")

Progress = Callable[[ObjectKey, str, str], None]
"""Called with (object, state, message) on every change of state, from the thread that called converge."""


def _unheard(key: ObjectKey, state: str, message: str) -> None:
    del key, state, message


@dataclass(frozen=True)
class Operation:
    """
    `deadline` is a time of time.monotonic(); `stop` ends the run at the next message. With `abandon` the caller completes
    whatever is left at the deadline: until then all is tried, and nothing that cannot be listed or deleted keeps anything
    else from its deletion.
    """

    id: str
    instance: str
    deadline: float
    stop: threading.Event = field(default_factory=threading.Event)
    progress: Progress = _unheard
    abandon: bool = False

    @classmethod
    def lasting(
        cls, seconds: float, *, id: str, instance: str, progress: Progress = _unheard, abandon: bool = False
    ) -> Operation:
        return cls(id, instance, time.monotonic() + seconds, progress=progress, abandon=abandon)

    def persist(self, request: Callable[[], Answer], patience: float = math.inf) -> Answer:
        """The answer to a request, repeated while it fails for a reason that passes and there is time: `patience` seconds."""
        until = min(self.deadline, time.monotonic() + patience)
        for backoff in itertools.chain((0.1, 0.2, 0.5, 1.0, 2.0), itertools.repeat(5.0)):
            try:
                return request()
            except DriverError as error:
                wait = getattr(error, "retry_after", None) or backoff
                if not passes(error) or time.monotonic() + wait >= until or self.stop.wait(wait):
                    raise
        raise AssertionError("an endless loop has ended")

    def remaining(self) -> float:
        """Seconds that are left, never negative."""
        return max(0.0, self.deadline - time.monotonic())
