# SPDX-License-Identifier: Apache-2.0
"""TOSCA.meta and the files that it names."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.package.limits import BLOCKS
from k8s_cr_driver.package.vnfd import _parse, _read

TOSCA_META = "TOSCA-Metadata/TOSCA.meta"
MANIFESTS = "Files/kubernetes"
SUFFIXES = (".yaml", ".yml", ".json")
"""Of manifests, in this folder."""
_META_KEYS = ("TOSCA-Meta-File-Version", "CSAR-Version", "Created-by", "Entry-Definitions")
_PART = 1024 * 1024
_HASHES = {"sha-224": "sha224", "sha-256": "sha256", "sha-384": "sha384", "sha-512": "sha512"}


def manifest_files(folder: Path) -> list[str]:
    """The manifest files of a package, as lcm-kubernetes-def-files names them; without those of charts."""
    return [name for name in _beside_manifests(folder) if name.lower().endswith(SUFFIXES)]


def other_files(folder: Path) -> list[str]:
    """Those beside the manifests that are taken for no manifests, although a request may name them."""
    return [name for name in _beside_manifests(folder) if not name.lower().endswith(SUFFIXES)]


def charts(folder: Path) -> list[str]:
    """The folders of Helm charts beside the manifests: Tacker's own driver applies them, this one does not."""
    names = (name for name in _files(folder) if name.startswith(f"{MANIFESTS}/") and name.endswith("/Chart.yaml"))
    return [name.removesuffix("/Chart.yaml") for name in names]


def _beside_manifests(folder: Path) -> list[str]:
    inside = tuple(f"{chart}/" for chart in charts(folder))
    return [name for name in _files(folder) if name.startswith(f"{MANIFESTS}/") and not name.startswith(inside)]


def unnamed(folder: Path) -> list[str]:
    """The manifests of a CSAR that TOSCA.meta does not name; none if a manifest file (SOL004) may name them instead."""
    head, *artifacts = _meta_blocks(folder)
    named = {name_of(artifact) for artifact in artifacts}
    return [] if "ETSI-Entry-Manifest" in head else [name for name in manifest_files(folder) if name not in named]


def leaves_out(folder: Path, files: Collection[str]) -> bool:
    """Whether `files`, as a request names them, are not all the manifests of the package."""
    return not set(manifest_files(folder)) <= set(map(posixpath.normpath, files))


def _files(folder: Path) -> list[str]:
    """The package's files by their names in the package, without hidden ones."""
    names = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return sorted(name.as_posix() for name in names if not any(part.startswith(".") for part in name.parts))


def check_links(folder: Path) -> None:
    """Raise InvalidPackage for a link that leads out of the folder: what it leads to would be part of the package."""
    base = folder.resolve()
    for path in filter(Path.is_symlink, folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if not path.exists():
            raise InvalidPackage(f"{name}: is a link that leads nowhere; remove it")
        if not path.resolve().is_relative_to(base):
            raise InvalidPackage(f"{name}: is a link that leads out of the folder; put a copy of the file there")


def is_remote(name: str) -> bool:
    """Whether an artifact of TOSCA.meta is at a URL, and not in the package (SOL004, external artifacts)."""
    return "://" in name


def name_of(artifact: dict[str, Any]) -> str:
    return str(artifact.get("Name") or artifact.get("Source"))


def check_hash(folder: Path, url: str, content: bytes) -> None:
    """Raise InvalidPackage if TOSCA.meta gives another hash for the artifact at `url` than its content has."""
    blocks = _meta_blocks(folder) if (folder / TOSCA_META).is_file() else []
    for artifact in blocks[1:]:
        if name_of(artifact) == url and "Hash" in artifact:
            algorithm = str(artifact.get("Algorithm", "SHA-256")).lower()
            if algorithm not in _HASHES or _digest(algorithm, content) != str(artifact["Hash"]).lower():
                raise InvalidPackage(
                    f"{TOSCA_META}: {url.partition('?')[0]}: Hash is not that of the content at the URL; correct it, or put "
                    "the file into the package"
                )


def _meta_blocks(folder: Path) -> list[dict[str, Any]]:
    path = folder / TOSCA_META
    if not path.is_file():
        raise InvalidPackage(f"{TOSCA_META} is missing in {folder}; a package begins with it")
    texts = [text for text in re.split(r"\n\s*\n", _read(path, TOSCA_META)) if text.strip()]
    if len(texts) > BLOCKS:
        raise InvalidPackage(f"{TOSCA_META} has more than {BLOCKS:,} blocks, the limit; make several packages of it")
    blocks = [document for text in texts for document in _parse(text, TOSCA_META)]
    if not blocks or not all(isinstance(block, dict) for block in blocks):
        raise InvalidPackage(f"{TOSCA_META} must be blocks of 'key: value' lines, with an empty line between blocks")
    return blocks


def _digest(algorithm: str, data: bytes) -> str:
    return hashlib.new(_HASHES[algorithm], data).hexdigest()


def _digest_of(algorithm: str, path: Path) -> str:
    """The same of a file, which may be larger than the memory."""
    digest = hashlib.new(_HASHES[algorithm])
    with path.open("rb") as file:
        while part := file.read(_PART):
            digest.update(part)
    return digest.hexdigest()
