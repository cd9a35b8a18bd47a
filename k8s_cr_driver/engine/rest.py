# SPDX-License-Identifier: Apache-2.0
"""
The rest: the objects of the instance that the set does not contain. Finds them all, and has them deleted.

Besides what the watches select these are objects that have lost the instance's label, claims of StatefulSets, and what a
superseded run has written meanwhile. Objects that stay are released from owners that are deleted.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from oslo_log import log as logging

from k8s_cr_driver.engine.apply import Applier
from k8s_cr_driver.engine.informers import Informers
from k8s_cr_driver.engine.nodes import Phase
from k8s_cr_driver.engine.not_ready import NotReady
from k8s_cr_driver.engine.prune import Pruner
from k8s_cr_driver.engine.run import Run
from k8s_cr_driver.errors import DriverError, Stopped, Superseded
from k8s_cr_driver.objects.crds import defined_by
from k8s_cr_driver.objects.fields import uid_of
from k8s_cr_driver.objects.keys import CRD, NAMESPACE, Object, ObjectKey, key_of
from k8s_cr_driver.ownership.labels import SHARED, is_managed
from k8s_cr_driver.ownership.orphans import (
    claim_orphans,
    disclaim_orphan,
    is_claimed,
    keepers,
    leaving_kinds,
    oldest_owner,
    release_orphans,
)
from k8s_cr_driver.ownership.owners import Owners, Takers, release_from_owners, with_owners
from k8s_cr_driver.ownership.traces import has_objects
from k8s_cr_driver.ownership.unlabeled import (
    find_unlabeled,
    may_be_unlabeled,
    read_unlabeled,
    reclaim,
    unlisted_shared,
)
from k8s_cr_driver.redaction import redact
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.registry import resource_for

LOG = logging.getLogger(__name__)

Result = TypeVar("Result")


class Rest:
    """
    The last phase of a run that prunes. `nodes`: the objects that still exist, of those that it has `found`.

    `unlabeled`: look for objects without label, though the instance had no inventory before this run; `timeout`: the error at
    the deadline, after so many seconds of the run.
    """

    def __init__(
        self,
        run: Run,
        applier: Applier,
        informers: Informers,
        timeout: Callable[[float], NotReady],
        *,
        grace_period: int | None,
        unlabeled: bool,
    ) -> None:
        self._operation, self._loop, self._context, self._resources = run.operation, run.loop, run.context, run.resources
        self._applier, self._informers, self._timeout, self._unlabeled = applier, informers, timeout, unlabeled
        self._pruner = Pruner(run, grace_period, self._is_used)
        self.nodes, self.found = self._pruner.nodes, self._pruner.found
        self._is_pruning = False
        self._waits_for_lists = True
        self._copies: set[ObjectKey] = set()
        self._keepers: list[CustomResource] = []
        self._left: set[str] = set()
        """The uids of objects that stay, though the instance could delete them."""

    def observe(self, key: ObjectKey, live: Object | None) -> None:
        """A watch reports an object that is not desired."""
        if self._is_pruning:
            self._pruner.observe(key, live if live is not None and self._must_go(key, live) else None)

    def holds_up(self) -> bool:
        """Whether each object of the set that is not ready is applied, and waits for objects of the rest, not ready either."""
        unready = [self._applier.nodes[key] for key in self._applier.unready]
        if not all(node.obj.sums_up and node.phase is Phase.SENT for node in unready):
            return False
        others = [live for live in self._to_delete().values() if not resource_for(live).health(live).settled]
        return bool(others) and all(node.live and node.obj.is_held_up_by(node.live, others) for node in unready)

    def delete(self) -> None:
        """Deletes the rest and waits until it no longer exists, and the set ready; then reduces or deletes the inventory."""
        if self._operation.abandon:
            self._loop.after(self._operation.remaining() / 2, self._stop_waiting_for_lists)
        members = self._members()
        self._keepers = keepers([*(live for _, live in self._informers.everything()), *members])
        members = [live for live in members if not self._outlives_terminate(key_of(live), live)]
        self._disclaim_orphans()
        self._prune(members)
        if not self._applier.nodes:
            self._delete_late_orphans(members)
        self._delete_late_writes(members)
        self._loop.catch_up(self._is_pruned, self._timeout)  # others may have deleted a desired object meanwhile
        self._informers.stop()
        self._operation.persist(self._shrink if self._applier.nodes else self._context.inventory.delete)

    def _members(self) -> list[Object]:
        self._open_unrecorded()
        self._wait_until_listed()
        listed = self._to_delete()
        reclaimed = self._reclaimed(self._reclaim)
        self._informers.open(self._context.inventory.content.kinds)
        self._wait_until_listed()
        reclaimed += self._reclaimed(functools.partial(self._reclaim_again, {**listed, **_by_key(reclaimed)}))
        return list({**_by_key(reclaimed), **self._to_delete()}.values())

    def _open_unrecorded(self) -> None:
        """Watches also the kinds that an inventory which was lost and created again does not name."""
        context = self._context
        content = context.inventory.content
        if content.members is None:
            for resource in [one for one in self._resources if one.group_kind not in content.kinds]:
                with self._abandonable(resource.plural):
                    if self._request(functools.partial(has_objects, context, resource, content.namespaces)):
                        self._informers.open([resource.group_kind])

    def _disclaim_orphans(self) -> None:
        for live in [live for key, live in self._informers.everything() if self._outlives_terminate(key, live)]:
            resource = self._resources.find(key_of(live).group_kind)
            self._left.add(uid_of(live))
            if resource is not None:
                self._request(functools.partial(disclaim_orphan, self._context, resource, live))

    def _outlives_terminate(self, key: ObjectKey, live: Object) -> bool:
        """
        Whether it is a claim of a StatefulSet that a failed terminate has made a member, though the instance lives on.

        Or though somebody has said since that the StatefulSet, or what it leaves, is to be kept.
        """
        desired = self._applier.nodes
        if key in desired or not is_claimed(live, self._context.instance):
            return False
        return bool(desired) or any(one.may_leave(live) for one in self._keepers)

    def _prune(self, members: list[Object]) -> None:
        """A controller may make a desired object the dependent of one that is deleted at any time: so also at the end."""
        listed = _by_key(members)
        members = [live for live in members if not self._pruner.deletes(live) or self._is_released(live, listed)]
        deletes = self._pruner.deletes
        desired = self._applier.live()
        if any(map(deletes, members)):
            desired = self._request(lambda: with_owners(self._context, desired))
        kept = list(itertools.filterfalse(deletes, members))
        owners = Owners(self._context.client, filter(deletes, members), [*kept, *(live for _, live in desired)])
        self._request(lambda: release_from_owners(self._context, owners, desired))
        takers: dict[str, Takers] = {}
        for live in kept:
            with self._abandonable(f"the owners of {key_of(live)}"):
                takers |= self._request(functools.partial(owners.going, live))
        self._is_pruning = True
        self._pruner.start(members, takers, desired=(live for _, live in desired), with_orphans=not self._applier.nodes)
        self._loop.run(self._is_pruned, self._timeout)
        self._request(lambda: release_from_owners(self._context, owners, self._applier.live()))
        self._loop.run(self._is_pruned, self._timeout)

    def _is_released(self, live: Object, members: Mapping[ObjectKey, Object]) -> bool:
        """Releases what the object leaves. With `abandon` the object stays if that fails: its claims would go with it."""
        with self._abandonable(f"{key_of(live)}, and what it leaves,"):
            self._request(lambda: release_orphans(self._context, live, members))
            return True
        self._left.add(uid_of(live))
        return False

    def _delete_late_orphans(self, members: list[Object]) -> None:
        """A controller may create orphans until its object is deleted: claims of a StatefulSet, one for each of its pods."""
        while late := self._late_orphans(members):
            self._informers.open(self._context.inventory.content.kinds)
            for live in late:
                self._informers.report(live)
            self._loop.run(self._is_pruned, self._timeout)

    def _late_orphans(self, members: list[Object]) -> list[Object]:
        found = self._reclaimed(functools.partial(self._claim_orphans, members))
        return [live for live in found if self._must_go(key_of(live), live)]

    def _delete_late_writes(self, members: list[Object]) -> None:
        """
        Waits until no write of a superseded run can take effect, lists again, and deletes what it wrote meanwhile.

        Others may have created a member again, too, of which the watch has reported no more than the deletion.
        """
        fence = self._context.inventory.fence
        if fence.has_former:
            self._loop.let_pass(fence.former_expires_in(), self._timeout)
        is_listed = not (fence.has_former or self._misses(members))
        while not is_listed or self._pruner.others_delete:
            is_listed, self._pruner.others_delete = True, False
            with self._abandonable("objects that others have created again"):
                for live in self._request(self._informers.list_again):
                    self._informers.report(live)
            self._loop.run(self._is_pruned, self._timeout)

    def _misses(self, members: list[Object]) -> bool:
        """Whether an object that the inventory or Tacker's record names was not there when the deletions began."""
        inventory = self._context.inventory
        recorded = (inventory.content.members or frozenset()) | (inventory.remembered.members or frozenset())
        return bool(recorded - self._applier.nodes.keys() - _by_key(members).keys())

    def _is_pruned(self) -> bool:
        """A desired object may go with what is pruned, such as its owner: it must be ready again."""
        return not self._pruner.nodes and self._informers.all_listed() and not self._applier.unready

    def _wait_until_listed(self) -> None:
        self._loop.run(lambda: self._informers.all_listed() or not self._waits_for_lists, self._timeout)

    def _stop_waiting_for_lists(self) -> None:
        """Stop waiting for unlisted kinds: delete the objects listed so far, and later ones as they are listed."""
        self._waits_for_lists = False

    def _reclaimed(self, reclaim: Callable[[list[Object]], None]) -> list[Object]:
        """What `reclaim` collects; with `abandon` what it has collected before it failed."""
        found: list[Object] = []
        with self._abandonable("objects without the instance's label"):
            reclaim(found)
        return found

    @contextlib.contextmanager
    def _abandonable(self, what: str) -> Iterator[None]:
        """With `abandon` a failure within it is logged only."""
        try:
            yield
        except (NotReady, Stopped, Superseded):
            raise
        except DriverError as error:
            if not self._operation.abandon:
                raise
            LOG.warning("%s: %s are abandoned: %s", self._operation.id, what, redact(str(error)))

    def _reclaim(self, found: list[Object]) -> None:
        """Labels objects to delete that the watches do not select: members without label, claims of StatefulSets."""
        context = self._context
        if self._unlabeled or not context.inventory.is_new:
            for resource, namespace in may_be_unlabeled(context, self._informers.listed()):
                for unlabeled in self._request(functools.partial(find_unlabeled, context, resource, namespace)):
                    live = self._request(functools.partial(reclaim, context, resource, unlabeled))
                    if live is not None and self._must_go(key_of(live), live):
                        found.append(live)
            known = {*self._applier.nodes, *(key for key, _ in self._informers.everything())}
            for resource, key in unlisted_shared(context, self._informers.listed(), known):
                live = self._request(functools.partial(read_unlabeled, context, resource, key))
                if live is not None:
                    found.append(live)
        if not self._applier.nodes:
            self._claim_orphans([*self._to_delete().values(), *found], found)

    def _reclaim_again(self, listed: Mapping[ObjectKey, Object], found: list[Object]) -> None:
        """Labels those of `listed` that have lost their label since: their watch takes them for deleted."""
        for key in sorted(listed.keys() - self._to_delete().keys()):
            resource = self._resources.find(key.group_kind)
            if resource is None or key.group_kind in SHARED:
                continue
            live = self._request(functools.partial(read_unlabeled, self._context, resource, key))
            if live is not None and (labelled := self._request(functools.partial(reclaim, self._context, resource, live))):
                found.append(labelled)

    def _claim_orphans(self, members: list[Object], found: list[Object]) -> None:
        found += self._request(lambda: claim_orphans(self._context, members))

    def _request(self, request: Callable[[], Result]) -> Result:
        """With `abandon` half of the remaining time is kept for the deletions."""
        self._loop.check(self._timeout)
        operation = self._operation
        return operation.persist(request, operation.remaining() / 2 if operation.abandon else math.inf)

    def _to_delete(self) -> dict[ObjectKey, Object]:
        return {key: live for key, live in self._informers.everything() if self._must_go(key, live)}

    def _shrink(self) -> None:
        applier, inventory = self._applier, self._context.inventory
        inventory.note_beginning(oldest_owner(self._context, (live for _, live in applier.live())))
        with self._context.lock:  # ends of objects may be on their way into the inventory
            inventory.finish(kinds=applier.kinds, namespaces=applier.namespaces, members=frozenset(applier.nodes))

    def _must_go(self, key: ObjectKey, live: Object) -> bool:
        """An object that was restored or replaced with our label but without our field manager is a member by its key.

        A lost inventory does not know the members: those in Tacker's record are the least that the instance has applied.
        """
        inventory = self._context.inventory
        if key in self._applier.nodes or key == inventory.key:
            return False
        if uid_of(live) in self._left or self._outlives_terminate(key, live):
            return False
        if is_claimed(live, self._context.instance) and not leaving_kinds().isdisjoint(self._informers.unlisted_kinds()):
            return False  # whether its StatefulSet is to be kept, nobody knows: with `abandon` it is left
        if inventory.owns(live):
            return is_managed(live, self._context.instance) or not inventory.content.is_adopted(live)
        has_marks = is_managed(live, self._context.instance) or inventory.content.is_member(key)
        if has_marks and key not in self._copies:
            LOG.warning("%s stays: it has the instance's label, but nothing proves that the instance has created it", key)
            self._copies.add(key)
        return False

    def _is_used(self, live: Object) -> bool:
        """
        Whether a Namespace or CRD holds desired objects, or with `abandon` may hold kept ones of a kind that is not listed.

        Without it all kinds were listed; one whose CRD others delete now is not for a moment, until that is confirmed.
        """
        is_unknown = self._operation.abandon and not self._context.delete_guests
        return self._applier.uses(live) or (is_unknown and self._may_hold_unlisted(live))

    def _may_hold_unlisted(self, live: Object) -> bool:
        key, unlisted = key_of(live), self._informers.unlisted_kinds()
        if key.group_kind == CRD:
            return defined_by(live) in unlisted
        places = self._context.inventory.content.places
        return key.group_kind == NAMESPACE and any(key.name in places(kind) for kind in unlisted)


def _by_key(lives: Iterable[Object]) -> dict[ObjectKey, Object]:
    return {key_of(live): live for live in lives}
