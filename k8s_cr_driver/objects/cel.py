# SPDX-License-Identifier: Apache-2.0
"""Evaluates an expression of the Common Expression Language on an object: `self`, or its fields by their names.

Each call of a `Program` may cost a limited number of steps, whoever wrote the expression: macros pay for each element, and what
reads or makes a text or a list pays for its length. Regular expressions are RE2's, which never goes back.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping
from typing import Any

import re2

from k8s_cr_driver.objects.cel_fields import field, fields, parts, variable
from k8s_cr_driver.objects.cel_syntax import ExpressionError, Node, parse

MOST_STEPS = 20_000
_STEP_OF_TEXT = 64
"""Characters that count as one step."""
_STEP_OF_MATCH = 256
"""Characters times instructions of the pattern that count as one step: RE2 does 40 millions in a second at worst."""
_LONGEST_PATTERN = 256
_MOST_FIELDS, _LONGEST_SHOWN = 4, 80
_MISSING = object()
_MAX_INT = 2**63
_PATTERN_OPTIONS = re2.Options()
_PATTERN_OPTIONS.max_mem = 1 << 20
_PATTERN_OPTIONS.log_errors = False


class EvaluationError(Exception):
    """Why an expression has no value for an object: a field is missing, a type is wrong, it costs too much."""


class CostError(EvaluationError):
    """It costs too much."""


class _Frame:
    __slots__ = ("left", "names", "root")

    def __init__(self, root: Mapping[str, Any], steps: int = MOST_STEPS) -> None:
        self.root, self.left = root, steps
        self.names: dict[str, Any] = {"self": root}

    def pay(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise CostError(f"it takes more than {MOST_STEPS} steps")


_Value = Callable[[_Frame], Any]


class _Optional:
    """An optional value of CEL."""

    __slots__ = ("has", "value")

    def __init__(self, value: Any = None, *, has: bool = False) -> None:
        self.value, self.has = value, has


class Program:
    """A compiled expression that stands after `before` characters, which columns count; ExpressionError if it is none."""

    def __init__(self, text: str, before: int = 0) -> None:
        tree = parse(text, before)
        self.text = text
        self._value = _compile(tree)
        self.fields = tuple(one for one in fields(tree) if one.name)
        """The fields that it reads."""
        self.field = self.fields[0].name if self.fields else ""
        """The first of them, such as "status.phase"; "" if there is none."""
        self._parts = [_Part(part) for part in parts(tree)]

    def evaluate(self, live: Mapping[str, Any]) -> Any:
        """The value for an object; raises EvaluationError."""
        try:
            return self._value(_Frame(live))
        except RecursionError:
            raise EvaluationError("its values are within each other too deeply") from None

    def holds(self, live: Mapping[str, Any]) -> bool:
        """Whether the value is true; raises EvaluationError, also if it is neither true nor false."""
        value = self.evaluate(live)
        if not isinstance(value, bool):
            raise EvaluationError(f"it is {type_name(value)}, not true or false")
        return value


    def unmet(self, live: Mapping[str, Any]) -> tuple[str, str]:
        """The first field of the part that is not true, and what the object has in the fields of it; "" if nobody knows."""
        frame = _Frame(live, MOST_STEPS // 4)
        try:
            part = next((one for one in self._parts if not one.holds(frame)), None)
            return part.read(frame) if part else ("", "")
        except (CostError, RecursionError):
            return "", ""


class _Part:
    """A part of an expression, and the fields that it reads: those of the entry for which a macro `all` is false."""

    __slots__ = ("_body", "_fields", "_list", "_value", "_variable")

    def __init__(self, tree: Node) -> None:
        self._value, self._list = _compile(tree), None
        self._variable = variable(tree) if tree.kind == "call" and tree.value[0] == "all" else ""
        source = field(tree.parts[0]) if self._variable else None
        self._fields = [(one, _compile(one.node)) for one in fields(tree)]
        if source:
            self._body, self._list = _compile(tree.parts[2]), (source.name, _compile(source.node))
            self._fields = [(one, _compile(one.node)) for one in fields(tree.parts[2])]

    def holds(self, frame: _Frame) -> bool:
        return _try(self._value, frame) is True

    def read(self, frame: _Frame) -> tuple[str, str]:
        """The first field and what is in the fields, as clauses."""
        entry = self._entry(frame)
        found: dict[str, str] = {}
        for one, value in self._fields:
            name = (entry and f"{entry}{one.rest}") if one.root == self._variable else one.name
            if name and len(found) < _MOST_FIELDS:
                found[name] = f"{name} {_described(_try(value, frame))}"
        return next(iter(found), ""), ", ".join(found.values())

    def _entry(self, frame: _Frame) -> str:
        """The name of the entry for which `all` is false, to which the variable is set from now on."""
        if self._list is None:
            return ""
        name, source = self._list
        values = _try(source, frame)
        for index, value in enumerate(values if isinstance(values, list) else ()):
            frame.pay(1)
            frame.names[self._variable] = value
            if _try(self._body, frame) is not True:
                return f"{name}[{index}]"
        return ""


def _try(value: _Value, frame: _Frame) -> Any:
    """The value, and what an optional one has; `_MISSING` without one."""
    try:
        found = value(frame)
    except CostError:
        raise
    except EvaluationError:
        return _MISSING
    return (found.value if found.has else _MISSING) if isinstance(found, _Optional) else found


def _described(value: Any) -> str:
    if value is _MISSING:
        return "is not there"
    if isinstance(value, (list, dict)):
        return f"has {len(value)} {'entry' if len(value) == 1 else 'entries'}"
    if value is None or isinstance(value, bool):
        return f"is {'null' if value is None else str(value).lower()}"
    return f"is {str(value)[:_LONGEST_SHOWN]}" if value != "" else "is empty"


def type_name(value: Any) -> str:
    """The type of a value in CEL's words."""
    if value is None:
        return "null"
    names = {bool: "bool", int: "int", float: "double", str: "string", list: "list", dict: "map", _Optional: "optional"}
    return names.get(type(value), type(value).__name__)


