# SPDX-License-Identifier: Apache-2.0
"""
Applies each object of the set as soon as its dependencies are ready, and has it assessed on every event.

Level based: an event is never interpreted alone, the whole object is assessed again. A transient error is retried with
backoff, any other ends the run.
"""

from __future__ import annotations

from k8s_cr_driver import logs
from k8s_cr_driver.engine.apply.desired_set import DesiredSet, Tolerance
from k8s_cr_driver.engine.apply.notes import Notes, goes_after_its_end, has_ended_well
from k8s_cr_driver.engine.apply.readiness import Assessor, Look
from k8s_cr_driver.engine.apply.recreate import Recreator
from k8s_cr_driver.engine.run.loop import Overdue, Run
from k8s_cr_driver.engine.run.nodes import Desired, Phase, changes_spec, is_another, is_older, version
from k8s_cr_driver.engine.watch.informers import Informers
from k8s_cr_driver.errors import DriverError, Refused
from k8s_cr_driver.kube import timing
from k8s_cr_driver.objects.crds import defined_by, served_versions
from k8s_cr_driver.objects.fields import field, uid_of
from k8s_cr_driver.objects.keys import CRD, GroupKind, Object
from k8s_cr_driver.objects.marks import is_optional
from k8s_cr_driver.writes.create_or_apply import NotAdopted, write
from k8s_cr_driver.writes.write_errors import Immutable, LeftAsItIs, missing, with_policy_remedy

LOG = logs.logger(__name__)


