# SPDX-License-Identifier: Apache-2.0
"""Reads JSON of others. Python recurses where it parses, compares and copies, and a value of two characters takes 60 bytes."""

from __future__ import annotations

import json
import sys
from typing import Any

DEPTH_LIMIT = 300
"""Levels of nesting: more than YAML of packages may have, and few enough for all that walks through a value.

What the parser accepts by itself depends on the version of Python and on the calls that it is in.
"""

VALUES_LIMIT = 10_000_000
"""Values of one text, which take about a gigabyte: a page of 250 objects has fewer, unless each has a MiB of empty ones."""

_FEW = 10_000
"""Commas and brackets up to which nobody asks whether they stand in texts."""


class BeyondLimit(ValueError):
    """JSON that is not read; the text says which limit it is beyond, and nothing of its content."""


def decoded(text: str | bytes, most: int | None = None) -> Any:
    """The JSON value; ValueError for what is none, BeyondLimit for one of too many values or levels.

    `most`: the limit of values, if it is another one than VALUES_LIMIT.
    """
    most = VALUES_LIMIT if most is None else most
    if len(text) > most and _count(text, ",{[") > most:
        raise BeyondLimit(f"the JSON has more than {most:,} values")
    try:
        value = json.loads(text, object_pairs_hook=_with_shared_names)
        is_deep = _count(text, "{[") > DEPTH_LIMIT and _is_deep(value)
    except RecursionError:
        is_deep = True
    if is_deep:
        raise BeyondLimit(f"the JSON is nested deeper than {DEPTH_LIMIT} levels")
    return value


def _with_shared_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of ten thousand objects each has the same names of fields, which are a third of its memory."""
    return {sys.intern(name): value for name, value in pairs}


def measured(text: bytes, value: Any) -> int:
    """How many values the JSON has, or somewhat more: `value` is counted only where the text has many commas."""
    most = _count(text, ",{[")
    return most if most <= _FEW else _values_in(value)


def _values_in(value: Any) -> int:
    found, level = 0, [value]
    while level:
        found += len(level)
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return found


def _count(text: str | bytes, characters: str) -> int:
    """How often the text has these characters: at least the number of such values, more if texts in it have them."""
    if isinstance(text, bytes):
        return sum(text.count(one.encode()) for one in characters)
    return sum(map(text.count, characters))


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEPTH_LIMIT):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True
