# SPDX-License-Identifier: Apache-2.0
"""Small YAML of others is read, or is an error, within limits."""

from __future__ import annotations

import time

import pytest

from k8s_cr_driver.objects.yaml_nodes import SIZE_LIMIT, loaded

LEVELS = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
MERGES = "".join(f"b{n}: &b{n}\n  <<: [{', '.join([f'*b{n - 1}'] * 9)}]\n" for n in range(1, 12))


def test_what_is_small_is_read_with_its_aliases() -> None:
    assert loaded("a: &a {x: 1}\nb: {<<: *a, y: [*a, yes]}") == {"a": {"x": 1}, "b": {"x": 1, "y": [{"x": 1}, True]}}


@pytest.mark.parametrize(
    "text",
    [
        "{" * 20_000,
        "[" * SIZE_LIMIT,
        "- " * 300_000,
        "a" * (SIZE_LIMIT + 1),
        f"a0: &a0 [x]\n{LEVELS}",
        f"b0: &b0 {{x: 1}}\n{MERGES}",
        "a: &a [*a]",
        "9" * 5000,
        "a: 1" + ":1" * 200_000,
        "2026-99-99",
        '!!int ""',
        "? {a: 1}\n: 2",
        "a: 1\n---\nb: 2",
        "\x00",
        "\ud800",
    ],
    ids=lambda text: text[:20],
)
def test_what_is_large_nested_or_no_yaml_is_one_error_soon(text: str) -> None:
    began = time.thread_time()
    with pytest.raises(ValueError, match=r"^it is "):
        loaded(text)
    assert time.thread_time() - began < 1


def test_a_number_in_base_60_is_read() -> None:
    assert loaded("a: 1:30:00") == {"a": 5400}