class Applier:
    """Writes the desired objects of one run. `held`: nothing before `write` is called."""

    def __init__(self, run: Run, desired: DesiredSet, informers: Informers, *, held: bool) -> None:
        self._run, self._loop, self._set, self._informers, self._is_held = run, run.loop, desired, informers, held
        self._notes = Notes(run)
        self._assessor = Assessor(run, desired)
        self._tolerance = Tolerance(desired)
        self._recreator = Recreator(run, desired, informers, self._notes)

    def write(self) -> None:
        """Writes what was held until now."""
        self._is_held = False
        for node in self._set.nodes.values():
            self._try(node)

    def kind_listed(self, kind: GroupKind) -> None:
        """It is known which objects of a kind are ours: by its first list, or the first after the kind was not served."""
        inventory = self._run.context.inventory
        ended = {key for key, _ in inventory.content.finished}
        for node in self._set.by_kind.get(kind, ()):
            node.finished = node.finished or (node.key not in self._set.rerun and node.has_ended(inventory, node.live))
            node.has_former_end = node.key in ended and not node.finished
            self._try(node)

    def observe(self, node: Desired, live: Object | None) -> None:
        """A watch reports one of our objects; None: it no longer exists."""
        if node.phase is Phase.LEFT:
            return
        if live is None:
            self._gone(node)
        elif node.phase is Phase.SENT:
            self._judge(node, live)
        elif node.observe(live) and node.is_new and has_ended_well(node, live):
            self._notes.end(node)  # before the response to its creation

    def _try(self, node: Desired) -> None:
        """Applies the object if its dependencies are ready, or written, and its kind is listed. What has ended stays gone."""
        is_free = node.phase is Phase.BLOCKED and not (node.needs or node.after) and not self._loop.refusals
        if not is_free or self._is_held or not self._informers.is_listed(node.key.group_kind):
            return
        if node.finished and (node.vanished or node.live is None):
            self._finish(node)
        else:
            node.phase, node.is_new, node.gone = Phase.SENDING, node.live is None, ""
            self._loop.start(self._send(node, node.live))

    async def _send(self, node: Desired, before: Object | None) -> None:
        context, how = self._run.context, {"vanished": node.vanished, "finished": node.finished}
        try:
            live = await self._loop.call(write, context, node.obj, node.resource, before, **how)
        except DriverError as error:
            self._failed(node, error)
        else:
            self._written(node, before, live)

    def _written(self, node: Desired, before: Object | None, live: Object) -> None:
        self._recreator.answered(node)
        self._tried(node)
        if node.is_settled:
            return
        if uid_of(live) == node.gone or self._is_gone(node, live):
            node.phase = Phase.SENT
            self._gone(node)
            return
        if live is not before:  # else nothing was sent, and it may be gone since
            self._informers.wrote(live)
        self._loop.start(self._notes.forget_former(node))
        if node.replaces(live):
            node.replaced = ""  # somebody has changed it meanwhile, so that it need not be deleted
        node.phase, node.error, node.attempts, node.vanished = Phase.SENT, None, 0, False
        node.written = version(live)
        # A status may have other fields in the version that is watched, in which the same state is reported soon.
        is_comparable = self._informers.watched_version(node.key.group_kind) in ("", live["apiVersion"])
        is_changed = changes_spec(before, live)
        if is_changed and node.key.group_kind == CRD:
            self._tolerance.redefined(defined_by(live))
        self._assessor.written(node, live, is_changed=is_changed, is_comparable=is_comparable)
        newest = node.live if node.live is not None and not is_older(node.live, node.written) else live
        node.live = None
        if newest is not live or is_comparable:
            self._judge(node, newest)

    def _is_gone(self, node: Desired, written: Object) -> bool:
        """Whether another object has been reported since under the name of what was written."""
        return node.live is not None and not is_older(node.live, version(written)) and is_another(node.live, written)

    def _tried(self, node: Desired) -> None:
        for follower in self._set.tried(node):
            self._try(follower)

    def _failed(self, node: Desired, error: DriverError) -> None:
        if node.is_settled:
            self._recreator.answered(node)
            return
        if isinstance(error, LeftAsItIs):
            node.phase, node.live, node.error = Phase.LEFT, None, None
            self._recreator.answered(node)
            self._mark_ready(node)
            return
        if isinstance(error, NotAdopted):
            self._loop.start(self._adopt(node, error.uid))
            return
        if self._tolerance.may_pass(node, error):
            self._recreator.delayed(node, error)
            node.error = error
            self._try_later(node)
            return
        if isinstance(error, Immutable):
            node.error = None
            self._loop.start(self._recreate(node, error.live))
            self._tried(node)
        else:
            self._refuse(node, with_policy_remedy(missing(error, node.key), self._run.context.inventory.content.kinds))
        self._recreator.answered(node)

    def _refuse(self, node: Desired, error: DriverError) -> None:
        if isinstance(error, Refused) and self._set.can_do_without(node):
            node.phase, node.error = Phase.BACKOFF, error  # is not tried again
            self._tried(node)
        else:
            self._loop.refuse(error)

    async def _adopt(self, node: Desired, uid: str) -> None:
        """Records it before the first write to the object."""
        node.phase = Phase.BACKOFF
        LOG.warning("%s existed before and is adopted: it will be released, not deleted", node.key)
        try:
            await self._notes.stored({node.key: uid})
        except DriverError as error:
            self._failed(node, error)
        else:
            self._retry(node)

    async def _recreate(self, node: Desired, live: Object) -> None:
        try:
            phase = await self._recreator.recreate(node, live)
        except DriverError as error:
            self._failed(node, error)
            return
        if phase is Phase.BLOCKED:
            self._retry(node)
        elif phase is Phase.BACKOFF:
            self._try_later(node)
        else:
            node.phase = phase

    def _try_later(self, node: Desired) -> None:
        node.phase = Phase.BACKOFF
        self._tried(node)
        self._loop.after(node.backoff(), self._retry, node)

    def _retry(self, node: Desired) -> None:
        if not node.is_settled:
            node.phase = Phase.BLOCKED
            self._try(node)

    def _finish(self, node: Desired) -> None:
        """Nothing is left to do for an object that has run to its end, and has vanished."""
        node.phase, node.finished = Phase.SENT, True
        self._recreator.answered(node)
        self._mark_ready(node)

    def _gone(self, node: Desired) -> None:
        node.vanished = True
        if node.finished:
            node.phase = Phase.BLOCKED  # what waits for it waits for what it has waited for
            self._try(node)
            return
        if node.phase is Phase.SENDING:
            node.gone = str(field(node.live, "metadata", "uid"))
        node.live, node.written = None, ""
        if node.phase is Phase.SENT:
            node.phase = Phase.BLOCKED
            self._set.unready[node.key] = None
        self._set.gone(node)
        self._try(node)

    def _judge(self, node: Desired, live: Object) -> None:
        if self._assessor.observe(node, live):
            self._assess(node)

    async def _look(self, look: Look) -> None:
        for node in await look:
            self._assess(node)

    def _assess(self, node: Desired) -> None:
        live = node.live
        if live is None or node.phase is not Phase.SENT or node.replaces(live):  # one that is about to be deleted
            return
        verdict = self._assessor.assess(node, live)
        self._run.operation.progress(node.key, node.health.state.value, node.health.message)
        for look in verdict.looks:
            self._loop.start(self._look(look))
        if verdict.is_ready:
            if node.obj.has_finished(live):
                self._notes.end(node)
            else:
                node.finished = False
            self._mark_ready(node)
            return
        self._set.unready[node.key] = None
        if goes_after_its_end(node, live):
            self._notes.end(node)
        if node.failed_at is not None:
            self._loop.after(timing.TIMING.failure_grace, self._give_up, node, node.failed_at)

    def _mark_ready(self, node: Desired) -> None:
        self._tried(node)
        if node.key not in self._set.unready:
            return
        freed = self._set.ready(node)
        if node.key.group_kind == CRD:
            kind = defined_by(node.obj.manifest)
            self._informers.reopen(kind, list(served_versions(node.obj.manifest)))
            self._informers.open(self._set.kinds & {kind})
        for dependent in freed:
            self._try(dependent)

    def _give_up(self, node: Desired, failed_at: float) -> None:
        if node.failed_at == failed_at and not is_optional(node.obj.manifest):
            raise Overdue(headline=f"not ready, and {node.key} has failed")
