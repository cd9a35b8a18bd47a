# SPDX-License-Identifier: Apache-2.0
"""Reads fields of objects that nobody has checked: what is not of the expected form counts as absent."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from k8s_cr_driver.objects.keys import GroupKind, Object, kind_of

SIMILAR_LIMIT = 100
"""Characters of a name for which a similar one is looked for."""


def field(value: Any, *path: str) -> Any:
    """The value at `path` in nested mappings; None where there is none."""
    for step in path:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def entries(value: Any, *path: str) -> list[Mapping[str, Any]]:
    """The mappings in the list at `path`."""
    found = field(value, *path)
    return [entry for entry in found if isinstance(entry, Mapping)] if isinstance(found, list) else []


def mapping(value: Any, *path: str) -> Mapping[str, Any]:
    """The mapping at `path`, never None."""
    found = field(value, *path)
    return found if isinstance(found, Mapping) else {}


def texts(value: Any, *path: str) -> list[str]:
    """The strings in the list at `path`."""
    found = field(value, *path)
    return [entry for entry in found if isinstance(entry, str)] if isinstance(found, list) else []


def pod_spec(obj: Object) -> Mapping[str, Any] | None:
    """The pod spec of a Pod, or of any kind that has a pod template where Deployments have it; None if it has none."""
    spec = mapping(obj, "spec") if kind_of(obj) == GroupKind("", "Pod") else mapping(obj, "spec", "template", "spec")
    return spec if isinstance(spec.get("containers"), list) else None


def type_name(value: Any) -> str:
    """What JSON calls the type of `value`, with its article."""
    names = {str: "text", bool: "a boolean", int: "an integer", float: "a number", dict: "a mapping", list: "a list"}
    return names.get(type(value), "null")


def similar(name: str, known: Iterable[str]) -> str:
    """The one of `known` that `name` may be a slip for, else "". A long name has none: the comparison is quadratic."""
    near = difflib.get_close_matches(name, known, n=1) if len(name) <= SIMILAR_LIMIT else []
    return near[0] if near else ""
