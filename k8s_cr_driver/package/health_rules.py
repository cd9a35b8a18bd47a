# SPDX-License-Identifier: Apache-2.0
"""The readiness rules of a package: a document of rules among its manifests, by default in Files/kubernetes/health.yaml.

They are written to the objects of their kinds, as an annotation: every later verb, and every tool, judges the objects in the
same way, also where it does not read the package. A package is not trusted, so its rules are expressions of CEL and no scripts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from pathlib import Path

from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.objects import rule_files
from k8s_cr_driver.objects.cel_syntax import ExpressionError
from k8s_cr_driver.objects.keys import GroupKind, Object, kind_of

FILE = "Files/kubernetes/health.yaml"
_LARGEST = 256 * 1024
_MARK = rule_files.LIST.encode()


def unnamed(root: Path, files: Sequence[str]) -> list[str]:
    """The file of rules, if a request leaves it out: it holds for whatever manifests the request names."""
    path = root / FILE
    if FILE in files or not path.is_file() or path.stat().st_size > _LARGEST:
        return []
    content = path.read_bytes()
    return [FILE] if content.lstrip().startswith((_MARK, b"#", b"---")) and b"\nkind:" not in content else []


def add(rules: MutableMapping[GroupKind, rule_files.KindRules], document: Object, source: str) -> None:
    """Adds the rules of a document; InvalidPackage names it, the entry and the column."""
    try:
        found = rule_files.read(document)
    except ExpressionError as error:
        raise InvalidPackage(f"{source}: {error}") from None
    for kind, written in found.items():
        if kind in rules:
            raise InvalidPackage(f"{source}: {kind} has rules in another document, too; write them in one")
        rules[kind] = written


def annotate(objects: Iterable[Object], rules: Mapping[GroupKind, rule_files.KindRules]) -> None:
    """Writes to each object the rules of its kind."""
    for obj in objects if rules else ():
        if written := rules.get(kind_of(obj)):
            annotations = obj["metadata"].setdefault("annotations", {}) or {}
            obj["metadata"]["annotations"] = {**annotations, rule_files.PACKAGE_RULES: json.dumps(written, sort_keys=True)}
