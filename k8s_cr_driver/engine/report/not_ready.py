# SPDX-License-Identifier: Apache-2.0
"""
NotReady: objects were not ready, or not deleted, in time. One report for each object.

The reports are data, so that callers can sort, count and shorten them for ProblemDetails and logs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from k8s_cr_driver.errors import DriverError
from k8s_cr_driver.objects.keys import ObjectKey
from k8s_cr_driver.redaction import foreign, lines, one_line


@dataclass(frozen=True)
class Report:
    """Why one object is not ready or still exists; `since` is an RFC 3339 time, `events` are Warning messages, newest first."""

    key: ObjectKey
    state: str
    reason: str
    message: str
    since: str = ""
    events: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        """Redacts the text: controllers copy values into messages."""
        object.__setattr__(self, "reason", foreign(self.reason))
        object.__setattr__(self, "message", foreign(self.message))
        object.__setattr__(self, "events", tuple(map(foreign, self.events)))

    def __str__(self) -> str:
        head = f"{self.key}: {self.state}" + (f" ({self.reason})" if self.reason else "")
        body = f": {self.message}" if self.message else ""
        since = f" [since {self.since}]" if self.since else ""
        return one_line(head + body + since + "".join(f"; event: {event}" for event in self.events))


class NotReady(DriverError):
    """Objects did not become ready, or were not deleted, in time. `reports` has one entry per object, worst first."""

    title = "Objects are not ready"

    def __init__(self, headline: str, reports: Iterable[Report]) -> None:
        self.headline = headline
        self.reports = tuple(reports)
        super().__init__(lines([headline, *map(str, self.reports)]))
