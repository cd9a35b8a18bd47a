# SPDX-License-Identifier: Apache-2.0
"""
Whether an expression of CEL in a CustomResourceDefinition fits the schema that it stands in.

The types of `self` and `oldSelf` are those that the schema declares, as the API server has them ("Validation rules" in the
documents of Kubernetes). What a schema leaves open has no type here, and nothing is said of it: a good rule is never refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from k8s_cr_driver.objects.cel.syntax import ExpressionError, Node
from k8s_cr_driver.objects.fields import mapping, similar, text

Type = Mapping[str, Any] | None
"""A part of a schema; None for what is not known, also for what only a function knows."""
_SCALARS = frozenset({"string", "integer", "number", "boolean"})
_BOOLEAN, _INTEGER, _TEXT = {"type": "boolean"}, {"type": "integer"}, {"type": "string"}
_OPEN = ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string", "x-kubernetes-embedded-resource")
_CONVERTED = frozenset({"byte", "date", "date-time", "datetime", "duration"})
_META = ("apiVersion", "kind", "metadata")
_COMPARED = frozenset({"==", "!=", "<", "<=", ">", ">="})
_LOGICAL = frozenset({"&&", "||", "not"})
_RESULTS: Mapping[str, Type] = dict.fromkeys((*_COMPARED, *_LOGICAL, "in"), _BOOLEAN)
_FUNCTIONS: Mapping[str, Type] = {
    **dict.fromkeys(("has", "matches", "startsWith", "endsWith", "contains", "exists", "all", "exists_one"), _BOOLEAN),
    "size": _INTEGER,
    "int": _INTEGER,
    "string": _TEXT,
}
"""What functions return that have one type of result."""
_SAME = frozenset({"orValue", "value", "filter", "or"})
"""Methods that return what they are called on, or what an optional one has."""
_MACROS: Mapping[str, int] = {
    **dict.fromkeys(("all", "exists", "exists_one", "existsOne", "filter", "map", "optMap", "optFlatMap", "sortBy"), 1),
    **dict.fromkeys(("transformList", "transformMap", "transformMapEntry"), 2),
}
"""The least number of variables."""
_TWO = frozenset({"all", "exists", "exists_one", "existsOne"})
"""Macros that may have two variables, and one expression."""
_NAMES = frozenset(
    {"self", "oldSelf", "int", "uint", "double", "bool", "string", "bytes", "list", "map", "null_type", "type", "dyn"}
)
_ESCAPED = {"__underscores__": "__", "__dot__": ".", "__dash__": "-", "__slash__": "/"}
_ESCAPE = re.compile("|".join(_ESCAPED))
_WORD = re.compile(r"__([a-z]+)__")


def check(tree: Node, schema: Mapping[str, Any], *, wanted: str = "boolean", optional_old: bool = False) -> None:
    """ExpressionError, with the column, for a field that `schema` does not have and for values that are never comparable.

    `wanted`: the type of the result. `optional_old`: oldSelf is an optional value.
    """
    names: dict[str, Type] = {"self": schema, "oldSelf": None if optional_old else schema}
    found = _scalar(_type(tree, names))
    if found and found != wanted:
        raise ExpressionError(f"column {tree.column}: the result is {found}, and must be {wanted}")


def _type(tree: Node, names: Mapping[str, Type]) -> Type:
    """The type of a part; raises ExpressionError for one that has none."""
    match tree.kind:
        case "literal":
            return {str: _TEXT, bool: _BOOLEAN, int: _INTEGER}.get(type(tree.value))
        case "name":
            return _named(tree, names)
        case "select":
            name, is_optional = tree.value
            return _selected(_type(tree.parts[0], names), name, tree.column + 1 + is_optional)
        case "index":
            holder, _ = (_type(part, names) for part in tree.parts)
            return _entry(holder)
        case "call":
            return _called(tree, names)
    types = [_type(part, names) for part in tree.parts]
    if tree.kind in _COMPARED:
        _check_comparable(tree, *map(_scalar, types))
    if tree.kind in _LOGICAL or tree.kind == "if":
        for part, found in list(zip(tree.parts, types, strict=True))[: 1 if tree.kind == "if" else 2]:
            _check_boolean(part, _scalar(found))
    if tree.kind == "if":
        return types[1] if types[1] is types[2] else None
    return _RESULTS.get(tree.kind)


def _named(tree: Node, names: Mapping[str, Type]) -> Type:
    name = str(tree.value)
    if name in names:
        return names[name]
    if name in _NAMES:
        return None
    fields = mapping(names["self"], "properties")
    hint = f"; write self.{name}" if name in fields else _hint(name, [*names, *_NAMES])
    raise ExpressionError(f"column {tree.column}: there is no {name}{hint}")


def _selected(holder: Type, name: str, column: int) -> Type:
    if holder is None or any(holder.get(key) for key in _OPEN):
        return None
    if _scalar(holder):
        raise ExpressionError(f"column {column}: {name} is asked of {_scalar(holder)}, which has no fields")
    if isinstance(additional := holder.get("additionalProperties"), Mapping):
        return additional
    fields = mapping(holder, "properties")
    if holder.get("type") != "object" or not fields or additional:
        return None
    field = _unescaped(name)
    if field in fields:
        return mapping(fields, field)
    if field in _META:
        return None
    raise ExpressionError(f"column {column}: the schema has no field {field} here{_hint(field, fields)}")


def _unescaped(name: str) -> str:
    """The name of a field that CEL could not write: `__dash__` and its like, and its own words."""
    word = _WORD.fullmatch(name)
    return word[1] if word and name not in _ESCAPED else _ESCAPE.sub(lambda match: _ESCAPED[match[0]], name)


def _entry(holder: Type) -> Type:
    if holder is None or any(holder.get(key) for key in _OPEN):
        return None
    found = holder.get("items") if holder.get("type") == "array" else holder.get("additionalProperties")
    return found if isinstance(found, Mapping) else None


def _called(tree: Node, names: Mapping[str, Type]) -> Type:
    name, is_method = tree.value
    if not is_method:
        for one in tree.parts:
            _type(one, names)
        return _FUNCTIONS.get(name)
    holder, *arguments = tree.parts
    if holder.kind == "name" and holder.value not in names:
        return _of_library(tree, names, str(holder.value), arguments)  # such as math.greatest(...)
    over = _type(holder, names)
    bound, bodies = _variables(name, arguments, over)
    for one in bodies:
        _type(one, {**names, **bound})
    return over if name in _SAME else _FUNCTIONS.get(name)


def _of_library(tree: Node, names: Mapping[str, Type], library: str, arguments: Sequence[Node]) -> Type:
    if (library, tree.value[0]) == ("cel", "bind") and len(arguments) == 3 and arguments[0].kind == "name":
        value = _type(arguments[1], names)
        return _type(arguments[2], {**names, str(arguments[0].value): value})
    for one in arguments:
        _type(one, names)
    return None


def _variables(macro: str, arguments: Sequence[Node], over: Type) -> tuple[dict[str, Type], Sequence[Node]]:
    """The variables of a macro with their types, and what is evaluated with them. Two are an index or a key, and a value."""
    count = 2 if macro in _TWO and len(arguments) == 3 else _MACROS.get(macro, 0)
    variables = [str(one.value) for one in arguments[:count] if one.kind == "name"]
    if not count or len(variables) < count or len(arguments) <= count:
        return {}, arguments
    if macro in ("optMap", "optFlatMap"):
        return dict.fromkeys(variables, over), arguments[count:]
    is_list = over is not None and over.get("type") == "array"
    key = (_INTEGER if is_list else _TEXT) if over is not None else None
    types = [key, _entry(over)] if count == 2 else [_entry(over) if over is None or is_list else _TEXT]
    return dict(zip(variables, types, strict=True)), arguments[count:]


def _check_comparable(tree: Node, one: str, other: str) -> None:
    numbers = {"integer", "number"}
    if one and other and one != other and {one, other} != numbers:
        raise ExpressionError(f"column {tree.column}: {tree.kind} compares {one} with {other}, which is never possible")


def _check_boolean(tree: Node, found: str) -> None:
    if found not in ("", "boolean"):
        raise ExpressionError(f"column {tree.column}: {found} stands where true or false must be")


def _scalar(found: Type) -> str:
    """The type of a value that has no parts; "" for others, and for texts that are times or bytes in CEL."""
    if found is None or any(found.get(key) for key in _OPEN) or text(found, "format") in _CONVERTED:
        return ""
    kind = text(found, "type")
    return kind if kind in _SCALARS else ""


def _hint(name: str, known: Iterable[str]) -> str:
    near = similar(name, known)
    return f"; did you mean {near}?" if near else ""
