# SPDX-License-Identifier: Apache-2.0
"""What is missing is reported in one sentence with its remedy."""

import sys
from pathlib import Path

import pytest

from functional_tests.testbed.preconditions import PreconditionError, _check_disk, check


def test_too_little_disk_is_reported_with_both_numbers_and_a_remedy(tmp_path: Path):
    with pytest.raises(PreconditionError, match=rf"{tmp_path} has \d+\.\d GiB free, .* needs 1000000: .*XDG_CACHE_HOME"):
        _check_disk(tmp_path, 1_000_000)


def test_enough_disk_is_no_matter(tmp_path: Path):
    _check_disk(tmp_path, 0)


def test_another_system_is_reported(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(PreconditionError, match="the test bed runs on Linux, and this is "):
        check()
