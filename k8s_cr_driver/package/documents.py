# SPDX-License-Identifier: Apache-2.0
"""
YAML and JSON text -> plain JSON values, read as `kubectl` reads them.

`kubectl` resolves scalars by its own mixture of YAML 1.1 and 1.2 (sigs.k8s.io/yaml): `yes` is a boolean and 0777 is
octal, but 22:22 and `=` are text, 1e3 is a number, and a date stays text. PyYAML's loaders differ in the latter four,
and crash the interpreter on deep nesting. So PyYAML parses, and this module decides what a node is worth and what is
refused: whatever JSON cannot say, keys given twice, and aliases that blow up.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

import yaml

from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.objects.fields import walk
from k8s_cr_driver.objects.yaml_nodes import DEPTH_LIMIT, Shallow
from k8s_cr_driver.package.limits import Budget, values

ALIAS_LIMIT = 8 * 1024 * 1024
"""Bytes, about, that aliases may copy within one file."""
KEY_LIMIT = 1024
"""Characters of a key: YAML has the same limit for keys without `?`. The path of each value is made of keys."""
_LONG_KEY = f"a key has more than {KEY_LIMIT:,} characters, the limit; use a shorter one"

_NODE_COST = 64
_DIGITS = 80
"""Digits of the longest text that may be an integer of 64 bits, in base 2 with some zeros before."""
_PLAIN, _STR, _MAP, _SEQ, _MERGE = (f"tag:yaml.org,2002:{name}" for name in ("plain", "str", "map", "seq", "merge"))
_TYPED = {f"tag:yaml.org,2002:{name}" for name in ("int", "float", "bool", "null")}
_WORDS: dict[str, bool | None] = {
    **{case: True for word in ("y", "yes", "true", "on") for case in (word, word.title(), word.upper())},
    **{case: False for word in ("n", "no", "false", "off") for case in (word, word.title(), word.upper())},
    **dict.fromkeys(["", "~", "null", "Null", "NULL"]),
}
_LETTERS = frozenset("yYnN")
_INTEGER = re.compile(r"([-+]?)(?:0[bB]([01]+)|0[xX]([0-9a-fA-F]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_BYTE_ORDER_MARK = re.compile(r"^(---[ \t\r]*(?:#.*)?\n)\ufeff", re.M)
"""One at the start of a later document, as files that are joined have it. Where the first one starts, the caller drops it."""
_TOKENS = re.compile(r'"[^"]*"?|([,\[{])')
"""Of JSON without escaped quotes: the texts, and in the group what begins a value."""
_NO_SPACE = re.compile(r"\S")
_NOT_JSON = re.compile(r"(?i)[-+]?\.(inf|nan)")


class DocumentError(Exception):
    """A text that is not a series of JSON values; `line` counts from 1, 0 if it is not known."""

    def __init__(self, message: str, document: int, line: int = 0) -> None:
        super().__init__(message)
        self.document = document
        self.line = line


def documents(text: str, budget: Budget | None = None) -> Iterator[tuple[int, Any]]:
    """
    The documents of `text`, numbered from 1; empty ones are counted, but left out.

    Raises DocumentError, and InvalidPackage for more values than are left in `budget`, and for long keys of JSON.
    """
    budget = budget or values()
    if text.lstrip()[:1] in ("{", "["):
        try:
            found = _json(text, budget)
        except (ValueError, RecursionError):
            pass  # then it is YAML's flow style, or YAML says what is wrong
        else:
            yield from enumerate(found, 1)
            return
    text = _BYTE_ORDER_MARK.sub(r"\1", text)
    try:
        loader = _Nodes(text, budget)
    except yaml.MarkedYAMLError as error:
        raise DocumentError(str(error.problem), 1) from None
    number, copied = 0, 0
    try:
        while True:
            number += 1
            if not loader.check_node():
                return
            builder = _Builder(copied, budget)
            value = builder.build(loader.get_node())
            copied = builder.copied
            if value is not None:
                yield number, value
    except yaml.MarkedYAMLError as error:
        # Only what the parser says: the snippet of a mark may show a Secret.
        mark = error.problem_mark or error.context_mark
        raise DocumentError(error.problem or "is not YAML", number, mark.line + 1 if mark else 0) from None
    except yaml.YAMLError:
        raise DocumentError("holds a character that YAML does not allow", number) from None
    finally:
        loader.dispose()


def _json(text: str, budget: Budget) -> list[Any]:
    """
    `text` as JSON values, one after another.

    YAML is no superset: it knows no surrogate pairs.
    """
    for token in _TOKENS.finditer(text.replace(r"\\", "").replace(r'\"', "")):
        if token.lastindex:
            budget.spend()
    decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_int=_integer, parse_float=_whole, parse_constant=_refuse)
    found, rest = [], _NO_SPACE.search(text, 0)
    while rest:
        value, end = decoder.raw_decode(text, rest.start())
        found.append(value)
        rest = _NO_SPACE.search(text, end)
    if any(len(path) > DEPTH_LIMIT + 1 for path, _ in walk(found)):
        raise ValueError("it is nested too deeply")
    json.dumps(found, ensure_ascii=False).encode()  # UnicodeEncodeError for half a surrogate pair
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is given twice")
    if max(map(len, found), default=0) > KEY_LIMIT:
        raise InvalidPackage(_LONG_KEY)
    return found


def _integer(text: str) -> int | float:
    """As `kubectl` reads it: an integer of 64 bits, else a float. Python refuses to convert one of 5,000 digits."""
    value = int(text) if len(text) <= _DIGITS else math.inf
    return value if -(2**63) <= value < 2**64 else _float(float(text))


def _whole(text: str) -> int | float:
    return _float(float(text))


def _refuse(text: str) -> Any:
    raise ValueError(text)


def _float(number: float) -> int | float:
    """Whole floats become integers, as Go's JSON writes them."""
    if not math.isfinite(number):
        raise ValueError("infinity has no meaning in JSON")
    return int(number) if number.is_integer() and abs(number) < 1e21 else number


