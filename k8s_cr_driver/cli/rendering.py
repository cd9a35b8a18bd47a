# SPDX-License-Identifier: Apache-2.0
"""
Where manifests come from: files, the standard input, or a program that renders them.

`helm` and `kubectl kustomize` are those that the user has installed: a chart is a program in a language of its own, and what
another implementation made of it would be another product. They run as the user, with the user's environment.
"""

from __future__ import annotations

import itertools
import shutil
import subprocess  # nosec B404
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.package import limits
from k8s_cr_driver.package.files import SIZE_LIMIT
from k8s_cr_driver.redaction import lines, redact
from k8s_cr_driver.scaffold import reading
from k8s_cr_driver.scaffold.model import Choice, ManifestFile

SUFFIXES = (".yaml", ".yml", ".json")
KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
RULES = "health.yaml"
FILES_LIMIT = 20_000
"""Files of a folder that are looked at."""
_NO_MANIFESTS = "has no Kubernetes objects"


def is_kustomization(path: Path) -> bool:
    return any((path / name).is_file() for name in KUSTOMIZATIONS)


def kustomized(folder: Path, name: str) -> list[ManifestFile]:
    """What `kustomize build` makes of a folder."""
    program = ["kubectl", "kustomize"] if shutil.which("kubectl") else ["kustomize", "build"]
    return reading.divided(name, run([*program, str(folder)], "install kubectl or kustomize"))


def rules_of(folder: Path) -> list[ManifestFile]:
    """The readiness rules beside a kustomization, or in the folder of a chart, which no program renders."""
    path = folder / RULES
    found = reading.rules(RULES, _bounded(_read(path), RULES)) if path.is_file() else None
    return [found] if found else []


def standard_input(name: str) -> list[ManifestFile]:
    """All that is read there."""
    return reading.divided(name, _bounded(sys.stdin.buffer.read(SIZE_LIMIT + 1), "the standard input"))


def files(path: Path) -> tuple[list[ManifestFile], list[Choice]]:
    """A file, or those of a folder with its subfolders; and what is left out of these."""
    if path.is_file():
        paths, root = [path], path.parent
    else:
        paths, root = _manifests_in(path), path
    budget, found, choices = limits.values(), [], []
    for one in paths:
        name = one.relative_to(root).as_posix()
        if file := reading.file(name, _bounded(_read(one), name), budget):
            found.append(file)
        else:
            choices.append(Choice(name, "left out", _NO_MANIFESTS))
    return found, choices


def run(command: Sequence[str], remedy: str) -> bytes:
    """What a program prints. InvalidPackage with its error, UsageError if it is not installed."""
    if shutil.which(command[0]) is None:
        raise click.UsageError(f"{command[0]} is not installed; {remedy}")
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)  # noqa: S603  # nosec B603
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip() or f"ended with status {done.returncode}"
        first, *more = said.splitlines()
        raise InvalidPackage(lines([redact(f"{' '.join(command[:2])}: {first}"), *(redact(f"  {line}") for line in more)]))
    return _bounded(done.stdout, " ".join(command[:2]))


def _manifests_in(folder: Path) -> list[Path]:
    found = []
    for number, path in enumerate(folder.rglob("*")):
        if number >= FILES_LIMIT:
            raise InvalidPackage(f"{folder}: has more than {FILES_LIMIT:,} files; name a folder that has the manifests alone")
        is_hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if path.suffix.lower() in SUFFIXES and path.is_file() and not is_hidden:
            found.append(path)
    return sorted(found)


def charts_in(folder: Path) -> list[Path]:
    """The charts below a folder, but for those within another one."""
    found = [path.parent for path in itertools.islice(folder.rglob("*"), FILES_LIMIT) if path.name == "Chart.yaml"]
    return sorted(one for one in found if not set(one.parents) & set(found))


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(SIZE_LIMIT + 1)


def _bounded(content: bytes, name: str) -> bytes:
    if len(content) > SIZE_LIMIT:
        raise InvalidPackage(f"{name}: is larger than {SIZE_LIMIT // 1024**2} MiB, the limit of the manifests of a package")
    return content
