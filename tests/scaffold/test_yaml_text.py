# SPDX-License-Identifier: Apache-2.0
"""What is written is read again as it was, by a reader that knows what YAML takes for no text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k8s_cr_driver.package.documents import documents
from k8s_cr_driver.scaffold import yaml_text

AMBIGUOUS = ["y", "N", "on", "1e3", "0x1f", "0o17", "22:22", "1_000", "=", "<<", "~", "", ".5", "-.inf", "2026-01-01", "null"]
SPECIAL = [
    "${NAME}",
    "- a",
    "a: b",
    "#",
    "'",
    '"',
    "a\nb\n",
    "a\n\n",
    " a\n b",
    "\ta",
    "é",
    "😀",
    "{{ x }}",
    "%a",
    "@a",
    "a #b",
]
SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.sampled_from(AMBIGUOUS + SPECIAL)
KEYS = st.text("abcyn01-./", min_size=1, max_size=8)
VALUES = st.recursive(SCALARS | TEXTS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3))


@given(st.lists(st.dictionaries(KEYS, VALUES, min_size=1, max_size=4), min_size=1, max_size=3))
def test_what_is_written_is_read_again(values: list[dict[str, object]]) -> None:
    assert [value for _, value in documents(yaml_text.dump_all(values))] == values


@pytest.mark.parametrize("text", AMBIGUOUS + SPECIAL)
def test_texts_that_look_like_something_else(text: str) -> None:
    assert list(documents(yaml_text.dump({"a": text, "b": [text]}))) == [(1, {"a": text, "b": [text]})]


def test_several_lines_are_written_as_lines() -> None:
    assert yaml_text.dump({"run.sh": "a\nb\n", "image": "x:1"}) == "run.sh: |\n  a\n  b\nimage: x:1\n"