def _compile(tree: Node) -> _Value:
    return _COMPILERS.get(tree.kind, _compile_operator)(tree)


def _literal(tree: Node) -> _Value:
    value = tree.value
    if isinstance(value, int) and not isinstance(value, bool) and not -_MAX_INT <= value < _MAX_INT:
        raise ExpressionError(f"column {tree.column}: {value} is no number of 64 bits")
    return lambda frame: value


def _name(tree: Node) -> _Value:
    name = tree.value

    def read(frame: _Frame) -> Any:
        if name in frame.names:
            return frame.names[name]
        if name in frame.root:
            return frame.root[name]
        raise EvaluationError(f"there is no {name}")

    return read


def _select(tree: Node) -> _Value:
    (name, optional), holder = tree.value, _compile(tree.parts[0])

    def read(frame: _Frame) -> Any:
        value = holder(frame)
        if optional or isinstance(value, _Optional):
            return _maybe(value, name)
        if not isinstance(value, dict):
            raise EvaluationError(f"{name} is asked of {type_name(value)}")
        if name not in value:
            raise EvaluationError(f"there is no {name}")
        return value[name]

    return read


def _maybe(value: Any, step: Any) -> _Optional:
    if isinstance(value, _Optional):
        if not value.has:
            return value
        value = value.value
    if isinstance(value, list):
        at = step if isinstance(step, int) and not isinstance(step, bool) and 0 <= step < len(value) else None
        return _Optional() if at is None else _Optional(value[at], has=True)
    if isinstance(value, dict) and isinstance(step, str) and step in value:
        return _Optional(value[step], has=True)
    return _Optional()


def _index(tree: Node) -> _Value:
    holder, step, optional = _compile(tree.parts[0]), _compile(tree.parts[1]), tree.value

    def read(frame: _Frame) -> Any:
        value, at = holder(frame), step(frame)
        if optional or isinstance(value, _Optional):
            return _maybe(value, at)
        found = _maybe(value, at)
        if not found.has:
            raise EvaluationError(f"there is no [{str(at)[:60]}]")
        return found.value

    return read


def _list(tree: Node) -> _Value:
    items = [_compile(part) for part in tree.parts]
    return lambda frame: [item(frame) for item in items]


def _map(tree: Node) -> _Value:
    parts = [_compile(part) for part in tree.parts]

    def build(frame: _Frame) -> Any:
        keys = [key(frame) for key in parts[::2]]
        if not all(isinstance(key, (str, int, bool)) for key in keys):
            raise EvaluationError("a key of a map is neither text nor number")
        return dict(zip(keys, (value(frame) for value in parts[1::2]), strict=True))

    return build


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise EvaluationError(f"{type_name(value)} is not true or false")
    return value


def _not(tree: Node) -> _Value:
    inner = _compile(tree.parts[0])
    return lambda frame: not _boolean(inner(frame))


