# SPDX-License-Identifier: Apache-2.0
"""Tacker's source distribution: fetched once, checked against its pinned hash, kept unpacked in the cache."""

import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

from builds import cache
from builds.commands import run
from builds.progress import step

from ..testbed import paths

REQUIREMENT = paths.PROJECT / "requirements" / "tacker_source.txt"


def fetch() -> Path:
    """The unpacked source distribution."""
    unpacked = cache.folder() / f"tacker-{cache.digest(REQUIREMENT.read_bytes())}"
    if not unpacked.exists():
        unpacked.parent.mkdir(parents=True, exist_ok=True)
        with step("Fetching Tacker's source distribution"), tempfile.TemporaryDirectory(dir=unpacked.parent) as work:
            _download(Path(work, "archive"))
            [archive] = Path(work, "archive").iterdir()
            with tarfile.open(archive) as tar:
                tar.extractall(work, filter="data")
            shutil.move(Path(work, archive.name.removesuffix(".tar.gz")), unpacked)
    return unpacked


def _download(folder: Path) -> None:
    """Even without dependencies pip asks an sdist for its metadata, which takes the build tools of this environment."""
    run(
        [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"),
            *("--no-build-isolation", "--no-binary=:all:", "--require-hashes", f"--requirement={REQUIREMENT}"),
            f"--dest={folder}",
        ]
    )
