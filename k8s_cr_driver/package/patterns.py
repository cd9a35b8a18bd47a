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
"""Bytes for an expression: most compile, or are found too large, in less than a millisecond. CRDs have thousands."""
_LONGEST = 2_000
"""
Characters of an expression; a longer one is too large. RE2 parses it within the interpreter's lock before it looks at the
memory: each character takes up to 40 microseconds, and up to a kilobyte.
"""
LONG = 200
"""Characters of an expression; of longer ones fewer are kept. In 500 files of CRDs in use none is longer."""
KEPT, KEPT_LONG = 1280, 128
"""Compiled expressions that are kept, and long ones: as many as the budget of a package pays for."""
_TOO_LARGE = "pattern too large"
_NOT_ALIKE = (_TOO_LARGE, "invalid character class range: \\p", "invalid character class range: \\P")
"""RE2 limits memory and Go does not; their tables of Unicode's scripts differ in age."""


def problem(pattern: str, memory: int = _MEMORY) -> str:
    """Why RE2 does not take `pattern`; empty if it does."""
    compiled = _expression(pattern, memory)
    return compiled if isinstance(compiled, str) else ""


def refused_by_go(pattern: str) -> str:
    """Why Go does not take `pattern`; empty if it may."""
    reason = problem(pattern, _MEMORY_OF_CRD)
    return "" if reason.startswith(_NOT_ALIKE) else reason


def found_in(pattern: str, text: str) -> bool:
    """Whether `pattern` matches a part of `text`, as the API server asks; True where that is left to it."""
    compiled = _expression(pattern, _MEMORY_OF_CRD)
    if isinstance(compiled, str):
        return True
    return compiled.programsize * len(text) > COST_LIMIT or compiled.search(text) is not None


def steps(pattern: str, text: str) -> int:
    """How many `is_match` takes at most, in the unit of COST_LIMIT; CALL for an empty text, or what is no pattern."""
    compiled = _expression(pattern, _MEMORY)
    return CALL + (0 if isinstance(compiled, str) else compiled.programsize * len(text))


def is_match(pattern: str, text: str) -> bool:
    """Whether `pattern` matches all of `text`, as in TOSCA. Raises ValueError for what is no pattern or would take long."""
    compiled = _expression(pattern, _MEMORY)
    if isinstance(compiled, str):
        raise ValueError("not a regular expression of RE2")
    if compiled.programsize * len(text) > COST_LIMIT:
        raise ValueError("the text is too long for this pattern")
    return compiled.fullmatch(text) is not None


def _expression(pattern: str, memory: int) -> Any:
    """The compiled expression, or in words why there is none."""
    if len(pattern) > _LONGEST:
        return _TOO_LARGE
    return (_compiled_long if len(pattern) > LONG else _compiled)(pattern, memory)


def _compile(pattern: str, memory: int) -> Any:
    options = re2.Options()
    options.max_mem = memory
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        return bytes(error.args[0]).decode(errors="replace")


_compiled = lru_cache(maxsize=KEPT)(_compile)
_compiled_long = lru_cache(maxsize=KEPT_LONG)(_compile)
