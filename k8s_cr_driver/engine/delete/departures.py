# SPDX-License-Identifier: Apache-2.0
"""
The Namespaces and CRDs that an instance leaves: it withdraws them from its inventory, and looks into them, before they go.

A write costs as much as the inventory is long, and a look some ten lists. So one is on its way at a time, for all that are to
go by then, and begins when no deletion is unanswered, with which others may come.

A CRD that stands although its custom resources no longer exist is changed, so that the API server looks at it again.
`CRDFinalizer` (k8s.io/apiextensions-apiserver, pkg/controller/finalizer) lists and deletes the custom resources, and polls
every 5 s for up to 60 s until they are deleted. After an error it waits 5 ms, doubled with each error up to 1000 s; a 409 of
its own status write ends the work until the CRD changes in more than the condition Terminating, or until the resync after
5 min. Any other change of the CRD is put into its queue at once.
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable, Mapping

from k8s_cr_driver import logs
from k8s_cr_driver.engine.run.loop import Run
from k8s_cr_driver.engine.run.nodes import ToDelete
from k8s_cr_driver.errors import DriverError, Superseded
from k8s_cr_driver.kube.connection import METADATA_LIST
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.objects.crds import defined_by, is_in_cleanup
from k8s_cr_driver.objects.keys import Object, ObjectKey
from k8s_cr_driver.writes.context import WriteContext
from k8s_cr_driver.writes.delete import why_it_stays, withdraw
from k8s_cr_driver.writes.guests import Guests

LOG = logs.logger(__name__)

LOOK_AGAIN = "k8s-cr-driver/look-again"
"""An annotation whose value differs each time."""
NUDGE_EVERY = 10.0
"""Seconds for which a CRD without custom resources may stand until the API server is made to look at it again."""


class Departures:
    """
    `nodes`: what the run has yet to delete.

    `looked` is called with each object, and with why it stays or "", `failed` with each that could not be looked into.
    """

    def __init__(
        self,
        run: Run,
        nodes: Mapping[ObjectKey, ToDelete],
        looked: Callable[[ToDelete, str], None],
        failed: Callable[[ToDelete, DriverError], None],
    ) -> None:
        self._loop, self._context, self._nodes, self._looked, self._failed = run.loop, run.context, nodes, looked, failed
        self.guests = Guests(run.context)
        self._waiting: list[ToDelete] = []
        self._unanswered = 0

    def add(self, node: ToDelete) -> None:
        self._waiting.append(node)
        self._loop.post(self._begin)  # after all that are to go now

    def send(self, request: Callable[[], object], then: Callable[..., None], failed: Callable[[DriverError], None]) -> None:
        """Sends a deletion."""
        self._unanswered += 1
        self._loop.send(request, functools.partial(self._answered, then), functools.partial(self._answered, failed))

    def _answered(self, then: Callable[..., None], response: object) -> None:
        self._unanswered -= 1
        then(response)
        self._loop.post(self._begin)  # after what the watches have reported

    def _begin(self) -> None:
        if self._unanswered or not self._waiting or self._loop.refusals:
            return
        nodes, self._waiting = self._waiting, []
        lives = [node.live for node in nodes if node.live is not None]

        def ended(found: dict[ObjectKey, str]) -> None:
            for node in nodes:
                taken = self.guests.taken_with(node.key)
                if taken and not found[node.key]:
                    LOG.warning("%s is deleted %s", node.key, taken)
                self._looked(node, found[node.key])

        def failed(error: DriverError) -> None:
            for node in nodes:
                self._failed(node, error)

        self.send(functools.partial(self._look, lives), ended, failed)

    def _look(self, lives: list[Object]) -> dict[ObjectKey, str]:
        withdraw(self._context, lives)
        return why_it_stays(self._context, lives, self.guests)

    def nudge_later(self, crd: ToDelete) -> None:
        self._loop.after(NUDGE_EVERY, self._nudge, crd)

    def _nudge(self, crd: ToDelete) -> None:
        if self._nodes.get(crd.key) is not crd or self._loop.refusals or crd.live is None:
            return

        def failed(error: DriverError) -> None:
            if isinstance(error, Superseded):
                self._loop.refuse(error)
            else:
                self.nudge_later(crd)

        if is_in_cleanup(crd.live):
            request = functools.partial(_nudge, self._context, crd.resource, crd.live)
            self._loop.send(request, lambda _: self.nudge_later(crd), failed)


def _nudge(context: WriteContext, resource: Resource, crd: Object) -> None:
    """Changes an annotation of the CRD, of exactly that uid, if no object of its kind is left."""
    context.inventory.fence.before_delete()
    kind = context.resources.find(defined_by(crd))
    if kind is not None and context.client.list_if_served(kind, accept=METADATA_LIST):
        return
    changed = {LOOK_AGAIN: uuid.uuid4().hex}
    context.client.patch_metadata(resource, crd, context.manager, uid=crd["metadata"]["uid"], annotations=changed)
