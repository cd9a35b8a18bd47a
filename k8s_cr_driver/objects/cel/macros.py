# SPDX-License-Identifier: Apache-2.0
"""The macros of CEL that look at each entry of a list, or each key of a map."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from k8s_cr_driver.objects.cel.values import CostError, EvaluationError, Frame, Value, boolean

ARGUMENTS = {"all": (2, 2), "exists": (2, 2), "exists_one": (2, 2), "filter": (2, 2), "map": (2, 3)}
"""The least and the most arguments of each."""


def each(frame: Frame, values: Any, variable: str, cost: int) -> Iterator[Any]:
    """The values one by one, to each of which the variable is set, for `cost` steps each."""
    frame.names = names = dict(frame.names)
    for value in values:
        frame.pay(cost)
        names[variable] = value
        frame.names = names
        yield value


def _holds_for(each: Iterator[Any], body: Value, frame: Frame, decisive: bool) -> bool:
    """Whether the body is `decisive` for one of the values; what has no value matters only if none decides."""
    problem: EvaluationError | None = None
    for _ in each:
        try:
            if boolean(body(frame)) is decisive:
                return True
        except CostError:
            raise
        except EvaluationError as error:
            problem = problem or error
    if problem:
        raise problem
    return False


def _all(each: Iterator[Any], bodies: list[Value], frame: Frame) -> bool:
    return not _holds_for(each, bodies[0], frame, False)


def _exists(each: Iterator[Any], bodies: list[Value], frame: Frame) -> bool:
    return _holds_for(each, bodies[0], frame, True)


def _filter(each: Iterator[Any], bodies: list[Value], frame: Frame) -> list[Any]:
    return [value for value in each if boolean(bodies[0](frame))]


def _mapped(each: Iterator[Any], bodies: list[Value], frame: Frame) -> list[Any]:
    return [bodies[-1](frame) for _ in each if len(bodies) == 1 or boolean(bodies[0](frame))]


FINISH: Mapping[str, Callable[[Iterator[Any], list[Value], Frame], Any]] = {
    "all": _all,
    "exists": _exists,
    "exists_one": lambda each, bodies, frame: len(_filter(each, bodies, frame)) == 1,
    "filter": _filter,
    "map": _mapped,
}
"""The value of a macro, by its name: of the values one by one, and the expressions behind its variable."""
