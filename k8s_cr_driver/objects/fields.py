# SPDX-License-Identifier: Apache-2.0
"""Reads fields of objects that nobody has checked: what is not of the expected form counts as absent.

A schema may preserve unknown fields, and a controller may write what it likes into a status. The readers take a value and a
path of keys in it, and return an empty value instead of raising. Each walks the path by itself, since a call more would take as
long as the walk: a judgement of readiness reads some forty fields.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from k8s_cr_driver.objects.keys import GroupKind, Object, kind_of

SIMILAR_LIMIT = 100
"""Characters of a name for which a similar one is looked for."""
SIMILAR_COUNT = 5000
"""Names among which a similar one is looked for."""
Path = tuple[str | int, ...]
"""The keys and indices that lead to a value."""
_LONGEST_INTEGER = 19
"""Digits that are read as a number: int() refuses very long ones, and no count has more."""


class ListEntry(str):
    """A step of a path into a list: to its entry of this `name`."""

    __slots__ = ()


def field(value: Any, *path: str) -> Any:
    """The value at `path` in nested mappings, and lists where a step is a `ListEntry`; None where there is none."""
    for step in path:
        value = value.get(step) if isinstance(value, dict) else _entry(value, step)
    return value


def _entry(value: Any, step: str) -> Any:
    if not isinstance(step, ListEntry):
        return None
    return next((entry for entry in entries(value) if entry.get("name") == step), None)


def mapping(value: Any, *path: str) -> dict[str, Any]:
    """The mapping at `path`, never None."""
    for step in path:
        value = value.get(step) if isinstance(value, dict) else _entry(value, step)
    return value if isinstance(value, dict) else {}


def sequence(value: Any, *path: str) -> list[Any]:
    """The list at `path`, never None."""
    for step in path:
        value = value.get(step) if isinstance(value, dict) else _entry(value, step)
    return value if isinstance(value, list) else []


def entries(value: Any, *path: str) -> list[dict[str, Any]]:
    """The mappings in the list at `path`."""
    for step in path:
        value = value.get(step) if isinstance(value, dict) else _entry(value, step)
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def text(value: Any, *path: str) -> str:
    """The string at `path`, never None."""
    for step in path:
        value = value.get(step) if isinstance(value, dict) else _entry(value, step)
    return value if isinstance(value, str) else ""


def integer(value: Any, *path: str) -> int | None:
    """The whole number at `path`, also of a string of digits; None for anything else."""
    for step in path:
        value = value.get(step) if isinstance(value, dict) else _entry(value, step)
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _LONGEST_INTEGER:
        return int(value)
    return None


def walk(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """(path, value) of `value` itself and of all within it, in the order in which it is written."""
    yield path, value
    waiting = [(path, _inner(value))]
    while waiting:
        path, inner = waiting[-1]
        for step, item in inner:
            yield (*path, step), item
            if isinstance(item, (dict, list)):
                waiting.append(((*path, step), _inner(item)))
                break
        else:
            waiting.pop()


def _inner(value: Any) -> Iterator[tuple[str | int, Any]]:
    return iter(value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ())


def shown(path: Path) -> str:
    """A path as errors name it: `spec.ports[0].name`. "*" is any entry of a list."""
    return "".join(f"[{step}]" if isinstance(step, int) or step == "*" else f".{step}" for step in path).removeprefix(".")


def uid_of(live: Any) -> str:
    return str(field(live, "metadata", "uid"))


def texts(value: Any, *path: str) -> list[str]:
    """The strings in the list at `path`."""
    return [entry for entry in sequence(value, *path) if isinstance(entry, str)]


def pod_spec(obj: Object) -> dict[str, Any] | None:
    """The pod spec of a Pod, or of any kind that has a pod template where Deployments have it; None if it has none."""
    spec = mapping(obj, "spec") if kind_of(obj) == GroupKind("", "Pod") else mapping(obj, "spec", "template", "spec")
    return spec if isinstance(spec.get("containers"), list) else None


def type_name(value: Any) -> str:
    """What JSON calls the type of `value`, with its article."""
    names = {str: "text", bool: "a boolean", int: "an integer", float: "a number", dict: "a mapping", list: "a list"}
    return names.get(type(value), "null")


def similar(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """The one of `known` that `name` may be a slip for, else "". A long name is none: the comparison is quadratic."""
    short = [one for one in islice(known, SIMILAR_COUNT) if len(one) <= SIMILAR_LIMIT]
    near = difflib.get_close_matches(name, short, n=1, cutoff=cutoff) if len(name) <= SIMILAR_LIMIT else []
    return near[0] if near else ""
