# SPDX-License-Identifier: Apache-2.0
"""Regular expressions of packages are matched in linear time, and refused where the API server would refuse them."""

from __future__ import annotations

import time

import pytest

from k8s_cr_driver.package.patterns import found_in, is_match, problem, refused_by_go


@pytest.mark.parametrize("pattern", ["(?=a)b", "(?<!a)b", "(?>a)", r"(a)\1", r"a\Z", "a{1001}", "(a", "[b-a]", "a**"])
def test_what_go_refuses_is_refused(pattern: str) -> None:
    assert refused_by_go(pattern)
    assert problem(pattern)
    assert found_in(pattern, "left to the API server")
    with pytest.raises(ValueError, match="RE2"):
        is_match(pattern, "a")


@pytest.mark.parametrize("pattern", ["[[:alpha:]]+", r"\pL", r"\p{Greek}", "(?i)a", "(?<n>a)", r"\Qa.b\E", r"a\z", "a{1000}"])
def test_what_go_takes_is_taken(pattern: str) -> None:
    assert problem(pattern) == ""


@pytest.mark.parametrize("pattern", [r"\pL{1,1000}x", r"\p{NotYetAScript}"])
def test_what_only_re2_refuses_is_left_to_the_api_server(pattern: str) -> None:
    assert problem(pattern)
    assert refused_by_go(pattern) == ""
    assert found_in(pattern, "1")


@pytest.mark.parametrize(("pattern", "text"), [("b", "abc"), ("^abc$", "abc"), ("é", "Café"), ("", "x"), ("^$", "")])
def test_a_definition_asks_for_a_part_of_the_text(pattern: str, text: str) -> None:
    assert found_in(pattern, text)


@pytest.mark.parametrize(("pattern", "text"), [("^b", "abc"), ("^abc$", "abc\n"), ("a.c", "a\nc"), ("^b$", "a\nb")])
def test_ends_and_dots_are_those_of_go(pattern: str, text: str) -> None:
    assert not found_in(pattern, text)


def test_tosca_asks_for_the_whole_text() -> None:
    assert is_match("a|ab", "ab")
    assert not is_match("b", "abc")


@pytest.mark.parametrize("pattern", ["^(a+)+$", "(a|a)*b", "(.*a){20}c", "[ab]*a[ab]{900}c"])
def test_the_worst_text_takes_linear_time(pattern: str) -> None:
    started = time.thread_time()
    found_in(pattern, "ab" * 3_000)
    found_in(pattern, "a" * 1_000_000 + "!")
    assert time.thread_time() - started < 3
