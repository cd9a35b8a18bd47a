# SPDX-License-Identifier: Apache-2.0
"""What an author writes to say when an object is ready, has failed or is at rest: an annotation's value, or a rule of a file.

The forms are those of `kubectl wait` (`condition=NAME[=VALUE]`, `jsonpath={...}[=VALUE]`) and `cel: EXPRESSION`. A text is read
once and asked of each state of the object.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from k8s_cr_driver.objects.cel import CostError, EvaluationError, ExpressionError, Program
from k8s_cr_driver.objects.cel.program import described
from k8s_cr_driver.objects.fields import entries, integer, text
from k8s_cr_driver.objects.jsonpath import Path, as_text

PREFIX = "k8s-cr-driver/"
READY_WHEN, FAILED_WHEN, SUSPENDED_WHEN = PREFIX + "ready-when", PREFIX + "failed-when", PREFIX + "suspended-when"
IGNORE_GENERATION = PREFIX + "ignore-generation"
STORED = "stored"
NO_ACTIVITY = PREFIX + "no-activity-timeout"
"""Annotation: seconds, see `no_activity_seconds`."""
_STATUSES = ("true", "false", "unknown")
LEAST, MOST = 60, 7 * 86400
"""Seconds of a no-activity timeout. A status that is older than a change counts after 30 s in which nothing moves."""
FORMS = "condition=NAME[=VALUE], jsonpath={...}=VALUE or cel: EXPRESSION"


class Outcome(NamedTuple):
    """Whether a rule is met, the field that decided, and what the object has there, as a clause."""

    met: bool
    field: str
    seen: str
    is_unknown: bool = False
    """Whether it takes too long to know that."""


class Rule(NamedTuple):
    """A text, and what it asks of an object."""

    text: str
    ask: Callable[[Mapping[str, Any]], Outcome]
    path: tuple[str | int, ...] = ()
    """The steps of a JSONPath, see `jsonpath.Path.steps`."""


@functools.lru_cache(maxsize=512)
def rule(written: str) -> Rule:
    """The rule of a text; ExpressionError, with the text and the column in it, if it is none."""
    try:
        if written.startswith("cel:"):
            return _cel(written, before=len("cel:"))
        form, found, rest = written.partition("=")
        if form == "condition" and found:
            return Rule(written, _condition(rest))
        if form == "jsonpath" and found:
            return _jsonpath(written, rest)
        raise ExpressionError(f"write {FORMS}")
    except ExpressionError as error:
        raise ExpressionError(f"{written[:120]!r}: {error}") from None


@functools.lru_cache(maxsize=512)
def cel(expression: str) -> Rule:
    """The rule of an expression alone; ExpressionError, with the text and the column in it, if it is none."""
    try:
        return _cel(expression)
    except ExpressionError as error:
        raise ExpressionError(f"{expression[:120]!r}: {error}") from None


def _cel(written: str, before: int = 0) -> Rule:
    program = Program(written[before:], before)

    def ask(live: Mapping[str, Any]) -> Outcome:
        try:
            if program.holds(live):
                return Outcome(True, program.field, "it is true")
        except EvaluationError as error:
            return Outcome(False, program.unmet(live)[0] or program.field, str(error), isinstance(error, CostError))
        field, seen = program.unmet(live)
        return Outcome(False, field or program.field, seen or "it is false")

    return Rule(written, ask)


def check(annotation: str, value: str) -> str:
    """What is wrong with the value of one of the annotations, as a clause; "" if nothing is."""
    if annotation == READY_WHEN and value == STORED:
        return ""
    try:
        rule(value)
    except ExpressionError as error:
        return f"{error}"
    return ""


def no_activity_seconds(value: object) -> float | None:
    """The seconds of a no-activity timeout, as a number or in a text; None if they are none, or not from LEAST to MOST."""
    try:
        seconds = float(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else 0.0
    except (ValueError, OverflowError):
        return None
    return seconds if LEAST <= seconds <= MOST else None


def _condition(wanted: str) -> Callable[[Mapping[str, Any]], Outcome]:
    name, _, value = wanted.partition("=")
    name, value = name.strip().lower(), (value.strip() or "True").lower()
    if not name:
        raise ExpressionError("column 11: the name of a condition is expected")
    if value not in _STATUSES:
        column = len("condition=") + wanted.index("=") + 2
        raise ExpressionError(f"column {column}: a condition is True, False or Unknown")

    def ask(live: Mapping[str, Any]) -> Outcome:
        field = f"status.conditions[{wanted.partition('=')[0].strip()}]"
        generation = integer(live, "metadata", "generation")
        for one in entries(live, "status", "conditions"):
            if text(one, "type").lower() == name:
                status = str(one.get("status"))
                observed = integer(one, "observedGeneration")
                if observed is not None and generation is not None and observed < generation:
                    return Outcome(False, field, f"it speaks of generation {observed}, the latest is {generation}")
                said = text(one, "message") or text(one, "reason")
                return Outcome(status.lower() == value, field, f"it is {status}" + (f": {said}" if said else ""))
        return Outcome(False, field, "it is not there")

    return ask


def _jsonpath(whole: str, written: str) -> Rule:
    braces, before = written.rfind("}"), len("jsonpath=")
    written_path, found, wanted = (written[: braces + 1], *written[braces + 1 :].partition("=")[1:])
    if braces < 0:
        written_path, found, wanted = written.partition("=")
    if braces >= 0 and not found and written[braces + 1 :].strip():
        raise ExpressionError(f"column {before + braces + 2}: = is expected after the path")
    if wanted.startswith("="):
        column = before + len(written_path) + 2
        raise ExpressionError(f"column {column}: one = compares; write a value that begins with = in quotation marks")
    path = Path(written_path, before)
    wanted = wanted.strip().strip("'\"")
    field = written_path.strip().strip("{}").lstrip("$.")
    last = next((step for step in reversed(path.steps) if isinstance(step, str)), "")

    def ask(live: Mapping[str, Any]) -> Outcome:
        values = path.find(live)
        if not values:
            return Outcome(False, field, "it is not there")
        if len(values) > 1:
            return Outcome(False, field, f"the path finds {len(values)} values, and one is compared")
        seen = as_text(values[0])
        said = "is null" if values[0] is None else "is an object or a list" if seen is None else described(seen, last)
        if not found:
            return Outcome(values[0] is not None, field, f"it {said}" if values[0] is None else "it is there")
        return Outcome(seen is not None and seen.strip() == wanted, field, f"it {said}")

    return Rule(whole, ask, path.steps)
