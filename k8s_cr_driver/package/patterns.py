# SPDX-License-Identifier: Apache-2.0
"""
The regular expressions of packages, matched by RE2: in linear time, with bounded memory, outside of the interpreter's lock.

Python's `re` backtracks, and holds the interpreter meanwhile: one expression of a package could stop the conductor. The
API server matches patterns of CustomResourceDefinitions with Go's `regexp`, whose syntax is RE2's. What the two decide
differently, and what would take long, is left to the API server.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import re2

COST_LIMIT = 10_000_000
"""Bytes of a text times instructions of an expression: about a second, if RE2 runs out of memory for its automaton."""

CALL = 200
"""What a call takes, however short the text is, in the same unit: some ten microseconds."""

_MEMORY = 1024 * 1024
_MEMORY_OF_CRD = 64 * 1024
"""Bytes for an expression: it takes less than a millisecond to compile, or to be found too large. CRDs have thousands."""
KEPT = 1280
"""Compiled expressions that are kept: as many as the budget of a package pays for."""
_NOT_ALIKE = ("pattern too large", "invalid character class range: \\p", "invalid character class range: \\P")
"""RE2 limits memory and Go does not; their tables of Unicode's scripts differ in age."""


def problem(pattern: str, memory: int = _MEMORY) -> str:
    """Why RE2 does not take `pattern`; empty if it does."""
    try:
        _compiled(pattern, memory)
    except re2.error as error:
        return bytes(error.args[0]).decode(errors="replace")
    return ""


def refused_by_go(pattern: str) -> str:
    """Why Go does not take `pattern`; empty if it may."""
    reason = problem(pattern, _MEMORY_OF_CRD)
    return "" if reason.startswith(_NOT_ALIKE) else reason


def found_in(pattern: str, text: str) -> bool:
    """Whether `pattern` matches a part of `text`, as the API server asks; True where that is left to it."""
    try:
        compiled = _compiled(pattern, _MEMORY_OF_CRD)
    except re2.error:
        return True
    return compiled.programsize * len(text) > COST_LIMIT or compiled.search(text) is not None


def steps(pattern: str, text: str) -> int:
    """How many `is_match` takes at most, in the unit of COST_LIMIT; CALL for an empty text, or what is no pattern."""
    return CALL + (0 if problem(pattern) else _compiled(pattern, _MEMORY).programsize * len(text))


def is_match(pattern: str, text: str) -> bool:
    """Whether `pattern` matches all of `text`, as in TOSCA. Raises ValueError for what is no pattern or would take long."""
    try:
        compiled = _compiled(pattern, _MEMORY)
    except re2.error:
        raise ValueError("not a regular expression of RE2") from None
    if compiled.programsize * len(text) > COST_LIMIT:
        raise ValueError("the text is too long for this pattern")
    return compiled.fullmatch(text) is not None


@lru_cache(maxsize=KEPT)
def _compiled(pattern: str, memory: int) -> Any:
    options = re2.Options()
    options.max_mem = memory
    options.log_errors = False
    return re2.compile(pattern, options)
