# SPDX-License-Identifier: Apache-2.0
"""
A Helm chart as `init` reads it: by the installed `helm`, and the texts of its templates.

A chart of a registry or a repository is pulled first, so that all that is rendered, and looked at, is one archive.
"""

from __future__ import annotations

import contextlib
import io
import re
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from k8s_cr_driver.cli import rendering
from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.objects.fields import entries, text
from k8s_cr_driver.package.documents import DocumentError, documents
from k8s_cr_driver.scaffold import reading
from k8s_cr_driver.scaffold.model import ManifestFile, Product

_REMOTE = re.compile(r"oci://\S+|[A-Za-z0-9][\w.-]*/[\w.-]+")
_INSTALL = "install Helm 3, or give what it renders: helm template ... | k8s-cr init FOLDER --from -"
_ARCHIVES = (".tgz", ".tar.gz")
_SERVED = ("apiregistration.k8s.io/v1",)
"""What every cluster serves, and helm without one does not know."""
WITHOUT_SCHEMA = "--skip-schema-validation"
"""The option with which helm (3.16 and newer) takes values that values.schema.json refuses."""
TEMPLATES = 20_000
"""Files of a chart that are looked at."""
_TEXTS = 64 * 1024 * 1024
"""Bytes of them together."""
_DEPTH = 5
"""Charts within each other."""


@dataclass(frozen=True)
class Chart:
    """A chart at `path`, a folder or an archive; `options` are those of `helm template`."""

    path: Path
    release: str
    namespace: str
    options: Sequence[str] = ()

    def rendered(self, name: str, *more: str) -> list[ManifestFile]:
        """The manifests, with `more` options; the CRDs of `crds/` among them."""
        command = ["helm", "template", self.release, str(self.path), "--namespace", self.namespace, "--include-crds"]
        served = [word for one in _SERVED for word in ("--api-versions", one)]
        return reading.divided(name, rendering.run([*command, *served, *self.options, *more], _INSTALL))

    def product(self, name: str) -> Product:
        """What Chart.yaml says of it."""
        about = self._shown("chart")
        version, application = text(about, "version"), str(about.get("appVersion") or "")
        maintainers = [text(one, "name") for one in entries(about, "maintainers")]
        return Product(
            name,
            version=version or "1.0",
            software_version=application or version or "1.0",
            provider=next(filter(None, maintainers), "unknown"),
            description=" ".join(filter(None, (f"{text(about, 'name')} {version}:", text(about, "description")))),
        )

    def values(self) -> Mapping[str, Any]:
        """The values of the chart itself, without those of its dependencies."""
        return self._shown("values")

    def rules(self) -> list[ManifestFile]:
        """The file of readiness rules beside Chart.yaml, if there is one."""
        if self.path.is_dir():
            return rendering.rules_of(self.path)
        beside = (content for name, content in _files(self.path) if Path(name).parts[1:] == (rendering.RULES,))
        return [found for content in beside if (found := reading.rules(rendering.RULES, content))]

    def templates(self) -> Iterator[tuple[str, str]]:
        """The names and texts of its templates, with those of its dependencies."""
        left = _TEXTS
        for number, (name, content) in enumerate(_files(self.path)):
            left -= len(content)
            if number >= TEMPLATES or left < 0:
                raise InvalidPackage(f"{self.path}: has more than {TEMPLATES:,} files, or {_TEXTS // 1024**2} MiB, the limits")
            if "templates" in Path(name).parts:
                yield name, content.decode(errors="replace")

    def _shown(self, what: str) -> dict[str, Any]:
        content = rendering.run(["helm", "show", what, str(self.path)], _INSTALL)
        try:
            found = [value for _, value in documents(content.decode(errors="replace"))]
        except DocumentError as error:
            raise InvalidPackage(f"helm show {what}: line {error.line}: {error}") from None
        return found[0] if found and isinstance(found[0], dict) else {}


def is_chart(source: str) -> bool:
    """Whether `source` is a chart: a folder with Chart.yaml, an archive, or what helm can pull."""
    path = Path(source)
    if path.exists():
        return (path / "Chart.yaml").is_file() or (path.is_file() and path.name.endswith(_ARCHIVES))
    return _REMOTE.fullmatch(source) is not None


@contextlib.contextmanager
def opened(source: str, version: str | None) -> Iterator[Path]:
    """The chart as a folder or an archive, for the duration."""
    if Path(source).exists():
        if version:
            raise click.UsageError("--version: is for a chart of a registry or a repository")
        yield Path(source)
        return
    with tempfile.TemporaryDirectory(prefix="k8s-cr-") as folder:
        rendering.run(["helm", "pull", source, "--destination", folder, *(["--version", version] if version else [])], _INSTALL)
        found = sorted(Path(folder).glob("*.tgz"))
        if len(found) != 1:
            raise InvalidPackage(f"helm pull {source}: has written {len(found)} archives, and not one")
        yield found[0]


def _files(path: Path) -> Iterator[tuple[str, bytes]]:
    """Templates, with those of dependencies; of an archive also the readiness rules in it."""
    if path.is_file():
        yield from _archived(path.name, path.read_bytes())
        return
    for one in sorted(path.rglob("*")):
        name = one.relative_to(path).as_posix()
        if one.is_file() and one.name.endswith(_ARCHIVES) and one.parent.name == "charts":
            yield from _archived(name, one.read_bytes())
        elif one.is_file() and "templates" in one.relative_to(path).parts:
            yield name, one.read_bytes()


def _archived(name: str, content: bytes, depth: int = 1) -> Iterator[tuple[str, bytes]]:
    """The files in an archive, without unpacking it; those of dependencies, which are archives in it, as well."""
    if depth > _DEPTH:
        raise InvalidPackage(f"{name}: is a chart within {_DEPTH} others, and may be within {_DEPTH - 1}")
    try:
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            for member in archive:
                parts = Path(member.name).parts
                file = archive.extractfile(member) if member.isfile() and member.size <= _TEXTS else None
                if file and ("templates" in parts or (depth == 1 and parts[1:] == (rendering.RULES,))):
                    yield member.name, file.read()
                elif file and member.name.endswith(_ARCHIVES) and "charts" in parts and name != member.name:
                    yield from _archived(member.name, file.read(), depth + 1)
    except (tarfile.TarError, OSError, EOFError) as error:
        raise InvalidPackage(f"{name}: is no archive of a chart: {error}") from None
