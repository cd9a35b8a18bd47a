# SPDX-License-Identifier: Apache-2.0
"""Reads YAML of others within limits: of its size, its nesting, and of what aliases and merge keys make of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import yaml

SIZE_LIMIT = 1024 * 1024
"""Characters of a file that `loaded` reads: a Secret has no more bytes."""
EXPANDED_LIMIT = 4 * SIZE_LIMIT
"""The same with aliases written out."""
DEPTH_LIMIT = 200
"""Levels of nesting. The deepest CustomResourceDefinitions in use have about 60."""
_LONGEST_INTEGER = 1000
"""Characters of an integer."""
_NODE = 64
_DIRECTIVES = 1000
"""Words %TAG in a text. libyaml compares each such directive with all before it, within the interpreter's lock."""


def integer(loader: Any, node: yaml.ScalarNode) -> int:
    """An integer, for loaders of PyYAML, which take quadratic time for a long one in base 60, as 1:30:00 is one."""
    if len(node.value) > _LONGEST_INTEGER:
        problem = f"a number has more than {_LONGEST_INTEGER:,} characters; write it in quotes"
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
    return int(loader.construct_yaml_int(node))


class Shallow:
    """
    For loaders of PyYAML: nesting is limited, and so are directives.

    libyaml's composer is recursive and ends the process with a segmentation fault on deep nesting (yaml/pyyaml#296).
    """

    depth = 0

    def __init__(self, text: str | bytes) -> None:
        found = text.count("%TAG") if isinstance(text, str) else text.replace(b"\0", b"").count(b"%TAG")  # UTF-16 has zeros
        if found > _DIRECTIVES:
            raise yaml.MarkedYAMLError(problem=f"has more than {_DIRECTIVES:,} directives %TAG; leave them out")
        super().__init__(text)  # type: ignore[call-arg]

    def descend_resolver(self, parent: Any, index: Any) -> None:
        self.depth += 1
        if self.depth > DEPTH_LIMIT:
            raise yaml.MarkedYAMLError(problem=f"is nested deeper than {DEPTH_LIMIT} levels")

    def ascend_resolver(self) -> None:
        self.depth -= 1


class _Loader(Shallow, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Merge keys (<<) copy what they name, so the size is measured before."""

    def construct_document(self, node: yaml.Node) -> Any:
        if expanded(node, parts, EXPANDED_LIMIT) > EXPANDED_LIMIT:
            raise yaml.YAMLError("its aliases copy too much")
        return super().construct_document(node)


_Loader.add_constructor("tag:yaml.org,2002:int", integer)


def loaded(text: str | bytes) -> Any:
    """The value of a file with one document. ValueError, with a line but no words of it, for what is not YAML or too large."""
    if len(text) > SIZE_LIMIT:
        raise ValueError("it is too large")
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 (a safe one)  # nosec B506
    except Exception as error:  # PyYAML's constructors fail in many ways: dates, `!!int ""`
        mark = getattr(error, "problem_mark", None)
        raise ValueError(f"it is not YAML in line {mark.line + 1}" if mark else "it is not YAML") from None


def repeated_keys(text: str) -> list[str]:
    """The keys that the mapping has more than once, in a text that `loaded` accepts: it takes the last one of each."""
    root = yaml.compose(text, Loader=_Loader)
    keys = [key.value for key, _ in root.value] if isinstance(root, yaml.MappingNode) else []
    return sorted(key for key, count in Counter(map(str, keys)).items() if count > 1)


def expanded(value: Any, parts: Callable[[Any], Iterable[Any]], limit: int) -> int:
    """
    The size of a value with its aliases written out, in characters, about; more than `limit` for an alias of itself.

    `parts` returns the values within a value, and its text. Each value is measured once, so this takes linear time.
    """
    sizes: dict[int, int] = {}

    def size(value: Any) -> int:
        if id(value) not in sizes:
            sizes[id(value)] = limit + 1  # while it is measured: an alias of itself has no end
            sizes[id(value)] = _NODE + sum(len(one) if isinstance(one, str) else size(one) for one in parts(value))
        return sizes[id(value)]

    return size(value)


def parts(node: yaml.Node) -> Iterable[Any]:
    """The nodes within a node, and its text, for `expanded`."""
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return [node.value] if isinstance(node, yaml.ScalarNode) else node.value
