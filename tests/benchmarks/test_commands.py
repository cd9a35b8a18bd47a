# SPDX-License-Identifier: Apache-2.0
"""The large package whose check is timed is one that the check accepts."""

from __future__ import annotations

from pathlib import Path

from benchmarks import commands
from k8s_cr_driver.cli.findings import Findings
from k8s_cr_driver.cli.inspection import inspect
from k8s_cr_driver.cli.package_request import Wish


def test_a_large_package_is_accepted(tmp_path: Path) -> None:
    folder = commands.large_package(tmp_path / "large", crds=4, objects=6, size=20_000)
    assert (folder / "Files/kubernetes/all.yaml").stat().st_size > 16_000
    findings = Findings()
    assert len(inspect(folder, Wish("default"), findings)) == 10
    assert not findings.problems
