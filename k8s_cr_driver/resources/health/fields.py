# SPDX-License-Identifier: Apache-2.0
"""Reading fields of an object that may be malformed.

Nothing in a custom resource's status has to have the type that a rule expects: a schema may preserve unknown
fields, and a controller may write what it likes. These readers give an empty value instead of raising.
"""

from __future__ import annotations

from typing import Any

Mapping = dict[str, Any]


def mapping(value: Any) -> Mapping:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def sequence(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def mappings(value: Any) -> list[Mapping]:
    """The objects in a list that are not empty; whatever else it holds is left out."""
    return [item for item in value if item and isinstance(item, dict)] if isinstance(value, list) else []


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
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value
