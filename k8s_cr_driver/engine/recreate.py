# SPDX-License-Identifier: Apache-2.0
"""
Desired objects whose change touches a field that never changes: each is deleted, so that the run creates it again.

None is deleted before the API server has answered the first write of every object that waits for no other: a change that
it refuses then leaves all of them as they are. An error that may pass is waited for, for a while, and a denial for half of the
time: perhaps it passes only when others are replaced.
"""

from __future__ import annotations

import functools
import math
import threading
import time
from collections.abc import Callable, Mapping

from k8s_cr_driver.engine.ends import Ends
from k8s_cr_driver.engine.nodes import Desired, Phase
from k8s_cr_driver.engine.releases import Releases
from k8s_cr_driver.engine.run import Run
from k8s_cr_driver.errors import DriverError
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.objects.fields import field, uid_of
from k8s_cr_driver.objects.keys import Object, ObjectKey, key_of
from k8s_cr_driver.ownership.delete import Removal, remove
from k8s_cr_driver.ownership.orphans import OwnedOrphans
from k8s_cr_driver.ownership.owners import Owners, Takers, by_uid, dependents_and_released, holders, release_from_owners
from k8s_cr_driver.ownership.unlabeled import reclaim
from k8s_cr_driver.ownership.write_errors import is_denied

Found = list[tuple[Resource, Object]]

HOLD = 30.0
"""Seconds for which an error that may pass is no response to go by, because a refusal may follow."""


class Recreator:
    """
    `awaited`: the objects whose first write is still to be answered.

    `retry` and `try_later` are called with an object that is to be written again, `failed` with one that stays.
    """

    def __init__(
        self,
        run: Run,
        releases: Releases,
        ends: Ends,
        awaited: set[ObjectKey],
        *,
        retry: Callable[[Desired], None],
        try_later: Callable[[Desired], None],
        failed: Callable[[Desired, DriverError], None],
        mark_unready: Callable[[Desired], None],
    ) -> None:
        self._operation, self._loop, self._context = run.operation, run.loop, run.context
        self._releases, self._ends, self._awaited = releases, ends, awaited
        self._retry, self._try_later, self._failed, self._mark_unready = retry, try_later, failed, mark_unready
        self._held: list[tuple[Desired, Object]] = []
        self._lock = threading.Lock()
        self._replaced: dict[str, Object] = {}
        """By uid, what is deleted, by this run or by others. All threads read it."""
        self._listed: Found = []
        self._around: Found = []
        self._listed_at = -math.inf

    def add(self, node: Desired, live: Object) -> None:
        """An object, as it was when its change was refused."""
        node.phase = Phase.BACKOFF
        if node.live is None:  # it has lost the label by which the watch selects
            node.is_new = False
            labelled = functools.partial(reclaim, self._context, node.resource, live)
            self._loop.send(labelled, lambda _: self._try_later(node), functools.partial(self._failed, node))
        else:
            node.is_held = True
            self._held.append((node, live))

    def goes(self, live: Object) -> None:
        """Others, such as a former run, delete a desired object: what it owns of the instance, and around it, outlives it."""
        if uid_of(live) in self._replaced:
            return
        self._replaced[uid_of(live)] = live
        self._releases.unread[uid_of(live)] = key_of(live)
        request, follow = functools.partial(self._operation.persist, self._dependents), functools.partial(self._follow, live)
        self._loop.send(request, follow, self._loop.refuse)

    def _follow(self, going: Object, found: tuple[Found, Found]) -> None:
        """What no watch selects, and may be owned by what goes, is read by each look."""
        others, around = found
        self._releases.unread.pop(uid_of(going), None)
        for _, live in (*others, *around):
            self._releases.lists(live)
        for _, live in around:
            self._releases.released(key_of(live))

    def delayed(self, node: Desired, error: DriverError) -> None:
        """
        A write of the object has failed for a reason that may pass. Perhaps it passes only when others are replaced.

        Somebody may have to approve of what is denied, so that has more time.
        """
        if not node.attempts:
            seconds = self._operation.remaining() / 2 if is_denied(error) else self._operation.share(HOLD)
            self._loop.after(seconds, functools.partial(self.answered, node))

    def answered(self, node: Desired) -> None:
        """The API server has accepted or refused a write of the object, or nothing is left to write."""
        self._awaited.discard(node.key)
        if self._awaited or self._loop.refusals:
            return
        held, self._held = self._held, []
        for one, live in held:
            one.is_held = False
            if one.live is not None and field(one.live, "metadata", "uid") == live["metadata"]["uid"]:
                self._delete(one, live)
            else:
                self._retry(one)

    def _delete(self, node: Desired, live: Object) -> None:
        """The watch reports when the object no longer exists. The others outlive it."""
        node.phase, node.finished, node.replaced = Phase.SENDING, False, live["metadata"]["uid"]
        self._replaced[uid_of(live)] = live
        self._releases.goes(live)
        self._mark_unready(node)

        def request() -> Removal | None:
            listed, around = self._dependents()
            others = [one for one in listed if key_of(one[1]) != node.key]
            others.extend(OwnedOrphans(self._context).of(live))
            staying = [*others, *around]
            # All that are replaced: another one of them keeps nothing that the driver may not write
            owners = Owners(self._context.client, self._replaced, by_uid(other for _, other in staying))
            takers = release_from_owners(self._context, owners, staying)
            self._loop.post(functools.partial(self._note, others, around, takers))
            if self._loop.refusals:  # the run has ended, so that nobody would create it again
                raise self._loop.refusals[0]
            return remove(self._context, node.obj, node.resource, live, None)

        deleted, failed = functools.partial(self._deleted, node, live), functools.partial(self._failed, node)
        delete = functools.partial(self._loop.send, request, deleted, failed)
        forget = functools.partial(self._ends.forget_former, node, delete)
        if node.has_former_end:  # a rollback does not run it again if its deletion is denied, and it vanishes then
            trial = functools.partial(self._context.client.try_deletion, node.resource, live)
            self._loop.send(trial, lambda _: forget(), failed)
        else:
            forget()

    def _dependents(self) -> tuple[Found, Found]:
        """
        The instance's objects that have owners, and what no watch selects: as of now, a watch may be late.

        All who wait for a list share the next.
        """
        asked_at = time.monotonic()
        with self._lock:
            self._operation.check_stopped()
            if self._listed_at < asked_at:
                began = time.monotonic()
                members = self._context.inventory.content.members
                held_by = holders(self._context, list(self._replaced.values()), members, self._context.client.find)
                self._listed, released = dependents_and_released(self._context)
                self._around, self._listed_at = [*released, *held_by], began
            return self._listed, self._around

    def _note(self, others: Found, around: Found, takers: Mapping[str, Takers]) -> None:
        """Objects that outlive what is deleted, those `around` without a watch, and the owners of theirs that go with it."""
        self._releases.take_along(takers)
        for _, live in others:
            self._releases.knows(live)
        for _, live in around:
            self._releases.follows(live)

    def _deleted(self, node: Desired, live: Object, removal: Removal | None) -> None:
        """The watch may have been faster; or somebody has created the object again, so that nothing was deleted."""
        self._releases.is_asked(live)
        if removal is None:
            self._try_later(node)
        elif node.live is None or not node.replaces(node.live):
            self._retry(node)
        else:
            node.phase = Phase.SENT
