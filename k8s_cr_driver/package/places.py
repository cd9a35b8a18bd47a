# SPDX-License-Identifier: Apache-2.0
"""
Where in the files of a package a finding is: by what its sentence begins with.

A sentence names a file and a document, or an object, or a flavour, and then a field. The line is that of the field if the file
has it, else that of the nearest part that it has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import yaml

from k8s_cr_driver.objects.yaml_nodes import Shallow

_FILE = re.compile(r"(?P<file>[^\s:,][^:,\n]*\.(?:ya?ml|json|meta|mf))(?:, document (?P<document>\d+))?", re.I)
_ITEMS = re.compile(r", items\[(\d+)\]")
_LINE = re.compile(r"\bline (\d+)")
_REMARK = re.compile(r"(?<=\]) \([^()\s]+\)(?=[.:])")
"""The kind of an entry of rules, behind its index."""
_FIELD = re.compile(r"[A-Za-z$_](?:[\w$./-]|\[\d{1,9}\])*(?=: )")
_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")
_FLAVOUR = re.compile(r"Flavour ([^\s:]+): (?:(?:VDU|policy|scaling aspect) ([^\s:,]+))?")
_LARGEST = 4 * 1024 * 1024
"""Bytes of a file in which a field is looked for."""


class Place(NamedTuple):
    """Lines, columns and documents count from 1; 0 and "" for what is not known."""

    file: str
    document: int = 0
    line: int = 0
    column: int = 0
    field: str = ""

    def __str__(self) -> str:
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part)


NOWHERE = Place("")


class _Loader(Shallow, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Nodes with their marks."""


class Places:
    """Of one package, whose folder is `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.sources: dict[str, str] = {}
        """Object -> the file and the document that it is in."""
        self.flavours: dict[str, str] = {}
        """Flavour -> the file of the VNFD that has it."""
        self._nodes: dict[str, list[yaml.Node]] = {}

    def of(self, text: str) -> Place:
        key, _, rest = text.partition(": ")
        if found := _FLAVOUR.match(text):
            return self._in_vnfd(self.flavours.get(found[1], ""), found[2])
        if source := self.sources.get(key):
            return self._at(source, rest)
        if _FILE.match(text):
            return self._at(key, rest, line=_LINE.search(key) or _LINE.search(rest))
        return NOWHERE

    def _at(self, source: str, rest: str, line: re.Match[str] | None = None) -> Place:
        match = _FILE.match(source)
        if match is None:
            return NOWHERE
        document = int(match["document"] or 0)
        field = found[0] if (found := _FIELD.match(_REMARK.sub("", rest, count=1))) and document else ""
        if line:
            return Place(match["file"], document, int(line[1]), 0, field)
        items = [f"items[{index}]" for index in _ITEMS.findall(source)]
        node = self._document(match["file"], document) if document else None
        if node is None:
            return Place(match["file"], document, 0, 0, field)
        mark = _mark(node, _steps(".".join([*items, field])))
        return Place(match["file"], document, mark.line + 1, mark.column + 1, field)

    def _in_vnfd(self, file: str, name: str | None) -> Place:
        node = self._document(file, 1) if file else None
        if node is None:
            return Place(file)
        for part in ("node_templates", "policies"):
            found = _child(_child(node, "topology_template"), part)
            entries = found.value if isinstance(found, yaml.SequenceNode) else [found]
            for entry in entries:
                if name and (mark := _key_mark(entry, name)):
                    return Place(file, 1, mark.line + 1, mark.column + 1)
        return Place(file, 1)

    def _document(self, file: str, number: int) -> yaml.Node | None:
        if file not in self._nodes:
            self._nodes[file] = list(_composed(self._root / file))
        nodes = self._nodes[file]
        return nodes[number - 1] if 0 < number <= len(nodes) else None


def _composed(path: Path) -> Iterator[yaml.Node]:
    """The documents before the first that is no YAML."""
    try:
        if path.stat().st_size <= _LARGEST:
            text = path.read_text(encoding="utf-8-sig")
            yield from yaml.compose_all(text, Loader=_Loader)
    except (yaml.YAMLError, OSError, ValueError, RecursionError):
        return


def _steps(field: str) -> list[str | int]:
    return [int(index) if index else name for index, name in _STEP.findall(field)]


def _mark(node: yaml.Node, steps: list[str | int]) -> yaml.Mark:
    """Of the last part of the path that there is; a key may have dots in it."""
    mark = node.start_mark
    for number, step in enumerate(steps):
        if isinstance(step, int):
            found = node.value[step] if isinstance(node, yaml.SequenceNode) and step < len(node.value) else None
            if found is None:
                return mark
            node, mark = found, found.start_mark
            continue
        if (child := _child(node, step)) is None:
            rest = ".".join(map(str, steps[number:]))
            return _key_mark(node, rest) or mark
        mark, node = _key_mark(node, step) or mark, child
    return mark


def _pairs(node: yaml.Node | None) -> list[tuple[yaml.Node, yaml.Node]]:
    return node.value if isinstance(node, yaml.MappingNode) else []


def _child(node: yaml.Node | None, name: str) -> yaml.Node | None:
    return next((value for key, value in _pairs(node) if key.value == name), None)


def _key_mark(node: yaml.Node | None, name: str) -> yaml.Mark | None:
    return next((key.start_mark for key, _ in _pairs(node) if key.value == name), None)
