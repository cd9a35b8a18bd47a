# SPDX-License-Identifier: Apache-2.0
"""
Desired objects whose change touches a field that never changes: each is deleted, so that the run creates it again.

None is deleted before the API server has answered the first write of every object that waits for no other: a change that
it refuses then leaves all of them as they are. An error that may pass is waited for, for a while, and a denial for half of the
time: perhaps it passes only when others are replaced.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from k8s_cr_driver.engine.apply.finished import Ends
from k8s_cr_driver.engine.run.loop import Run
from k8s_cr_driver.engine.run.nodes import Desired, Phase
from k8s_cr_driver.engine.watch.informers import Informers
from k8s_cr_driver.errors import DriverError
from k8s_cr_driver.objects.fields import uid_of
from k8s_cr_driver.objects.keys import Object, ObjectKey
from k8s_cr_driver.writes.delete import Removal, remove
from k8s_cr_driver.writes.members import reclaim, release_others
from k8s_cr_driver.writes.write_errors import is_denied


class Recreator:
    """
    `awaited`: the objects whose first write is still to be answered.

    `retry` and `try_later` are called with an object that is to be written again, `failed` with one that stays.
    """

    def __init__(
        self,
        run: Run,
        informers: Informers,
        ends: Ends,
        awaited: set[ObjectKey],
        *,
        retry: Callable[[Desired], None],
        try_later: Callable[[Desired], None],
        failed: Callable[[Desired, DriverError], None],
        mark_unready: Callable[[Desired], None],
    ) -> None:
        self._operation, self._loop, self._context = run.operation, run.loop, run.context
        self._informers, self._ends, self._awaited = informers, ends, awaited
        self._retry, self._try_later, self._failed, self._mark_unready = retry, try_later, failed, mark_unready
        self._held: list[tuple[Desired, Object]] = []

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

    def delayed(self, node: Desired, error: DriverError) -> None:
        """
        A write of the object has failed for a reason that may pass. Perhaps it passes only when others are replaced.

        Somebody may have to approve of what is denied, so that has more time.
        """
        if not node.attempts:
            operation = self._operation
            seconds = operation.remaining() / 2 if is_denied(error) else operation.share(operation.timing.hold)
            self._loop.after(seconds, self.answered, node)

    def answered(self, node: Desired) -> None:
        """The API server has accepted or refused a write of the object, or nothing is left to write."""
        self._awaited.discard(node.key)
        if self._awaited or self._loop.refusals:
            return
        held, self._held = self._held, []
        if held:
            self._release(held)

    def _release(self, held: list[tuple[Desired, Object]]) -> None:
        """References to what is deleted are removed from what stays, once. Then each is deleted, unless it has changed."""
        resources, everything = self._context.resources, self._informers.everything()
        watched = [(resource, live) for key, live in everything if (resource := resources.find(key.group_kind))]
        def released(_: None) -> None:
            for node, live in held:
                node.is_held = False
                if uid_of(node.live) == uid_of(live):
                    self._delete(node, live)
                else:
                    self._retry(node)

        def failed(error: DriverError) -> None:
            for node, _ in held:
                node.is_held = False
                self._failed(node, error)

        release = functools.partial(release_others, self._context, [live for _, live in held], watched)
        self._loop.send(release, released, failed)

    def _delete(self, node: Desired, live: Object) -> None:
        """The watch reports when the object no longer exists."""
        node.phase, node.finished, node.replaced = Phase.SENDING, False, live["metadata"]["uid"]
        self._mark_unready(node)

        def request() -> Removal | None:
            if self._loop.refusals:  # the run has ended, so that nobody would create it again
                raise self._loop.refusals[0]
            return remove(self._context, node.obj, node.resource, live, None)

        deleted, failed = functools.partial(self._deleted, node), functools.partial(self._failed, node)
        delete = functools.partial(self._loop.send, request, deleted, failed)
        forget = functools.partial(self._ends.forget_former, node, delete)
        if node.has_former_end:  # a rollback does not run it again if its deletion is denied, and it vanishes then
            trial = functools.partial(self._context.client.try_deletion, node.resource, live)
            self._loop.send(trial, lambda _: forget(), failed)
        else:
            forget()

    def _deleted(self, node: Desired, removal: Removal | None) -> None:
        """The watch may have been faster; or somebody has created the object again, so that nothing was deleted."""
        if removal is None:
            self._try_later(node)
        elif node.live is None or not node.replaces(node.live):
            self._retry(node)
        else:
            node.phase = Phase.SENT
