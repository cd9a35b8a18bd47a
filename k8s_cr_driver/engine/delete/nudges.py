# SPDX-License-Identifier: Apache-2.0
"""
Makes the API server look again at a CRD that a run deletes, and whose custom resources no longer exist.

`CRDFinalizer` (k8s.io/apiextensions-apiserver, pkg/controller/finalizer) lists and deletes the custom resources, and polls
every 5 s for up to 60 s until they are deleted. After an error it waits 5 ms, doubled with each error up to 1000 s; a 409 of
its own status write ends the work until the CRD changes in more than the condition Terminating, or until the resync after
5 min. Any other change of the CRD is put into its queue at once.
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import Mapping

from k8s_cr_driver.engine.run.loop import Run
from k8s_cr_driver.engine.run.nodes import ToDelete
from k8s_cr_driver.errors import DriverError, Superseded
from k8s_cr_driver.kube.connection import METADATA_LIST
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.objects.crds import defined_by, is_in_cleanup
from k8s_cr_driver.objects.keys import Object, ObjectKey
from k8s_cr_driver.writes.context import WriteContext

LOOK_AGAIN = "k8s-cr-driver/look-again"
"""An annotation whose value differs each time."""
NUDGE_EVERY = 10.0
"""Seconds for which a CRD without custom resources may stand until the API server is made to look at it again."""


class Nudges:
    """`nodes`: what the run has yet to delete."""

    def __init__(self, run: Run, nodes: Mapping[ObjectKey, ToDelete]) -> None:
        self._loop, self._context, self._nodes = run.loop, run.context, nodes

    def later(self, node: ToDelete) -> None:
        self._loop.after(NUDGE_EVERY, self._nudge, node)

    def _nudge(self, node: ToDelete) -> None:
        if self._nodes.get(node.key) is not node or self._loop.refusals or node.live is None:
            return

        def failed(error: DriverError) -> None:
            if isinstance(error, Superseded):
                self._loop.refuse(error)
            else:
                self.later(node)

        if is_in_cleanup(node.live):
            request = functools.partial(_nudge, self._context, node.resource, node.live)
            self._loop.send(request, lambda _: self.later(node), failed)


def _nudge(context: WriteContext, resource: Resource, crd: Object) -> None:
    """Changes an annotation of the CRD, of exactly that uid, if no object of its kind is left."""
    context.inventory.fence.before_delete()
    kind = context.resources.find(defined_by(crd))
    if kind is not None and context.client.list_if_served(kind, accept=METADATA_LIST):
        return
    changed = {LOOK_AGAIN: uuid.uuid4().hex}
    context.client.patch_metadata(resource, crd, context.manager, uid=crd["metadata"]["uid"], annotations=changed)
