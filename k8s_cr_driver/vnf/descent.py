# SPDX-License-Identifier: Apache-2.0
"""
Which objects descend from an instance: the chain of controllers (`ownerReferences`, `controller: true`) ends at one of its own.

A label selector, and so a status, may find objects of anybody. Only descendants are deleted, or annotated for a scale in.
A controller without a controller of its own may have an owner all the same: a MachineDeployment is owned by its Cluster.
Each owner is read by its name and has to have the uid of the reference: what cannot be read descends from nobody.
"""

from __future__ import annotations

from collections.abc import Callable

from k8s_cr_driver.errors import ApiError, passes
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.objects.fields import entries, text
from k8s_cr_driver.objects.keys import Object, controlled_by, key_of, labels
from k8s_cr_driver.objects.marks import INSTANCE_LABEL, is_managed
from k8s_cr_driver.writes.owners import LONGEST_CHAIN, named


class Descent:
    """
    For one instance; remembers what it has learned of each controller.

    `may_own`: whether an object with the instance's label and field manager is one that it has applied. A copy, as a backup
    tool restores it under another name, has both.
    """

    def __init__(self, client: Client, instance: str, may_own: Callable[[Object], bool]) -> None:
        self._client, self._instance, self._may_own = client, instance, may_own
        self._known: dict[str, bool] = {}

    def includes(self, live: Object) -> bool:
        """Whether the object is one that the instance has applied, or descends from one."""
        controller = controlled_by(live)
        return self._is_own(live) or bool(controller and self._is_ours(controller, key_of(live).namespace, LONGEST_CHAIN))

    def _is_own(self, live: Object) -> bool:
        is_marked = labels(live).get(INSTANCE_LABEL) == self._instance and is_managed(live, self._instance)
        return is_marked and self._may_own(live)

    def _is_ours(self, reference: Object, namespace: str, chain: int) -> bool:
        """Whether the object of an ownerReference is the instance's or descends from one of its objects."""
        uid = text(reference, "uid")
        if uid not in self._known:
            self._known[uid] = False  # while it is judged: a cycle has no end
            owner = read_owner(self._client, reference, namespace)
            self._known[uid] = bool(owner) and self._descends(owner or {}, chain - 1)
        return self._known[uid]

    def _descends(self, owner: Object, chain: int) -> bool:
        if self._is_own(owner) or chain == 0:
            return self._is_own(owner)
        controller = controlled_by(owner)
        references = [controller] if controller else entries(owner, "metadata", "ownerReferences")
        return any(self._is_ours(one, key_of(owner).namespace, chain) for one in references)


def read_owner(client: Client, reference: Object, namespace: str) -> Object | None:
    """The object of an ownerReference; None if it is deleted, {} if its kind is not known or it may not be read."""
    found = named(client.resources, reference, namespace)
    if found is None:
        return {}
    try:
        return client.read_again(*found)
    except ApiError as error:
        if passes(error):
            raise
        return None if error.status == 404 else {}
