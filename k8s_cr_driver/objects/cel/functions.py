# SPDX-License-Identifier: Apache-2.0
"""The functions of CEL, by name and number of values; a method has its object as the first value."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any

import re2

from k8s_cr_driver.objects.cel.values import (
    STEP_OF_TEXT,
    EvaluationError,
    Frame,
    OptionalValue,
    bounded,
    digits,
    text_of,
    type_name,
)

_STEP_OF_MATCH = 256
"""Characters times instructions of the pattern that count as one step: RE2 does 40 millions in a second at worst."""
_LONGEST_PATTERN = 256
_WHOLE = re.compile(r"[+-]?[0-9]{1,20}")
_NUMBER = re.compile(
    r"[+-]?(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,4})?|(?i:[+-]?inf(?:inity)?|nan)"
)
_PATTERN_OPTIONS = re2.Options()
_PATTERN_OPTIONS.max_mem = 1 << 20
_PATTERN_OPTIONS.log_errors = False


def _size(frame: Frame, value: Any) -> int:
    del frame
    if not isinstance(value, (str, list, dict)):
        raise EvaluationError(f"{type_name(value)} has no size")
    return len(value)


def _of_text(ask: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose arguments are texts, and which reads them once."""

    def call(frame: Frame, *values: Any) -> Any:
        texts = [text_of(value) for value in values]
        frame.pay(sum(map(len, texts)) // STEP_OF_TEXT)
        return ask(*texts)

    return call


@functools.lru_cache(maxsize=256)
def pattern_of(text: str) -> Any:
    """The regular expression of a text, as RE2 has compiled it; EvaluationError if it is none."""
    if len(text) > _LONGEST_PATTERN:
        raise EvaluationError(f"a pattern has {len(text)} characters, {_LONGEST_PATTERN} are allowed")
    try:
        return re2.compile(text, _PATTERN_OPTIONS)
    except re2.error as error:
        raise EvaluationError(f"the pattern {text[:60]!r} is not understood: {_decoded(error)}") from None


def _decoded(error: re2.error) -> str:
    said = error.args[0] if error.args else ""
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)


def _matches(frame: Frame, value: Any, pattern: Any) -> bool:
    frame.pay(200)  # to compile it
    compiled = pattern_of(text_of(pattern))
    frame.pay(len(text_of(value)) * compiled.programsize // _STEP_OF_MATCH)
    return compiled.search(value) is not None


def _to_int(frame: Frame, value: Any) -> int:
    del frame
    try:
        if isinstance(value, bool) or (isinstance(value, str) and not _WHOLE.fullmatch(value)):
            raise ValueError
        return int(bounded(int(value)))
    except (TypeError, ValueError, OverflowError):
        raise EvaluationError(f"{type_name(value)} is no whole number") from None


def _to_uint(frame: Frame, value: Any) -> int:
    found = _to_int(frame, value)
    if found < 0:
        raise EvaluationError("a number is less than 0")
    return found


def _to_double(frame: Frame, value: Any) -> float:
    del frame
    try:
        if isinstance(value, bool) or (isinstance(value, str) and not _NUMBER.fullmatch(value)):
            raise ValueError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise EvaluationError(f"{type_name(value)} is no number") from None


def _to_string(frame: Frame, value: Any) -> str:
    del frame
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return digits(value)
    if isinstance(value, str):
        return value
    raise EvaluationError(f"{type_name(value)} has no text")


def _split(frame: Frame, value: Any, separator: Any) -> list[str]:
    frame.pay(1 + len(text_of(value)))
    return list(value) if separator == "" else value.split(text_of(separator))


def _replace(frame: Frame, value: Any, old: Any, new: Any) -> str:
    frame.pay(1 + len(text_of(value)) * (1 + len(text_of(new))) // STEP_OF_TEXT)
    return str(value.replace(text_of(old), new))


def _join(frame: Frame, values: Any, separator: Any = "") -> str:
    if not isinstance(values, list):
        raise EvaluationError(f"{type_name(values)} is no list")
    frame.pay(len(values) + sum(len(text_of(one)) + len(text_of(separator)) for one in values) // STEP_OF_TEXT)
    return str(separator.join(values))


def _or_value(frame: Frame, value: Any, default: Any) -> Any:
    del frame
    if not isinstance(value, OptionalValue):
        raise EvaluationError(f"{type_name(value)} is no optional value")
    return value.value if value.has else default


def _has_value(frame: Frame, value: Any) -> bool:
    del frame
    return isinstance(value, OptionalValue) and value.has


def _value_of(frame: Frame, value: Any) -> Any:
    if not _has_value(frame, value):
        raise EvaluationError("an optional value is not there")
    return value.value


FUNCTIONS: Mapping[tuple[str, int], Callable[..., Any]] = {
    ("size", 1): _size,
    ("startsWith", 2): _of_text(str.startswith),
    ("endsWith", 2): _of_text(str.endswith),
    ("contains", 2): _of_text(lambda one, other: other in one),
    ("lowerAscii", 1): _of_text(str.lower),
    ("upperAscii", 1): _of_text(str.upper),
    ("trim", 1): _of_text(str.strip),
    ("indexOf", 2): _of_text(str.find),
    ("matches", 2): _matches,
    ("split", 2): _split,
    ("replace", 3): _replace,
    ("join", 1): _join,
    ("join", 2): _join,
    ("orValue", 2): _or_value,
    ("hasValue", 1): _has_value,
    ("value", 1): _value_of,
    ("int", 1): _to_int,
    ("uint", 1): _to_uint,
    ("double", 1): _to_double,
    ("string", 1): _to_string,
    ("dyn", 1): lambda frame, value: value,
}
GLOBAL = frozenset({"int", "uint", "double", "string", "dyn", "size", "matches"})
