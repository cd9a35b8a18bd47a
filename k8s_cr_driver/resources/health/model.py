"""The answer to "is this object ready?".

An answer is a state, a reason (one CamelCase word, as in a condition) and a message, which is what an operator
reads in ProblemDetails when an operation fails.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import total_ordering


@total_ordering
class State(enum.Enum):
    """The state of one object; sorts worst first, so `min(states)` is the state of a set.

    FAILED: its controller gave up; nothing gets better without a change to the spec.
    WAITING: not ready yet, or not known to be.
    SUSPENDED: held on purpose (paused, suspended, awaiting approval): it stays so until somebody resumes it,
    so a wait ends here as it does with READY.
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
    """State of one object, with a one-word reason and a message of at most 400 characters for the operator."""

    state: State
    reason: str = ""
    message: str = ""

    @property
    def settled(self) -> bool:
        """Whether a wait for this object can end well: it is ready, or suspended on purpose."""
        return self.state in (State.READY, State.SUSPENDED)
