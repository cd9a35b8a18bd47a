# SPDX-License-Identifier: Apache-2.0
"""The readiness rules of a package: a document of rules among its manifests, in Files/kubernetes/health.yaml, or in the file
of the artifact `health-rules` of the VNFD.

They are written to the objects of their kinds, as an annotation: every later verb, and every tool, judges the objects in the
same way, also where it does not read the package. A package is not trusted, so its rules are expressions of CEL and no scripts.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any

from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.objects import rule_files
from k8s_cr_driver.objects.cel import ExpressionError
from k8s_cr_driver.objects.fields import field, mapping
from k8s_cr_driver.objects.keys import GroupKind, Object, kind_of
from k8s_cr_driver.package.vnfd import DEFINITIONS

FILE = "Files/kubernetes/health.yaml"
ARTIFACT = "health-rules"
"""The artifact of a node of the VNFD whose file has the rules, in place of FILE."""
_LARGEST = 256 * 1024
_MARK = rule_files.LIST.encode()


def file(definitions: Mapping[str, Mapping[str, Any]]) -> str:
    """The file of rules of a package, by its parsed TOSCA files: that of ARTIFACT, else FILE. Raises InvalidPackage."""
    found = set[str]()
    for name, content in definitions.items():
        nodes = mapping(content, "topology_template", "node_templates"), mapping(content, "node_types")
        for node, artifact in ((one, mapping(several[one], "artifacts").get(ARTIFACT)) for several in nodes for one in several):
            path = artifact if isinstance(artifact, str) else field(artifact, "file")
            if artifact is not None and not (isinstance(path, str) and path):
                raise InvalidPackage(
                    f"{DEFINITIONS}/{name}: {node}.artifacts.{ARTIFACT}: names no file; write file: ../{FILE}, seen from "
                    f"{DEFINITIONS}"
                )
            found |= {posixpath.normpath(posixpath.join(DEFINITIONS, path))} if isinstance(path, str) else set()
    if len(found) > 1:
        files = " and ".join(sorted(found))
        raise InvalidPackage(f"{DEFINITIONS}: artifacts {ARTIFACT} name {files}; write the rules in one file")
    return found.pop() if found else FILE


def check(document: Any, source: str) -> None:
    """Raises InvalidPackage for a document of the VNFD's file of rules that is none of rules."""
    if not rule_files.is_rules(document):
        raise InvalidPackage(f"{source}: the VNFD names the file as {ARTIFACT}, so it must have {rule_files.LIST}, and no kind")


def unnamed(root: Path, files: Sequence[str], name: str = FILE) -> list[str]:
    """The file of rules, if a request leaves it out: it holds for whatever manifests the request names."""
    if name != FILE:
        return [] if name in files else [name]
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
