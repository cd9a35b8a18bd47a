"""A workload cluster as a whole.

Its controllers delete machines with the help of templates and Secrets, so a Cluster is deleted first and alone: what
else of Cluster API is in its namespace, and the Secrets there, stay until it is gone.
"""

from __future__ import annotations

from collections.abc import Iterable

from k8s_cr_driver.capi import contract
from k8s_cr_driver.objects.keys import Key, Kind, Object, key_of
from k8s_cr_driver.resources.base import CustomResource

SECRET = Kind("", "Secret")


class Cluster(CustomResource):
    group, kind = contract.GROUP, "Cluster"

    def delete_before(self, others: Iterable[Object]) -> list[Key]:
        keys = map(key_of, others)
        return [
            key
            for key in keys
            if key.namespace == self.key.namespace
            and key.of != self.key.of
            and (contract.is_cluster_api(key.of) or key.of == SECRET)
        ]
