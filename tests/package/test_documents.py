# SPDX-License-Identifier: Apache-2.0
"""YAML is read as kubectl reads it, and what JSON cannot say is refused with its line."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k8s_cr_driver.package.documents import DocumentError, documents


def only(text: str) -> Any:
    ((_, value),) = documents(text)
    return value


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        ("yes", True),
        ("Off", False),
        ("y", True),
        ("N", False),
        ("'n'", "n"),
        ("~", None),
        ("", None),
        ("'yes'", "yes"),
        ("!!str 5", "5"),
        ("!!int '5'", 5),
        ("12", 12),
        ("-0x1f", -31),
        ("0777", 511),
        ("0o17", 15),
        ("0b11", 3),
        ("1_000", 1000),
        ("08", 8),
        ("1e3", 1000),
        ("1.0", 1),
        ("-1.5", -1.5),
        (".5", 0.5),
        ("22:22", "22:22"),
        ("=", "="),
        ("2026-01-02", "2026-01-02"),
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ("1.2.3", "1.2.3"),
        ("-", [None]),
        ("<<", "<<"),
    ],
)
def test_scalars_are_what_kubectl_makes_of_them(scalar: str, value: Any) -> None:
    result = only(f"key: {scalar}" if scalar != "-" else "key:\n- ")["key"]
    assert (result, type(result)) == (value, type(value))


def test_keys_of_one_letter_are_text() -> None:
    assert only("{x: 1, y: 2, n: 3}") == {"x": 1, "y": 2, "n": 3}


def test_documents_are_numbered_and_empty_ones_left_out() -> None:
    assert list(documents("---\n---\na: 1\n---\n# nothing\n---\nb: 2\n")) == [(2, {"a": 1}), (4, {"b": 2})]


@pytest.mark.parametrize("separator", ["---\n", "--- # next\r\n", "---\n\ufeff", "--- \n\ufeff"])
def test_a_byte_order_mark_at_the_start_of_a_document_is_no_content(separator: str) -> None:
    assert list(documents(f"a: \ufeffx\n{separator}b: 1\nc: 2\n")) == [(1, {"a": "\ufeffx"}), (2, {"b": 1, "c": 2})]


@pytest.mark.parametrize("between", ["", "\n", "\n\n \t"])
def test_json_values_may_follow_one_another(between: str) -> None:
    assert list(documents(f'{{"a": "\\ud83d\\ude00"}}{between}{{"b": 2}}\n')) == [(1, {"a": "\U0001f600"}), (2, {"b": 2})]


def test_integer_keys_are_text() -> None:
    assert only("data: {8080: web}") == {"data": {"8080": "web"}}


def test_merge_keys_and_aliases_give_independent_copies() -> None:
    value = only("a: &a {x: 1, y: [1]}\nb: {<<: *a, x: 2}\nc: *a\n")
    assert value == {"a": {"x": 1, "y": [1]}, "b": {"x": 2, "y": [1]}, "c": {"x": 1, "y": [1]}}
    value["c"]["y"].append(2)
    assert value["a"]["y"] == value["b"]["y"] == [1]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{x: own, <<: {x: merged, y: merged}}", {"x": "merged", "y": "merged"}),
        ("{<<: {x: merged, y: merged}, x: own}", {"x": "own", "y": "merged"}),
        ("{<<: [{x: first}, {x: second, y: second}], <<: {y: last}}", {"x": "first", "y": "last"}),
        ("{? x : own, ? << : {x: merged}}", {"x": "merged"}),
    ],
)
def test_of_a_key_and_a_merge_key_the_later_one_counts_as_for_kubectl(text: str, value: Any) -> None:
    assert only(text) == value


def bomb() -> str:
    lines = ["a: &a [1, 2, 3, 4, 5, 6, 7, 8, 9]"]
    for before, after in zip("abcdefghij", "bcdefghijk", strict=True):
        lines.append(f"{after}: &{after} [{', '.join([f'*{before}'] * 9)}]")
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "words", "document", "line"),
    [
        ("a: 1\nb: 2\na: 3", "'a' is given twice", 1, 3),
        ("a: 1\n---\nb: [", "did not find expected node content", 2, 4),
        ("a: .nan", "not-a-number", 1, 1),
        ("a: -.inf", "infinity", 1, 1),
        ("a: 1e999", "beyond 1.8e308", 1, 1),
        ("a: " + "9" * 5000, "beyond 1.8e308", 1, 1),
        ("a: -" + "9" * 5000, "beyond 1.8e308", 1, 1),
        ("a: 0" + "7" * 5000, "beyond 1.8e308", 1, 1),
        ('{"a": ' + "9" * 5000 + "}", "beyond 1.8e308", 1, 1),
        ('{"a": 1e400}', "beyond 1.8e308", 1, 1),
        ("a: !!binary aGk=", "a tag of YAML .* has no meaning in JSON", 1, 1),
        ("a: !!set {x}", "a tag of YAML .* has no meaning in JSON", 1, 1),
        ("a: !Ref x", "a tag of YAML .* has no meaning in JSON", 1, 1),
        ("true: 1", "'true' is not text; write it in quotes", 1, 1),
        ("1.5: 1", "'1.5' is not text", 1, 1),
        ("? [a]\n: 1", "keys must be text", 1, 1),
        ("a: &a [*a]", "alias of itself", 1, 1),
        ("a: *nobody", "undefined alias", 1, 1),
        ("{<<: 1}", "wants a mapping", 1, 1),
        ('{"a": "\\ud800"}', "invalid Unicode", 1, 1),
        ("a: \x01", "character that YAML does not allow", 1, 0),
        ("- " * 100_000, "deeper than 200", 1, 0),
        ("[" * 100_000, "deeper than 200|depth", 1, None),
        ("[" * 300 + "]" * 300, "deeper than 200|depth", 1, None),
        (bomb(), "aliases copy more than 8 MiB", 1, None),
        ('s: &s "' + "x" * 10_000_000 + '"\nt: [*s, *s]', "aliases copy more than 8 MiB", 1, 1),
    ],
)
def test_what_json_cannot_say_is_refused(text: str, words: str, document: int, line: int | None) -> None:
    with pytest.raises(DocumentError, match=words) as caught:
        list(documents(text))
    assert caught.value.document == document
    assert line is None or caught.value.line == line


def test_errors_show_no_value_of_the_text() -> None:
    with pytest.raises(DocumentError) as caught:
        list(documents("password: 'hunter2\nother: x\n"))
    assert "hunter2" not in str(caught.value)


# YAML wants characters beyond U+FFFF and U+007F as they are or in escapes of its own.
TEXT = st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"], exclude_characters="\x7f"))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=20,
)


@given(JSON)
def test_json_is_read_as_json(value: Any) -> None:
    assert [result for _, result in documents(json.dumps(value))] == ([] if value is None else [value])
