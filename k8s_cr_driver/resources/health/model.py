# SPDX-License-Identifier: Apache-2.0
"""The response to "is this object ready?".

It is a state, a reason (one word, as in a condition) and a message, which is what an operator reads in ProblemDetails
when an operation fails. An object that waits is in progress, or in trouble: its controller reports an error and tries
again.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import total_ordering

MESSAGE_LIMIT = 400
REASON_LIMIT = 200

NO_STATUS, READINESS_UNKNOWN, RUNNING = "NoStatus", "ReadinessUnknown", "Running"
HELD_IN_ADMISSION = "HeldInAdmission"
CRD_DECIDES = frozenset({NO_STATUS, READINESS_UNKNOWN, RUNNING, HELD_IN_ADMISSION})
"""Reasons of responses that the kind's CRD may change."""
PAUSED = "Paused"
"""Reason of an object whose controllers do nothing, because somebody has paused it or what it belongs to."""
STATUS_OLDER_THAN_SPEC = "StatusOlderThanSpec"
"""Reason of a response that time may change: a controller may have had nothing to write about the spec's change."""


@total_ordering
class State(enum.Enum):
    """The state of one object; sorts worst first, so `min(states)` is the state of a set.

    FAILED: its controller gave up; nothing gets better without a change to the spec.
    WAITING: not ready yet, or not known to be; in progress, or in trouble (`Health.trouble`).
    SUSPENDED: at rest on purpose (paused, suspended, a volume claim without a user): nothing happens until somebody
    acts on it, so a wait ends here as it does with READY, unless it is unfinished.
    READY: does what its spec asks for.
    """

    FAILED = "Failed"
    WAITING = "Waiting"
    SUSPENDED = "Suspended"
    READY = "Ready"

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, State):
            return NotImplemented
        order = list(State)
        return order.index(self) < order.index(other)


@dataclass(frozen=True, slots=True)
class Health:
    """State of one object, with a reason and a message for the operator.

    Both are one line: the reason of at most 200 characters, the message of at most 400. `trouble` is true of what waits
    because something went wrong, in distinction to work in progress; what failed is always in trouble. `unfinished` is true of
    what its controller has suspended in the middle of a change.
    """

    state: State
    reason: str = ""
    message: str = ""
    trouble: bool = False
    unfinished: bool = False
    source: str = ""
    """What decided, if it is a rule of users; "" for the rules of the kind."""
    field: str = ""
    """The field that decided, as far as that is one."""

    def __post_init__(self) -> None:
        for name, given, limit in (("reason", self.reason, REASON_LIMIT), ("message", self.message, MESSAGE_LIMIT)):
            if (line := _one_line(given, limit)) != given:
                object.__setattr__(self, name, line)
        if self.state is State.FAILED:
            object.__setattr__(self, "trouble", True)

    @property
    def settled(self) -> bool:
        """Whether a wait for this object can end well: it is ready, or at rest on purpose and not unfinished."""
        return self.state in (State.READY, State.SUSPENDED) and not self.unfinished

    @property
    def badness(self) -> tuple[State, bool]:
        """Sorts worst first: failed, waiting in trouble, waiting in progress, suspended, ready."""
        return self.state, not self.trouble


def _one_line(text: str, limit: int) -> str:
    line = " ".join(text[: 4 * limit].split())
    return line if len(line) <= limit else line[: limit - 3] + "..."


def ready(reason: str = "Ready", message: str = "", field: str = "") -> Health:
    """A READY response."""
    return Health(State.READY, reason, message, field=field)


def suspended(reason: str, message: str = "", field: str = "") -> Health:
    """A SUSPENDED response."""
    return Health(State.SUSPENDED, reason, message, field=field)


def waiting(reason: str, message: str = "", field: str = "", *, trouble: bool = False) -> Health:
    """A WAITING response: in progress, or in trouble."""
    return Health(State.WAITING, reason, message, trouble, field=field)


def failed(reason: str, message: str = "", field: str = "") -> Health:
    """A FAILED response."""
    return Health(State.FAILED, reason, message, field=field)
