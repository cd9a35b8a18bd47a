# SPDX-License-Identifier: Apache-2.0
"""Label and field selectors of LIST and WATCH."""

import re
from collections.abc import Callable
from functools import lru_cache

from tests.fake_api import errors
from tests.fake_api.objects import Object, dig

Match = Callable[[Object], bool]
_SET_BASED = re.compile(r"^(\S+)\s+(in|notin)\s*\(([^)]*)\)$")
_REQUIREMENT = re.compile(r",(?![^(]*\))")


def selector(query: dict[str, str], namespace: str) -> Match:
    """Whether an object is in `namespace` (all if empty) and fits labelSelector and fieldSelector."""
    matches = [*_labels(query.get("labelSelector", "")), *_fields(query.get("fieldSelector", ""))]

    def fits(obj: Object) -> bool:
        in_namespace = not namespace or obj["metadata"].get("namespace") == namespace
        return in_namespace and all(match(obj) for match in matches)
    return fits


@lru_cache(maxsize=256)
def _labels(text: str) -> list[Match]:
    return [_label(part.strip()) for part in _REQUIREMENT.split(text) if part.strip()]


def _label(part: str) -> Match:
    def labels(obj: Object) -> dict[str, str]:
        return obj["metadata"].get("labels") or {}

    if found := _SET_BASED.match(part):
        name, operator, values = found.group(1), found.group(2), {v.strip() for v in found.group(3).split(",")}
        if operator == "in":
            return lambda obj: labels(obj).get(name) in values
        return lambda obj: labels(obj).get(name) not in values
    if "!=" in part:
        name, value = (side.strip() for side in part.split("!=", 1))
        return lambda obj: labels(obj).get(name) != value
    if "=" in part:
        name, value = (side.strip() for side in part.replace("==", "=").split("=", 1))
        return lambda obj: labels(obj).get(name) == value
    if part.startswith("!"):
        return lambda obj: part[1:].strip() not in labels(obj)
    if " " in part:
        raise errors.bad_request(f'unable to parse requirement: found \'{part}\', expected: in, notin, =, ==, !=, gt, lt')
    return lambda obj: part in labels(obj)


@lru_cache(maxsize=256)
def _fields(text: str) -> list[Match]:
    return [_field(part.strip()) for part in text.split(",") if part.strip()]


def _field(part: str) -> Match:
    path, operator, value = part.partition("!=" if "!=" in part else "=")
    steps = path.split(".")
    wanted = value.lstrip("=")

    def equal(obj: Object) -> bool:
        return str(dig(obj, *steps, default="")) == wanted
    if operator == "!=":
        return lambda obj: not equal(obj)
    return equal
