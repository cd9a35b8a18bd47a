# SPDX-License-Identifier: Apache-2.0
"""What becomes of a file that the author and a newer source have changed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k8s_cr_driver.scaffold import merge, yaml_text
from tests.instance import config_map

TEXTS = st.lists(st.sampled_from("abcd"), max_size=8).map(lambda letters: "".join(f"{one}\n" for one in letters))


def text(letters: str) -> str:
    return "".join(f"{one}\n" for one in letters)


@pytest.mark.parametrize(
    ("before", "author", "now", "expected", "conflicts"),
    [
        ("abc", "abc", "abC", "abC", []),
        ("abc", "Abc", "abc", "Abc", []),
        ("abc", "Abc", "abC", "AbC", []),
        ("abc", "Abc", "aBc", "ABc", []),
        ("abc", "aXc", "aYc", "aXc", [2]),
        ("abc", "aXc", "aXc", "aXc", []),
        ("abc", "abXc", "abYc", "abXc", [3]),
        ("abc", "ac", "abcd", "acd", []),
        ("abc", "abc", "", "", []),
        ("abcdef", "aXXdef", "abcdYf", "aXXdYf", []),
    ],
)
def test_line_by_line(before: str, author: str, now: str, expected: str, conflicts: list[int]) -> None:
    assert merge.merged(text(before), text(author), text(now)) == (text(expected), conflicts)


@given(TEXTS, TEXTS, TEXTS)
def test_what_only_one_has_changed_counts(before: str, author: str, now: str) -> None:
    assert merge.merged(before, author, before) == (author, [])
    assert merge.merged(before, before, now) == (now, [])
    assert merge.merged(before, author, author) == (author, [])
    merge.merged(before, author, now)


def several(**values: str) -> str:
    return yaml_text.dump_all([config_map(name, a=value) for name, value in values.items()])


def test_objects_that_are_alike_are_not_taken_for_each_other() -> None:
    found, conflicts = merge.merged(several(a="1", b="1"), several(a="1", b="2"), several(b="1", c="1"))
    assert (found, conflicts) == (several(b="2", c="1"), [])


def test_a_conflict_within_an_object_has_its_line() -> None:
    found, conflicts = merge.merged(several(a="1", b="1"), several(a="1", b="2"), several(a="1", b="3"))
    assert (found, found.splitlines()[conflicts[0] - 1]) == (several(a="1", b="2"), "  a: '2'")


def test_comments_of_the_author_stay() -> None:
    own = several(a="1", b="1").replace("metadata:", "metadata:  # mine", 1)
    found, conflicts = merge.merged(several(a="1", b="1"), own, several(a="2", b="1"))
    assert (found, conflicts) == (several(a="2", b="1").replace("metadata:", "metadata:  # mine", 1), [])


@pytest.mark.parametrize(
    ("before", "author", "now", "changed", "conflict"),
    [
        ("1", "1", "2", {"f": "2"}, ""),
        ("1", "1", None, {"f": None}, ""),
        (None, None, "2", {"f": "2"}, ""),
        ("1", "2", "1", {}, ""),
        ("1", None, "1", {}, ""),
        ("1", "2", None, {}, "is not made any more, and you have changed it"),
        ("1", None, "2", {}, "you have deleted it"),
        (None, "1", "2", {}, "you have a file of that name"),
        ("1", "2", "3", {}, "line 1: changed by you and by the new source"),
    ],
)
def test_files(before: str | None, author: str | None, now: str | None, changed: dict[str, str | None], conflict: str) -> None:
    given = [{"f": one} if one else {} for one in (before, author, now)]
    outcome = merge.files(*given)
    assert outcome.files == changed
    assert [conflict in one for one in outcome.conflicts] == [True] * bool(conflict)
