# SPDX-License-Identifier: Apache-2.0
"""
Values against the value validations of a structural schema, as the API server decides (k8s.io/kube-openapi, `validate`).

Not by a library for JSON Schema: the API server takes nulls, defaults, numbers and lists of a set otherwise, and a
library resolves `$ref` over the network and gives `pattern` to a backtracking engine. Formats, CEL rules and what is in
a `metadata` are left to the API server, and so is all that follows a keyword of the wrong type.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from k8s_cr_driver.objects.fields import Path, entries, mapping, texts
from k8s_cr_driver.package import patterns
from k8s_cr_driver.package.structural import Budget, Node, child, is_nullable, items

Keyword = tuple[type | tuple[type, ...], type | tuple[type, ...], Callable[[Any, Any], bool]]
"""The types of value that a keyword speaks of, those of its bound, and whether a value is within it."""

_NUMBER = (int, float)
_KEYS = "x-kubernetes-list-map-keys"
_LISTS = ("enum", "required", "allOf", "anyOf", "oneOf", _KEYS)
"""Keywords whose lists are looked through for each value."""
_REASONS = 4
"""Violations reported of each alternative of `anyOf` and `oneOf`."""


class Violation(NamedTuple):
    """`keyword` of the schema is not met at `path`. `value` is for comparison, and never shown: it may be a secret."""

    path: Path
    keyword: str
    bound: Any
    value: Any = None
    reasons: tuple[Violation, ...] = ()


def _is_multiple(value: float, factor: float) -> bool:
    """As kube-openapi computes it, so that 0.3 is a multiple of 0.1, and nothing a multiple of 0."""
    if factor <= 0:
        return False
    try:
        quotient = 1 / factor * value if factor < 1 else value / _bound(value, factor)
        return abs(quotient - round(quotient)) <= 1e-9 * max(1.0, abs(quotient))
    except (OverflowError, ValueError):  # a factor of 5e-324 makes infinity, and of zero no number
        return True


def _bound(value: float, bound: float) -> float:
    """The bound of an integer loses its fraction in kube-openapi."""
    return int(bound) if isinstance(value, int) else bound


_KEYWORDS: Mapping[str, Keyword] = {
    "pattern": (str, str, lambda value, bound: patterns.found_in(bound, value)),
    "minimum": (_NUMBER, _NUMBER, lambda value, bound: value >= _bound(value, bound)),
    "maximum": (_NUMBER, _NUMBER, lambda value, bound: value <= _bound(value, bound)),
    "multipleOf": (_NUMBER, _NUMBER, _is_multiple),
    "minLength": (str, int, lambda value, bound: len(value) >= bound),
    "maxLength": (str, int, lambda value, bound: len(value) <= bound),
    "minItems": (list, int, lambda value, bound: len(value) >= bound),
    "maxItems": (list, int, lambda value, bound: len(value) <= bound),
    "minProperties": (dict, int, lambda value, bound: len(value) >= bound),
    "maxProperties": (dict, int, lambda value, bound: len(value) <= bound),
}
_EXCLUSIVE: Mapping[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "exclusiveMinimum": ("minimum", lambda value, bound: value > _bound(value, bound)),
    "exclusiveMaximum": ("maximum", lambda value, bound: value < _bound(value, bound)),
}
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": _NUMBER,
}
_ADDITIONS = frozenset({"required", "minLength", "minItems", "minProperties", "anyOf", "oneOf", "not"})
"""What an object may miss that a mutating webhook will complete: the API server validates after it."""


STEPS_OF_PATTERN, STEPS_OF_LONG_PATTERN = 4_000, 40_000
"""Of the budget, for the compilation of a pattern: no more are compiled for a package than `patterns.KEPT`, `KEPT_LONG`."""


class Validation:
    """`completed`: a mutating webhook may complete the objects. Every method raises `TooMuch`, and yields lazily."""

    def __init__(self, budget: Budget, *, completed: bool = False) -> None:
        self._budget = budget
        self._left_out = _ADDITIONS if completed else frozenset()

    def violations(self, node: Node | None, value: Any, path: Path = ()) -> Iterator[Violation]:
        """What `node` does not allow of `value`, which has its defaults already."""
        self._budget.spend()
        if node is None:
            return
        listed = sum(len(bound) for bound in map(node.get, _LISTS) if isinstance(bound, list))
        self._budget.spend(listed // 20 + (len(value) // 100 if isinstance(value, str) else 0))
        if types := self._wrong_type(node, value):
            yield Violation(path, "type", types, value)
            return
        enum = node.get("enum")
        if enum and isinstance(enum, list) and isinstance(value, dict | list):
            self._budget.spend(_size(value) * len(enum) // 5)  # it may differ from each at its end only
        if not _is_in(value, enum):
            yield Violation(path, "enum", enum, value)
        if value is None:
            return
        if isinstance(pattern := node.get("pattern"), str):
            self._budget.spend_once(pattern, STEPS_OF_LONG_PATTERN if len(pattern) > patterns.LONG else STEPS_OF_PATTERN)
        yield from (found for found in _unmet(node, value, path) if found.keyword not in self._left_out)
        yield from (found for found in self._combined(node, value, path) if found.keyword not in self._left_out)
        yield from self._inside(node, value, path)

    def _wrong_type(self, node: Node, value: Any) -> list[str]:
        """The types that `value` should have; empty if it has one of them."""
        types = ["integer", "string"] if node.get("x-kubernetes-int-or-string") is True else [node.get("type")]
        names = [name for name in types if isinstance(name, str)]
        if value is None:
            return [] if is_nullable(node) else names
        return [] if any(_is_of(value, name) for name in names) else names

    def _combined(self, node: Node, value: Any, path: Path) -> Iterator[Violation]:
        for branch in entries(node, "allOf"):
            yield from self.violations(branch, value, path)
        for keyword in ("anyOf", "oneOf"):
            failures = [tuple(islice(self.violations(one, value, path), _REASONS)) for one in entries(node, keyword)]
            fitting = failures.count(())
            if failures and (fitting == 0 or (keyword == "oneOf" and fitting > 1)):
                reasons = tuple(reason for failure in failures for reason in failure) if fitting == 0 else ()
                yield Violation(path, keyword, None, reasons=reasons)
        forbidden = node.get("not")
        if isinstance(forbidden, Mapping) and next(self.violations(forbidden, value, path), None) is None:
            yield Violation(path, "not", None)

    def _inside(self, node: Node, value: Any, path: Path) -> Iterator[Violation]:
        if isinstance(value, dict):
            if "required" not in self._left_out:
                yield from (Violation((*path, name), "required", None) for name in texts(node, "required") if name not in value)
            for name, item in value.items():
                yield from self.violations(child(node, name), item, (*path, name))
        elif isinstance(value, list):
            self._budget.spend(len(value) * len(texts(node, _KEYS)) // 4)
            yield from (Violation((*path, index), "unique", key) for index, key in _repeated(node, value))
            for index, entry in enumerate(value):
                yield from self.violations(items(node), entry, (*path, index))


def _size(value: Any) -> int:
    """How many values it has."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(_size, inner))


