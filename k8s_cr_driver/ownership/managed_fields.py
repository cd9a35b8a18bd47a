"""Who manages which fields of an object: its `managedFields`, and how one manager succeeds another.

Server-side apply removes what an applier no longer names, and refuses what another manager holds. So a successor needs the
entries of its predecessor as its own. client-go's csaupgrade does the same for those who leave `kubectl apply`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from k8s_cr_driver.objects.keys import Object

_INHERITED = ("", "scale")
"""Subresources whose fields are also written through the object itself; `status` stays with who writes it."""


def succeeded(entries: Sequence[Object], intree_driver: str, manager: str) -> list[Object] | None:
    """
    The managedFields in which `manager` has applied what `predecessor` has created, updated or scaled; None without such.

    An applier has one entry, of one API version; what the predecessor has written in another belongs to nobody then.
    """
    theirs = [entry for entry in entries if _is_update(entry, intree_driver)]
    if not theirs:
        return None
    ours = [entry for entry in entries if (entry["manager"], entry["operation"]) == (manager, "Apply")]
    first = [*ours, *theirs][0]
    fields = [entry["fieldsV1"] for entry in (*ours, *theirs) if entry["apiVersion"] == first["apiVersion"]]
    joined = {**first, "manager": manager, "operation": "Apply", "fieldsV1": functools.reduce(_union, fields)}
    joined.pop("subresource", None)
    return [joined, *(entry for entry in entries if entry not in theirs and entry not in ours)]


def _is_update(entry: Object, manager: str) -> bool:
    written = (entry["manager"], entry["operation"]) == (manager, "Update")
    return written and entry.get("subresource", "") in _INHERITED


def _union(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Of two FieldsV1. A field without children is a member; one with children is a member if "." is among them."""
    joined = {**one, **other}
    for step in one.keys() & other.keys():
        joined[step] = _union(one[step], other[step])
    if joined and not (one and other):
        joined["."] = {}
    return joined
