# SPDX-License-Identifier: Apache-2.0
"""A retry repeats the request of its operation: what an error recommends to set in a request, it asks of a new one."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "k8s_cr_driver"
FLAG = re.compile(r"additionalParams [a-z-]+: true")
NEW = re.compile(r"\bnew (request|terminate|change of package)\b")


def texts(path: Path) -> list[str]:
    """The texts of a module with their expressions as {}, docstrings among them."""
    tree = ast.parse(path.read_text())
    joined = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    parts = {id(part) for node in joined for part in node.values}
    whole = ["".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values) for node in joined]
    alone = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in parts]
    return whole + [node.value for node in alone if isinstance(node.value, str)]


FILES = sorted(ROOT.rglob("*.py"))
REMEDIES = [(path.relative_to(ROOT).as_posix(), text) for path in FILES for text in texts(path) if FLAG.search(text)]


@pytest.mark.parametrize(("module", "text"), REMEDIES, ids=lambda value: value[:60])
def test_a_flag_is_recommended_for_a_new_request(module: str, text: str) -> None:
    assert NEW.search(text), f"{module}: {text}"


def test_there_are_such_remedies() -> None:
    assert len(REMEDIES) >= 5
