# SPDX-License-Identifier: Apache-2.0
"""A minute of the fuzz run, and that its oracle finds what it is for."""

from __future__ import annotations

import pytest

from tests.fuzz import oracle
from tests.fuzz.subjects import SUBJECTS

EXAMPLES = 300


@pytest.mark.parametrize("name", SUBJECTS)
def test_what_others_write_ends_with_a_result_or_an_error_that_names_it(name: str) -> None:
    oracle.run(name, EXAMPLES)


def test_an_input_that_costs_too_much_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle, "MOST_CALLS", 100)
    with pytest.raises(oracle.TooMuch, match="calls"):
        oracle.counted(lambda size: [str.upper("a") for _ in range(size)], 1000)
    monkeypatch.setattr(oracle, "MOST_BYTES", 1000)
    with pytest.raises(oracle.TooMuch, match="bytes"):
        oracle.counted(lambda size: bytes(size), 10_000)


def test_only_what_takes_time_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle, "MOST_BYTES", 0)
    oracle.observed(str, 1)
    with pytest.raises(oracle.TooMuch, match="bytes"):
        oracle.observed(lambda size: b"a" * size, 500_000_000)
    monkeypatch.setattr(oracle, "HANGS_AFTER", 0)
    with pytest.raises(oracle.TooMuch, match="seconds"):
        oracle.observed(str, 1)


def test_an_error_that_nobody_expects_is_found() -> None:
    with pytest.raises(ZeroDivisionError):
        oracle.observed(lambda number: 1 // number, 0)
