# SPDX-License-Identifier: Apache-2.0
"""
The rest: the objects of the instance that the set does not contain. Has them deleted, and what is written meanwhile.

Objects that stay are released from owners that are deleted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

from k8s_cr_driver.engine.apply.desired_set import DesiredSet
from k8s_cr_driver.engine.delete.pruner import Pruner
from k8s_cr_driver.engine.delete.to_delete import Members, by_key
from k8s_cr_driver.engine.run.loop import Attempts, Run
from k8s_cr_driver.engine.run.nodes import Phase
from k8s_cr_driver.engine.watch.informers import Informers
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.objects.crds import defined_by
from k8s_cr_driver.objects.fields import uid_of
from k8s_cr_driver.objects.keys import CRD, NAMESPACE, Object, ObjectKey, key_of, kind_of, owner_uids
from k8s_cr_driver.objects.marks import SHARED, is_kept
from k8s_cr_driver.resources.registry import resource_for
from k8s_cr_driver.writes.delete import announce
from k8s_cr_driver.writes.guests import Guests
from k8s_cr_driver.writes.orphans import OwnedOrphans, may_leave, staying_orphans
from k8s_cr_driver.writes.owners import release_from_owners


class Rest:
    """The last phase of a run that prunes. `nodes`: the objects that still exist, of those that it has `found`."""

    def __init__(self, run: Run, desired: DesiredSet, informers: Informers, *, grace_period: int | None) -> None:
        self._run, self._set, self._informers = run, desired, informers
        self._attempts = Attempts(run)
        self._members = Members(run, desired, informers, self._attempts)
        self._pruner = Pruner(run, grace_period, self._is_used, informers)
        self.nodes, self.found = self._pruner.nodes, self._pruner.garbage.found
        self._is_pruning = False

    def observe(self, key: ObjectKey, live: Object | None) -> None:
        """A watch reports an object that is not desired, perhaps one that is kept, or that others have deleted."""
        if self._is_pruning:
            self._pruner.observe(key, live if live is not None and self._members.must_go(key, live) else None)

    def holds_up(self) -> bool:
        """Whether each object of the set that is not ready is applied, and waits for objects of the rest, not ready either."""
        if not all(node.phase is Phase.SENT and node.obj.relations().sums_up for node in self._set.required()):
            return False
        others = [live for live in self._members.listed().values() if not resource_for(live).health(live).settled]
        held_up = (node.live and node.obj.relations().is_held_up_by(node.live, others) for node in self._set.required())
        return bool(others) and all(held_up)

    def delete(self) -> None:
        """Deletes the rest and waits until it no longer exists, and the set ready; then reduces or deletes the inventory."""
        members = self._members.find()
        self._prune(members)
        if not self._set.nodes:
            self._delete_late_orphans(members)
        self._delete_late_writes(members)
        self._run.loop.catch_up(self._is_pruned)  # others may have deleted a desired object meanwhile
        self._informers.stop()
        self._run.operation.persist(self._shrink if self._set.nodes else self._run.context.inventory.delete)

    def _prune(self, members: list[Object]) -> None:
        members = self._release_from_owners(members)
        if self._run.context.delete_guests:
            guests = Guests(self._run.context, leaving=() if self._set.nodes else members)
            shared = [live for live in members if kind_of(live) in SHARED and self._pruner.deletes(live)]
            with self._attempts.abandonable("objects of others"):
                self._attempts.request(lambda: announce(self._run.context, shared, guests))
        self._is_pruning = True
        self._pruner.start(
            members,
            released=[key_of(live) for _, live in self._members.released],
            with_orphans=not self._set.nodes,
        )
        self._run.loop.run(self._is_pruned)

    def _release_from_owners(self, members: list[Object]) -> list[Object]:
        """
        Removes references to what is deleted from what stays. Once: the garbage collector has what an operator owns since.

        An owner of a Namespace or CRD would take along what that holds. What is kept or adopted is released from desired
        objects, too: a later operation deletes these, and does not know any more what is released now. Returns what is
        removed: with `abandon` not the owner of an object that cannot be released.
        """
        resources = self._run.context.resources
        going = {uid_of(live) for live in members if self._pruner.deletes(live)}
        found = [(resource, live) for live in members if (resource := resources.find(kind_of(live)))]
        kept = [one for one in found if uid_of(one[1]) not in going]
        desired = self._set.live()
        owned: dict[str, list[tuple[Resource, Object]]] = defaultdict(list)
        for one in [*desired, *self._members.released, *kept]:
            for uid in owner_uids(one[1]):
                owned[uid].append(one)
        for one in (one for one in found if kind_of(one[1]) in SHARED):
            with self._attempts.abandonable(f"the owners of {key_of(one[1])}"):
                self._attempts.request(release_from_owners, self._run.context, going, [one])
        self._attempts.request(release_from_owners, self._run.context, {uid_of(live) for _, live in desired}, kept)
        keys, orphans = by_key(members).keys(), OwnedOrphans(self._run.context)
        return [live for live in members if uid_of(live) not in going or self._is_released(live, owned, keys, orphans)]

    def _is_released(
        self,
        owner: Object,
        owned: Mapping[str, list[tuple[Resource, Object]]],
        members: Collection[ObjectKey],
        orphans: OwnedOrphans,
    ) -> bool:
        """Releases what stays from an owner, by uid what is `owned`. With `abandon` the owner stays if that fails."""
        if uid_of(owner) not in owned and not may_leave(kind_of(owner)):
            return True
        with self._attempts.abandonable(f"{key_of(owner)}, and what it owns,"):
            staying = [*owned.get(uid_of(owner), ()), *self._attempts.request(staying_orphans, owner, members, orphans)]
            self._attempts.request(release_from_owners, self._run.context, {uid_of(owner)}, staying)
            return True
        self._members.leave(owner)
        return False

    def _delete_late_orphans(self, members: list[Object]) -> None:
        """A controller may create orphans until its object is deleted: claims of a StatefulSet, one for each of its pods."""
        while late := self._members.late_orphans([self._pruner.gone.last.get(uid_of(live), live) for live in members]):
            self._informers.open(self._run.context.inventory.content.kinds)
            for live in late:
                self._informers.report(live)
            self._run.loop.run(self._is_pruned)

    def _delete_late_writes(self, members: list[Object]) -> None:
        """
        Waits until no write of a superseded run can take effect, lists again, and deletes what it wrote meanwhile.

        Others may have created a member again, too, of which the watch has reported no more than the deletion.
        """
        fence = self._run.context.inventory.fence
        if fence.has_former:
            self._run.loop.let_pass(fence.former_expires_in())
        is_listed = not (fence.has_former or self._misses(members))
        while not is_listed or self._pruner.gone.by_others:
            is_listed, self._pruner.gone.by_others = True, False
            with self._attempts.abandonable("objects that others have created again"):
                for live in self._attempts.request(self._informers.list_again):
                    self._informers.report(live)
            self._run.loop.run(self._is_pruned)

    def _misses(self, members: list[Object]) -> bool:
        """Whether an object that the inventory or Tacker's record names was not there when the deletions began."""
        inventory = self._run.context.inventory
        recorded = (inventory.content.members or frozenset()) | (inventory.remembered.members or frozenset())
        return bool(recorded - self._set.nodes.keys() - by_key(members).keys())

    def _is_pruned(self) -> bool:
        """A desired object may go with what is pruned, such as its owner: it must be ready again."""
        return not self._pruner.nodes and self._informers.all_listed() and not self._set.awaits

    def _shrink(self) -> None:
        desired = self._set
        finish = self._run.context.inventory.finish
        finish(kinds=desired.kinds, namespaces=desired.namespaces, members=frozenset(desired.nodes))

    def _is_used(self, live: Object) -> bool:
        """
        Whether a Namespace or CRD holds desired objects, or with `abandon` may hold kept ones of a kind that is not listed.

        Without it all kinds were listed; one whose CRD others delete now is not for a moment, until that is confirmed.
        """
        is_unknown = self._run.operation.abandon
        is_used = self._set.uses(live) or self._holds_labelled(live)
        return is_used or (is_unknown and (self._members.has_left(live) or self._may_hold_unlisted(live)))

    def _holds_labelled(self, live: Object) -> bool:
        """Whether a Namespace holds an object to be kept with the instance's label, though no inventory names it any more."""
        is_namespace, name = kind_of(live) == NAMESPACE, key_of(live).name
        return is_namespace and any(key.namespace == name and is_kept(one) for key, one in self._informers.everything())

    def _may_hold_unlisted(self, live: Object) -> bool:
        key, unlisted = key_of(live), self._informers.unlisted_kinds()
        if key.group_kind == CRD:
            return defined_by(live) in unlisted
        places = self._run.context.inventory.content.places
        return key.group_kind == NAMESPACE and any(key.name in places(kind) for kind in unlisted)
