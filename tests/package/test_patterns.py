# SPDX-License-Identifier: Apache-2.0
"""Regular expressions of packages are matched in linear time, and refused where the API server would refuse them."""

from __future__ import annotations

import time

import pytest

from k8s_cr_driver.package import patterns
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


LETTERS = r"\pL"
"""RE2 has 650 ranges for it, each time that it is written: that takes 100 microseconds and some kilobytes."""


@pytest.mark.parametrize("unit", ["a{0}", LETTERS, LETTERS + "{0}"])
def test_an_expression_of_more_than_2000_characters_is_not_parsed(unit: str) -> None:
    """RE2 parses it within the interpreter's lock: one of 30 MiB stopped the conductor for minutes."""
    long, kept = unit * 20_000, patterns._compiled_long.cache_info().currsize
    started = time.thread_time()
    assert problem(long) == "pattern too large"
    assert refused_by_go(long) == "" and found_in(long, "1"), "the API server decides"
    assert time.thread_time() - started < 0.1
    assert patterns._compiled_long.cache_info().currsize == kept


def test_an_expression_of_2000_characters_is_matched() -> None:
    """One for addresses of IPv6 has about 1,000."""
    long = f"^(?:{'|'.join(f'site{number:03}' for number in range(240))})$"
    assert 1900 < len(long) <= 2000
    assert found_in(long, "site239") and not found_in(long, "site240") and is_match(long, "site239")


def test_few_long_expressions_are_kept() -> None:
    """Each may take some megabytes, and they stay for the life of the process."""
    for number in range(300):
        assert found_in(f"(a{number})?" + "b?" * 150, "c")
    assert patterns._compiled_long.cache_info().currsize <= 128


def test_that_an_expression_is_too_large_is_found_out_once() -> None:
    """A schema may have it for hundreds of thousands of values."""
    large = LETTERS * 600
    started = time.thread_time()
    assert all(found_in(large, "1") for _ in range(100))
    assert time.thread_time() - started < 1