def _is_of(value: Any, name: str) -> bool:
    """Whether `value` is of the type `name`; a type that does not exist is left to the API server."""
    if isinstance(value, bool):
        return name == "boolean" or name not in _TYPES
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES.get(name, object))


def _is_in(value: Any, allowed: Any) -> bool:
    """Whether an enum allows `value`. kube-openapi converts it to the type of the bound first: 1.5 is in [1]."""
    if not isinstance(allowed, list) or not allowed:
        return True
    if value is None:
        return False
    return value in allowed or (isinstance(value, float) and any(type(one) is int and one == int(value) for one in allowed))


def _unmet(node: Node, value: Any, path: Path) -> Iterator[Violation]:
    """Only of the keywords that concern `value` alone, and no part of it."""
    if isinstance(value, bool):
        return
    for keyword, (types, bounds, is_met) in _KEYWORDS.items():
        bound = node.get(keyword)
        if isinstance(bound, bounds) and isinstance(value, types) and not is_met(value, bound):
            yield Violation(path, keyword, bound)
    for exclusive, (keyword, is_met) in _EXCLUSIVE.items():
        bound = node.get(keyword) if node.get(exclusive) is True else None
        if isinstance(bound, _NUMBER) and isinstance(value, _NUMBER) and not is_met(value, bound):
            yield Violation(path, exclusive, bound)


def _repeated(node: Node, value: list[Any]) -> Iterator[tuple[int, str]]:
    """(index, names of the merge keys) of the entries of a set or a map that an earlier entry equals; "" for a set."""
    identities: Iterable[Any]
    match node.get("x-kubernetes-list-type"):
        case "set":
            keys, identities = [], value
        case "map":
            keys = texts(node, _KEYS)
            identities = ({key: mapping(entry)[key] for key in keys if key in mapping(entry)} for entry in value)
        case _:
            return
    seen: set[str] = set()
    for index, identity in enumerate(identities):
        text = json.dumps(identity, sort_keys=True)
        if text in seen:
            yield index, ", ".join(keys)
        seen.add(text)
