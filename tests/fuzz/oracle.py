# SPDX-License-Identifier: Apache-2.0
"""The oracle: each input ends with a result or an expected error, within a number of calls and of bytes."""

from __future__ import annotations

import contextlib
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings

from tests.fuzz.subjects import EXPECTED, SUBJECTS

MOST_CALLS = 3_000_000
"""Calls of functions for one input: 150 for each of its characters."""
MOST_BYTES = 200 * 2**20
HANGS_AFTER = 30.0
"""Seconds of CPU after which an input counts as one that hangs, in a single call of C."""
CHEAP = 0.03
"""Seconds of CPU in which no input can make so many calls, or fill so many bytes. Counting these takes eight times as long."""


class TooMuch(AssertionError):
    """An input costs more than its size explains."""


def observed(subject: Callable[[Any], object], value: Any) -> None:
    """Reads `value`; TooMuch, or any error that is not expected, is a defect."""
    took = _seconds(subject, value)
    if took > HANGS_AFTER:
        raise TooMuch(f"more than {HANGS_AFTER} seconds")
    if took > CHEAP:
        counted(subject, value)


def _seconds(subject: Callable[[Any], object], value: Any) -> float:
    """Of CPU, in this thread: others may have the machine."""
    began = time.thread_time()
    with contextlib.suppress(*EXPECTED):
        subject(value)
    return time.thread_time() - began


def counted(subject: Callable[[Any], object], value: Any) -> None:
    """Reads `value`; raises TooMuch for too many calls or bytes."""
    calls = 0

    def count(*_: Any) -> None:
        nonlocal calls
        calls += 1
        if calls > MOST_CALLS:
            raise TooMuch(f"more than {MOST_CALLS} calls")

    before = sys.getprofile()
    tracemalloc.start()
    sys.setprofile(count)
    try:
        with contextlib.suppress(*EXPECTED):
            subject(value)
    finally:
        sys.setprofile(before)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    if peak > MOST_BYTES:
        raise TooMuch(f"{peak} bytes")


def run(name: str, examples: int, *, random: bool = False) -> None:
    """Raises what the smallest input found raises."""
    strategy, subject = SUBJECTS[name]
    checks = [one for one in HealthCheck if one.name not in ("differing_executors", "nested_given")]

    @settings(max_examples=examples, deadline=None, database=None, derandomize=not random, suppress_health_check=checks)
    @given(strategy)
    def example(value: Any) -> None:
        observed(subject, value)

    example()