def _problem(message: str, node: yaml.Node) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=message, problem_mark=node.start_mark)


class _Nodes(Shallow, getattr(yaml, "CBaseLoader", yaml.BaseLoader)):  # type: ignore[misc]
    """Text -> nodes. Untagged plain scalars are left undecided."""

    def __init__(self, text: str, budget: Budget) -> None:
        super().__init__(text)
        self._budget = budget

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: tuple[bool, bool]) -> str:
        self._budget.spend()
        if kind is yaml.ScalarNode:
            return (_MERGE if value == "<<" else _PLAIN) if implicit[0] else _STR
        return _MAP if kind is yaml.MappingNode else _SEQ


class _Builder:
    """Nodes -> values. An aliased node is built again for each alias, for values are changed in place later."""

    def __init__(self, copied: int, budget: Budget) -> None:
        self.copied, self._budget = copied, budget
        self._built: set[int] = set()
        self._depth = 0
        self._copying = 0

    def build(self, node: yaml.Node) -> Any:
        alias = id(node) in self._built
        self._built.add(id(node))
        self._copying += alias
        if self._copying:
            self._charge(node)
        if isinstance(node, yaml.ScalarNode):
            value = _scalar(node)
        else:
            self._depth += 1
            if self._depth > DEPTH_LIMIT:
                raise _problem("holds an alias of itself, or is nested too deeply", node)
            value = self._collection(node)
            self._depth -= 1
        self._copying -= alias
        return value

    def _charge(self, node: yaml.Node) -> None:
        self._budget.spend()
        self.copied += _NODE_COST + (len(node.value) if isinstance(node, yaml.ScalarNode) else 0)
        if self.copied > ALIAS_LIMIT:
            raise _problem(
                f"aliases copy more than {ALIAS_LIMIT // 1024 // 1024} MiB; write the values out, or use fewer", node
            )

    def _collection(self, node: yaml.Node) -> Any:
        if node.tag == _SEQ and isinstance(node, yaml.SequenceNode):
            return [self.build(item) for item in node.value]
        if node.tag == _MAP and isinstance(node, yaml.MappingNode):
            return self._mapping(node)
        raise _problem("a tag of YAML (! and a word) has no meaning in JSON; leave it out", node)

    def _mapping(self, node: yaml.MappingNode) -> dict[str, Any]:
        result: dict[str, Any] = {}
        own: set[str] = set()
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                result |= self._merge(value_node)
                continue
            key = _key(key_node)
            if len(key) > KEY_LIMIT:
                raise _problem(_LONG_KEY, key_node)
            if key in own:
                raise _problem(f"the key {key!r} is given twice in one mapping", key_node)
            own.add(key)
            result[key] = self.build(value_node)
        return result

    def _merge(self, node: yaml.Node) -> dict[str, Any]:
        """The value of a merge key `<<`: a mapping, or several of which the first wins."""
        result: dict[str, Any] = {}
        for part in node.value if isinstance(node, yaml.SequenceNode) else [node]:
            value = self.build(part)
            if not isinstance(value, dict):
                raise _problem("the merge key << wants a mapping", part)
            for key, item in value.items():
                result.setdefault(key, item)
        return result


def _key(node: yaml.Node) -> str:
    """
    A mapping's key. A plain integer is its own text, as for `kubectl`: ConfigMaps with ports as keys are common.

    So are `y` and `n`, of which kubectl makes the keys "true" and "false", as nobody who writes a place `{x: 1, y: 2}` wants.
    """
    if isinstance(node, yaml.ScalarNode):
        if node.tag != _STR and node.value in _LETTERS:
            return str(node.value)
        value = _scalar(node)
        if isinstance(value, str):
            return value
        if isinstance(value, int) and str(value) == node.value:
            return str(value)
        raise _problem(f"the key {node.value!r} is not text; write it in quotes", node)
    raise _problem("a key is a list or a mapping; keys must be text", node)


def _scalar(node: yaml.ScalarNode) -> Any:
    text: str = node.value
    if node.tag == _STR:
        return text
    if node.tag in (_PLAIN, _MERGE):
        if text in _WORDS:
            return _WORDS[text]
        first = text[0]
        return _number(text, node) if first in "0123456789+-." else text
    if node.tag in _TYPED:
        value = _WORDS[text] if text in _WORDS else _number(text, node)
        if not isinstance(value, str):
            return value
    # It may be a password that begins with "!", so it is not shown.
    raise _problem("a tag of YAML (! and a word) has no meaning in JSON; leave it out, or write the value in quotes", node)


def _number(text: str, node: yaml.Node) -> int | float | str:
    """`text` as a number if it is one."""
    plain = text.replace("_", "")
    if match := _INTEGER.fullmatch(plain):
        sign, *digits = match.groups()
        part, base = next((part, base) for part, base in zip(digits, (2, 16, 8, 10), strict=True) if part is not None)
        value = int(sign + part, base) if len(part) <= _DIGITS else math.inf
        if -(2**63) <= value < 2**64:
            return value
    if _FLOAT.fullmatch(plain):
        number = float(plain)
        if math.isfinite(number):
            return _float(number)
        raise _problem("the number is beyond 1.8e308, the largest that JSON readers take; write the value in quotes", node)
    if not _NOT_JSON.fullmatch(text):
        return text
    raise _problem("infinity and not-a-number have no meaning in JSON; write the value in quotes", node)
