# SPDX-License-Identifier: Apache-2.0
"""What a run keeps of objects that have the label of its instance and are none of its members: anybody may label objects so.

Only what names and marks such an object, and nothing of those beyond a number: they neither fill the memory of a conductor nor
fail an operation. A member is kept whole. While an inventory that was lost does not name the members, so is what the field
manager of the instance has applied.
"""

from __future__ import annotations

import threading

from k8s_cr_driver import logs
from k8s_cr_driver.journal.inventory import Inventory
from k8s_cr_driver.objects.fields import entries, uid_of
from k8s_cr_driver.objects.keys import GroupKind, Object, annotations_of, key_of, labels
from k8s_cr_driver.objects.marks import INSTANCE_LABEL, PART_OF_LABEL, is_managed

LOG = logs.logger(__name__)

STRANGERS = 1_000
"""Objects of one kind that are kept, though they are none of the instance."""
_IDENTITY = ("name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp")
_ENTRIES = 100
"""Of managedFields and ownerReferences."""


class Strangers:
    """Those of one run. For many threads."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory, self._lock = inventory, threading.Lock()
        self._kept: dict[GroupKind, set[str]] = {}

    def kept(self, live: Object) -> Object | None:
        """What is kept of an object that a watch or a list has reported; None for nothing."""
        key, content = key_of(live), self._inventory.content
        is_lost = content.members is None and is_managed(live, self._inventory.instance)
        if is_lost or content.is_member(key) or self._inventory.remembered.is_member(key):
            return live
        with self._lock:
            known = self._kept.setdefault(key.group_kind, set())
            is_known, is_full = uid_of(live) in known, len(known) >= STRANGERS
            if not is_known and not is_full:
                known.add(uid_of(live))
                if len(known) == STRANGERS:
                    text = "%s: %d objects %s have the instance's label and are none of its own: further ones are ignored"
                    LOG.warning(text, self._inventory.instance, STRANGERS, key.group_kind)
        return None if is_full and not is_known else _bare(live)


def _is_mark(name: str) -> bool:
    return "k8s-cr-driver" in name or name in (INSTANCE_LABEL, PART_OF_LABEL)


def _bare(live: Object) -> Object:
    """Its identity, and the marks by which others judge whose it is."""
    metadata = live["metadata"]
    kept = {name: metadata[name] for name in _IDENTITY if name in metadata}
    kept["labels"] = {name: value for name, value in labels(live).items() if _is_mark(name)}
    kept["annotations"] = {name: value for name, value in annotations_of(live).items() if _is_mark(name)}
    for name, fields in (("managedFields", ("manager", "operation", "time")), ("ownerReferences", None)):
        found = entries(metadata, name)[:_ENTRIES]
        kept[name] = [{one: entry[one] for one in fields or entry if one in entry} for entry in found]
    return {"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": kept}
