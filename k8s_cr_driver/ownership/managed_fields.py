# SPDX-License-Identifier: Apache-2.0
"""Transfer of an object's `managedFields` from one field manager to another.

Server-side apply removes fields that a manager no longer applies, and reports a conflict for fields that another manager
owns. So a new manager needs the entries of the former one. client-go's csaupgrade does the same for `kubectl apply`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from k8s_cr_driver.objects.keys import Object

_INHERITED = ("", "scale")
"""Subresources whose fields are also fields of the object itself; `status` stays with its writer."""


def succeeded(entries: Sequence[Object], intree_driver: str, manager: str) -> list[Object] | None:
    """
    The managedFields with `manager` as the applier of what `intree_driver` created, updated or scaled; None if nothing.

    An applier has one entry, of one API version; fields written in another version have no owner then.
    """
    theirs = [entry for entry in entries if _is_update(entry, intree_driver)]
    if not theirs:
        return None
    ours = [entry for entry in entries if (entry["manager"], entry["operation"]) == (manager, "Apply")]
    first = [*ours, *theirs][0]
    fields = [entry["fieldsV1"] for entry in (*ours, *theirs) if entry["apiVersion"] == first["apiVersion"]]
    joined = {**first, "manager": manager, "operation": "Apply", "fieldsV1": functools.reduce(union, fields)}
    joined.pop("subresource", None)
    return [joined, *(entry for entry in entries if entry not in theirs and entry not in ours)]


def _is_update(entry: Object, manager: str) -> bool:
    written = (entry["manager"], entry["operation"]) == (manager, "Update")
    return written and entry.get("subresource", "") in _INHERITED


def union(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Of two FieldsV1. A field without children is a member; one with children is a member if "." is among them."""
    joined = {**one, **other}
    for step in one.keys() & other.keys():
        joined[step] = union(one[step], other[step])
    if joined and not (one and other):
        joined["."] = {}
    return joined
