# SPDX-License-Identifier: Apache-2.0
"""The scripts of a package, which Tacker runs on the conductor as its own user: their digests, and whose they are."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from k8s_cr_driver.package import scripts, vnfd


@dataclass(frozen=True)
class Script:
    """A file of a package that may run, with the operations whose script it is; others can be imported by one."""

    path: str
    digest: str
    """SHA-256; "" for what is no file of the package."""
    operations: tuple[str, ...]

    @property
    def is_own(self) -> bool:
        return self.digest in scripts.digests()

    def __str__(self) -> str:
        when = f"at {', '.join(self.operations)}" if self.operations else "if something names or imports it"
        theirs = f"SHA-256 {self.digest}, not of this project" if self.digest else "not in the package"
        whose = "this project's own" if self.is_own else theirs
        return f"{self.path} runs on the conductor, as the user of Tacker, {when}: {whose}"

    def as_json(self) -> dict[str, Any]:
        return {"path": self.path, "sha256": self.digest, "operations": list(self.operations), "own": self.is_own}


def of(folder: Path, *, everywhere: bool = False) -> list[Script]:
    """
    Those that a VNFD names, with what they can import; also those of this project that `k8s-cr package` adds.

    `everywhere`: and all other code of the package, which a request can name for another driver of Tacker. InvalidPackage.
    """
    named = scripts.named(vnfd.definitions(folder).values())
    found = dict(scripts.code(folder)) if everywhere else {}
    found |= scripts.programs(folder, named)
    found |= {path: hashlib.sha256(text.encode()).hexdigest() for path, text in scripts.missing(folder).items()}
    return [Script(path, digest, tuple(sorted(set(named.get(path, []))))) for path, digest in sorted(found.items())]


def unusable(folder: Path) -> Iterator[str]:
    """A sentence for each script that is no file of the package."""
    for script in of(folder):
        what = f"{script.path}: is the file of an artifact, and"
        if script.path.startswith(("/", "..")):
            yield f"{what} leads out of the package; Tacker would run a file of its host"
        elif not script.digest:
            yield f"{what} is not in the package"


def impostors(folder: Path) -> list[str]:
    """A sentence for each script with the name, but not with the text, of one of this project's."""
    return [
        f"{script.path}: has the name of a script of this project, but another text; remove the file, and k8s-cr package adds "
        "that of the installed driver, or give it another name"
        for script in of(folder)
        if scripts.own(script.path) and script.digest and not script.is_own
    ]
