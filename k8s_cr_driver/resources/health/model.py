"""The answer to "is this object ready?".

An answer is a state, a reason (one word, as in a condition) and a message, which is what an operator reads in
ProblemDetails when an operation fails.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import total_ordering

MESSAGE_LIMIT = 400

NO_STATUS, READINESS_UNKNOWN = "NoStatus", "ReadinessUnknown"
"""Reasons of answers that the kind's CRD may change."""
STATUS_OLDER_THAN_SPEC = "StatusOlderThanSpec"
"""Reason of an answer that time may change: a controller may have had nothing to write about the spec's change."""


@total_ordering
class State(enum.Enum):
    """The state of one object; sorts worst first, so `min(states)` is the state of a set.

    FAILED: its controller gave up; nothing gets better without a change to the spec.
    WAITING: not ready yet, or not known to be.
    SUSPENDED: at rest on purpose (paused, suspended, a volume claim without a user): nothing happens until somebody
    acts on it, so a wait ends here as it does with READY.
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
    """State of one object, with a one-word reason and a one-line message, cut at 400 characters, for the operator."""

    state: State
    reason: str = ""
    message: str = ""

    def __post_init__(self) -> None:
        line = " ".join(self.message.split())
        if len(line) > MESSAGE_LIMIT:
            line = line[: MESSAGE_LIMIT - 3] + "..."
        object.__setattr__(self, "message", line)

    @property
    def settled(self) -> bool:
        """Whether a wait for this object can end well: it is ready, or at rest on purpose."""
        return self.state in (State.READY, State.SUSPENDED)


def ready(reason: str = "Ready", message: str = "") -> Health:
    """A READY answer."""
    return Health(State.READY, reason, message)


def suspended(reason: str, message: str = "") -> Health:
    """A SUSPENDED answer."""
    return Health(State.SUSPENDED, reason, message)


def waiting(reason: str, message: str = "") -> Health:
    """A WAITING answer."""
    return Health(State.WAITING, reason, message)


def failed(reason: str, message: str = "") -> Health:
    """A FAILED answer."""
    return Health(State.FAILED, reason, message)
