# SPDX-License-Identifier: Apache-2.0
"""What expressions are evaluated with: the object and the steps that are left, and the types of CEL's values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

MOST_STEPS = 20_000
STEP_OF_TEXT = 64
"""Characters that count as one step."""
MAX_INT = 2**63


class EvaluationError(Exception):
    """Why an expression has no value for an object: a field is missing, a type is wrong, it costs too much."""


class CostError(EvaluationError):
    """It costs too much."""


class Frame:
    """One evaluation: the object, the variables by their names, and the steps that are left."""

    __slots__ = ("left", "names", "root")

    def __init__(self, root: Mapping[str, Any], steps: int = MOST_STEPS) -> None:
        self.root, self.left = root, steps
        self.names: dict[str, Any] = {"self": root}

    def pay(self, steps: int) -> None:
        """Takes steps from those that are left; CostError if there are not so many."""
        self.left -= steps
        if self.left < 0:
            raise CostError(f"it takes more than {MOST_STEPS:,} steps")


Value = Callable[[Frame], Any]
"""What computes a value; raises EvaluationError if there is none."""


class OptionalValue:
    """An optional value of CEL."""

    __slots__ = ("has", "value")

    def __init__(self, value: Any = None, *, has: bool = False) -> None:
        self.value, self.has = value, has


def type_name(value: Any) -> str:
    """The type of a value in CEL's words."""
    if value is None:
        return "null"
    names = {bool: "bool", int: "int", float: "double", str: "string", list: "list", dict: "map", OptionalValue: "optional"}
    return names.get(type(value), type(value).__name__)


def maybe(value: Any, step: Any) -> OptionalValue:
    """What a value, which may be optional itself, has at an index or under a key."""
    if isinstance(value, OptionalValue):
        if not value.has:
            return value
        value = value.value
    if isinstance(value, list):
        at = step if isinstance(step, int) and not isinstance(step, bool) and 0 <= step < len(value) else None
        return OptionalValue() if at is None else OptionalValue(value[at], has=True)
    if isinstance(value, dict) and isinstance(step, str) and step in value:
        return OptionalValue(value[step], has=True)
    return OptionalValue()


def boolean(value: Any) -> bool:
    """The value itself; EvaluationError if it is not true or false."""
    if not isinstance(value, bool):
        raise EvaluationError(f"{type_name(value)} is not true or false")
    return value


def number(value: Any) -> Any:
    """The value itself; EvaluationError if it is no number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise EvaluationError(f"{type_name(value)} is no number")
    return value


def bounded(value: Any) -> Any:
    """The value itself; EvaluationError if it is an integer of more than 64 bits."""
    if isinstance(value, int) and not -MAX_INT <= value < MAX_INT:
        raise EvaluationError("a number is larger than 64 bits")
    return value


def digits(value: float) -> str:
    """A number as Go writes it: 1.0 is 1."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() and abs(value) < 1e21 else str(value)


def text_of(value: Any) -> str:
    """The value itself; EvaluationError if it is no text."""
    if not isinstance(value, str):
        raise EvaluationError(f"{type_name(value)} is no text")
    return value
