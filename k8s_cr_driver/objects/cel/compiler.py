# SPDX-License-Identifier: Apache-2.0
"""A tree of CEL becomes a function of the object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from k8s_cr_driver.objects.cel.fields import field
from k8s_cr_driver.objects.cel.functions import FUNCTIONS, GLOBAL, pattern_of
from k8s_cr_driver.objects.cel.macros import ARGUMENTS, FINISH, each
from k8s_cr_driver.objects.cel.operators import OPERATORS
from k8s_cr_driver.objects.cel.syntax import ExpressionError, Node
from k8s_cr_driver.objects.cel.values import (
    MAX_INT,
    CostError,
    EvaluationError,
    Frame,
    OptionalValue,
    Value,
    boolean,
    bounded,
    maybe,
    number,
    text_of,
    type_name,
)

_FIELDS = ("apiVersion", "kind", "metadata", "spec", "status", "data")
"""Fields that an object may have and that an author does not mean as a text."""


def compiled(tree: Node) -> Value:
    """The function of a tree; ExpressionError, with the column, if the tree calls what there is not."""
    return _COMPILERS.get(tree.kind, _compile_operator)(tree)


def _literal(tree: Node) -> Value:
    value = tree.value
    if isinstance(value, int) and not isinstance(value, bool) and not -MAX_INT <= value < MAX_INT:
        raise ExpressionError(f"column {tree.column}: {value} is no number of 64 bits")
    return lambda frame: value


def _name(tree: Node) -> Value:
    name = tree.value

    def read(frame: Frame) -> Any:
        if name in frame.names:
            return frame.names[name]
        if name in frame.root:
            return frame.root[name]
        hint = "" if name in _FIELDS else f" in the object; write '{name}' if it is a text"
        raise EvaluationError(f"there is no {name}{hint}")

    return read


def _select(tree: Node) -> Value:
    (name, optional), holder = tree.value, compiled(tree.parts[0])
    path = found.name if (found := field(tree)) else name

    def read(frame: Frame) -> Any:
        value = holder(frame)
        if optional or isinstance(value, OptionalValue):
            return maybe(value, name)
        if not isinstance(value, dict):
            raise EvaluationError(f"{name} is asked of {type_name(value)}")
        if name not in value:
            raise EvaluationError(f"there is no {path}")
        return value[name]

    return read


def _index(tree: Node) -> Value:
    holder, step, optional = compiled(tree.parts[0]), compiled(tree.parts[1]), tree.value
    is_written = tree.parts[1].kind == "literal"

    def read(frame: Frame) -> Any:
        value, at = holder(frame), step(frame)
        if optional or isinstance(value, OptionalValue):
            return maybe(value, at)
        found = maybe(value, at)
        if not found.has:
            raise EvaluationError(f"there is no [{str(at)[:60]}]" if is_written else "there is no such entry")
        return found.value

    return read


def _list(tree: Node) -> Value:
    items = [compiled(part) for part in tree.parts]
    return lambda frame: [item(frame) for item in items]


def _map(tree: Node) -> Value:
    parts = [compiled(part) for part in tree.parts]

    def build(frame: Frame) -> Any:
        keys = [key(frame) for key in parts[::2]]
        if not all(isinstance(key, (str, int, bool)) for key in keys):
            raise EvaluationError("a key of a map is neither text nor number")
        return dict(zip(keys, (value(frame) for value in parts[1::2]), strict=True))

    return build


def _not(tree: Node) -> Value:
    inner = compiled(tree.parts[0])
    return lambda frame: not boolean(inner(frame))


def _negate(tree: Node) -> Value:
    inner = compiled(tree.parts[0])
    return lambda frame: bounded(-number(inner(frame)))


def _if(tree: Node) -> Value:
    condition, first, second = map(compiled, tree.parts)
    return lambda frame: first(frame) if boolean(condition(frame)) else second(frame)


def _logical(tree: Node) -> Value:
    """Either side decides alone, also if the other has no value (langdef.md, Logical Operators)."""
    left, right = map(compiled, tree.parts)
    decisive = tree.kind == "||"

    def decide(frame: Frame) -> bool:
        try:
            if boolean(left(frame)) is decisive:
                return decisive
        except CostError:
            raise
        except EvaluationError:
            if boolean(right(frame)) is decisive:
                return decisive
            raise
        return boolean(right(frame))

    return decide


def _compile_operator(tree: Node) -> Value:
    apply = OPERATORS[tree.kind]
    left, right = map(compiled, tree.parts)
    return lambda frame: apply(frame, left(frame), right(frame))


def _call(tree: Node) -> Value:
    name, is_method = tree.value
    if name == "has" and not is_method:
        return _has(tree)
    if is_method and name in ARGUMENTS:
        return _macro(tree, name)
    function = FUNCTIONS.get((name, len(tree.parts)))
    if function is None or (not is_method and name not in GLOBAL):
        counts = sorted(count - is_method for known, count in FUNCTIONS if known == name)
        wanted = f"{name} takes {' or '.join(map(str, counts))} arguments" if counts else f"there is no function {name}"
        if counts and not is_method and name not in GLOBAL:
            wanted = f"{name} is written after its value: VALUE.{name}(...)"
        raise ExpressionError(f"column {tree.column}: {wanted}")
    if name == "matches" and tree.parts[1].kind == "literal":
        _check_pattern(tree.parts[1])
    arguments = [compiled(part) for part in tree.parts]
    return lambda frame: function(frame, *[argument(frame) for argument in arguments])


def _check_pattern(literal: Node) -> None:
    try:
        pattern_of(text_of(literal.value))
    except EvaluationError as error:
        raise ExpressionError(f"column {literal.column}: {error}") from None


def _has(tree: Node) -> Value:
    if len(tree.parts) == 1 and tree.parts[0].kind == "name":
        root = str(tree.parts[0].value)  # the object's own fields have their names alone
        return lambda frame: root in frame.names or root in frame.root
    if len(tree.parts) != 1 or tree.parts[0].kind != "select":
        raise ExpressionError(f"column {tree.column}: has() takes one field, such as has(status.phase)")
    name, holder = tree.parts[0].value[0], compiled(tree.parts[0].parts[0])

    def ask(frame: Frame) -> bool:
        value = holder(frame)
        if isinstance(value, OptionalValue):
            return maybe(value, name).has
        if not isinstance(value, dict):
            raise EvaluationError(f"{name} is asked of {type_name(value)}")
        return name in value

    return ask


def _macro(tree: Node, name: str) -> Value:
    source, *arguments = tree.parts
    least, most = ARGUMENTS[name]
    if not least <= len(arguments) <= most or arguments[0].kind != "name":
        raise ExpressionError(f"column {tree.column}: {name} takes a name and an expression, such as {name}(one, one > 0)")
    variable, over = str(arguments[0].value), compiled(source)
    bodies = [compiled(argument) for argument in arguments[1:]]
    cost = 1 + sum(argument.size for argument in arguments[1:])
    finish = FINISH[name]

    def run(frame: Frame) -> Any:
        values = over(frame)
        if not isinstance(values, (list, dict)):
            raise EvaluationError(f"{name} is asked of {type_name(values)}")
        outer = frame.names
        try:
            return finish(each(frame, values, variable, cost), bodies, frame)
        finally:
            frame.names = outer

    return run


_COMPILERS: Mapping[str, Callable[[Node], Value]] = {
    "literal": _literal,
    "name": _name,
    "select": _select,
    "index": _index,
    "list": _list,
    "map": _map,
    "not": _not,
    "negate": _negate,
    "if": _if,
    "&&": _logical,
    "||": _logical,
    "call": _call,
}
