# SPDX-License-Identifier: Apache-2.0
"""
Deletes objects in reverse dependency order, and waits until they are deleted.

An object whose controlling owner is deleted too is left to the garbage collector. Finalizers are never removed: the
report names the one that holds an object.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence

from k8s_cr_driver import logs
from k8s_cr_driver.engine.delete.collected import Garbage, Gone, is_taken, may_be_held
from k8s_cr_driver.engine.delete.departures import Departures
from k8s_cr_driver.engine.delete.webhooks import StoppedDeletions
from k8s_cr_driver.engine.run.loop import Run
from k8s_cr_driver.engine.run.nodes import Phase, ToDelete
from k8s_cr_driver.engine.watch.informers import Informers
from k8s_cr_driver.errors import ApiError, DriverError, Superseded, passes
from k8s_cr_driver.objects import dependencies
from k8s_cr_driver.objects.crds import defined_by, is_refused
from k8s_cr_driver.objects.fields import uid_of
from k8s_cr_driver.objects.keys import CRD, Object, ObjectKey, is_of_every_namespace, key_of, owner_names, owner_uids, split
from k8s_cr_driver.objects.marks import SHARED, is_kept
from k8s_cr_driver.plan.actions import IN_USE, stays, why_used
from k8s_cr_driver.redaction import redact
from k8s_cr_driver.resources.registry import resource_for
from k8s_cr_driver.writes.context import is_selected
from k8s_cr_driver.writes.delete import Removal, remove
from k8s_cr_driver.writes.guests import Guests
from k8s_cr_driver.writes.orphans import may_leave
from k8s_cr_driver.writes.write_errors import NOT_RESTORED

LOG = logs.logger(__name__)

READ_EVERY = 2.0
"""Seconds between two reads of an object that the watch does not select any more."""


class Pruner:
    """The objects to delete of a run; `nodes` is empty when all are deleted. Those that the set `uses` are only released."""

    def __init__(
        self,
        run: Run,
        grace_period: int | None,
        uses: Callable[[Object], bool] = lambda _: False,
        informers: Informers | None = None,
    ) -> None:
        """`informers` report what no longer exists, if they have reported it; None: others do, and call `observe`."""
        self._run, self._grace_period, self._uses, self._informers = run, grace_period, uses, informers
        self.nodes: dict[ObjectKey, ToDelete] = {}
        self.gone = Gone()
        self.garbage = Garbage(run, self.nodes)
        self._departures = Departures(run, self.nodes)
        self._stopped = StoppedDeletions(run, self.nodes)
        self._kept: set[ObjectKey] = set()

    def start(self, lives: Sequence[Object], *, released: Collection[ObjectKey] = (), with_orphans: bool = False) -> None:
        """
        Begins to delete `lives`; `with_orphans`: their orphans go, too, and keep no Namespace.

        `released`: what an earlier run has released, and that stays in its Namespace and CRD.
        """
        self._departures.guests = Guests(self._run.context, leaving=lives if with_orphans else ())
        stay = frozenset(key_of(live) for live in lives if not self.deletes(live))
        self._kept.update(released, stay)
        pairs = [(key_of(live), one) for live in lives for one in resource_for(live).relations().deleted_before(lives)]
        # With abandon nothing waits for an object that refers to it: its finalizer may be one that nobody removes any more
        needs = dependencies.deletion(lives, pairs, frozenset(map(key_of, lives)) if self._run.operation.abandon else stay)
        for live in lives:
            self.add(live, needs)
        for live in filter(self._run.context.inventory.content.is_adopted, lives):
            LOG.warning("%s is released, not deleted. %s", key_of(live), NOT_RESTORED)
        for node in list(self.nodes.values()):
            self._try(node)
        if self._run.operation.abandon:
            self._run.loop.after(self._run.operation.remaining() / 2, self._delete_collected)

    def _delete_collected(self) -> None:
        """An owner whose deletion is refused, or that a finalizer holds, keeps no other object."""
        self.garbage.may_collect = False
        for node in [node for node in self.nodes.values() if node.is_collected]:
            self._retry(node)

    def add(self, live: Object, needs: dict[ObjectKey, set[ObjectKey]]) -> ToDelete:
        obj = resource_for(live)
        version = split(live["apiVersion"])[1]  # a server may name one that it does not serve
        resource = self._run.resources.find_any(obj.key.group_kind, version)
        assert resource is not None, "a watch reported it"
        node = ToDelete(obj, resource, set(needs.get(obj.key, ())), live=live)
        node.is_unwatched = self._is_unwatched(node.key, live)
        self.nodes[node.key] = node
        self.garbage.add(node)
        return node

    def observe(self, key: ObjectKey, live: Object | None) -> None:
        """A watch reports an object that is not desired; None: it is no longer selected, or we no longer manage it."""
        node = self.nodes.get(key)
        if live is not None:
            self._keep(key, live)
            if node is None:
                self._try(self.add(live, {}))
            else:
                self._seen(node, live)
        elif node is None:
            return
        elif node.phase is Phase.SENDING:
            node.is_gone = True
        else:
            self._unselected(node)

    def _unselected(self, node: ToDelete) -> None:
        """The watch no longer selects the object: it was deleted, or somebody has removed our label. The event is the same."""
        if node.stays or (node.phase is Phase.SENT and not may_be_held(node)):
            self._gone(node)
        else:
            self._run.loop.start(self._read(node))

    def _gone(self, node: ToDelete) -> None:
        if self.nodes.pop(node.key, None) is None:
            return
        self.gone.at = time.monotonic()
        if node.live is not None and may_leave(node.key.group_kind):
            self.gone.last[uid_of(node.live)] = node.live
        self.gone.by_others |= node.phase is not Phase.SENT
        if not node.stays:
            if node.key in self._kept and node.live is not None and not self.deletes(node.live):
                LOG.warning("%s was to stay, and is gone, perhaps with its owners: %s", node.key, owner_names(node.live))
            self._kept.discard(node.key)
        else:
            LOG.warning("%s: %s is released and stays: %s", self._run.operation.id, node.key, redact(node.stays))
        self._run.operation.progress(node.key, "left" if node.stays else "deleted", node.stays)
        for other in self.garbage.waiting_for(node.key):
            other.needs.discard(node.key)
            self._try(other)
        if node.stays:
            self._retry_owned_by(node)

    def _retry_owned_by(self, owner: ToDelete) -> None:
        """Objects that were left to garbage collection: their owner stays."""
        for node in self.garbage.owned_by(uid_of(owner.live)):
            if node.phase is Phase.SENT and not node.stays:
                self._retry(node)

    async def _read(self, node: ToDelete) -> None:
        """Reads an object that the watch does not select, until that is not needed any more."""
        while self._is_current(node):
            asked, live, failed = uid_of(node.live), None, None
            try:
                live = await self._departures.call(self._run.client.read, node.resource, node.key)
            except DriverError as error:
                failed = error
            if not self._is_current(node) or uid_of(node.live) != asked:
                return  # the watch has reported another object of the name meanwhile
            if not (seconds := self._not_found(node, failed) if live is None else self._found(node, live)):
                return
            await self._run.loop.pause(seconds)

    def _found(self, node: ToDelete, live: Object) -> float:
        """
        What others have taken from us is nothing to delete. What controllers have created was never ours, see `Replacer`.

        Returns the seconds until the next read, 0 if there is to be none.
        """
        if uid_of(live) != uid_of(node.live):
            self.gone.by_others = True
            self._gone(node)
            return 0
        if is_taken(self._run.context.instance, node.live or live, live):
            if not self.deletes(live):  # we have released it, and the answer is lost
                node.stays = stays(self._run.context.inventory.content, live)
                self._kept.add(node.key)
            self._gone(node)
            self._retry_owned_by(node)
            return 0
        self._keep(node.key, live)
        node.live, node.is_gone, node.is_unwatched = live, False, self._is_unwatched(node.key, live)
        return READ_EVERY if node.phase is Phase.SENT and node.is_unwatched else 0

    def _not_found(self, node: ToDelete, error: DriverError | None) -> float:
        if isinstance(error, ApiError) and error.status == 404:
            self._gone(node)
        elif error is not None and passes(error):
            node.error = error
            return node.backoff()
        elif error is not None:
            node.is_unwatched = True
            self._refused(node, error)
        return 0

    def _seen(self, node: ToDelete, live: Object) -> None:
        """An object created again under the same name has to be deleted as well, and one whose owners have changed."""
        before, node.live, node.is_gone = node.live, live, False
        self.garbage.note(node)
        is_other = before is None or uid_of(before) != uid_of(live) or owner_uids(before) != owner_uids(live)
        if node.phase is Phase.SENT and (is_other or (node.key in self._kept and not node.stays)):
            self._retry(node)

    def _try(self, node: ToDelete) -> None:
        is_due = node.phase is Phase.BLOCKED and not node.needs and self._is_current(node)  # else it is gone meanwhile
        if not is_due or self._run.loop.refusals or node.live is None:
            return
        node.phase = Phase.SENDING
        self._run.operation.progress(node.key, "deleting", "")
        node.is_collected = self.garbage.collects(node, node.live)
        if node.is_collected:
            self._sent(node, node.live, Removal(lingers=True))
        else:
            self._run.loop.start(self._remove(node, node.live))

    async def _remove(self, node: ToDelete, live: Object) -> None:
        is_shared = node.key.group_kind in SHARED and self.deletes(live)
        why = self._why_used(live) if is_shared else ""
        try:
            if is_shared and not why:
                why = await self._departures.why_it_stays(node)
                if self._run.loop.refusals:
                    return
                live = node.live or live
            if is_shared:
                why = self._why_used(live) or why  # what it holds may be kept since it was looked into
            where = self._run.context, node.obj, node.resource, live, self._grace_period
            removal = await self._departures.call(remove, *where, why=why)
        except DriverError as error:
            self._failed(node, error)
        else:
            self._sent(node, live, removal)

    def _is_unwatched(self, key: ObjectKey, live: Object) -> bool:
        is_reported = self._informers is None or self._informers.is_reported(key)
        return not (is_selected(self._run.context.instance, live) and is_reported)

    def _is_current(self, node: ToDelete) -> bool:
        return self.nodes.get(node.key) is node

    def _why_used(self, live: Object) -> str:
        """Which objects that stay need this Namespace or CRD; "" if none does."""
        return "" if is_refused(live) else IN_USE if self._uses(live) else why_used(live, self._kept)

    def _keep(self, key: ObjectKey, live: Object) -> None:
        if not self.deletes(live):
            self._kept.add(key)

    def deletes(self, live: Object) -> bool:
        """Whether it deletes such an object, and does not only release it."""
        return not stays(self._run.context.inventory.content, live)

    def _sent(self, node: ToDelete, asked: Object, removal: Removal | None) -> None:
        """`removal`: None if the object no longer exists."""
        stays, lingers = removal or Removal()
        node.phase, node.error, node.attempts, node.stays, node.lingers = Phase.SENT, None, 0, stays, lingers
        self.gone.by_others |= removal is None
        if node.key.group_kind == CRD and self._informers is not None and not stays and not is_refused(asked):
            self._informers.close(defined_by(asked))
        if stays and (is_kept(asked) or not is_of_every_namespace(node.key)):
            self._kept.add(node.key)
        if uid_of(node.live) != uid_of(asked):
            self._retry(node)
        elif stays and (node.is_gone or node.is_unwatched):
            self._gone(node)
        elif node.is_gone:
            self._unselected(node)
        else:  # its watch reports when it no longer exists, if it still selects it
            if node.is_unwatched:
                self._run.loop.start(self._read(node))
            if node.key.group_kind == CRD:
                self._run.loop.start(self._departures.nudge(node))

    def _failed(self, node: ToDelete, error: DriverError) -> None:
        has_changed = isinstance(error, ApiError) and error.status == 409
        if passes(error) or has_changed or self._stopped.may_be_admitted_later(node, error, self.gone.at):
            node.phase, node.error = Phase.BACKOFF, error
            self._run.loop.after(node.backoff(), self._retry, node)
            self._run.loop.start(self._free_webhooks(node))
            if node.is_gone or node.is_unwatched or has_changed:
                self._run.loop.start(self._read(node))
        else:
            node.phase = Phase.SENT
            self._refused(node, error)

    async def _free_webhooks(self, stopped: ToDelete) -> None:
        """Those that stop the deletion and do not respond wait for nothing any more."""
        for node in await self._stopped.silent(stopped):
            if node.live is not None and self.deletes(node.live):
                node.needs.clear()
                self._try(node)

    def _refused(self, node: ToDelete, error: DriverError) -> None:
        """Ends the run, unless the operation abandons what cannot be deleted."""
        if self._run.operation.abandon and not isinstance(error, Superseded):
            node.error = error
        else:
            self._run.loop.refuse(error)

    def _retry(self, node: ToDelete) -> None:
        node.phase = Phase.BLOCKED
        self._try(node)
