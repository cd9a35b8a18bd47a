# SPDX-License-Identifier: Apache-2.0
"""The inventory of an instance in Tacker's record, in case somebody deletes it on the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from k8s_cr_driver.journal.stored_form import NOTHING, InventoryContent, known_uids
from k8s_cr_driver.objects.keys import GroupKind, ObjectKey


def form(namespace: str | None, content: InventoryContent) -> dict[str, Any]:
    """As Tacker stores it: JSON."""
    return {
        "namespace": namespace,
        "kinds": sorted(map(str, content.kinds)),
        "namespaces": sorted(content.namespaces),
        "adopted": sorted(map(list, content.adopted)),
        "adopted-uids": content.uids_in_order(),
        "uid": content.uid,
        "created": content.created,
    }


def parse(recorded: dict[str, Any] | None) -> tuple[str | None, InventoryContent]:
    """Its namespace and content; (None, NOTHING) for a record without one."""
    if recorded is None:
        return None, NOTHING
    adopted = [ObjectKey(*one) for one in recorded["adopted"]]
    return recorded["namespace"], InventoryContent(
        frozenset(map(GroupKind.parse, recorded["kinds"])),
        frozenset(recorded["namespaces"]),
        frozenset(adopted),
        _known_uids(adopted, recorded.get("adopted-uids")),
        uid=recorded.get("uid") or "",
        created=recorded.get("created") or "",
    )


def _known_uids(adopted: Sequence[ObjectKey], uids: Any) -> frozenset[tuple[ObjectKey, str]]:
    """None if the list does not fit, as when somebody has edited the record: the keys alone say then what was adopted."""
    fits = isinstance(uids, list) and len(uids) == len(adopted) and all(isinstance(uid, str) for uid in uids)
    return known_uids(adopted, uids) if fits else frozenset()
