"""Reading fields of an object that may be malformed.

Nothing in a custom resource's status has to have the type that a rule expects: a schema may preserve unknown
fields, and a controller may write what it likes. These readers give an empty value instead of raising.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def mapping(value: Any) -> dict[str, Any]:
    """The value if it is an object with string keys, else an empty one."""
    return value if isinstance(value, dict) and all(isinstance(key, str) for key in value) else {}


def sequence(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def mappings(value: Any) -> Iterator[dict[str, Any]]:
    """The objects in a list that are not empty; whatever else it holds is left out."""
    return filter(None, map(mapping, sequence(value)))


def text(value: Any) -> str:
    """The value if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def integer(value: Any) -> int | None:
    """The value as a whole number, also from a string of digits; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    # int() refuses longer strings with ValueError
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        return int(value)
    return None


def dig(value: Any, *path: str) -> Any:
    """The value at a path of keys; None where the path ends early."""
    for key in path:
        value = mapping(value).get(key)
    return value
