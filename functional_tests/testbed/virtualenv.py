# SPDX-License-Identifier: Apache-2.0
"""Virtual environments of services whose pins and Tacker's need not agree: made once of a lock file, kept in the cache."""

import os
import shutil
import sys
import sysconfig
from pathlib import Path

from builds import cache
from builds.commands import run

from . import paths

LOCKS = Path(__file__).parents[2] / "requirements"


UV = Path(sysconfig.get_path("scripts")) / "uv"
PYTHON_OF_MACHINES = "3.11"
"""Debian 12's."""
_TACKER = "tacker-"


def synced(name: str, *more: bytes) -> Path:
    """The virtual environment with what `requirements/<name>.lock` says; made at the first call, one for each of `more`."""
    lock = LOCKS / f"{name}.lock"
    environment = cache.folder() / f"{name}-{cache.digest(lock.read_bytes(), sys.version.encode(), *more)}"
    if not (environment / "bin" / "python").exists():
        run([UV, "venv", "--python", sys.executable, environment])
    run([UV, "pip", "sync", "--python", environment / "bin" / "python", lock])
    return environment


def of_machines(name: str, requirements: Path, folder_of_many: str = "", kept: str = "") -> Path:
    """A folder of modules for the Python of the machines, as a file of requirements says; made at the first call.

    kept: the one entry of `folder_of_many` in it that somebody there needs; all by default.
    """
    folder = cache.folder() / f"{name}-{cache.digest(requirements.read_bytes(), folder_of_many.encode(), kept.encode())}"
    if not folder.exists():
        unfinished = folder.with_name(f"{folder.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        version = ["--python", sys.executable, "--python-version", PYTHON_OF_MACHINES, "--only-binary", ":all:"]
        hashes = ["--require-hashes"] if requirements.suffix == ".lock" else []
        run([UV, "pip", "install", "--target", unfinished, *version, *hashes, "--requirements", requirements])
        for path in (unfinished / folder_of_many).iterdir() if folder_of_many else ():
            if path.is_dir() and path.name != kept:
                shutil.rmtree(path)
        unfinished.rename(folder)
    return folder


def tackers() -> list[str]:
    """The versions of Tacker that the bed may have in place of its own."""
    return sorted(lock.stem.removeprefix(_TACKER) for lock in LOCKS.glob(f"{_TACKER}*.lock"))


def with_tacker(version: str) -> Path:
    """The virtual environment with that version, its dependencies, and this checkout of the driver."""
    environment = synced(f"{_TACKER}{version}", os.fsencode(paths.PROJECT))
    install = [UV, "pip", "install", "--python", environment / "bin" / "python", "--no-deps", "--no-build-isolation"]
    run([*install, "--editable", paths.PROJECT])
    return environment
