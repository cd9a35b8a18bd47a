# SPDX-License-Identifier: Apache-2.0
"""
What `init` has made in a folder before: the options, and the files as they were made, in a hidden folder of it.

`package` leaves hidden files out. A second `init` needs them to tell what the author has changed since.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from k8s_cr_driver.cli.output import write_file
from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.package.files import SIZE_LIMIT

FOLDER = ".k8s-cr-init"
_OPTIONS, _MADE = "options.json", "made"


def exists(folder: Path) -> bool:
    return (folder / FOLDER / _OPTIONS).is_file()


def options(folder: Path) -> dict[str, Any]:
    """Those of the `init` before. Raises InvalidPackage."""
    path = folder / FOLDER / _OPTIONS
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InvalidPackage(f"{path}: is not as k8s-cr init has written it; make a new folder with k8s-cr init")
    return found


def made(folder: Path) -> dict[str, str]:
    """The files as they were made, by their names in the package."""
    root = folder / FOLDER / _MADE
    return {path.relative_to(root).as_posix(): _read(path) for path in sorted(root.rglob("*")) if path.is_file()}


def current(folder: Path, names: Mapping[str, object]) -> dict[str, str]:
    """Those of these files that the folder has."""
    return {name: _read(folder / name) for name in names if (folder / name).is_file()}


def write(folder: Path, files: Mapping[str, str | None]) -> None:
    """Files of the package, each at once or not at all; None deletes one."""
    for name, text in files.items():
        path = folder / name
        if text is None:
            path.unlink(missing_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, text)


def record(folder: Path, files: Mapping[str, str], chosen: Mapping[str, Any]) -> None:
    """What was made: after the files themselves, so that a second run after a crash finds the work of the first."""
    (folder / FOLDER).mkdir(mode=0o700, exist_ok=True)  # `--set` may have given a secret
    former = {os.path.join(FOLDER, _MADE, name): None for name in made(folder) if name not in files}
    write(folder, {**former, **{os.path.join(FOLDER, _MADE, name): text for name, text in files.items()}})
    write(folder, {os.path.join(FOLDER, _OPTIONS): json.dumps(chosen, indent=2) + "\n"})


def _read(path: Path) -> str:
    if path.stat().st_size > SIZE_LIMIT:
        raise InvalidPackage(f"{path}: is larger than {SIZE_LIMIT // 1024**2} MiB")
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return file.read()
    except UnicodeDecodeError:
        raise InvalidPackage(f"{path}: is not UTF-8 text") from None