def _negate(tree: Node) -> _Value:
    inner = _compile(tree.parts[0])
    return lambda frame: _bounded(-_number(inner(frame)))


def _if(tree: Node) -> _Value:
    condition, first, second = map(_compile, tree.parts)
    return lambda frame: first(frame) if _boolean(condition(frame)) else second(frame)


def _logical(tree: Node) -> _Value:
    """Either side decides alone, also if the other has no value (langdef.md, Logical Operators)."""
    left, right = map(_compile, tree.parts)
    decisive = tree.kind == "||"

    def decide(frame: _Frame) -> bool:
        try:
            if _boolean(left(frame)) is decisive:
                return decisive
        except CostError:
            raise
        except EvaluationError:
            if _boolean(right(frame)) is decisive:
                return decisive
            raise
        return _boolean(right(frame))

    return decide


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise EvaluationError(f"{type_name(value)} is no number")
    return value


def _bounded(value: Any) -> Any:
    if isinstance(value, int) and not -_MAX_INT <= value < _MAX_INT:
        raise EvaluationError("a number is larger than 64 bits")
    return value


def _equal(frame: _Frame, one: Any, other: Any) -> bool:
    if isinstance(one, str):
        frame.pay(len(one) // _STEP_OF_TEXT)
        return bool(one == other)
    if isinstance(one, list) and isinstance(other, list):
        frame.pay(1 + len(one))
        return len(one) == len(other) and all(_equal(frame, *pair) for pair in zip(one, other, strict=True))
    if isinstance(one, dict) and isinstance(other, dict):
        frame.pay(1 + len(one))
        return one.keys() == other.keys() and all(_equal(frame, value, other[key]) for key, value in one.items())
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other) if not isinstance(one, (list, dict)) and not isinstance(other, (list, dict)) else False


def _within(frame: _Frame, one: Any, many: Any) -> bool:
    if isinstance(many, dict):
        return isinstance(one, (str, int)) and one in many
    if not isinstance(many, list):
        raise EvaluationError(f"in is asked of {type_name(many)}")
    frame.pay(len(many))
    return any(_equal(frame, one, item) for item in many)


