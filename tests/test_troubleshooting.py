# SPDX-License-Identifier: Apache-2.0
"""The document on troubleshooting quotes messages as the code has them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import k8s_cr_driver

CODE = Path(k8s_cr_driver.__file__).parent
DOCUMENT = CODE.parent / "doc" / "source" / "troubleshooting.rst"

FOREIGN = (
    "exceeded quota",
    "requested",
    "Request entity too large",
    "request is too large",
    "Too long",
    "may not be more than",
    "Some content in the namespace has finalizers remaining",
    "resource instances",
    "field is immutable",
    "conflict with",
    "ImagePullBackOff",
    "CrashLoopBackOff",
    "Failure due to conductor processing error.",
)
"""What Kubernetes, etcd and Tacker say."""

PLACEHOLDER = re.compile(
    r"\.\.\.|\. |[(){}:;,$\"]"
    r"|\S*\d\S*|\S+/\S+|\b[A-Z][A-Z_.]*\b"
    r"|\b(?:APIService|ConfigMap|Namespace|Tacker's own driver|objects(?= not))\b"
)


def quotes() -> Iterator[str]:
    """The messages that begin a paragraph or are terms of a definition list."""
    for line in DOCUMENT.read_text().splitlines():
        if line.startswith("``"):
            yield from re.findall(r"``(.+?)``", line)


def phrases(message: str) -> list[str]:
    """The parts of a message between placeholders: two words and more, and reasons of conditions."""
    found = (phrase.strip() for phrase in PLACEHOLDER.split(message))
    return [phrase for phrase in found if phrase not in FOREIGN and re.search(r"\w \w|[a-z][A-Z]", phrase)]


def literals(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@pytest.fixture(scope="module")
def code() -> str:
    return "\n".join(text for path in CODE.rglob("*.py") for text in literals(ast.parse(path.read_text())))


@pytest.mark.parametrize("message", quotes())
def test_a_quoted_message_is_one_of_the_code(message: str, code: str) -> None:
    assert [phrase for phrase in phrases(message) if phrase not in code] == []
