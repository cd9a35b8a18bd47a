# SPDX-License-Identifier: Apache-2.0
"""
The engine's entry point: reconciles a cluster with a set of objects.

The inventory is widened before the first write, and a kind is watched before the first write of it. Each object is one
server-side apply, sent when its dependencies are ready, and is assessed on every event. Objects of the instance that the
set does not contain are pruned when the set is ready. Every LCM verb computes a set and calls this one function.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TypeVar

from oslo_log import log as logging

from k8s_cr_driver.engine import permissions
from k8s_cr_driver.engine.api_services import await_kinds
from k8s_cr_driver.engine.apply import Applier
from k8s_cr_driver.engine.diagnosis import reports
from k8s_cr_driver.engine.informers import Informers
from k8s_cr_driver.engine.loop import Loop
from k8s_cr_driver.engine.nodes import Desired, ToDelete
from k8s_cr_driver.engine.not_ready import NotReady
from k8s_cr_driver.engine.operation import Operation
from k8s_cr_driver.engine.prune import Pruner
from k8s_cr_driver.engine.replace import NO_REPLACEMENT, Replacement, Replacer
from k8s_cr_driver.engine.run import Run
from k8s_cr_driver.errors import DriverError, Superseded
from k8s_cr_driver.objects.crds import defined_by
from k8s_cr_driver.objects.keys import CRD, NAMESPACE, GroupKind, Object, ObjectKey, key_of, split
from k8s_cr_driver.ownership.labels import SHARED, is_managed
from k8s_cr_driver.ownership.orphans import claim_orphans
from k8s_cr_driver.ownership.unlabeled import find_unlabeled, read_unlabeled, reclaim
from k8s_cr_driver.ownership.write import WriteContext
from k8s_cr_driver.redaction import redact
from k8s_cr_driver.resources.base import CustomResource

LOG = logging.getLogger(__name__)

Result = TypeVar("Result")

LOG_EVERY = 30.0
"""Seconds between two log lines about what the run waits for."""


@dataclass(frozen=True)
class Prune:
    """How a run deletes the objects of the instance that the set does not contain."""

    grace_period: int | None = None
    """Grace period in seconds for the Pods that it deletes, None for their own."""
    unlabeled: bool = True
    """Look for objects that have lost the instance's label first, with one LIST for each kind and namespace."""
    delete_guests: bool = False
    """Delete Namespaces and CRDs also if they hold objects of others."""


def reconcile(
    operation: Operation,
    context: WriteContext,
    desired: Sequence[CustomResource],
    *,
    prune: Prune | None,
    replacement: Replacement = NO_REPLACEMENT,
) -> dict[ObjectKey, Object]:
    """
    Applies `desired` and waits until it is ready; with `prune` deletes the instance's other objects. Returns live objects.

    The objects of `replacement` are deleted first and created again by their controllers. Errors: Refused (and subclasses)
    if the cluster rejects an object; NotReady at the deadline; Superseded when another worker took over;
    ConnectionFailed; Stopped. A later run finds whatever was written by then through the inventory.
    """
    if prune and prune.delete_guests:
        context = replace(context, delete_guests=True)
    context.inventory.check_not_in_set([obj.key for obj in desired])
    kinds = [(obj.key.group_kind, split(obj.manifest["apiVersion"])[1]) for obj in desired]
    await_kinds(operation, context.client, kinds)
    with _Reconciliation(Run(operation, Loop(operation), context), desired, prune, replacement) as reconciliation:
        return reconciliation.run()


