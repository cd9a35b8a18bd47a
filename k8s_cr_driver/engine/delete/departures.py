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

import uuid
from collections.abc import Callable, Mapping
from typing import ParamSpec, TypeVar

from k8s_cr_driver import logs
from k8s_cr_driver.engine.run.loop import Resume, Run, until
from k8s_cr_driver.engine.run.nodes import ToDelete
from k8s_cr_driver.errors import DriverError, Superseded
from k8s_cr_driver.kube.connection import METADATA_LIST
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.objects.crds import defined_by, is_in_cleanup
from k8s_cr_driver.objects.keys import Object, ObjectKey
from k8s_cr_driver.redaction import redact
from k8s_cr_driver.writes.context import WriteContext
from k8s_cr_driver.writes.delete import why_it_stays, withdraw
from k8s_cr_driver.writes.guests import Guests

LOG = logs.logger(__name__)

P = ParamSpec("P")
Result = TypeVar("Result")

LOOK_AGAIN = "k8s-cr-driver/look-again"
"""An annotation whose value differs each time."""
NUDGE_EVERY = 10.0
"""Seconds for which a CRD without custom resources may stand until the API server is made to look at it again."""


class Departures:
    """`nodes`: what the run has yet to delete."""

    def __init__(self, run: Run, nodes: Mapping[ObjectKey, ToDelete]) -> None:
        self._loop, self._context, self._nodes = run.loop, run.context, nodes
        self.guests = Guests(run.context)
        self._waiting: list[tuple[ToDelete, Resume]] = []
        self._unanswered = 0

    async def why_it_stays(self, node: ToDelete) -> str:
        """"" for one that is to be deleted; raises DriverError if that could not be looked into."""

        def begin(resume: Resume) -> None:
            self._waiting.append((node, resume))
            self._loop.post(self._begin)  # after all that are to go now

        why: str = await until(begin)
        return why

    async def call(self, request: Callable[P, Result], *args: P.args, **kwargs: P.kwargs) -> Result:
        """What a deletion returns, or raises."""
        self._unanswered += 1
        try:
            return await self._loop.call(request, *args, **kwargs)
        finally:
            self._unanswered -= 1
            self._loop.post(self._begin)  # after what the watches have reported

    def _begin(self) -> None:
        if self._waiting and not (self._unanswered or self._loop.refusals):
            waiting, self._waiting = self._waiting, []
            self._loop.start(self._look_into(waiting))

    async def _look_into(self, waiting: list[tuple[ToDelete, Resume]]) -> None:
        try:
            found = await self.call(self._look, [node.live for node, _ in waiting if node.live is not None])
        except DriverError as error:
            for _, resume in waiting:
                resume(None, error)
            return
        for node, resume in waiting:
            if (taken := self.guests.taken_with(node.key)) and not found[node.key]:
                LOG.warning("%s is deleted %s", node.key, taken)
            resume(found[node.key], None)

    def _look(self, lives: list[Object]) -> dict[ObjectKey, str]:
        withdraw(self._context, lives)
        return why_it_stays(self._context, lives, self.guests)

    async def nudge(self, crd: ToDelete) -> None:
        """As long as it stands."""
        await self._loop.pause(NUDGE_EVERY)
        while self._nodes.get(crd.key) is crd and not self._loop.refusals:
            try:
                if crd.live and is_in_cleanup(crd.live):
                    await self._loop.call(_nudge, self._context, crd.resource, crd.live)
            except Superseded as error:
                self._loop.refuse(error)
            except DriverError as error:
                LOG.info("%s is looked at again later: %s", crd.key, redact(str(error)))
            await self._loop.pause(NUDGE_EVERY)


def _nudge(context: WriteContext, resource: Resource, crd: Object) -> None:
    """Changes an annotation of the CRD, of exactly that uid, if no object of its kind is left."""
    context.inventory.fence.before_write()
    kind = context.resources.find(defined_by(crd))
    if kind is not None and context.client.list_if_served(kind, accept=METADATA_LIST):
        return
    changed = {LOOK_AGAIN: uuid.uuid4().hex}
    context.client.patch_metadata(resource, crd, context.manager, uid=crd["metadata"]["uid"], annotations=changed)
