# SPDX-License-Identifier: Apache-2.0
"""The readiness rules of a package: a document of rules among its manifests, in Files/kubernetes/health.yaml, or in the file
of the artifact `health-rules` of the VNFD.

They are written to the objects of their kinds, as an annotation: every later verb, and every tool, judges the objects in the
same way, also where it does not read the package. A package is not trusted, so its rules are expressions of CEL and no scripts.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.objects import rule_files
from k8s_cr_driver.objects.cel import ExpressionError
from k8s_cr_driver.objects.fields import field, mapping
from k8s_cr_driver.objects.keys import GroupKind, Object, kind_of
from k8s_cr_driver.package import rule_checks
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


def unnamed(root: Path, files: Sequence[str], name: str = FILE) -> list[str]:
    """The file of rules, if a request leaves it out: it holds for whatever manifests the request names."""
    if name != FILE:
        return [] if name in files else [name]
    content = _content(root, files)
    return [FILE] if content.lstrip().startswith((_MARK, b"#", b"---")) and not _has_kind(content) else []


def _why_unread(root: Path, files: Sequence[str], name: str = FILE) -> str:
    """Why FILE is not read although a package has it, as a sentence; "" if it is read, or has manifests."""
    if name != FILE or FILE in files or unnamed(root, files) or not (root / FILE).is_file():
        return ""
    if (root / FILE).stat().st_size > _LARGEST:
        return f"{FILE}: is not read, because it is larger than {_LARGEST // 1024} KiB"
    content = _content(root, files)
    if not content.strip() or _has_kind(content):
        return ""
    first = content.split(b":")[0].strip().decode(errors="replace")[:40]
    return f"{FILE}: is not read, because it begins with {first!r}, and rules are a list under {rule_files.LIST}"


def _content(root: Path, files: Sequence[str]) -> bytes:
    """Of FILE; nothing if it is not there, too large, or among the files."""
    path = root / FILE
    is_read = FILE not in files and path.is_file() and path.stat().st_size <= _LARGEST
    return path.read_bytes() if is_read else b""


def _has_kind(content: bytes) -> bool:
    return b"\nkind:" in content or content.startswith((b"kind:", b"{"))


class Rules:
    """The rules of a package, as they are found among the documents of its `files`; `name` is that of `file`.

    `warn` is given a sentence for each mistake in rules that can be read.
    """

    def __init__(self, root: Path, files: Sequence[str], name: str, warn: Callable[[str], None]) -> None:
        self.of_kinds: dict[GroupKind, tuple[rule_files.KindRules, str]] = {}
        """The rules of each kind, and where they are written."""
        self._name, self._warn = name, warn
        if reason := _why_unread(root, files, name):
            warn(reason)

    def take(self, document: Object, source: str, file: str) -> bool:
        """Whether the document is one of rules, which are added. InvalidPackage names it, the entry and the column."""
        if not rule_files.is_rules(document):
            if file == self._name and (file != FILE or "kind" not in document):
                raise InvalidPackage(f"{source}: {_why_no_rules(document, file)}")
            return False
        try:
            found = rule_files.read(document)
        except ExpressionError as error:
            raise InvalidPackage(f"{source}: {error}") from None
        if others := rule_files.unknown_keys(document):
            self._warn(f"{source}: {', '.join(others[:5])}: is not known beside {rule_files.LIST}")
        for index, (kind, written) in enumerate(found.items()):  # an entry is of one kind
            entry = f"{source}: {rule_files.LIST}[{index}]"
            if kind in self.of_kinds:
                raise InvalidPackage(f"{entry}: {kind} has rules in another document, too; write them in one")
            self.of_kinds[kind] = written, entry
        return True

    def write_to(self, objects: Sequence[Object]) -> None:
        """Writes to each object the rules of its kind, but for kinds whose objects instances share."""
        for text in rule_checks.warnings(self.of_kinds, objects):
            self._warn(text)
        for obj in objects if self.of_kinds else ():
            if kind_of(obj) in self.of_kinds and kind_of(obj) not in rule_checks.SHARED:
                written, _ = self.of_kinds[kind_of(obj)]
                annotations = obj["metadata"].setdefault("annotations", {}) or {}
                content = json.dumps(written, sort_keys=True, ensure_ascii=False)
                obj["metadata"]["annotations"] = {**annotations, rule_files.PACKAGE_RULES: content}


def _why_no_rules(document: Object, file: str) -> str:
    if file != FILE:
        return f"the VNFD names the file as {ARTIFACT}, so it must have {rule_files.LIST}, and no kind"
    there = ", ".join(str(name)[:40] for name in list(document)[:5]) or "nothing"
    return f"has neither kind nor {rule_files.LIST}, and {there} is there; rules are a list under {rule_files.LIST}"