def _compare(compare: Callable[[Any, Any], bool], frame: _Frame, one: Any, other: Any) -> bool:
    if isinstance(one, str) and isinstance(other, str):
        frame.pay(len(one) // _STEP_OF_TEXT)
        return compare(one, other)
    return compare(_number(one), _number(other))


def _add(frame: _Frame, one: Any, other: Any) -> Any:
    if isinstance(one, str) and isinstance(other, str):
        frame.pay((len(one) + len(other)) // _STEP_OF_TEXT)
        return one + other
    if isinstance(one, list) and isinstance(other, list):
        frame.pay(len(one) + len(other))
        return one + other
    return _bounded(_number(one) + _number(other))


def _divide(frame: _Frame, one: Any, other: Any) -> Any:
    del frame
    one, other = _number(one), _number(other)
    if other == 0:
        raise EvaluationError("it divides by zero")
    if isinstance(one, float) or isinstance(other, float):
        return one / other
    return _bounded(abs(one) // abs(other) * (1 if (one < 0) == (other < 0) else -1))


def _modulo(frame: _Frame, one: Any, other: Any) -> Any:
    if isinstance(one, float) or isinstance(other, float):
        raise EvaluationError("% is for whole numbers")
    return one - other * _divide(frame, one, other)


_OPERATORS: Mapping[str, Callable[[_Frame, Any, Any], Any]] = {
    "==": _equal,
    "!=": lambda frame, one, other: not _equal(frame, one, other),
    "<": functools.partial(_compare, operator.lt),
    "<=": functools.partial(_compare, operator.le),
    ">": functools.partial(_compare, operator.gt),
    ">=": functools.partial(_compare, operator.ge),
    "in": _within,
    "+": _add,
    "-": lambda frame, one, other: _bounded(_number(one) - _number(other)),
    "*": lambda frame, one, other: _bounded(_number(one) * _number(other)),
    "/": _divide,
    "%": _modulo,
}


def _compile_operator(tree: Node) -> _Value:
    apply = _OPERATORS[tree.kind]
    left, right = map(_compile, tree.parts)
    return lambda frame: apply(frame, left(frame), right(frame))


def _size(frame: _Frame, value: Any) -> int:
    del frame
    if not isinstance(value, (str, list, dict)):
        raise EvaluationError(f"{type_name(value)} has no size")
    return len(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise EvaluationError(f"{type_name(value)} is no text")
    return value


def _of_text(ask: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose arguments are texts, and which reads them once."""

    def call(frame: _Frame, *values: Any) -> Any:
        texts = [_text(value) for value in values]
        frame.pay(sum(map(len, texts)) // _STEP_OF_TEXT)
        return ask(*texts)

    return call


@functools.lru_cache(maxsize=256)
def _pattern(text: str) -> Any:
    if len(text) > _LONGEST_PATTERN:
        raise EvaluationError(f"a pattern has {len(text)} characters, {_LONGEST_PATTERN} are allowed")
    try:
        return re2.compile(text, _PATTERN_OPTIONS)
    except re2.error as error:
        raise EvaluationError(f"the pattern {text[:60]!r} is not understood: {_decoded(error)}") from None


def _decoded(error: re2.error) -> str:
    said = error.args[0] if error.args else ""
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)


def _matches(frame: _Frame, value: Any, pattern: Any) -> bool:
    frame.pay(200)  # to compile it
    compiled = _pattern(_text(pattern))
    frame.pay(len(_text(value)) * compiled.programsize // _STEP_OF_MATCH)
    return compiled.search(value) is not None


def _to_int(frame: _Frame, value: Any) -> int:
    del frame
    try:
        if isinstance(value, str) and len(value) > 20:
            raise ValueError
        return int(_bounded(int(value)))
    except (TypeError, ValueError, OverflowError):
        raise EvaluationError(f"{type_name(value)} is no whole number") from None


def _to_double(frame: _Frame, value: Any) -> float:
    del frame
    try:
        return float(value[:40] if isinstance(value, str) else value)
    except (TypeError, ValueError, OverflowError):
        raise EvaluationError(f"{type_name(value)} is no number") from None


def _to_string(frame: _Frame, value: Any) -> str:
    del frame
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, int, float)):
        return str(value)
    raise EvaluationError(f"{type_name(value)} has no text")


def _split(frame: _Frame, value: Any, separator: Any) -> list[str]:
    frame.pay(1 + len(_text(value)))
    return list(value) if separator == "" else value.split(_text(separator))


def _replace(frame: _Frame, value: Any, old: Any, new: Any) -> str:
    frame.pay(1 + len(_text(value)) * (1 + len(_text(new))) // _STEP_OF_TEXT)
    return str(value.replace(_text(old), new))


def _join(frame: _Frame, values: Any, separator: Any = "") -> str:
    if not isinstance(values, list):
        raise EvaluationError(f"{type_name(values)} is no list")
    frame.pay(len(values) + sum(len(_text(one)) + len(_text(separator)) for one in values) // _STEP_OF_TEXT)
    return str(separator.join(values))


def _or_value(frame: _Frame, value: Any, default: Any) -> Any:
    del frame
    if not isinstance(value, _Optional):
        raise EvaluationError(f"{type_name(value)} is no optional value")
    return value.value if value.has else default


def _has_value(frame: _Frame, value: Any) -> bool:
    del frame
    return isinstance(value, _Optional) and value.has


def _value_of(frame: _Frame, value: Any) -> Any:
    if not _has_value(frame, value):
        raise EvaluationError("an optional value is not there")
    return value.value


_FUNCTIONS: Mapping[tuple[str, int], Callable[..., Any]] = {
    ("size", 1): _size,
    ("startsWith", 2): _of_text(str.startswith),
    ("endsWith", 2): _of_text(str.endswith),
    ("contains", 2): _of_text(lambda one, other: other in one),
    ("lowerAscii", 1): _of_text(str.lower),
    ("upperAscii", 1): _of_text(str.upper),
    ("trim", 1): _of_text(str.strip),
    ("indexOf", 2): _of_text(str.find),
    ("matches", 2): _matches,
    ("split", 2): _split,
    ("replace", 3): _replace,
    ("join", 1): _join,
    ("join", 2): _join,
    ("orValue", 2): _or_value,
    ("hasValue", 1): _has_value,
    ("value", 1): _value_of,
    ("int", 1): _to_int,
    ("uint", 1): _to_int,
    ("double", 1): _to_double,
    ("string", 1): _to_string,
    ("dyn", 1): lambda frame, value: value,
}
_GLOBAL = frozenset({"int", "uint", "double", "string", "dyn", "size", "matches"})
_MACROS = {"all": (2, 2), "exists": (2, 2), "exists_one": (2, 2), "filter": (2, 2), "map": (2, 3)}


def _call(tree: Node) -> _Value:
    name, is_method = tree.value
    if name == "has" and not is_method:
        return _has(tree)
    if is_method and name in _MACROS:
        return _macro(tree, name)
    function = _FUNCTIONS.get((name, len(tree.parts)))
    if function is None or (not is_method and name not in _GLOBAL):
        counts = sorted(count - is_method for known, count in _FUNCTIONS if known == name)
        wanted = f"{name} takes {' or '.join(map(str, counts))} arguments" if counts else f"there is no function {name}"
        if counts and not is_method and name not in _GLOBAL:
            wanted = f"{name} is written after its value: VALUE.{name}(...)"
        raise ExpressionError(f"column {tree.column}: {wanted}")
    if name == "matches" and tree.parts[1].kind == "literal":
        _check_pattern(tree.parts[1])
    arguments = [_compile(part) for part in tree.parts]
    return lambda frame: function(frame, *[argument(frame) for argument in arguments])


def _check_pattern(literal: Node) -> None:
    try:
        _pattern(_text(literal.value))
    except EvaluationError as error:
        raise ExpressionError(f"column {literal.column}: {error}") from None


def _has(tree: Node) -> _Value:
    if len(tree.parts) == 1 and tree.parts[0].kind == "name":
        root = str(tree.parts[0].value)  # the object's own fields have their names alone
        return lambda frame: root in frame.names or root in frame.root
    if len(tree.parts) != 1 or tree.parts[0].kind != "select":
        raise ExpressionError(f"column {tree.column}: has() takes one field, such as has(status.phase)")
    (field,), name = tree.parts, tree.parts[0].value[0]
    holder = _compile(field.parts[0])

    def ask(frame: _Frame) -> bool:
        value = holder(frame)
        if isinstance(value, _Optional):
            return _maybe(value, name).has
        if not isinstance(value, dict):
            raise EvaluationError(f"{name} is asked of {type_name(value)}")
        return name in value

    return ask


def _macro(tree: Node, name: str) -> _Value:
    source, *arguments = tree.parts
    least, most = _MACROS[name]
    if not least <= len(arguments) <= most or arguments[0].kind != "name":
        raise ExpressionError(f"column {tree.column}: {name} takes a name and an expression, such as {name}(one, one > 0)")
    variable, over = str(arguments[0].value), _compile(source)
    bodies = [_compile(argument) for argument in arguments[1:]]
    cost = 1 + sum(argument.size for argument in arguments[1:])
    finish = _FINISH[name]

    def run(frame: _Frame) -> Any:
        values = over(frame)
        if not isinstance(values, (list, dict)):
            raise EvaluationError(f"{name} is asked of {type_name(values)}")
        outer = frame.names
        try:
            return finish(_each(frame, values, variable, cost), bodies, frame)
        finally:
            frame.names = outer

    return run


def _each(frame: _Frame, values: Any, variable: str, cost: int) -> Any:
    frame.names = names = dict(frame.names)
    for value in values:
        frame.pay(cost)
        names[variable] = value
        frame.names = names
        yield value


def _holds_for(each: Any, body: _Value, frame: _Frame, decisive: bool) -> bool:
    """Whether the body is `decisive` for one of the values; what has no value matters only if none decides."""
    problem: EvaluationError | None = None
    for _ in each:
        try:
            if _boolean(body(frame)) is decisive:
                return True
        except CostError:
            raise
        except EvaluationError as error:
            problem = problem or error
    if problem:
        raise problem
    return False


def _all(each: Any, bodies: list[_Value], frame: _Frame) -> bool:
    return not _holds_for(each, bodies[0], frame, False)


def _exists(each: Any, bodies: list[_Value], frame: _Frame) -> bool:
    return _holds_for(each, bodies[0], frame, True)


def _filter(each: Any, bodies: list[_Value], frame: _Frame) -> list[Any]:
    return [value for value in each if _boolean(bodies[0](frame))]


def _mapped(each: Any, bodies: list[_Value], frame: _Frame) -> list[Any]:
    return [bodies[-1](frame) for _ in each if len(bodies) == 1 or _boolean(bodies[0](frame))]


_FINISH: Mapping[str, Callable[[Any, list[_Value], _Frame], Any]] = {
    "all": _all,
    "exists": _exists,
    "exists_one": lambda each, bodies, frame: len(_filter(each, bodies, frame)) == 1,
    "filter": _filter,
    "map": _mapped,
}
_COMPILERS: Mapping[str, Callable[[Node], _Value]] = {
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
