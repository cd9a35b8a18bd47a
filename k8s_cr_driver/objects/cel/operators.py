# SPDX-License-Identifier: Apache-2.0
"""The operators of CEL that read both sides."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping
from typing import Any

from k8s_cr_driver.objects.cel.values import STEP_OF_TEXT, EvaluationError, Frame, OptionalValue, bounded, number, type_name


def _equal(frame: Frame, one: Any, other: Any) -> bool:
    if isinstance(one, OptionalValue) and isinstance(other, OptionalValue):
        return one.has is other.has and _equal(frame, one.value, other.value)
    if isinstance(one, str):
        frame.pay(len(one) // STEP_OF_TEXT)
        return bool(one == other)
    if isinstance(one, list) and isinstance(other, list):
        frame.pay(1 + len(one))
        return len(one) == len(other) and all(_equal(frame, *pair) for pair in zip(one, other, strict=True))
    if isinstance(one, dict) and isinstance(other, dict):
        frame.pay(1 + len(one))
        return one.keys() == other.keys() and all(_equal(frame, value, other[key]) for key, value in one.items())
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other) if not isinstance(one, (list, dict)) and not isinstance(other, (list, dict)) else False


def _within(frame: Frame, one: Any, many: Any) -> bool:
    if isinstance(many, dict):
        return isinstance(one, (str, int)) and one in many
    if not isinstance(many, list):
        raise EvaluationError(f"in is asked of {type_name(many)}")
    frame.pay(len(many))
    return any(_equal(frame, one, item) for item in many)


def _compare(compare: Callable[[Any, Any], bool], frame: Frame, one: Any, other: Any) -> bool:
    if isinstance(one, str) and isinstance(other, str):
        frame.pay(len(one) // STEP_OF_TEXT)
        return compare(one, other)
    return compare(number(one), number(other))


def _add(frame: Frame, one: Any, other: Any) -> Any:
    if isinstance(one, str) and isinstance(other, str):
        frame.pay((len(one) + len(other)) // STEP_OF_TEXT)
        return one + other
    if isinstance(one, list) and isinstance(other, list):
        frame.pay(len(one) + len(other))
        return one + other
    return bounded(number(one) + number(other))


def _divide(frame: Frame, one: Any, other: Any) -> Any:
    del frame
    one, other = number(one), number(other)
    if other == 0:
        raise EvaluationError("it divides by zero")
    if isinstance(one, float) or isinstance(other, float):
        return one / other
    return bounded(abs(one) // abs(other) * (1 if (one < 0) == (other < 0) else -1))


def _modulo(frame: Frame, one: Any, other: Any) -> Any:
    if isinstance(one, float) or isinstance(other, float):
        raise EvaluationError("% is for whole numbers")
    return one - other * _divide(frame, one, other)


OPERATORS: Mapping[str, Callable[[Frame, Any, Any], Any]] = {
    "==": _equal,
    "!=": lambda frame, one, other: not _equal(frame, one, other),
    "<": functools.partial(_compare, operator.lt),
    "<=": functools.partial(_compare, operator.le),
    ">": functools.partial(_compare, operator.gt),
    ">=": functools.partial(_compare, operator.ge),
    "in": _within,
    "+": _add,
    "-": lambda frame, one, other: bounded(number(one) - number(other)),
    "*": lambda frame, one, other: bounded(number(one) * number(other)),
    "/": _divide,
    "%": _modulo,
}
