# SPDX-License-Identifier: Apache-2.0
"""The part of kubectl's JSONPath that names fields: `{.status.phase}`, `[0]`, `[*]`, `['a.b']`, `[?(@.type=="Ready")]`.

What it does not read (`..`, ranges, unions, arithmetic) is an error with its column. What it finds is limited.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from k8s_cr_driver.objects.cel import ExpressionError
from k8s_cr_driver.objects.cel.values import digits

LONGEST = 1024
MOST_FOUND = 1000
_STEP = re.compile(
    r"""\.(?P<field>(?:[A-Za-z0-9_-]|\\.)+)
    |\[(?P<index>-?[0-9]{1,9})\]
    |(?P<all>\[\*\]|\.\*)
    |\[(?P<quoted>'[^']*'|"[^"]*")\]
    |\[\?\(\s*@(?P<path>(?:\.(?:[A-Za-z0-9_-]|\\.)+){1,32})\s*(?P<operator>==|!=)\s*
        (?P<value>'[^']*'|"[^"]*"|[A-Za-z0-9_.-]+)\s*\)\]""",
    re.VERBOSE,
)

Step = Callable[[Any], list[Any]]


class Path:
    """A compiled path after `start` characters, which columns count; ExpressionError if it is none. `text` is as given."""

    def __init__(self, text: str, start: int = 0) -> None:
        if len(text) > LONGEST:
            raise ExpressionError(f"it has {len(text)} characters, {LONGEST} are allowed")
        self.text = text
        inner, before = text.strip(), start + 1
        if inner.startswith("{"):
            if not inner.endswith("}"):
                raise ExpressionError(f"column {start + len(text) + 1}: }} is expected at the end")
            inner, before = inner[1:-1], start + 2
        inner = inner.removeprefix("$")
        if inner[:1] not in (".", "["):
            inner, before = f".{inner}", before - 1
        self._steps: list[Step] = []
        steps: list[str | int] = []
        place = 0
        while place < len(inner):
            match = _STEP.match(inner, place)
            if match is None:
                raise ExpressionError(f"column {before + place}: {inner[place : place + 20]!r} is no field of a JSONPath")
            self._steps.append(_step(match))
            steps.append(_name(match) if match["field"] or match["quoted"] else 0)
            place = match.end()
        if not self._steps:
            raise ExpressionError(f"column {start + 1}: a field is expected")
        self.steps = tuple(steps)
        """The names of fields, and 0 for any entry of a list or mapping."""

    def find(self, live: Any) -> list[Any]:
        """The values at the path, at most MOST_FOUND."""
        found = [live]
        for step in self._steps:
            found = [inner for value in found for inner in step(value)][:MOST_FOUND]
        return found


def _step(match: re.Match[str]) -> Step:
    if match["all"]:
        return _members
    if match["index"]:
        index = int(match["index"])
        return lambda value: value[index:][:1] if isinstance(value, list) and -len(value) <= index < len(value) else []
    if match["path"]:
        return _filter(_names(match["path"]), match["operator"] == "==", _unquoted(match["value"]))
    name = _name(match)
    return lambda value: [value[name]] if isinstance(value, dict) and name in value else []


def _name(match: re.Match[str]) -> str:
    return _plain(match["field"]) if match["field"] else match["quoted"][1:-1]


def _members(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []


def _filter(path: list[str], equal: bool, wanted: str) -> Step:
    def keep(one: Any) -> bool:
        for name in path:
            if not isinstance(one, dict) or name not in one:
                return False
            one = one[name]
        return (as_text(one) == wanted) is equal

    return lambda value: [one for one in _members(value) if keep(one)]


def _names(path: str) -> list[str]:
    return [_plain(name) for name in re.findall(r"\.((?:[A-Za-z0-9_-]|\\.)+)", path)]


def _plain(name: str) -> str:
    return re.sub(r"\\(.)", r"\1", name)


def _unquoted(value: str) -> str:
    return value[1:-1] if value[0] in "'\"" else value


def as_text(value: Any) -> str | None:
    """A value as it is compared; None for an object, a list or null, which kubectl compares with nothing."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return digits(value)
    return value if isinstance(value, str) else None
