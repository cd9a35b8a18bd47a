# SPDX-License-Identifier: Apache-2.0
"""JSON of others is read within limits of depth and of memory."""

from __future__ import annotations

import json

import pytest

from k8s_cr_driver.objects import decoding


@pytest.mark.parametrize("text", ["[" * 200_000, b"[" * 200_000])
def test_what_is_nested_too_deeply_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(decoding.BeyondLimit, match="nested deeper than 300 levels"):
        decoding.decoded(text)


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")])
def test_the_limit_of_levels_is_that_of_no_interpreter(opening: str, closing: str) -> None:
    levels = decoding.DEPTH_LIMIT // (len(opening.strip('"a:')))
    assert decoding.decoded(opening * (levels - 1) + "[1]" + closing * (levels - 1))
    with pytest.raises(decoding.BeyondLimit):
        decoding.decoded(opening * levels + "[1]" + closing * levels)


def test_all_objects_have_the_same_names_of_fields_in_memory() -> None:
    first, second = (decoding.decoded('{"managedFields": [{"fieldsType": "FieldsV1"}]}') for _ in range(2))
    assert next(iter(first)) is next(iter(second))
    assert next(iter(first["managedFields"][0])) is next(iter(second["managedFields"][0]))


def test_brackets_in_texts_are_no_levels() -> None:
    assert decoding.decoded(json.dumps("[" * 1000)) == "[" * 1000


@pytest.mark.parametrize("value", [[{}] * 30, [[]] * 30, dict.fromkeys(map(str, range(30)))])
def test_a_text_of_many_values_is_not_read(monkeypatch: pytest.MonkeyPatch, value: object) -> None:
    monkeypatch.setattr(decoding, "VALUES_LIMIT", 20)
    for text in (json.dumps(value), json.dumps(value).encode()):
        with pytest.raises(ValueError, match="more than 20 values"):
            decoding.decoded(text)
