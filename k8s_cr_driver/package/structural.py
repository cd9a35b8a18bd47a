# SPDX-License-Identifier: Apache-2.0
"""
What the API server makes of a custom resource before it validates it, by the structural schema of its version.

Unknown fields are dropped, nulls are dropped where the schema has no room for them, and defaults are filled in; see
"Pruning", "Nullable" and "Defaulting" in Kubernetes' documentation of custom resources, and the packages `pruning` and
`defaulting` of k8s.io/apiextensions-apiserver. A node is a part of `openAPIV3Schema` as it was written. A malformed
keyword counts as absent: the API server refuses such a definition, and says why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from k8s_cr_driver.objects.fields import Path, mapping
from k8s_cr_driver.objects.keys import Object

Node = Mapping[str, Any]

_META = frozenset({"apiVersion", "kind", "metadata"})


class Unknown(NamedTuple):
    """A field that the schema does not have, and those that it has in its place."""

    path: Path
    known: Mapping[str, Any]
    """The schema's own properties: each of many fields with a copy would fill the memory."""


class TooMuch(Exception):
    """A schema and an object together are more work than `Budget` allows."""


class Budget:
    """Limits the work for one package: a schema and an object of a few kilobytes each can make hours of it."""

    def __init__(self, steps: int) -> None:
        self._left = steps
        self._spent = set[str]()

    def spend(self, steps: int = 1) -> None:
        self._left -= steps
        if self._left < 0:
            raise TooMuch

    def spend_once(self, what: str, steps: int) -> None:
        """For what is done again without a cost."""
        if what not in self._spent:
            self._spent.add(what)
            self.spend(steps)


def child(node: Node, name: str) -> Node | None:
    """The node of a field; None if the schema says nothing of its contents."""
    properties = mapping(node, "properties")
    if name in properties:
        return mapping(properties, name)
    additional = node.get("additionalProperties")
    return additional if isinstance(additional, Mapping) else None


def items(node: Node | None) -> Node | None:
    """The node of a list's entries."""
    found = (node or {}).get("items")
    return found if isinstance(found, Mapping) else None


def is_nullable(node: Node) -> bool:
    return node.get("nullable") is True


def unknown_fields(node: Node | None, value: Any, path: Path = (), *, kept: bool = False) -> Iterator[Unknown]:
    """
    The fields of `value` that the API server would drop.

    `kept`: unknown fields of a list are kept, and therefore those of its entries.
    """
    if isinstance(value, list):
        kept = kept or _keeps_unknown(node)
        for index, entry in enumerate(value):
            yield from unknown_fields(items(node), entry, (*path, index), kept=kept)
    elif isinstance(value, dict):
        meta = _META if not path or (node or {}).get("x-kubernetes-embedded-resource") is True else ()
        for name, item in value.items():
            if name not in meta:
                yield from _unknown_field(node, name, item, (*path, name), kept)


def _unknown_field(node: Node | None, name: str, value: Any, path: Path, kept: bool) -> Iterator[Unknown]:
    properties = mapping(node, "properties")
    if node is not None and (name in properties or node.get("additionalProperties")):
        yield from unknown_fields(child(node, name), value, path)
    elif not (kept or _keeps_unknown(node) or (node is not None and node.get("type") != "object")):
        yield Unknown(path, properties)


def _keeps_unknown(node: Node | None) -> bool:
    return node is not None and node.get("x-kubernetes-preserve-unknown-fields") is True


def drop_nulls(node: Node | None, value: Any) -> None:
    """
    Remove from `value`, in place, the fields that are null and may not be; those with a default will take it.

    Entries of lists stay. So does what the schema says nothing of: in the values of a Helm chart a null removes a default.
    """
    if node is None:
        return
    if isinstance(value, list):
        for entry in value:
            drop_nulls(items(node), entry)
    elif isinstance(value, dict):
        for name in [name for name, item in value.items() if item is None and _is_dropped(node, name)]:
            del value[name]
        for name, item in value.items():
            drop_nulls(child(node, name), item)


def _is_dropped(node: Node, name: str) -> bool:
    """Whether a null in the field `name` is dropped. One in a map whose entries have a default keeps its key."""
    found = child(node, name)
    if found is None or is_nullable(found):
        return False
    return name in mapping(node, "properties") or found.get("default") is None


def with_defaults(node: Node | None, value: Any, budget: Budget) -> Any:
    """A copy of `value` with the schema's defaults. Follows `drop_nulls`. Raises TooMuch."""
    if node is None:
        return value
    budget.spend()
    if isinstance(value, list):
        entries = items(node)
        return [with_defaults(entries, _or_default(entries, entry), budget) for entry in value]
    if isinstance(value, dict):
        return _with_default_fields(node, value, budget)
    return value


def _with_default_fields(node: Node, value: Object, budget: Budget) -> Object:
    properties = mapping(node, "properties")
    budget.spend(len(properties) // 10)
    defaults = {name: mapping(properties, name).get("default") for name in properties if name not in value}
    given = {name: _or_default(child(node, name), item) for name, item in value.items()}
    given |= {name: default for name, default in defaults.items() if default is not None}
    return {name: with_defaults(child(node, name), item, budget) for name, item in given.items()}


def _or_default(node: Node | None, value: Any) -> Any:
    return node.get("default") if value is None and node is not None and not is_nullable(node) else value
