# SPDX-License-Identifier: Apache-2.0
"""How long an operation took, and what it did, in numbers, for its last log line."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from k8s_cr_driver.kube.connection import Traffic
from k8s_cr_driver.objects.keys import ObjectKey


@dataclass
class Statistics:
    """Its `progress` is called for each change of an object, from one thread; `traffic` counts the requests."""

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
