# SPDX-License-Identifier: Apache-2.0
"""Files of a package as a request names them: nothing outside of its folder is read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.package import files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("of the host")
    root = tmp_path / "package"
    (root / "Scripts").mkdir(parents=True)
    (root / "Scripts" / "install.sh").write_text("#!/bin/sh\n")
    (root / "binary").write_bytes(b"\xff")
    (root / "link").symlink_to(tmp_path / "secret")
    (root / "cycle").symlink_to("cycle")
    os.mkfifo(root / "pipe")
    return root


def test_a_file_inside_is_read(folder: Path) -> None:
    assert files.text_inside(folder, "Scripts/install.sh", 100) == "#!/bin/sh\n"


@pytest.mark.parametrize(
    "path", ["../secret", "link", "/etc/passwd", "missing", "Scripts", "binary", "cycle", "pipe", "nul\0", "a" * 5000]
)
def test_anything_else_is_refused(folder: Path, path: str) -> None:
    with pytest.raises(InvalidPackage):
        files.text_inside(folder, path, 100)


def test_a_file_has_a_limit(folder: Path) -> None:
    with pytest.raises(InvalidPackage, match="or has more than 5 bytes"):
        files.text_inside(folder, "Scripts/install.sh", 5)
