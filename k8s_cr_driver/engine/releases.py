# SPDX-License-Identifier: Apache-2.0
"""
Objects that stay, while an owner of theirs is deleted: they are released from it again and again.

Operators set their ownerReference in each reconciliation. An owner may wait for its deletion, and then for a finalizer, for
minutes, in which it owns again what was released from it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection

from k8s_cr_driver.engine.garbage import owner_uids
from k8s_cr_driver.engine.nodes import Phase, ToDelete
from k8s_cr_driver.engine.run import Run
from k8s_cr_driver.errors import DriverError, passes
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.objects.fields import uid_of
from k8s_cr_driver.objects.keys import Object, ObjectKey, key_of
from k8s_cr_driver.ownership.delete import Removal
from k8s_cr_driver.ownership.orphans import OwnedOrphans, release_orphans
from k8s_cr_driver.ownership.released import disown
from k8s_cr_driver.resources.registry import resource_for

AGAIN = 1.0
"""Seconds after a failed release until the next one."""


class Releases:
    """`find`: the object of a uid, if the run has yet to remove it; `deletes`: whether it deletes it, or only releases it."""

    def __init__(self, run: Run, find: Callable[[str], ToDelete | None], deletes: Callable[[Object], bool]) -> None:
        self._loop, self._context, self._resources = run.loop, run.context, run.resources
        self._find, self._deletes = find, deletes
        self._staying: dict[str, dict[ObjectKey, tuple[Resource, Object]]] = {}
        """By the uids of their owners."""

    def stays(self, live: Object) -> None:
        """Notes the owners of an object that stays, and releases it at once from those whose deletion was asked for."""
        resource = self._resources.find(key_of(live).group_kind)
        owners = owner_uids(live)
        if resource is None or not owners:
            return
        for uid in owners:
            self._staying.setdefault(uid, {})[key_of(live)] = resource, live
        if going := {uid for uid in owners if self._is_going(uid)}:
            self._send(resource, live, going)

    def before(
        self, live: Object, members: Collection[ObjectKey], removal: Callable[[], Removal | None]
    ) -> Callable[[], Removal | None]:
        """The request that deletes an owner, once what stays is released from it."""
        staying = list(self._staying.get(uid_of(live), {}).values())

        def request() -> Removal | None:
            if resource_for(live).takes_orphans():
                release_orphans(self._context, live, members, OwnedOrphans(self._context))
            for resource, one in staying:
                self._disown(resource, one, {uid_of(live)})
            return removal()

        return request

    def _is_going(self, uid: str) -> bool:
        owner = self._find(uid)
        if owner is None or owner.live is None or owner.phase not in (Phase.SENDING, Phase.SENT):
            return False
        return self._deletes(owner.live) and not owner.stays

    def _send(self, resource: Resource, live: Object, going: Collection[str]) -> None:
        def failed(error: DriverError) -> None:
            if passes(error):
                self._loop.after(AGAIN, functools.partial(self._send, resource, live, going))
            else:
                self._loop.refuse(error)

        self._loop.send(functools.partial(self._disown, resource, live, going), lambda _: None, failed)

    def _disown(self, resource: Resource, live: Object, owners: Collection[str]) -> None:
        self._context.inventory.fence.before_write()
        disown(self._context.client, resource, live, owners)
