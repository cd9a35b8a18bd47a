# SPDX-License-Identifier: Apache-2.0
"""Which files of a package go together in one operation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from k8s_cr_driver.package import alternatives


@pytest.mark.parametrize(
    ("excluding", "sets"),
    [
        ([], [["a", "b", "c", "d"]]),
        ([("a", "b")], [["a", "c", "d"], ["b", "c", "d"]]),
        ([("a", "b"), ("c", "d")], [["a", "c"], ["b", "d"]]),
        ([("a", "b"), ("b", "c"), ("a", "c")], [["a", "d"], ["b", "d"], ["c", "d"]]),
    ],
)
def test_each_file_is_in_a_set_without_what_it_excludes(excluding: list[tuple[str, str]], sets: list[list[str]]) -> None:
    assert alternatives.sets(["a", "b", "c", "d"], excluding) == sets


def test_the_requests_of_a_package_name_sets(tmp_path: Path) -> None:
    def write(name: str, *files: str) -> None:
        content = {"flavourId": "simple", "additionalParams": {"lcm-kubernetes-def-files": files}}
        (tmp_path / name).write_text(json.dumps(content))

    write("request.json", "a", "b")
    write("request-small.json", "a")
    write("request-same.json", "a")
    (tmp_path / "request-broken.json").write_text("{")
    (tmp_path / "request-other.json").write_text("[]")
    (tmp_path / "other.json").write_text('{"flavourId": "simple"}')
    assert sorted(alternatives.requested(tmp_path)) == [["a"], ["a", "b"]]
