# SPDX-License-Identifier: Apache-2.0
"""
Deletes objects in reverse dependency order, and waits until they are deleted.

An object whose controlling owner is deleted too is left to the garbage collector. Finalizers are never removed: the
report names the one that holds an object.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Collection, Sequence

from k8s_cr_driver import logs
from k8s_cr_driver.engine.delete.collected import Garbage, owner_names, owner_uids
from k8s_cr_driver.engine.delete.departures import Departures
from k8s_cr_driver.engine.run.loop import Run
from k8s_cr_driver.engine.run.nodes import Phase, ToDelete
from k8s_cr_driver.engine.watch.informers import Informers
from k8s_cr_driver.errors import ApiError, DriverError, Superseded, passes
from k8s_cr_driver.objects import dependencies
from k8s_cr_driver.objects.crds import CLEANUP, defined_by, is_refused
from k8s_cr_driver.objects.fields import field, uid_of
from k8s_cr_driver.objects.keys import (
    CRD,
    Object,
    ObjectKey,
    controller_of,
    is_of_every_namespace,
    key_of,
    kind_of,
    split,
)
from k8s_cr_driver.objects.marks import SHARED, is_kept, is_managed
from k8s_cr_driver.plan.decision import IN_USE, holds, stays
from k8s_cr_driver.redaction import redact
from k8s_cr_driver.resources.registry import resource_for
from k8s_cr_driver.writes.context import is_selected
from k8s_cr_driver.writes.delete import Removal, remove
from k8s_cr_driver.writes.guests import Guests
from k8s_cr_driver.writes.orphans import leaving_kinds
from k8s_cr_driver.writes.write_errors import NOT_RESTORED, is_denied

LOG = logs.logger(__name__)

DENIED_GRACE = 10.0
"""Seconds after a deletion for which a webhook may still deny another one: it may see the cluster through a cache."""
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
        self._operation, self._loop, self._context = run.operation, run.loop, run.context
        self._resources, self._grace_period, self._uses, self._informers = run.resources, grace_period, uses, informers
        self.nodes: dict[ObjectKey, ToDelete] = {}
        self.found: list[Object] = []
        """What there was to delete, as it was found."""
        self.last: dict[str, Object] = {}
        """By uid, as it was last seen, what is gone and may have left orphans: only a late state says who writes its status."""
        self.others_delete = False
        """Whether others have deleted one of the objects: they may have created it again, as `kubectl replace --force` does."""
        self._dependents: dict[ObjectKey, list[ToDelete]] = {}
        self._garbage = Garbage(run, self.nodes)
        self._departures = Departures(run, self.nodes, self._send, self._failed)
        self._kept: set[ObjectKey] = set()
        self._may_collect = True
        self._last_gone = float("-inf")

    def start(
        self,
        lives: Sequence[Object],
        *,
        released: Collection[ObjectKey] = (),
        with_orphans: bool = False,
    ) -> None:
        """
        Begins to delete `lives`; `with_orphans`: their orphans go, too, and keep no Namespace.

        `released`: what a run before this one has released, and that stays in its Namespace and CRD.
        """
        self._kept.update(released)
        self._departures.guests = Guests(self._context, leaving=lives if with_orphans else ())
        stay = frozenset(key_of(live) for live in lives if not self.deletes(live))
        objects = [resource_for(live) for live in lives]
        pairs = [(one.key, later) for one in objects for later in one.relations().deleted_before(lives)]
        # With abandon nothing waits for an object that refers to it: its finalizer may be one that nobody removes any more
        needs = dependencies.deletion(lives, pairs, frozenset(map(key_of, lives)) if self._operation.abandon else stay)
        for live in lives:
            self.add(live, needs)
        for live in filter(self._context.inventory.content.is_adopted, lives):
            LOG.warning("%s is released, not deleted. %s", key_of(live), NOT_RESTORED)
        for node in list(self.nodes.values()):
            self._try(node)
        if self._operation.abandon:
            self._loop.after(self._operation.remaining() / 2, self._delete_collected)

    def _delete_collected(self) -> None:
        """An owner whose deletion is refused, or that a finalizer holds, keeps no other object."""
        self._may_collect = False
        for node in [node for node in self.nodes.values() if node.is_collected]:
            self._retry(node)

    def add(self, live: Object, needs: dict[ObjectKey, set[ObjectKey]]) -> ToDelete:
        obj = resource_for(live)
        version = split(live["apiVersion"])[1]  # a server may name one that it does not serve
        resource = self._resources.find_any(obj.key.group_kind, version)
        assert resource is not None, "a watch reported it"
        node = ToDelete(obj, resource, set(needs.get(obj.key, ())), live=live)
        node.is_unwatched = self._is_unwatched(node.key, live)
        self.nodes[node.key] = node
        self.found.append(live)
        self._garbage.note(node)
        if not self.deletes(live):
            self._kept.add(node.key)
        for need in node.needs:
            self._dependents.setdefault(need, []).append(node)
        return node

    def observe(self, key: ObjectKey, live: Object | None) -> None:
        """A watch reports an object that is not desired; None: it is no longer selected, or we no longer manage it."""
        node = self.nodes.get(key)
        if live is not None:
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
        if node.stays or (node.phase is Phase.SENT and not _may_be_held(node)):
            self._gone(node)
        else:
            self._read(node)

    def _gone(self, node: ToDelete) -> None:
        if self.nodes.pop(node.key, None) is None:
            return
        self._last_gone = time.monotonic()
        if node.live is not None and node.key.group_kind in leaving_kinds():
            self.last[uid_of(node.live)] = node.live
        self.others_delete |= node.phase is not Phase.SENT
        if not node.stays:
            self._kept.discard(node.key)
            if node.live is not None and not self.deletes(node.live):
                LOG.warning("%s was to stay, and is gone, perhaps with its owners: %s", node.key, owner_names(node.live))
        else:
            LOG.warning("%s: %s is released and stays: %s", self._operation.id, node.key, redact(node.stays))
        self._operation.progress(node.key, "left" if node.stays else "deleted", node.stays)
        for other in self._dependents.pop(node.key, ()):
            other.needs.discard(node.key)
            self._try(other)
        if node.stays:
            self._retry_owned_by(uid_of(node.live))

    def _retry_owned_by(self, uid: str) -> None:
        """Objects that were left to garbage collection: their owner stays."""
        for node in self._garbage.owned_by(uid):
            if node.phase is Phase.SENT and not node.stays:
                self._retry(node)

    def _read(self, node: ToDelete) -> None:
        """Reads an object that the watch does not select."""
        request = functools.partial(self._context.client.read, node.resource, node.key)
        asked = uid_of(node.live)
        found, failed = functools.partial(self._found, node, asked), functools.partial(self._not_found, node, asked)
        self._loop.send(request, found, failed)

    def _is_about(self, node: ToDelete, asked: str) -> bool:
        """Whether the answer to a read is of use: the watch may have reported another object of the name meanwhile."""
        return self._is_current(node) and uid_of(node.live) == asked

    def _found(self, node: ToDelete, asked: str, live: Object) -> None:
        """What others have taken from us is nothing to delete. What controllers have created was never ours, see `Replacer`."""
        if not self._is_about(node, asked):
            return
        is_going = bool(field(live, "metadata", "deletionTimestamp"))
        is_other = uid_of(live) != uid_of(node.live)
        self.others_delete |= is_other
        if is_other:
            self._gone(node)
            return
        if not is_going and self._is_taken(node.live or live, live):
            if not self.deletes(live):  # we have released it, and the answer is lost
                node.stays = stays(self._context.inventory.content, live)
                self._kept.add(node.key)
            self._gone(node)
            self._retry_owned_by(uid_of(live))
            return
        node.live, node.is_gone, node.is_unwatched = live, False, self._is_unwatched(node.key, live)
        if node.phase is Phase.SENT and node.is_unwatched:
            self._loop.after(READ_EVERY, self._read, node)

    def _is_taken(self, before: Object, live: Object) -> bool:
        """Whether an object was ours by its managers or its label, and is not any more, or its controller has lost it."""
        instance = self._context.instance
        if is_managed(live, instance):
            return False
        has_lost_label = is_selected(instance, before) and not is_selected(instance, live)
        return is_managed(before, instance) or has_lost_label or controller_of(before) not in ("", controller_of(live))

    def _not_found(self, node: ToDelete, asked: str, error: DriverError) -> None:
        if not self._is_about(node, asked):
            return
        if isinstance(error, ApiError) and error.status == 404:
            self._gone(node)
        elif passes(error):
            node.error = error
            self._loop.after(node.backoff(), self._read, node)
        else:
            node.is_unwatched = True
            self._refused(node, error)

    def _seen(self, node: ToDelete, live: Object) -> None:
        """An object created again under the same name has to be deleted as well, and one whose owners have changed."""
        before, node.live, node.is_gone = node.live, live, False
        self._garbage.note(node)
        if not self.deletes(live):
            self._kept.add(node.key)
        is_other = before is None or uid_of(before) != uid_of(live) or owner_uids(before) != owner_uids(live)
        if node.phase is Phase.SENT and (is_other or (node.key in self._kept and not node.stays)):
            self._retry(node)

    def _try(self, node: ToDelete) -> None:
        if node.phase is not Phase.BLOCKED or node.needs or self._loop.refusals or node.live is None:
            return
        if not self._is_current(node):
            return  # deleted while it waited for its next try
        node.phase = Phase.SENDING
        self._operation.progress(node.key, "deleting", "")
        node.is_collected = self._may_collect and self._goes_with_owners(node.live) and self._garbage.collects(node, node.live)
        if node.is_collected:
            self._sent(node, node.live, Removal(lingers=True))
            return
        is_shared = node.key.group_kind in SHARED and self.deletes(node.live)
        if is_shared and not self._is_used(node.live):
            self._departures.add(node)
        else:
            self._send(node, IN_USE if is_shared else "")

    def _send(self, node: ToDelete, why: str) -> None:
        """`why` it stays, though the instance could delete it."""
        live = node.live
        assert live is not None, "it was there when it was its turn"
        if self._loop.refusals:
            return
        if self._is_used(live):  # what it holds is kept since it was looked into
            why = IN_USE
        request = functools.partial(remove, self._context, node.obj, node.resource, live, self._grace_period, why=why)
        self._departures.send(request, functools.partial(self._sent, node, live), functools.partial(self._failed, node))

    def _is_unwatched(self, key: ObjectKey, live: Object) -> bool:
        is_reported = self._informers is None or self._informers.is_reported(key)
        return not (is_selected(self._context.instance, live) and is_reported)

    def _is_current(self, node: ToDelete) -> bool:
        return self.nodes.get(node.key) is node

    def _is_used(self, live: Object) -> bool:
        """Whether objects that stay need this Namespace or CRD."""
        return not is_refused(live) and (self._uses(live) or holds(live, self._kept))

    def deletes(self, live: Object) -> bool:
        """Whether it deletes such an object, and does not only release it."""
        return not stays(self._context.inventory.content, live)

    def _goes_with_owners(self, live: Object) -> bool:
        """Whether it may go before its turn. A Namespace or CRD may not: what stays, or is not ours, would go with it."""
        return self.deletes(live) and kind_of(live) not in SHARED

    def _sent(self, node: ToDelete, asked: Object, removal: Removal | None) -> None:
        """`removal`: None if the object no longer exists."""
        stays, lingers = removal or Removal()
        node.phase, node.error, node.attempts, node.stays, node.lingers = Phase.SENT, None, 0, stays, lingers
        self.others_delete |= removal is None
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
        else:
            self._follow(node)

    def _follow(self, node: ToDelete) -> None:
        """Waits until the object no longer exists: its watch reports that, if it still selects it."""
        if node.is_unwatched:
            self._read(node)
        if node.key.group_kind == CRD:
            self._departures.nudge_later(node)

    def _failed(self, node: ToDelete, error: DriverError) -> None:
        if passes(error) or (isinstance(error, ApiError) and error.status == 409) or self._may_be_admitted_later(node, error):
            node.phase, node.error = Phase.BACKOFF, error
            self._loop.after(node.backoff(), self._retry, node)
            has_changed = isinstance(error, ApiError) and error.status == 409
            if node.is_gone or node.is_unwatched or has_changed:
                self._read(node)
        else:
            node.phase = Phase.SENT
            self._refused(node, error)

    def _may_be_admitted_later(self, node: ToDelete, error: DriverError) -> bool:
        """Whether a webhook has denied the deletion, and an object still goes that may be the reason: a user of this one."""
        if not is_denied(error):
            return False
        others = (other for other in self.nodes.values() if other is not node)
        return time.monotonic() - self._last_gone < DENIED_GRACE or any(not is_denied(other.error) for other in others)

    def _refused(self, node: ToDelete, error: DriverError) -> None:
        """Ends the run, unless the operation abandons what cannot be deleted."""
        if self._operation.abandon and not isinstance(error, Superseded):
            node.error = error
        else:
            self._loop.refuse(error)

    def _retry(self, node: ToDelete) -> None:
        node.phase = Phase.BLOCKED
        self._try(node)


def _may_be_held(node: ToDelete) -> bool:
    """
    Whether an object may still exist whose deletion was asked for: others have to act first.

    Namespaces and CRDs are always held, by the API server: somebody takes their label off only where others hold them longer.
    """
    if node.key.group_kind in SHARED:
        return not {CLEANUP}.issuperset(field(node.live, "metadata", "finalizers") or ())
    return node.lingers or any(field(node.live, "metadata", name) for name in ("deletionTimestamp", "finalizers"))
