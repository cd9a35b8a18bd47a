# SPDX-License-Identifier: Apache-2.0
"""Expressions as rules ask them: whether one is true of an object, and what the object has where it is not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from k8s_cr_driver.objects.cel.compiler import compiled
from k8s_cr_driver.objects.cel.fields import COMPUTED, Field, field, fields, parts, variable
from k8s_cr_driver.objects.cel.syntax import Node, parse
from k8s_cr_driver.objects.cel.values import (
    MOST_STEPS,
    CostError,
    EvaluationError,
    Frame,
    OptionalValue,
    Value,
    type_name,
)
from k8s_cr_driver.redaction import names_secret

_MOST_FIELDS, _LONGEST_SHOWN = 4, 80
_MISSING = object()


class Program:
    """A compiled expression that stands after `before` characters, which columns count; ExpressionError if it is none."""

    def __init__(self, text: str, before: int = 0) -> None:
        tree = parse(text, before)
        self.text = text
        self._value = compiled(tree)
        self.fields = tuple(one for one in fields(tree) if one.name)
        """The fields that it reads."""
        self.field = self.fields[0].name if self.fields else ""
        """The first of them, such as "status.phase"; "" if there is none."""
        self._parts = [_Part(part) for part in parts(tree)]

    def evaluate(self, live: Mapping[str, Any]) -> Any:
        """The value for an object; raises EvaluationError."""
        try:
            return self._value(Frame(live))
        except RecursionError:
            raise CostError("its values are within each other too deeply") from None

    def holds(self, live: Mapping[str, Any]) -> bool:
        """Whether the value is true; raises EvaluationError, also if it is neither true nor false."""
        value = self.evaluate(live)
        if not isinstance(value, bool):
            raise EvaluationError(f"it is {type_name(value)}, not true or false")
        return value

    def unmet(self, live: Mapping[str, Any]) -> tuple[str, str]:
        """The first field of the part that is not true, and what the object has in the fields of it; "" if nobody knows."""
        frame = Frame(live, MOST_STEPS // 4)
        try:
            part = next((one for one in self._parts if not one.holds(frame)), None)
            return part.read(frame) if part else ("", "")
        except (CostError, RecursionError):
            return "", ""


class _Part:
    """A part of an expression, and the fields that it reads.

    Of a macro `all` these are the fields of the part that is not true of the first entry, or key, for which it is false.
    """

    __slots__ = ("_body", "_fields", "_list", "_of_entry", "_sides", "_value", "_variable")

    def __init__(self, tree: Node) -> None:
        self._value, self._list = compiled(tree), None
        self._variable = variable(tree) if tree.kind == "call" and tree.value[0] == "all" else ""
        source = field(tree.parts[0]) if self._variable else None
        self._fields = [_Read(one) for one in fields(tree, computed=True)]
        self._sides = [compiled(part) for part in tree.parts] if tree.kind == "==" else []
        if source:
            self._body, self._list = compiled(tree.parts[2]), (source.name, compiled(source.node))
            self._of_entry = [_Part(part) for part in parts(tree.parts[2])]

    def holds(self, frame: Frame) -> bool:
        return _try(self._value, frame) is True

    def read(self, frame: Frame, aliases: Mapping[str, str] | None = None) -> tuple[str, str]:
        """The first field and what is in the fields, as clauses; `aliases`: names for the variables of macros."""
        named = {**(aliases or {})}
        if self._list and (entry := self._entry(frame)):
            named[self._variable] = entry
            if part := next((one for one in self._of_entry if not one.holds(frame)), None):
                return part.read(frame, named)
        found: dict[str, str] = {}
        for one in self._fields:
            if (name := one.name(frame, named)) and len(found) < _MOST_FIELDS:
                found[name] = f"{name} {described(_try(one.value, frame), name)}"
        return next(iter(found), ""), ", ".join(found.values()) + self._mixed(frame)

    def _mixed(self, frame: Frame) -> str:
        """What a comparison of a number with a text says of both, which can never be equal."""
        kinds = {type(_try(side, frame)) for side in self._sides}
        return "; a text is compared with a number" if str in kinds and kinds & {int, float} else ""

    def _entry(self, frame: Frame) -> str:
        """The name of the entry, or key, for which `all` is false, to which the variable is set from now on."""
        assert self._list is not None
        name, source = self._list
        values = _try(source, frame)
        for index, value in enumerate(values if isinstance(values, (list, dict)) else ()):
            frame.pay(1)
            frame.names[self._variable] = value
            if _try(self._body, frame) is not True:
                return f"a key of {name}" if isinstance(values, dict) else f"{name}[{index}]"
        return ""


class _Read:
    """A field as a part reads it."""

    __slots__ = ("_field", "_indexes", "value")

    def __init__(self, one: Field) -> None:
        self._field, self.value = one, compiled(one.node)
        self._indexes = [compiled(index) for index in one.indexes]

    def name(self, frame: Frame, aliases: Mapping[str, str]) -> str:
        """Such as "status.members['a'].state"; "" for a variable of another macro, and if an index has no value."""
        one = self._field
        name = aliases[one.root] + one.rest if one.root in aliases else one.name
        for index in self._indexes:
            if (at := _try(index, frame)) is _MISSING:
                return name.partition(COMPUTED)[0]
            name = name.replace(COMPUTED, f"[{str(at)[:_LONGEST_SHOWN]!r}]" if isinstance(at, str) else f"[{at}]", 1)
        return name


def _try(value: Value, frame: Frame) -> Any:
    """The value, and what an optional one has; `_MISSING` without one."""
    try:
        found = value(frame)
    except CostError:
        raise
    except EvaluationError:
        return _MISSING
    return (found.value if found.has else _MISSING) if isinstance(found, OptionalValue) else found


def described(value: Any, name: str) -> str:
    """The value of a field of that name, as a clause without its subject; no secret."""
    if value is _MISSING:
        return "is not there"
    if isinstance(value, (list, dict)):
        return f"has {len(value)} {'entry' if len(value) == 1 else 'entries'}"
    if value is None or isinstance(value, bool):
        return f"is {'null' if value is None else str(value).lower()}"
    if value != "" and names_secret(name.rpartition(".")[2].strip("]'")):
        return "is not shown"
    return f"is {str(value)[:_LONGEST_SHOWN]}" if value != "" else "is empty"
