# SPDX-License-Identifier: Apache-2.0
"""
Makes the API server look again at a CRD that it is deleting, whose custom resources no longer exist.

`CRDFinalizer` (k8s.io/apiextensions-apiserver, pkg/controller/finalizer) lists and deletes the custom resources, and polls
every 5 s for up to 60 s until they are deleted. After an error it waits 5 ms, doubled with each error up to 1000 s; a 409 of
its own status write ends the work until the CRD changes in more than the condition Terminating, or until the resync after
5 min. Any other change of the CRD is put into its queue at once.
"""

from __future__ import annotations

import uuid

from k8s_cr_driver.kube.connection import METADATA_LIST
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.objects.crds import CLEANUP, defined_by
from k8s_cr_driver.objects.fields import field
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.writes.context import WriteContext

LOOK_AGAIN = "k8s-cr-driver/look-again"
"""An annotation whose value differs each time."""


def is_in_cleanup(crd: Object) -> bool:
    """Whether the API server is deleting the custom resources of this CRD."""
    return bool(field(crd, "metadata", "deletionTimestamp")) and CLEANUP in (crd["metadata"].get("finalizers") or [])


def nudge(context: WriteContext, resource: Resource, crd: Object) -> None:
    """Changes an annotation of the CRD, of exactly that uid, if no object of its kind is left."""
    context.inventory.fence.before_delete()
    kind = context.resources.find(defined_by(crd))
    if kind is not None and context.client.list_if_served(kind, accept=METADATA_LIST):
        return
    changed = {LOOK_AGAIN: uuid.uuid4().hex}
    context.client.patch_metadata(resource, crd, context.manager, uid=crd["metadata"]["uid"], annotations=changed)