class _Reconciliation:
    """One call of `reconcile`."""

    def __init__(self, run: Run, desired: Sequence[CustomResource], prune: Prune | None, replacement: Replacement) -> None:
        self._operation, self._loop, self._context, self._prune = run.operation, run.loop, run.context, prune
        self._resources = run.resources
        self._applier = Applier(run, desired, self._timeout)
        self._pruner = Pruner(run, prune.grace_period if prune else None, self._is_used)
        self._is_pruning = False
        self._waits_for_lists = True
        self._informers = Informers(run, self._on_change, self._applier.kind_listed)
        self._replacer = Replacer(run, self._informers, replacement)

    def __enter__(self) -> _Reconciliation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._informers.stop()
        self._loop.finish()
        self._release()

    def _release(self) -> None:
        """No write of this run is in flight any more; a token that stays only makes the next terminate wait."""
        try:
            self._context.inventory.release()
        except DriverError as error:
            LOG.info("%s: the inventory's token was not released: %s", self._operation.id, redact(str(error)))

    def run(self) -> dict[ObjectKey, Object]:
        applier, replacer = self._applier, self._replacer
        self._operation.persist(self._check_permissions)
        if not self._operation.persist(self._claim):
            return {}
        self._check_current()
        self._informers.fence()
        self._loop.after(LOG_EVERY, self._log_progress)
        fence = self._context.inventory.fence
        if fence.has_former:
            self._pass(fence.former_stops_in(), self._former_timeout)
        replacer.start()
        self._loop.run(lambda: not replacer.nodes, lambda seconds: self._timeout(f"not gone after {seconds:.0f} s"))
        applier.start(self._informers, replacer.keys)
        had = self._context.inventory.content.kinds if self._prune else frozenset[GroupKind]()
        self._informers.open(kind for kind in applier.kinds | had if self._is_served(kind))
        self._loop.run(lambda: not applier.unready, lambda seconds: self._timeout(f"not ready after {seconds:.0f} s"))
        replacer.check()
        self._loop.run(lambda: replacer.is_whole and not applier.unready, self._replace_timeout)
        if self._prune:
            self._delete_the_rest()
        return {key: node.live for key, node in applier.nodes.items() if node.live is not None}

    def _check_permissions(self) -> None:
        permissions.check(self._context.connection, [(key, node.resource) for key, node in self._applier.nodes.items()])

    def _claim(self) -> bool:
        applier = self._applier
        return self._context.inventory.claim(
            self._operation.id, applier.kinds, applier.namespaces, create=bool(applier.nodes), members=applier.nodes
        )

    def _check_current(self) -> None:
        """A rollback that began before the claim has found no inventory, so no token could stop this run."""
        if not self._operation.is_current():
            if self._context.inventory.is_new:
                self._operation.persist(self._context.inventory.delete)
            raise Superseded(f"{self._operation.id} was retried or rolled back before this worker had claimed the instance.")

    def _is_served(self, kind: GroupKind) -> bool:
        """False for a kind whose CRD is in this set and not established yet."""
        return kind not in self._applier.brought or self._resources.is_served(kind)

    def _is_used(self, live: Object) -> bool:
        """Whether a Namespace or CRD holds desired objects, or may hold kept ones of a kind that is not listed (`abandon`)."""
        return self._applier.uses(live) or (not self._context.delete_guests and self._may_hold_unlisted(live))

    def _may_hold_unlisted(self, live: Object) -> bool:
        key, unlisted = key_of(live), self._informers.unlisted_kinds()
        if key.group_kind == CRD:
            return defined_by(live) in unlisted
        places = self._context.inventory.content.places
        return key.group_kind == NAMESPACE and any(key.name in places(kind) for kind in unlisted)

    def _delete_the_rest(self) -> None:
        informers, pruner, inventory = self._informers, self._pruner, self._context.inventory
        if self._operation.abandon:
            self._loop.after(self._operation.remaining() / 2, self._stop_waiting_for_lists)
        self._wait_until_listed()
        listed = self._to_delete()
        reclaimed = self._reclaimed(self._reclaim)
        informers.open(inventory.content.kinds)
        self._wait_until_listed()
        reclaimed += self._reclaimed(functools.partial(self._reclaim_again, {**listed, **_by_key(reclaimed)}))
        self._is_pruning = True
        members = list({**_by_key(reclaimed), **self._to_delete()}.values())
        pruner.start(members)
        self._loop.run(self._is_pruned, self._prune_timeout)
        if not self._applier.nodes:
            self._delete_late_orphans(members)
        if inventory.fence.has_former:
            self._delete_late_writes()
        informers.stop()
        self._operation.persist(self._shrink if self._applier.nodes else inventory.delete)

    def _delete_late_orphans(self, members: list[Object]) -> None:
        """A controller may create orphans until its object is deleted: claims of a StatefulSet, one for each of its pods."""
        while late := self._reclaimed(functools.partial(self._claim_orphans, members)):
            self._informers.open(self._context.inventory.content.kinds)
            for live in late:
                self._on_change(key_of(live), live)
            self._loop.run(self._is_pruned, self._prune_timeout)

    def _delete_late_writes(self) -> None:
        """Waits until no write of a superseded run can take effect, lists again, and deletes what it wrote meanwhile."""
        self._pass(self._context.inventory.fence.former_expires_in(), self._former_timeout)
        for live in self._request(self._informers.list_again):
            self._on_change(key_of(live), live)
        self._loop.run(self._is_pruned, self._prune_timeout)

    def _pass(self, seconds: float, timeout: Callable[[float], NotReady]) -> None:
        """Lets this time pass, while events are handled."""
        passed: list[bool] = []
        self._loop.after(seconds, lambda: passed.append(True))
        self._loop.run(lambda: bool(passed), timeout)

    def _is_pruned(self) -> bool:
        """A desired object may go with what is pruned, such as its owner: it must be ready again."""
        return not self._pruner.nodes and self._informers.all_listed() and not self._applier.unready

    def _wait_until_listed(self) -> None:
        self._loop.run(lambda: self._informers.all_listed() or not self._waits_for_lists, self._prune_timeout)

    def _stop_waiting_for_lists(self) -> None:
        """Stop waiting for unlisted kinds: delete the objects listed so far, and later ones as they are listed."""
        self._waits_for_lists = False

    def _reclaimed(self, reclaim: Callable[[list[Object]], None]) -> list[Object]:
        """What `reclaim` collects; with `abandon` what it has collected before it failed."""
        found: list[Object] = []
        try:
            reclaim(found)
        except Superseded:
            raise
        except DriverError as error:
            if not self._operation.abandon:
                raise
            LOG.warning("%s: objects without the instance's label are abandoned: %s", self._operation.id, redact(str(error)))
        return found

    def _reclaim(self, found: list[Object]) -> None:
        """Labels objects to delete that the watches do not select: members without label, claims of StatefulSets."""
        context = self._context
        if self._prune and self._prune.unlabeled:
            for resource, unlabeled in self._request(lambda: list(find_unlabeled(context, self._informers.listed()))):
                live = self._request(functools.partial(reclaim, context, resource, unlabeled))
                if live is not None and self._must_go(key_of(live), live):
                    found.append(live)
        if not self._applier.nodes:
            self._claim_orphans([*self._to_delete().values(), *found], found)

    def _reclaim_again(self, listed: Mapping[ObjectKey, Object], found: list[Object]) -> None:
        """Labels those of `listed` that have lost their label since: their watch takes them for deleted."""
        for key in sorted(listed.keys() - self._to_delete().keys()):
            resource = self._resources.find(key.group_kind)
            if resource is None or key.group_kind in SHARED:
                continue
            live = self._request(functools.partial(read_unlabeled, self._context, resource, key))
            if live is not None and (labelled := self._request(functools.partial(reclaim, self._context, resource, live))):
                found.append(labelled)

    def _claim_orphans(self, members: list[Object], found: list[Object]) -> None:
        found += self._request(lambda: claim_orphans(self._context, members))

    def _request(self, request: Callable[[], Result]) -> Result:
        """With `abandon` half of the remaining time is kept for the deletions."""
        operation = self._operation
        return operation.persist(request, operation.remaining() / 2 if operation.abandon else math.inf)

    def _to_delete(self) -> dict[ObjectKey, Object]:
        return {key: live for key, live in self._informers.everything() if self._must_go(key, live)}

    def _shrink(self) -> None:
        applier, inventory = self._applier, self._context.inventory
        with self._context.lock:  # ends of objects may be on their way into the inventory
            inventory.finish(kinds=applier.kinds, namespaces=applier.namespaces, members=frozenset(applier.nodes))

    def _must_go(self, key: ObjectKey, live: Object) -> bool:
        """An object that was restored or replaced with our label but without our field manager is a member by its key.

        A lost inventory does not know the members: those in Tacker's record are the least that the instance has applied.
        """
        inventory = self._context.inventory
        is_member = any(content.is_member(key) for content in (inventory.content, inventory.remembered))
        is_ours = is_managed(live, self._context.instance) or (is_member and not inventory.content.is_adopted(live))
        return key not in self._applier.nodes and key != self._context.inventory.key and is_ours

    def _on_change(self, key: ObjectKey, live: Object | None) -> None:
        node = self._applier.nodes.get(key)
        if node is not None:
            self._applier.observe(node, live)
        elif self._is_pruning:
            self._pruner.observe(key, live if live is not None and self._must_go(key, live) else None)

    def _open_nodes(self) -> list[Desired] | list[ToDelete]:
        """The objects that the run waits for."""
        if self._replacer.nodes:
            return list(self._replacer.nodes.values())
        unready = [self._applier.nodes[key] for key in self._applier.unready]
        return unready or list(self._pruner.nodes.values())

    def _timeout(self, headline: str) -> NotReady:
        nodes = self._open_nodes()
        total = max(len(self._applier.nodes), len(nodes))
        return NotReady(f"{len(nodes)} of {total} objects {headline}:", reports(self._context.connection, nodes))

    def _prune_timeout(self, seconds: float) -> NotReady:
        """Reports the objects that are not gone and the kinds that are not listed."""
        error = NotReady(f"After {seconds:.0f} s not all kinds of the instance are listed:", ())
        if self._applier.unready:
            error = self._timeout(f"not ready after {seconds:.0f} s")
        elif self._pruner.nodes:
            error = self._timeout(f"not gone after {seconds:.0f} s")
        return NotReady(error.headline, [*error.reports, *self._informers.unlisted()])

    def _former_timeout(self, seconds: float) -> NotReady:
        """The deadline has passed before writes of the former worker could no longer take effect."""
        return NotReady(f"After {seconds:.0f} s a write of the worker that held the instance before may still take effect:", ())

    def _replace_timeout(self, seconds: float) -> NotReady:
        if self._applier.unready:
            return self._timeout(f"not ready after {seconds:.0f} s")
        return NotReady(f"VNFCs are missing after {seconds:.0f} s:", self._replacer.unfinished)

    def _log_progress(self) -> None:
        reports = [node.report() for node in self._open_nodes()] or self._informers.unlisted()
        if reports:
            LOG.info("%s: waiting for %d objects, one of them: %s", self._operation.id, len(reports), reports[0])
        self._loop.after(LOG_EVERY, self._log_progress)


def _by_key(lives: Iterable[Object]) -> dict[ObjectKey, Object]:
    return {key_of(live): live for live in lives}
