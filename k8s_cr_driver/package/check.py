# SPDX-License-Identifier: Apache-2.0
"""The checks of a package's folder without its manifests."""

from __future__ import annotations

from collections.abc import Iterator, Set
from pathlib import Path
from typing import Any

from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.objects.fields import texts
from k8s_cr_driver.package.tosca_meta import (
    _HASHES,
    _META_KEYS,
    TOSCA_META,
    _digest_of,
    _files,
    _meta_blocks,
    check_links,
    is_remote,
    name_of,
)
from k8s_cr_driver.package.vnfd import DEFINITIONS, _missing_types, definitions, flavour
from k8s_cr_driver.redaction import lines


def of_folder(folder: Path) -> list[tuple[str, str]]:
    """(code, sentence) of each problem of TOSCA.meta, the files that it names and the VNFD; nothing of the manifests."""
    try:
        check_links(folder)
    except InvalidPackage as error:
        return [("tosca-meta", str(error))]
    problems: list[tuple[str, str]] = []
    rules = (("tosca-meta", _name_problems), ("tosca-meta", _meta_problems), ("vnfd", _definition_problems))
    for code, inspect in rules:
        try:
            problems += ((code, text) for text in inspect(folder))
        except InvalidPackage as error:
            problems.append((code, str(error)))
    return problems


def refuse_wrong(folder: Path) -> None:
    """Raises InvalidPackage with every problem of `of_folder`, one a line."""
    if problems := of_folder(folder):
        raise InvalidPackage(lines(dict.fromkeys(text for _, text in problems)))


def _name_problems(folder: Path) -> Iterator[str]:
    for name in _files(folder):
        if "\\" in name:  # of a zip file of Windows, whose folders are none here
            yield f"{name}: has a backslash in its name; write / between folders"


def _meta_problems(folder: Path) -> Iterator[str]:
    head, *artifacts = _meta_blocks(folder)
    for key in _META_KEYS:
        if not head.get(key):
            yield f"{TOSCA_META}: {key} is missing; the first block must give it"
    files = set(_files(folder))
    for key in ("Entry-Definitions", "ETSI-Entry-Manifest"):
        if head.get(key) and head[key] not in files:
            yield f"{TOSCA_META}: {key} names {head[key]}, which is not in the package"
    named: set[str] = set()
    for artifact in artifacts:
        name = name_of(artifact)
        if name in named:
            yield f"{TOSCA_META}: the artifact {name} has several blocks; keep one"
        else:
            yield from _artifact_problems(folder, artifact, name, files)
        named.add(name)


def _artifact_problems(folder: Path, artifact: dict[str, Any], name: str, files: Set[str]) -> Iterator[str]:
    if name not in files and not is_remote(name):
        yield f"{TOSCA_META}: the artifact {name} is not a file of the package; correct its Name or remove its block"
        return
    algorithm = str(artifact.get("Algorithm", "SHA-256")).lower()
    if algorithm not in _HASHES:
        yield f"{TOSCA_META}: {name}: Algorithm must be one of {', '.join(_HASHES).upper()}"
    elif is_remote(name):
        if "Hash" not in artifact:
            yield f"{TOSCA_META}: {name}: Hash is missing; give that of the content at the URL"
    elif "Hash" in artifact and str(artifact["Hash"]) != _digest_of(algorithm, folder / name):
        yield f"{TOSCA_META}: {name}: Hash is not that of the file; remove the block, and it is filled in"


def _definition_problems(folder: Path) -> Iterator[str]:
    contents = definitions(folder)
    flavours = [file for file, content in contents.items() if flavour(content)]
    if not flavours:
        yield (
            f"{DEFINITIONS}: no file has topology_template.substitution_mappings.properties.flavour_id; "
            "one must, for each flavour"
        )
    available = {*contents, *(path.name for path in _missing_types(folder))}
    for file, content in contents.items():
        for name in texts(content, "imports"):
            if "://" not in name and Path(name).name not in available:
                yield f"{DEFINITIONS}/{file}: imports {name}, which is not in the package"
