# SPDX-License-Identifier: Apache-2.0
"""A workload cluster as a whole.

Its controllers need templates and Secrets to delete machines. So a Cluster is deleted first: the other objects of Cluster
API in its namespace, and the Secrets there, are deleted only after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from k8s_cr_driver.capi import contract, topology, versions
from k8s_cr_driver.objects.fields import text
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, key_of
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.health import Health, State
from k8s_cr_driver.resources.health.custom import stored_suffices
from k8s_cr_driver.resources.health.model import waiting

SECRET = GroupKind("", "Secret")


class Cluster(CustomResource):
    group, kind = contract.GROUP, "Cluster"
    checks_changes = True

    def assess(self, live: Object) -> Health:
        """Its topology can be applied before it is Available, and it can be Available before its counts have changed."""
        health = super().assess(live)
        if health.state is not State.READY or stored_suffices(live, self.crd):
            return health
        if contract.conditions(live) and not contract.is_available(live):
            return waiting("NotAvailable", "no controller has reported yet whether it is available")
        return topology.unfinished(live) or health

    def change_error(self, live: Object | None, desired: Sequence[Object]) -> str:
        before, after = (text(one, *contract.TOPOLOGY_VERSION) for one in (live, self.manifest))
        why = versions.change_error(before, after)
        return why and f"spec.topology.version {why}"

    def parts(self) -> list[CustomResource]:
        return topology.parts(self)

    def delete_before(self, others: Iterable[Object]) -> list[ObjectKey]:
        keys = map(key_of, others)
        return [
            key
            for key in keys
            if key.namespace == self.key.namespace
            and key.group_kind != self.key.group_kind
            and (contract.is_cluster_api(key.group_kind) or key.group_kind == SECRET)
        ]
