# SPDX-License-Identifier: Apache-2.0
"""
The members that go: the objects of the instance that the set does not contain. Finds them all.

Besides what the watches select these are objects that have lost the instance's label, and claims of StatefulSets.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Mapping

from k8s_cr_driver import logs
from k8s_cr_driver.engine.apply.desired_set import DesiredSet
from k8s_cr_driver.engine.run.loop import Attempts, Run
from k8s_cr_driver.engine.watch.informers import Informers
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.objects.fields import uid_of
from k8s_cr_driver.objects.keys import NAMESPACE, Object, ObjectKey, key_of, kind_of
from k8s_cr_driver.objects.marks import SHARED, is_managed
from k8s_cr_driver.resources.hooks import Orphans
from k8s_cr_driver.writes.members import is_hidden, read_unlabeled, reclaim, unlisted_members, was_released
from k8s_cr_driver.writes.orphans import claim_orphans, disclaim_orphan, is_claimed, keepers, may_leave

LOG = logs.logger(__name__)


class Members:
    """Those of one run."""

    def __init__(self, run: Run, desired: DesiredSet, informers: Informers, attempts: Attempts) -> None:
        self._run, self._set, self._informers, self._attempts = run, desired, informers, attempts
        self.released: list[tuple[Resource, Object]] = []
        """What a run that failed has released."""
        self._waits_for_lists = True
        self._copies: set[ObjectKey] = set()
        self._keepers: list[Orphans] = []
        self._left: dict[str, ObjectKey] = {}
        """By uid: objects that stay, though the instance could delete them."""

    def find(self) -> list[Object]:
        """All that go. Claims that a failed terminate has labelled, and that stay, are no members any more then."""
        if self._run.operation.abandon:
            self._run.loop.after(self._run.operation.remaining() / 2, self._stop_waiting_for_lists)
        found = self._listed_and_reclaimed()
        self._keepers = keepers([*(live for _, live in self._informers.everything()), *found])
        self._disclaim_orphans()
        return [live for live in found if not (is_claimed(live, self._run.context.instance) and self._outlives(live))]

    def must_go(self, key: ObjectKey, live: Object) -> bool:
        """An object that was restored or replaced with our label but without our field manager is a member by its key.

        A lost inventory does not know the members: those in Tacker's record are the least that the instance has applied.
        """
        inventory = self._run.context.inventory
        if key in self._set.nodes or key == inventory.key or uid_of(live) in self._left:
            return False
        if is_claimed(live, inventory.instance) and (self._outlives(live) or self._may_miss_owners()):
            return False
        has_applied = is_managed(live, inventory.instance)
        if inventory.owns(live):
            return has_applied or not inventory.content.is_adopted(live)
        if (has_applied or inventory.content.is_member(key)) and key not in self._copies:
            LOG.warning("%s stays: it has the instance's label, but nothing proves that the instance has created it", key)
            self._copies.add(key)
        return False

    def listed(self) -> dict[ObjectKey, Object]:
        """Those that the watches have reported."""
        return {key: live for key, live in self._informers.everything() if self.must_go(key, live)}

    def leave(self, live: Object) -> None:
        """It stays, though the instance could delete it."""
        self._left[uid_of(live)] = key_of(live)

    def has_left(self, live: Object) -> bool:
        """Whether an object that stays is in this Namespace."""
        key = key_of(live)
        return key.group_kind == NAMESPACE and any(left.namespace == key.name for left in self._left.values())

    def late_orphans(self, members: list[Object]) -> list[Object]:
        """The orphans of `members` that controllers have made since these were found."""
        found = self._reclaimed(functools.partial(self._claim_orphans, members))
        return [live for live in found if self.must_go(key_of(live), live)]

    def _listed_and_reclaimed(self) -> list[Object]:
        self._wait_until_listed()
        before = self.listed()
        reclaimed = self._reclaimed(functools.partial(self._reclaim, before))
        self._informers.open(self._run.context.inventory.content.kinds)
        self._wait_until_listed()
        listed, known = self.listed(), {**before, **by_key(reclaimed)}
        reclaimed += self._reclaimed(functools.partial(self._reclaim_again, known.keys() - listed.keys()))
        return list({**by_key(reclaimed), **listed}.values())

    def _wait_until_listed(self) -> None:
        self._run.loop.run(lambda: self._informers.all_listed() or not self._waits_for_lists)

    def _stop_waiting_for_lists(self) -> None:
        """Stop waiting for unlisted kinds: delete the objects listed so far, and later ones as they are listed."""
        self._waits_for_lists = False

    def _reclaimed(self, reclaim: Callable[[list[Object]], None]) -> list[Object]:
        """What `reclaim` collects; with `abandon` what it has collected before it failed."""
        found: list[Object] = []
        with self._attempts.abandonable("objects without the instance's label"):
            reclaim(found)
        return found

    def _reclaim(self, listed: Mapping[ObjectKey, Object], found: list[Object]) -> None:
        """Labels objects to delete that the watches do not select: members without label, claims of StatefulSets."""
        context, request = self._run.context, self._attempts.request
        recorded, unlisted = context.inventory.content.members or frozenset(), self._informers.unlisted_kinds()
        unknown = {key for key in recorded if key.group_kind in unlisted}  # what cannot be listed may hang when it is read
        known = {*unknown, *self._set.nodes, *(key for key, _ in self._informers.everything())}
        for resource, live in unlisted_members(context, known, lambda one, _: request(one)):
            if is_hidden(live, context.instance) and kind_of(live) in SHARED:
                whole = request(read_unlabeled, context, resource, key_of(live))
                found += [whole] if whole else []  # a release could not remove a label from the manager that restores it
            elif is_hidden(live, context.instance):
                labelled = request(reclaim, context, resource, live)
                if labelled is not None and self.must_go(key_of(labelled), labelled):
                    found.append(labelled)
            elif was_released(context, live):
                self.released.append((resource, live))
        if not self._set.nodes:
            self._claim_orphans([*listed.values(), *found], found)

    def _reclaim_again(self, lost: Collection[ObjectKey], found: list[Object]) -> None:
        """Labels members that have lost their label since they were listed: their watch takes them for deleted."""
        request = self._attempts.request
        for key in sorted(lost):
            resource = self._run.resources.find(key.group_kind)
            if resource is None or key.group_kind in SHARED:
                continue
            live = request(read_unlabeled, self._run.context, resource, key)
            if live is not None and (labelled := request(reclaim, self._run.context, resource, live)):
                found.append(labelled)

    def _claim_orphans(self, members: list[Object], found: list[Object]) -> None:
        found += self._attempts.request(lambda: claim_orphans(self._run.context, members))

    def _disclaim_orphans(self) -> None:
        instance, everything = self._run.context.instance, self._informers.everything()
        claimed = [live for key, live in everything if key not in self._set.nodes and is_claimed(live, instance)]
        for live in filter(self._outlives, claimed):
            resource = self._run.resources.find(kind_of(live))
            self.leave(live)
            if resource is not None:
                self._attempts.request(disclaim_orphan, self._run.context, resource, live)

    def _outlives(self, claimed: Object) -> bool:
        """
        Whether a claim of a StatefulSet that a failed terminate has made a member stays, as the instance lives on.

        Or as somebody has said since that the StatefulSet, or what it leaves, is to be kept.
        """
        return bool(self._set.nodes) or any(one.may_include(claimed) for one in self._keepers)

    def _may_miss_owners(self) -> bool:
        """Whether nobody knows of all StatefulSets whether they are to be kept: with `abandon` their claims are left."""
        return any(map(may_leave, self._informers.unlisted_kinds()))


def by_key(lives: Iterable[Object]) -> dict[ObjectKey, Object]:
    return {key_of(live): live for live in lives}
