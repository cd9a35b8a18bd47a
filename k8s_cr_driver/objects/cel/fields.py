# SPDX-License-Identifier: Apache-2.0
"""The fields that an expression of CEL reads, and the parts of it that must all be true."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from k8s_cr_driver.objects.cel.macros import ARGUMENTS
from k8s_cr_driver.objects.cel.syntax import Node


class Field(NamedTuple):
    """A field: the name that it begins with, the rest as it is written, and the part of the tree that reads it."""

    root: str
    rest: str
    node: Node

    @property
    def name(self) -> str:
        """Such as "status.phase"; "" for `self` alone."""
        return self.rest.lstrip(".") if self.root == "self" else self.root + self.rest


def parts(tree: Node) -> Iterator[Node]:
    """The parts between the operators && of an expression."""
    if tree.kind == "&&":
        for part in tree.parts:
            yield from parts(part)
    else:
        yield tree


def fields(tree: Node, bound: frozenset[str] = frozenset()) -> Iterator[Field]:
    """The longest fields that an expression reads, without those of the names in `bound`, and of a macro's variable."""
    if found := field(tree):
        if found.root not in bound:
            yield found
        return
    inner = tree.parts
    if macro := variable(tree):
        yield from fields(inner[0], bound)
        inner, bound = inner[2:], bound | {macro}
    for part in inner:
        yield from fields(part, bound)


def variable(tree: Node) -> str:
    """The variable of a macro such as `all`; "" if the tree is none."""
    is_macro = tree.kind == "call" and tree.value[0] in ARGUMENTS and tree.value[1] and len(tree.parts) > 2
    return str(tree.parts[1].value) if is_macro and tree.parts[1].kind == "name" else ""


def field(tree: Node) -> Field | None:
    """The field that a tree is, if it is one."""
    if tree.kind == "name":
        return Field(str(tree.value), "", tree)
    if tree.kind == "select" and (holder := field(tree.parts[0])):
        return Field(holder.root, f"{holder.rest}.{tree.value[0]}", tree)
    if tree.kind == "index" and tree.parts[1].kind == "literal" and (holder := field(tree.parts[0])):
        return Field(holder.root, f"{holder.rest}[{tree.parts[1].value!r}]", tree)
    return None
