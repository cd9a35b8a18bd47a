# SPDX-License-Identifier: Apache-2.0
"""
Which objects descend from an instance: the chain of controllers (`ownerReferences`, `controller: true`) ends at one of its own.

A label selector, and so a status, may find objects of anybody. Only descendants are deleted, or annotated for a scale in.
Each owner is read by its name and has to have the uid of the reference: what cannot be read descends from nobody.
"""

from __future__ import annotations

from k8s_cr_driver.errors import ApiError, passes
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.responses import understood
from k8s_cr_driver.objects.keys import Object, ObjectKey, controlled_by, controller_of, key_of, kind_of, labels, split
from k8s_cr_driver.ownership.labels import INSTANCE_LABEL, is_managed

LONGEST_CHAIN = 10
"""Controllers from an object upwards that are read."""


class Descent:
    """For one instance; remembers what it has learned of each controller."""

    def __init__(self, client: Client, instance: str) -> None:
        self._client, self._instance = client, instance
        self._known: dict[str, bool] = {}

    def includes(self, live: Object, chain: int = LONGEST_CHAIN) -> bool:
        """Whether the object is one that the instance has applied, or descends from one."""
        if labels(live).get(INSTANCE_LABEL) == self._instance and is_managed(live, self._instance):
            return True
        reference, uid = controlled_by(live), controller_of(live)
        if not reference or chain == 0:
            return False
        if uid not in self._known:
            owner = read_owner(self._client, reference, key_of(live).namespace)
            self._known[uid] = bool(owner) and self.includes(owner or {}, chain - 1)
        return self._known[uid]


def read_owner(client: Client, reference: Object, namespace: str) -> Object | None:
    """The object of an ownerReference; None if it is deleted, {} if its kind is not known or it may not be read."""
    with understood("ownerReferences"):
        kind, version = kind_of(reference), split(reference["apiVersion"])[1]
        name, uid = reference["name"], reference["uid"]
    resource = client.resources.find(kind, version) or client.resources.find(kind)
    if resource is None:
        return {}
    try:
        live = client.read(resource, ObjectKey(*kind, namespace if resource.namespaced else "", name))
    except ApiError as error:
        if passes(error):
            raise
        return None if error.status == 404 else {}
    return live if live["metadata"]["uid"] == uid else None
