# SPDX-License-Identifier: Apache-2.0
"""
Objects that stay, while an owner of theirs is deleted: they are released from it again and again.

Operators set their ownerReference in each reconciliation. An owner may wait for its deletion, and then for a finalizer, for
minutes, in which it owns again what was released from it. The answer to the request that deletes it may be lost, and others,
such as a former run, may have deleted it.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping

from oslo_log import log as logging

from k8s_cr_driver.engine.garbage import owner_uids
from k8s_cr_driver.engine.not_ready import Report
from k8s_cr_driver.engine.run import Run
from k8s_cr_driver.errors import DriverError, Superseded, passes
from k8s_cr_driver.kube import backoff
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.objects.fields import field, uid_of
from k8s_cr_driver.objects.keys import Object, ObjectKey, key_of
from k8s_cr_driver.ownership.delete import Removal
from k8s_cr_driver.ownership.orphans import OwnedOrphans, release_orphans
from k8s_cr_driver.ownership.owners import Takers
from k8s_cr_driver.ownership.released import disown
from k8s_cr_driver.redaction import redact
from k8s_cr_driver.resources.health import State
from k8s_cr_driver.resources.registry import resource_for

LOG = logging.getLogger(__name__)

AGAIN = 2.0
"""Seconds between two releases of an object while an owner goes: no watch reports an object that was released."""

READS_PER_SECOND = 50
"""So many objects at most are released in a second: with more of them, each has to wait longer."""

ABANDONED_AFTER = 7
"""Tries, about 10 s: with abandon an object that cannot be released from an owner that no longer exists ends no run."""


class Releases:
    """What stays of the instance in a run, and which owners go: those that are deleted, and those that go with them."""

    def __init__(self, run: Run) -> None:
        self._operation, self._loop, self._context, self._resources = run.operation, run.loop, run.context, run.resources
        self._staying: dict[ObjectKey, tuple[Resource, Object]] = {}
        self._owners: dict[ObjectKey, set[str]] = defaultdict(set)
        """The uids of all owners that each object has had."""
        self._owned: dict[str, set[ObjectKey]] = defaultdict(set)
        self._deleted: dict[ObjectKey, str] = {}
        """The uids of objects whose deletion was asked for, or has begun, and that still exist."""
        self._taken: dict[ObjectKey, set[str]] = defaultdict(set)
        """The uids of owners that go with each object: operators have made them for it."""
        self._going: set[str] = set()
        """The uids of all owners that go."""
        self._held: set[ObjectKey] = set()
        """Those that are released from owners that go, at the most once in AGAIN seconds."""
        self._last: set[tuple[ObjectKey, str]] = set()
        """Those that have yet to be released from an owner, by uid, that no longer exists."""
        self._errors: dict[ObjectKey, str] = {}
        """Why the last try to release an object has failed."""

    @property
    def is_settled(self) -> bool:
        """Whether what stays is released from all owners that no longer exist, or is abandoned."""
        return not self._last

    def reports(self) -> list[Report]:
        """One for each object that is not released from an owner that no longer exists."""
        why = "not released yet from an owner that no longer exists"
        found = {key: f"{why}: {self._errors[key]}" if key in self._errors else why for key, _ in self._last}
        return [Report(key, State.WAITING.value, "NotReleased", text) for key, text in sorted(found.items())]

    def stays(self, live: Object) -> None:
        """Notes the owners of an object that is not deleted, and releases it from those that go."""
        self.observe(live)
        owners = owner_uids(live)
        if not owners:
            return
        key = key_of(live)
        resource = self._resources.find(key.group_kind)
        if resource is not None:
            self._staying[key] = resource, live
            self._owners[key].update(owners)
            for uid in owners:
                self._owned[uid].add(key)
            self._hold(key)

    def leaves(self, live: Object) -> None:
        """An object is deleted from now on, with its owner or without."""
        self.observe(live)
        self._staying.pop(key_of(live), None)
        self._owners.pop(key_of(live), None)

    def observe(self, live: Object) -> None:
        """Others, such as a former run, may have deleted an object, or created it again."""
        key, uid = key_of(live), uid_of(live)
        if self._deleted.get(key, uid) != uid:
            self.gone(key)
        if field(live, "metadata", "deletionTimestamp") and key not in self._deleted:
            self._begin(live)
            self._hold_owned(live)

    def take_along(self, owners: Mapping[str, Takers], missing: Collection[str]) -> None:
        """
        Notes owners that go with others, by uid. Those that others delete, or that go with such ones, go already.

        `missing`: those that no longer exist.
        """
        for uid, takers in owners.items():
            if uid in missing:
                continue
            for taker in takers:
                self._taken[taker].add(uid)
            if not takers or not self._deleted.keys().isdisjoint(takers):
                self._going.add(uid)

    def goes(self, live: Object) -> None:
        """An object is deleted, which may take its time: until it no longer exists, it may own again what stays."""
        self._begin(live)
        self._loop.after(AGAIN, functools.partial(self._hold_owned, live))

    def remains(self, key: ObjectKey) -> None:
        """An object turns out to stay. So do owners that went with it, but for those that are deleted themselves."""
        self._going.discard(self._deleted.pop(key, ""))
        if taken := self._taken.pop(key, set()):
            staying = taken.difference(self._deleted.values())
            self._going -= staying
            for others in self._taken.values():
                others -= staying

    def gone(self, key: ObjectKey) -> None:
        """
        An object no longer exists. The owners that go with it may be finalized for longer.

        It may have owned again what stays, and the garbage collector may be late.
        """
        uid = self._deleted.pop(key, "")
        self._going.discard(uid)
        for owned in self._owned.get(uid, ()):
            self._release_last(owned, uid)

    def before(
        self, live: Object, members: Collection[ObjectKey], removal: Callable[[], Removal | None]
    ) -> Callable[[], Removal | None]:
        """The request that deletes an object, once what stays is released from it, and from the owners that go with it."""
        self.goes(live)
        owners = self._with(live)
        staying = [self._staying[key] for key in self._owned_by(owners) if key in self._staying]

        def request() -> Removal | None:
            if resource_for(live).takes_orphans():
                release_orphans(self._context, live, members, OwnedOrphans(self._context))
            for resource, one in staying:
                self._disown(resource, one, owners)
            return removal()

        return request

    def _begin(self, live: Object) -> None:
        self._deleted[key_of(live)] = uid_of(live)
        self._going |= self._with(live)

    def _with(self, live: Object) -> set[str]:
        """The uids of an object and of the owners that go with it."""
        return {uid_of(live), *self._taken.get(key_of(live), ())}

    def _owned_by(self, owners: Collection[str]) -> set[ObjectKey]:
        return set[ObjectKey]().union(*(self._owned.get(uid, ()) for uid in owners))

    def _hold_owned(self, live: Object) -> None:
        for key in self._owned_by(self._with(live)):
            self._hold(key)

    def _hold(self, key: ObjectKey) -> None:
        going = self._going & self._owners.get(key, set())
        if going and key not in self._held and not self._loop.refusals:
            self._held.add(key)
            later = functools.partial(self._hold_later, key)
            self._release(key, going, later, later)

    def _hold_later(self, key: ObjectKey) -> None:
        def again() -> None:
            self._held.discard(key)
            self._hold(key)

        self._loop.after(max(AGAIN, len(self._held) / READS_PER_SECOND), again)

    def _release_last(self, key: ObjectKey, uid: str, attempt: int = 1) -> None:
        """It may coincide with another release, and fail."""
        if key not in self._staying:  # it is deleted by now
            self._last.discard((key, uid))
            return
        self._last.add((key, uid))

        def again() -> None:
            if self._operation.abandon and attempt == ABANDONED_AFTER:
                self._last.discard((key, uid))
            else:
                self._loop.after(backoff.delay(attempt), functools.partial(self._release_last, key, uid, attempt + 1))

        self._release(key, {uid}, lambda: self._last.discard((key, uid)), again)

    def _release(self, key: ObjectKey, owners: Collection[str], then: Callable[[], None], again: Callable[[], None]) -> None:
        """Calls `then`, or `again` after an error that may pass."""

        def failed(error: DriverError) -> None:
            if passes(error) or (self._operation.abandon and not isinstance(error, Superseded)):
                self._errors[key] = redact(str(error))
                LOG.warning("%s is not released from its owner yet, which is deleted: %s", key, self._errors[key])
                again()
            else:
                self._loop.refuse(error)

        if not self._loop.refusals:
            self._loop.send(functools.partial(self._disown, *self._staying[key], owners), lambda _: then(), failed)

    def _disown(self, resource: Resource, live: Object, owners: Collection[str]) -> None:
        self._context.inventory.fence.before_write()
        disown(self._context.client, resource, live, owners)
