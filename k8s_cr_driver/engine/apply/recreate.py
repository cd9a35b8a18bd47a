# SPDX-License-Identifier: Apache-2.0
"""
Desired objects whose change touches a field that never changes: each is deleted, so that the run creates it again.

None is deleted before the API server has answered the first write of every object that waits for no other: a change that
it refuses then leaves all of them as they are. An error that may pass is waited for, for a while, and a denial for half of the
time: perhaps it passes only when others are replaced.
"""

from __future__ import annotations

from k8s_cr_driver.engine.apply.desired_set import DesiredSet
from k8s_cr_driver.engine.apply.notes import Notes
from k8s_cr_driver.engine.run.loop import Resume, Run, until
from k8s_cr_driver.engine.run.nodes import Desired, Phase
from k8s_cr_driver.engine.watch.informers import Informers
from k8s_cr_driver.errors import DriverError
from k8s_cr_driver.kube import timing
from k8s_cr_driver.objects.fields import uid_of
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.writes.delete import Removal, remove
from k8s_cr_driver.writes.members import reclaim, release_others
from k8s_cr_driver.writes.write_errors import is_denied


class Recreator:
    """Deletes such objects of one run."""

    def __init__(self, run: Run, desired: DesiredSet, informers: Informers, notes: Notes) -> None:
        self._run, self._loop, self._context = run, run.loop, run.context
        self._set, self._informers, self._notes = desired, informers, notes
        self._awaited = {node.key for node in desired.nodes.values() if not node.needs}
        """The objects whose first write is still to be answered."""
        self._held: list[tuple[Object, Resume]] = []

    async def recreate(self, node: Desired, live: Object) -> Phase:
        """
        Deletes the object, unless it is not as `live` any more, as which its change was refused; raises DriverError.

        Returns the phase in which it is then: BLOCKED and BACKOFF to be written again, SENT until the watch reports that it
        no longer exists.
        """
        if node.live is None:  # it has lost the label by which the watch selects
            node.phase, node.is_new = Phase.BACKOFF, False
            await self._loop.call(reclaim, self._context, node.resource, live)
            return Phase.BACKOFF
        node.phase = Phase.HELD
        await until(lambda resume: self._held.append((live, resume)))
        if uid_of(node.live) != uid_of(live):
            return Phase.BLOCKED
        node.phase, node.finished, node.replaced = Phase.SENDING, False, uid_of(live)
        self._set.unready[node.key] = None
        if node.has_former_end:  # a rollback does not run it again if its deletion is denied, and it vanishes then
            await self._loop.call(self._context.client.try_deletion, node.resource, live)
            await self._notes.forget_former(node)
        if await self._loop.call(self._delete, node, live) is None:
            return Phase.BACKOFF  # somebody has created it again
        return Phase.SENT if node.live is not None and node.replaces(node.live) else Phase.BLOCKED

    def delayed(self, node: Desired, error: DriverError) -> None:
        """
        A write of the object has failed for a reason that may pass. Perhaps it passes only when others are replaced.

        Somebody may have to approve of what is denied, so that has more time.
        """
        if not node.attempts:
            operation = self._run.operation
            seconds = operation.remaining() / 2 if is_denied(error) else operation.share(timing.TIMING.hold)
            self._loop.after(seconds, self.answered, node)

    def answered(self, node: Desired) -> None:
        """The API server has accepted or refused a write of the object, or nothing is left to write."""
        self._awaited.discard(node.key)
        if self._held and not (self._awaited or self._loop.refusals):
            held, self._held = self._held, []
            self._loop.start(self._release(held))

    async def _release(self, held: list[tuple[Object, Resume]]) -> None:
        """References to what is deleted are removed from what stays, once."""
        resources, everything = self._context.resources, self._informers.everything()
        watched = [(resource, live) for key, live in everything if (resource := resources.find(key.group_kind))]
        failed: DriverError | None = None
        try:
            await self._loop.call(release_others, self._context, [live for live, _ in held], watched)
        except DriverError as error:
            failed = error
        for _, resume in held:
            resume(None, failed)

    def _delete(self, node: Desired, live: Object) -> Removal | None:
        if self._loop.refusals:  # the run has ended, so that nobody would create it again
            raise self._loop.refusals[0]
        return remove(self._context, node.obj, node.resource, live, None)
