# SPDX-License-Identifier: Apache-2.0
"""What is recorded of Tacker's own tests."""

from __future__ import annotations

from pathlib import Path

from functional_tests.upstream.expectation import passes_with, record
from functional_tests.upstream.tests import Result


def test_a_record_replaces_what_was_run_and_keeps_the_rest(tmp_path: Path) -> None:
    file = tmp_path / "results.csv"
    record("theirs", [Result("a.one", 1, ""), Result("b.two", 1, "")], file)
    record("ours", [Result("a.one", 1, "AssertionError: 1 != 2")], file)
    assert file.read_text() == "Test,theirs,ours\na.one,passed,failed\nb.two,passed,\n"
    record("ours", [Result("a.one", 1, "")], file)
    assert (passes_with("theirs", file), passes_with("ours", file)) == ({"a.one", "b.two"}, {"a.one"})
