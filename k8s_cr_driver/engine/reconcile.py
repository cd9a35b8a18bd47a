"""
The one way in: a cluster converges on a set of objects.

The inventory is widened before the first write, streams are open before the first write of their kind, every object is
one server-side apply as soon as what it needs is ready, and on every event the whole object is judged again. What the
instance had and the set has not is deleted when the set is ready. Every LCM verb is a set for this one function.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, key_of, split
from k8s_cr_driver.ownership.labels import is_managed
from k8s_cr_driver.ownership.orphans import take_over
from k8s_cr_driver.ownership.unlabeled import find_unlabeled, reclaim
from k8s_cr_driver.ownership.write import WriteContext
from k8s_cr_driver.redaction import redact
from k8s_cr_driver.resources.base import CustomResource

LOG = logging.getLogger(__name__)

Answer = TypeVar("Answer")

TELL_EVERY = 30.0
"""Seconds between two lines in the log about what is waited for."""


@dataclass(frozen=True)
class Prune:
    """How a run deletes what the instance has and the set has not."""

    grace_period: int | None = None
    """Seconds for the pods that it deletes, None for their own."""
    strays: bool = True
    """Look for what has lost its label first, with one LIST for each kind and namespace."""


def reconcile(
    operation: Operation,
    target: WriteContext,
    wanted: Sequence[CustomResource],
    *,
    prune: Prune | None,
    renewal: Replacement = NO_REPLACEMENT,
) -> dict[ObjectKey, Object]:
    """
    Makes `wanted` real and ready; with `prune` deletes what else the instance has. Returns the live objects.

    The objects of `renewal` are deleted first, and made anew at the end. Errors: Refused (and its subclasses) for what the
    cluster will not take; NotReady for what did not come about in time; Superseded when another worker took over;
    ConnectionFailed; Stopped. Whatever was done by then is found again through the inventory.
    """
    target.inventory.check_apart([obj.key for obj in wanted])
    kinds = [(obj.key.group_kind, split(obj.manifest["apiVersion"])[1]) for obj in wanted]
    await_kinds(operation, target.client, kinds)
    with _Reconciliation(Run(operation, Loop(operation), target), wanted, prune, renewal) as converging:
        return converging.run()


class _Reconciliation:
    """One call of converge."""

    def __init__(self, run: Run, wanted: Sequence[CustomResource], prune: Prune | None, renewal: Replacement) -> None:
        self._operation, self._loop, self._target, self._prune = run.operation, run.loop, run.target, prune
        self._resources = run.resources
        self._applying = Applier(run, wanted, self._late)
        self._pruning = Pruner(run, prune.grace_period if prune else None)
        self._is_pruning = False
        self._is_patient = True
        self._streams = Informers(run, self._heard, self._applying.learnt)
        self._renewing = Replacer(run, self._streams, renewal)

    def __enter__(self) -> _Reconciliation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._streams.stop()
        self._loop.finish()

    def run(self) -> dict[ObjectKey, Object]:
        applying, renewing = self._applying, self._renewing
        self._operation.persist(self._check_rights)
        if not self._operation.persist(self._claim):
            return {}
        self._streams.fence()
        self._loop.after(TELL_EVERY, self._tell)
        renewing.start()
        self._loop.run(lambda: not renewing.nodes, lambda seconds: self._late(f"not gone after {seconds:.0f} s"))
        applying.start(self._streams)
        had = self._target.inventory.record.kinds if self._prune else frozenset[GroupKind]()
        self._streams.open(kind for kind in applying.kinds | had if self._is_served(kind))
        self._loop.run(lambda: not applying.unready, lambda seconds: self._late(f"not ready after {seconds:.0f} s"))
        renewing.look()
        self._loop.run(lambda: renewing.is_whole and not applying.unready, self._unwhole)
        if self._prune:
            self._remove_the_rest()
        return {key: node.live for key, node in applying.nodes.items() if node.live is not None}

    def _check_rights(self) -> None:
        permissions.check(self._target.connection, [(key, node.resource) for key, node in self._applying.nodes.items()])

    def _claim(self) -> bool:
        applying = self._applying
        return self._target.inventory.claim(
            self._operation.id, applying.kinds, applying.namespaces, create=bool(applying.nodes)
        )

    def _is_served(self, kind: GroupKind) -> bool:
        """False for a kind that only a CRD of this set is going to bring."""
        return kind not in self._applying.brought or self._resources.is_served(kind)

    def _remove_the_rest(self) -> None:
        streams, pruning, inventory = self._streams, self._pruning, self._target.inventory
        if self._operation.abandon:
            self._loop.after(self._operation.remaining() / 2, self._lose_patience)
        self._wait_until_known()
        taken = {key_of(live): live for live in self._taken()}
        streams.open(inventory.record.kinds)
        self._wait_until_known()
        self._is_pruning = True
        pruning.start(list({**taken, **self._doomed()}.values()))
        self._loop.run(lambda: not pruning.nodes and streams.all_known(), self._left)
        streams.stop()
        self._operation.persist(self._shrink if self._applying.nodes else inventory.delete)

    def _wait_until_known(self) -> None:
        self._loop.run(lambda: self._streams.all_known() or not self._is_patient, self._left)

    def _lose_patience(self) -> None:
        """What is abandoned is deleted as far as it is known; what becomes known later follows."""
        self._is_patient = False

    def _taken(self) -> list[Object]:
        """What is to go and was not a member, or could not be seen to be one; it is now."""
        found: list[Object] = []
        try:
            self._take(found)
        except Superseded:
            raise
        except DriverError as error:
            if not self._operation.abandon:
                raise
            LOG.warning("%s: what has no label of the instance is abandoned: %s", self._operation.id, redact(str(error)))
        return found

    def _take(self, found: list[Object]) -> None:
        target = self._target
        if self._prune and self._prune.strays:
            for resource, stray in self._answer(lambda: list(find_unlabeled(target, self._streams.known()))):
                live = self._answer(functools.partial(reclaim, target, resource, stray))
                if live is not None and self._is_doomed(key_of(live), live):
                    found.append(live)
        if not self._applying.nodes:
            left = [*self._doomed().values(), *found]
            found += self._answer(lambda: take_over(target, left))

    def _answer(self, request: Callable[[], Answer]) -> Answer:
        """Where the rest is abandoned, half of the time that is left is kept for that."""
        operation = self._operation
        return operation.persist(request, operation.remaining() / 2 if operation.abandon else math.inf)

    def _doomed(self) -> dict[ObjectKey, Object]:
        return {key: live for key, live in self._streams.everything() if self._is_doomed(key, live)}

    def _shrink(self) -> None:
        applying, inventory = self._applying, self._target.inventory
        kept = frozenset(key for key in inventory.record.adopted if key in applying.nodes)
        inventory.update(kinds=applying.kinds, namespaces=applying.namespaces, adopted=kept)

    def _is_doomed(self, key: ObjectKey, live: Object) -> bool:
        return (
            key not in self._applying.nodes
            and key != self._target.inventory.key
            and is_managed(live, self._target.instance)
        )

    def _heard(self, key: ObjectKey, live: Object | None) -> None:
        node = self._applying.nodes.get(key)
        if node is not None:
            self._applying.heard(node, live)
        elif self._is_pruning:
            self._pruning.heard(key, live if live is not None and self._is_doomed(key, live) else None)

    def _open(self) -> list[Desired] | list[ToDelete]:
        """The objects that are waited for."""
        if self._renewing.nodes:
            return list(self._renewing.nodes.values())
        unready = [self._applying.nodes[key] for key in self._applying.unready]
        return unready or list(self._pruning.nodes.values())

    def _late(self, headline: str) -> NotReady:
        nodes = self._open()
        total = max(len(self._applying.nodes), len(nodes))
        return NotReady(f"{len(nodes)} of {total} objects {headline}:", reports(self._target.connection, nodes))

    def _left(self, seconds: float) -> NotReady:
        """What is not gone, and the kinds of which it is not known what there is."""
        late = NotReady(f"After {seconds:.0f} s not all that the instance has is listed:", ())
        if self._pruning.nodes:
            late = self._late(f"not gone after {seconds:.0f} s")
        return NotReady(late.headline, [*late.reports, *self._streams.unlisted()])

    def _unwhole(self, seconds: float) -> NotReady:
        if self._applying.unready:
            return self._late(f"not ready after {seconds:.0f} s")
        return NotReady(f"the VNFCs are not as wanted after {seconds:.0f} s:", self._renewing.lacking)

    def _tell(self) -> None:
        reports = [node.report() for node in self._open()] or self._streams.unlisted()
        if reports:
            LOG.info("%s: %d objects are waited for, one of them: %s", self._operation.id, len(reports), reports[0])
        self._loop.after(TELL_EVERY, self._tell)
