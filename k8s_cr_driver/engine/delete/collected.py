# SPDX-License-Identifier: Apache-2.0
"""
Which objects of a run go, or are gone, without a request of it: by the garbage collector with their owners, or by others.

The collector keeps an object while any owner stays, controlling or not (`attemptToDeleteItem`: "solid" references).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass

from k8s_cr_driver import logs
from k8s_cr_driver.engine.run.loop import Run
from k8s_cr_driver.engine.run.nodes import ToDelete
from k8s_cr_driver.objects.crds import CLEANUP
from k8s_cr_driver.objects.fields import field, uid_of
from k8s_cr_driver.objects.keys import Object, ObjectKey, controller_of, owner_uids
from k8s_cr_driver.objects.marks import SHARED, is_managed
from k8s_cr_driver.plan.actions import stays
from k8s_cr_driver.writes.context import is_selected

LOG = logs.logger(__name__)


@dataclass
class Gone:
    """What no longer exists."""

    last: dict[str, Object] = dataclasses.field(default_factory=dict)
    """By uid, as it was last seen, what may have left orphans: only a late state says who writes its status."""
    by_others: bool = False
    """Whether others have deleted one of the objects: they may have created it again, as `kubectl replace --force` does."""
    at: float = -math.inf
    """When the last one was seen to be gone."""


class Garbage:
    """`nodes`: what the run has yet to delete."""

    def __init__(self, run: Run, nodes: Mapping[ObjectKey, ToDelete]) -> None:
        self._operation, self._inventory, self._nodes = run.operation.id, run.context.inventory, nodes
        self.may_collect = True
        self.found: list[Object] = []
        """What there was to delete, as it was found."""
        self._waiting: dict[ObjectKey, list[ToDelete]] = {}
        self._by_uid: dict[str, ToDelete] = {}
        self._owned: dict[str, dict[ObjectKey, ToDelete]] = {}
        self._all_needs: dict[ObjectKey, set[ObjectKey]] = {}

    def add(self, node: ToDelete) -> None:
        """Of the run, with all that it needs."""
        self.found += [node.live] if node.live else []
        self.note(node)
        for need in node.needs:
            self._waiting.setdefault(need, []).append(node)

    def waiting_for(self, key: ObjectKey) -> list[ToDelete]:
        """The objects that waited for the deletion of this one. Once: it is gone."""
        return self._waiting.pop(key, [])

    def note(self, node: ToDelete) -> None:
        """Its live object may be an owner, or have owners."""
        self._by_uid[uid_of(node.live)] = node
        for uid in owner_uids(node.live) if node.live else ():
            self._owned.setdefault(uid, {})[node.key] = node

    def owned_by(self, uid: str) -> list[ToDelete]:
        """The objects that the run has yet to delete and that have that owner."""
        owned = self._owned.get(uid, {}).values()
        return [node for node in owned if self._nodes.get(node.key) is node and node.live and uid in owner_uids(node.live)]

    def find(self, uid: str) -> ToDelete | None:
        """The object of that uid, if the run has yet to delete it."""
        node = self._by_uid.get(uid)
        is_current = node is not None and uid_of(node.live) == uid and self._nodes.get(node.key) is node
        return node if is_current else None

    def collects(self, node: ToDelete, live: Object) -> bool:
        """
        Whether the controlling owner is deleted too, so that garbage collection deletes it, and does not wait for it.

        A Namespace or CRD may not go before its turn: what stays, or is not ours, would go with it.
        """
        uid = controller_of(live)
        may_go = uid and self.may_collect and node.key.group_kind not in SHARED and not stays(self._inventory.content, live)
        if not (may_go and self._goes_first(uid, node)):
            return False
        if all(self._goes_first(other, node) for other in owner_uids(live)):
            return True
        LOG.info("%s: %s has another owner that may stay: garbage collection would keep it", self._operation, node.key)
        return False

    def _goes_first(self, uid: str, node: ToDelete) -> bool:
        """Whether an owner is deleted by this run, and does not wait until `node` no longer exists."""
        owner = self.find(uid)
        if owner is None or owner.live is None or owner.key.namespace not in ("", node.key.namespace):
            return False  # the collector looks for it in the namespace of the dependent
        return not stays(self._inventory.content, owner.live) and node.key not in self._needs_of(owner)

    def _needs_of(self, node: ToDelete) -> set[ObjectKey]:
        """All objects that must be deleted before this one, transitively; some may have been deleted since then."""
        if node.key not in self._all_needs:
            self._all_needs[node.key] = self._find_needs(node)
        return self._all_needs[node.key]

    def _find_needs(self, node: ToDelete) -> set[ObjectKey]:
        found: set[ObjectKey] = set()
        new = set(node.needs)
        while new:
            found |= new
            new = {need for key in new if key in self._nodes for need in self._nodes[key].needs} - found
        return found


def is_taken(instance: str, before: Object, live: Object) -> bool:
    """Whether an object was ours by its managers or its label, and is not any more, or its controller has lost it."""
    if field(live, "metadata", "deletionTimestamp") or is_managed(live, instance):
        return False
    has_lost_label = is_selected(instance, before) and not is_selected(instance, live)
    return is_managed(before, instance) or has_lost_label or controller_of(before) not in ("", controller_of(live))


def may_be_held(node: ToDelete) -> bool:
    """
    Whether an object may still exist whose deletion was asked for: others have to act first.

    Namespaces and CRDs are always held, by the API server: somebody takes their label off only where others hold them longer.
    """
    if node.key.group_kind in SHARED:
        return not {CLEANUP}.issuperset(field(node.live, "metadata", "finalizers") or ())
    return node.lingers or any(field(node.live, "metadata", name) for name in ("deletionTimestamp", "finalizers"))
