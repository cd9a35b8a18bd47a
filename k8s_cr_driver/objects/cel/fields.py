# SPDX-License-Identifier: Apache-2.0
"""The fields that an expression of CEL reads, and the parts of it that must all be true."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from k8s_cr_driver.objects.cel.macros import ARGUMENTS
from k8s_cr_driver.objects.cel.syntax import Node

COMPUTED = "[\0]"
"""In the rest of a field, the place of an index that only an evaluation knows."""


class Field(NamedTuple):
    """A field: the name that it begins with, the rest as it is written, and the part of the tree that reads it."""

    root: str
    rest: str
    node: Node
    indexes: tuple[Node, ...] = ()
    """The parts of the tree that compute the indexes at COMPUTED."""

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


def fields(tree: Node, bound: frozenset[str] = frozenset(), *, computed: bool = False) -> Iterator[Field]:
    """
    The longest fields that an expression reads, without those of the names in `bound`, and of a macro's variable.

    `computed`: also with indexes that an evaluation knows; else the part before such an index is the field.
    """
    found = field(tree, computed=computed)
    if found and any(one.root in bound for index in found.indexes for one in fields(index)):
        found = field(tree)
    if found:
        if found.root not in bound:
            yield found
        return
    inner = tree.parts
    if macro := variable(tree):
        yield from fields(inner[0], bound, computed=computed)
        inner, bound = inner[2:], bound | {macro}
    for part in inner:
        yield from fields(part, bound, computed=computed)


def variable(tree: Node) -> str:
    """The variable of a macro such as `all`; "" if the tree is none."""
    is_macro = tree.kind == "call" and tree.value[0] in ARGUMENTS and tree.value[1] and len(tree.parts) > 2
    return str(tree.parts[1].value) if is_macro and tree.parts[1].kind == "name" else ""


def field(tree: Node, *, computed: bool = False) -> Field | None:
    """The field that a tree is, if it is one; `computed`: also with indexes that an evaluation knows."""
    if tree.kind == "name":
        return Field(str(tree.value), "", tree)
    if tree.kind not in ("select", "index") or (holder := field(tree.parts[0], computed=computed)) is None:
        return None
    if tree.kind == "select":
        return Field(holder.root, f"{holder.rest}.{tree.value[0]}", tree, holder.indexes)
    index = tree.parts[1]
    if index.kind == "literal":
        return Field(holder.root, f"{holder.rest}[{index.value!r}]", tree, holder.indexes)
    return Field(holder.root, holder.rest + COMPUTED, tree, (*holder.indexes, index)) if computed else None
