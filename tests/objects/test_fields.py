# SPDX-License-Identifier: Apache-2.0
"""Readers of fields that nobody has checked."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_cr_driver.objects import fields

ODD: list[Any] = [None, True, 3, 1.5, "text", [], {}]


@pytest.mark.parametrize("value", ODD)
def test_a_value_of_another_form_counts_as_absent(value: Any) -> None:
    live = {"status": value}
    assert fields.mapping(live, "status", "inner") == {}
    assert fields.sequence(live, "status", "inner") == []
    assert fields.entries(live, "status", "inner") == []
    assert fields.text(live, "status", "inner") == ""
    assert fields.integer(live, "status", "inner") is None


def test_without_a_path_the_value_itself_is_read() -> None:
    assert fields.text("up") == "up"
    assert fields.entries([{}, 1, {"a": 1}]) == [{}, {"a": 1}]


@pytest.mark.parametrize(("value", "expected"), [(3, 3), ("03", 3), (True, None), (2.0, None), ("9" * 20, None), ("٣", None)])
def test_integers_are_whole_numbers_and_short_strings_of_digits(value: Any, expected: int | None) -> None:
    assert fields.integer({"replicas": value}, "replicas") == expected
