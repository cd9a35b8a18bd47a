# SPDX-License-Identifier: Apache-2.0
"""
The engine's entry point: reconciles a cluster with a set of objects.

The inventory is widened before the first write, and a kind is watched before the first write of it. Each object is one
server-side apply, sent when its dependencies are ready, and is assessed on every event. Objects of the instance that the
set does not contain are pruned when the set is ready. Every LCM verb computes a set and calls this one function.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from k8s_cr_driver import logs
from k8s_cr_driver.engine.apply.applier import Applier
from k8s_cr_driver.engine.apply.desired_set import DesiredSet
from k8s_cr_driver.engine.apply.dry_runs import DryRuns
from k8s_cr_driver.engine.delete import webhooks
from k8s_cr_driver.engine.delete.replacer import NO_REPLACEMENT, Replacement, Replacer
from k8s_cr_driver.engine.delete.rest import Rest
from k8s_cr_driver.engine.report import permissions
from k8s_cr_driver.engine.report.activity import Activity
from k8s_cr_driver.engine.report.progress_log import Timeouts
from k8s_cr_driver.engine.run.loop import Loop, Overdue, Run
from k8s_cr_driver.engine.run.operation import Operation
from k8s_cr_driver.engine.watch.discovery_gaps import await_kinds
from k8s_cr_driver.engine.watch.informers import Informers
from k8s_cr_driver.errors import ApiError, Contended, DriverError, Refused, Superseded
from k8s_cr_driver.journal.inventory import Inventory
from k8s_cr_driver.journal.store import CONFIG_MAPS, check_outlives
from k8s_cr_driver.kube import timing
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, split
from k8s_cr_driver.redaction import redact
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.writes.context import WriteContext
from k8s_cr_driver.writes.orphans import may_leave

LOG = logs.logger(__name__)


@dataclass(frozen=True)
class Prune:
    """How a run deletes the objects of the instance that the set does not contain."""

    grace_period: int | None = None
    """Grace period in seconds for the Pods that it deletes, None for their own."""
    delete_guests: bool = False
    """Delete Namespaces and CRDs also if they hold objects of others."""


def reconcile(
    operation: Operation,
    context: WriteContext,
    desired: Sequence[CustomResource],
    *,
    prune: Prune | None,
    replacement: Replacement = NO_REPLACEMENT,
    asks: bool = False,
    last: Collection[ObjectKey] = (),
) -> dict[ObjectKey, Object]:
    """
    Applies `desired` and waits until it is ready; with `prune` deletes the instance's other objects. Returns live objects.

    The objects of `replacement` are deleted first and created again by their controllers. With `asks` all that differs is a
    dry run before the first write. The objects of `last` wait until all others are ready. Errors: Refused (and subclasses)
    if the cluster rejects an object; NotReady at the deadline; Superseded when another worker took over;
    ConnectionFailed; Stopped. A later run finds whatever was written by then through the inventory.
    """
    if prune and prune.delete_guests:
        context = replace(context, delete_guests=True)
    check_outlives(context.inventory.key, [obj.key for obj in desired])
    kinds = [(obj.key.group_kind, split(obj.manifest["apiVersion"])[1]) for obj in desired]
    await_kinds(operation, context.client, kinds)
    run = Run(operation, Loop(operation), context)
    nodes = DesiredSet(run.resources, desired, last, replacement.rerun)
    claim = _Claim(run, nodes, replacement, deletes_all=prune is not None and not desired)
    reconciliation = _Reconciliation(run, nodes, prune, replacement, asks=asks)
    try:
        return reconciliation.run() if claim.make() else {}
    except Overdue as late:
        raise reconciliation.timeouts.overdue(late) from None
    finally:
        reconciliation.end()


def release(operation: Operation, inventory: Inventory) -> None:
    """No write of this operation is in flight any more; a token that stays only makes the next one wait."""
    try:
        inventory.release()
    except DriverError as error:
        LOG.info("%s: the inventory's token was not released: %s", operation.id, redact(str(error)))


class _Claim:
    """Makes the run the only one that writes the objects of its instance. With `deletes_all` its webhooks go in any case."""

    def __init__(self, run: Run, desired: DesiredSet, replacement: Replacement, *, deletes_all: bool) -> None:
        self._operation, self._context, self._set = run.operation, run.context, desired
        self._replacement, self._deletes_all = replacement, deletes_all
        self._freed_at = -math.inf

    def make(self) -> bool:
        """False if the instance has nothing and shall have nothing. Widens the inventory by the set."""
        may_read = self._operation.persist(self._check_permissions)
        try:
            is_claimed = self._operation.persist(lambda: self._claim(unread=may_read))
        except ApiError as error:
            if why := webhooks.remedy(self._context.client, str(error)):
                raise Refused(f"{error}. {why}.") from None
            raise
        if is_claimed:
            self._check_current()
        return is_claimed

    def _check_permissions(self) -> bool:
        objects = [(key, node.resource) for key, node in self._set.nodes.items()]
        return permissions.check(self._context.connection, objects, CONFIG_MAPS)

    def _claim(self, *, unread: bool) -> bool:
        self._operation.check_current()
        try:
            return self._context.inventory.claim(
                self._operation.id,
                self._set.kinds,
                self._set.namespaces,
                create=bool(self._set.nodes),
                members=self._set.nodes,
                leaving=[key for key in self._set.nodes if may_leave(key.group_kind)],
                unread=unread,
            )
        except DriverError as error:
            self._mind_refusal(error)
            raise

    def _mind_refusal(self, error: DriverError) -> None:
        """
        Deletes the webhooks and policies of the instance that go, if they may have refused the claim.

        Contended if they have denied it, as API servers notice the deletion a little later.
        """
        is_denied = webhooks.names_denial(error)
        if not (is_denied or webhooks.is_unanswered(error)):
            return
        self._operation.check_current()
        first = webhooks.first_to_go(self._context, ()) if self._deletes_all else self._replacement.to_delete
        if webhooks.delete_first(self._context, first):
            self._freed_at = time.monotonic()
        if is_denied and time.monotonic() - self._freed_at < webhooks.DENIED_GRACE:
            raise Contended(str(error)) from None

    def _check_current(self) -> None:
        """A rollback that has begun meanwhile may have found no inventory, so no token could stop this run."""
        try:
            self._operation.check_current()
        except Superseded:
            if self._context.inventory.is_new:
                self._operation.persist(self._context.inventory.delete)
            raise


class _Reconciliation:
    """One call of `reconcile`."""

    def __init__(
        self,
        run: Run,
        desired: DesiredSet,
        prune: Prune | None,
        replacement: Replacement,
        *,
        asks: bool,
    ) -> None:
        self._run, self._asks, self._prune = run, asks, prune
        self._set = desired
        self._informers = Informers(run, self._on_change, self._on_listed)
        self._applier = Applier(run, self._set, self._informers, held=asks)
        self._replacer = Replacer(run, self._informers, replacement)
        grace_period = prune.grace_period if prune else None
        self._rest = Rest(run, self._set, self._informers, grace_period=grace_period)
        self.timeouts = Timeouts(run, self._set, self._informers, self._replacer, self._rest)
        self._activity = Activity(run, self._set.nodes, self.timeouts)

    def end(self) -> None:
        self._informers.stop()
        if self._run.loop.finish():
            release(self._run.operation, self._run.context.inventory)
        else:
            text = "%s: a request has not ended, so the next operation waits until it can no longer write"
            LOG.warning(text, self._run.operation.id)

    def run(self) -> dict[ObjectKey, Object]:
        self._begin()
        loop, desired, replacer = self._run.loop, self._set, self._replacer
        self._activity.start()
        replacer.start()
        loop.run(lambda: not replacer.nodes)
        had = self._run.context.inventory.content.kinds if self._prune else frozenset[GroupKind]()
        self._informers.open(kind for kind in desired.kinds | had if self._is_served(kind))
        if self._asks:
            self._ask()
        loop.run(self._is_ready)
        replacer.check()
        loop.run(lambda: replacer.is_whole and self._is_ready())
        if self._prune:
            self._rest.delete()
        self.timeouts.warn_of_optional()
        return {key: node.live for key, node in desired.nodes.items() if node.live is not None}

    def _ask(self) -> None:
        """Before the first write."""
        dry_runs = DryRuns(self._run, self._set, self._informers)
        self._run.loop.run(dry_runs.is_listed)
        dry_runs.start()
        self._run.loop.run(dry_runs.is_answered)
        self._applier.write()

    def _is_ready(self) -> bool:
        """Ready, or as ready as the set can be before the rest is deleted, which waits until it is ready then."""
        return not self._set.awaits or (self._prune is not None and self._rest.holds_up())

    def _begin(self) -> None:
        """The instance is this run's."""
        loop, fence = self._run.loop, self._run.context.inventory.fence
        loop.after(timing.TIMING.trusted, self._informers.fence)  # until then no write would ask either
        self.timeouts.start_log()
        if fence.has_former:
            loop.let_pass(fence.former_stops_in())

    def _is_served(self, kind: GroupKind) -> bool:
        """False for a kind whose CRD is in this set and not established yet."""
        return kind not in self._set.brought or self._run.resources.is_served(kind)

    def _on_listed(self, kind: GroupKind) -> None:
        self._applier.kind_listed(kind)

    def _on_change(self, key: ObjectKey, live: Object | None) -> None:
        self._activity.observe(key, live)
        node = self._set.nodes.get(key)
        if node is not None:
            self._applier.observe(node, live)
        else:
            self._rest.observe(key, live)
