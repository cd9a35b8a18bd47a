# SPDX-License-Identifier: Apache-2.0
"""The text of manifests -> files of a package."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.objects import rule_files
from k8s_cr_driver.objects.keys import CRD, Object, kind_of
from k8s_cr_driver.package import limits, manifests
from k8s_cr_driver.package.documents import DocumentError, documents
from k8s_cr_driver.scaffold import yaml_text
from k8s_cr_driver.scaffold.model import ManifestFile

CRDS = "crds.yaml"
_NO_MANIFESTS = ("kustomize.config.k8s.io/",)


def file(name: str, content: bytes, budget: limits.Budget) -> ManifestFile | None:
    """A file as it is; None if it has no object. Raises InvalidPackage for what is neither an object nor something else."""
    if found := rules(name, content):
        return found
    values = _values(content)
    if values is not None and not any(map(_looks_like_one, values)):
        return None  # text that is no YAML is read, so that its error is shown
    objects = [_checked(source, raw) for source, raw in manifests.written(name, content, budget)]
    path = PurePosixPath(name)
    fitting = path if path.suffix in (".yaml", ".yml", ".json") else path.with_suffix(path.suffix.lower())
    return ManifestFile(str(fitting), content.decode("utf-8-sig"), objects)


def rules(name: str, content: bytes) -> ManifestFile | None:
    """A file of readiness rules as it is; None if it has anything else."""
    found = [value for value in _values(content) or () if value is not None]
    is_one = found and all(map(rule_files.is_rules, found))
    return ManifestFile(name, content.decode("utf-8-sig"), [], is_rules=True) if is_one else None


def divided(name: str, content: bytes) -> list[ManifestFile]:
    """What a program has rendered: the CRDs in a file of their own, all others in `name`."""
    found = [_checked(source, raw) for source, raw in manifests.written(name, content, limits.values())]
    crds = [obj for obj in found if kind_of(obj) == CRD]
    others = [obj for obj in found if kind_of(obj) != CRD]
    return [ManifestFile(of, yaml_text.dump_all(objs), objs) for of, objs in ((CRDS, crds), (name, others)) if objs]


def _values(content: bytes) -> list[Any] | None:
    """Its documents; None for text that is no YAML."""
    try:
        return [value for _, value in documents(content.decode("utf-8-sig"))]
    except (DocumentError, UnicodeDecodeError, InvalidPackage):
        return None


def _looks_like_one(value: Any) -> bool:
    return isinstance(value, dict) and "kind" in value and not str(value.get("apiVersion")).startswith(_NO_MANIFESTS)


def _checked(source: str, raw: Object) -> Object:
    try:
        manifests.check_identity(raw)
    except InvalidPackage as error:
        raise InvalidPackage(f"{source}: {error}") from None
    return raw


def rewritten(file: ManifestFile, objects: Sequence[Object]) -> ManifestFile:
    """The file with other objects; as it is if they are the same."""
    return file if list(objects) == list(file.objects) else ManifestFile(file.name, yaml_text.dump_all(objects), objects)
