# SPDX-License-Identifier: Apache-2.0
"""What is installed for tests and checks is what was locked: each file has a hash, that of the installer included."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from functional_tests import bootstrap

REQUIREMENTS = Path(bootstrap.ROOT) / "requirements"


@pytest.mark.parametrize("lock", sorted(REQUIREMENTS.glob("*.lock")), ids=lambda path: path.name)
def test_each_locked_package_has_hashes(lock: Path) -> None:
    text = lock.read_text()
    pinned = re.findall(r"^[\w.-]+==.*$", text, re.M)
    assert len(pinned) >= 10
    assert len(re.findall(r"^[\w.-]+==.* \\\n +--hash=sha256:[0-9a-f]{64}", text, re.M)) == len(pinned)


def test_constraints_are_the_versions_of_the_tests() -> None:
    locked = dict(re.findall(r"^([\w.-]+)==([^ ]+)", bootstrap.LOCK.read_text(), re.M))
    constraints = dict(re.findall(r"^([\w.-]+)==([^ \n]+)", (REQUIREMENTS / "constraints.txt").read_text(), re.M))
    assert {"urllib3", "google-re2", "keystoneauth1"} <= constraints.keys()
    assert constraints.items() <= locked.items()


def test_the_environment_is_installed_by_hashes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    commands: list[tuple[list[str], str]] = []
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/pip").touch()
    monkeypatch.setattr(bootstrap, "VENV", tmp_path)
    monkeypatch.setattr(subprocess, "run", lambda command, **options: commands.append((command, options.get("input") or "")))
    bootstrap._make()
    from_index: list[Any] = [one for one in commands if "--editable" not in one[0]]
    assert len(from_index) == 2 and all("--require-hashes" in command for command, _ in from_index)
    entry = from_index[0][1]
    assert re.fullmatch(r"uv==[\d.]+ \\\n( +--hash=sha256:[0-9a-f]{64} \\\n)+ +--hash=sha256:[0-9a-f]{64}\n", entry)
