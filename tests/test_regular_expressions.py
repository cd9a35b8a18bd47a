# SPDX-License-Identifier: Apache-2.0
"""No regular expression of the driver repeats a repetition: such a one takes exponential time for some texts."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import k8s_cr_driver

try:
    from re import _parser as parser
except ImportError:  # Python 3.10
    import sre_parse as parser

CODE = Path(k8s_cr_driver.__file__).parent
METHODS = ("compile", "search", "match", "fullmatch", "sub", "split", "findall", "finditer")


def patterns() -> Iterator[Any]:
    """Each pattern that is a constant, and of others their constant parts without the names between."""
    for path in sorted(CODE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            called = node.func if isinstance(node, ast.Call) else None
            if isinstance(called, ast.Attribute) and called.attr in METHODS and ast.unparse(called.value) == "re":
                assert isinstance(node, ast.Call)
                yield pytest.param(_text(node.args[0]), id=f"{path.relative_to(CODE)}:{node.lineno}")


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "9" for part in node.values)
    return "9"


def unbounded(tree: Any, within: bool = False) -> Iterator[str]:
    """The repetitions without an upper limit that are in another such one."""
    for operation, value in tree:
        name, inner = str(operation), within
        if name in ("MAX_REPEAT", "MIN_REPEAT"):
            inner = value[1] is parser.MAXREPEAT or within
            if within and value[1] is parser.MAXREPEAT:
                yield str(value)
        parts = value if isinstance(value, (list, tuple)) else [value]
        for part in parts:
            for one in part if isinstance(part, list) else [part]:
                if isinstance(one, parser.SubPattern):
                    yield from unbounded(one, inner)


@pytest.mark.parametrize("pattern", patterns())
def test_no_repetition_is_repeated_without_limit(pattern: str) -> None:
    assert list(unbounded(parser.parse(pattern))) == []


def test_a_repeated_repetition_is_found() -> None:
    assert list(unbounded(parser.parse(r"x(?:a|b+c)*")))
    assert list(unbounded(parser.parse(r"(?:[^x]|y.)*"))) == []
