# SPDX-License-Identifier: Apache-2.0
"""
Objects that stay, while an owner of theirs is deleted: they are released from it again and again.

Operators set their ownerReference in each reconciliation. An owner may wait for its deletion, and then for a finalizer, for
minutes, in which it owns again what was released from it.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Collection

from oslo_log import log as logging

from k8s_cr_driver.engine.garbage import owner_uids
from k8s_cr_driver.engine.run import Run
from k8s_cr_driver.errors import DriverError, Superseded, passes
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.objects.fields import uid_of
from k8s_cr_driver.objects.keys import Object, ObjectKey, key_of
from k8s_cr_driver.ownership.delete import Removal
from k8s_cr_driver.ownership.orphans import OwnedOrphans, release_orphans
from k8s_cr_driver.ownership.released import disown
from k8s_cr_driver.redaction import redact
from k8s_cr_driver.resources.registry import resource_for

LOG = logging.getLogger(__name__)

AGAIN = 2.0
"""Seconds between two releases of an object while an owner goes: no watch reports an object that was released."""

READS_PER_SECOND = 50
"""So many objects at most are released in a second: with more of them, each has to wait longer."""


class Releases:
    """`is_going`: whether the deletion of the object of a uid was asked for, and it still exists."""

    def __init__(self, run: Run, is_going: Callable[[str], bool]) -> None:
        self._operation, self._loop, self._context, self._resources = run.operation, run.loop, run.context, run.resources
        self._is_going = is_going
        self._staying: dict[ObjectKey, tuple[Resource, Object]] = {}
        self._owners: dict[ObjectKey, set[str]] = defaultdict(set)
        """The uids of all owners that each object has had."""
        self._owned: dict[str, set[ObjectKey]] = defaultdict(set)
        self._held: set[ObjectKey] = set()
        """Those that are released from owners that go, at the most once in AGAIN seconds."""

    def stays(self, live: Object) -> None:
        """Notes the owners of an object that stays, and releases it from those that go."""
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

    def lingers(self, owner: str) -> None:
        """The deletion of an owner was asked for, and may take its time."""
        for key in self._owned.get(owner, ()):
            self._loop.after(AGAIN, functools.partial(self._hold, key))

    def before(
        self, live: Object, members: Collection[ObjectKey], removal: Callable[[], Removal | None]
    ) -> Callable[[], Removal | None]:
        """The request that deletes an owner, once what stays is released from it."""
        staying = [self._staying[key] for key in self._owned.get(uid_of(live), ())]

        def request() -> Removal | None:
            if resource_for(live).takes_orphans():
                release_orphans(self._context, live, members, OwnedOrphans(self._context))
            for resource, one in staying:
                self._disown(resource, one, {uid_of(live)})
            return removal()

        return request

    def _hold(self, key: ObjectKey) -> None:
        going = set(filter(self._is_going, self._owners[key]))
        if going and key not in self._held and not self._loop.refusals:
            self._held.add(key)
            release = functools.partial(self._disown, *self._staying[key], going)
            self._loop.send(release, lambda _: self._hold_later(key), functools.partial(self._failed, key))

    def _hold_later(self, key: ObjectKey) -> None:
        def again() -> None:
            self._held.discard(key)
            self._hold(key)

        self._loop.after(max(AGAIN, len(self._held) / READS_PER_SECOND), again)

    def _failed(self, key: ObjectKey, error: DriverError) -> None:
        if passes(error) or (self._operation.abandon and not isinstance(error, Superseded)):
            LOG.warning("%s is not released from its owner yet, which is deleted: %s", key, redact(str(error)))
            self._hold_later(key)
        else:
            self._loop.refuse(error)

    def _disown(self, resource: Resource, live: Object, owners: Collection[str]) -> None:
        self._context.inventory.fence.before_write()
        disown(self._context.client, resource, live, owners)
