# SPDX-License-Identifier: Apache-2.0
"""A workload cluster as a whole.

Its controllers need templates and Secrets to delete machines. So a Cluster is deleted first: the other objects of Cluster
API in its namespace, and the Secrets there, are deleted only after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from k8s_cr_driver.capi import contract, paused, topology
from k8s_cr_driver.capi.changes import ClusterChanges
from k8s_cr_driver.objects.fields import mapping
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, SecretEntry, key_of
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.health import Health, State
from k8s_cr_driver.resources.health.custom import stored_suffices, terminating
from k8s_cr_driver.resources.health.freshness import behind
from k8s_cr_driver.resources.health.model import waiting
from k8s_cr_driver.resources.hooks import Causes, Changes, Children, Made, Relations

SECRET = GroupKind("", "Secret")
UNREACHABLE = "k8s-cr-driver/unreachable"
"""Annotation `k8s-cr-driver/unreachable: "true"`: the driver cannot connect to the workload cluster, and does not try to."""


@dataclass(frozen=True)
class ClusterRelations(Relations):
    cluster: Cluster
    sums_up = True

    def names(self) -> Sequence[tuple[Object, str, ObjectKey]]:
        return contract.class_names(self.cluster.manifest)

    def applied_after(self) -> Sequence[ObjectKey]:
        """A webhook refuses the change to a ClusterClass that does not exist."""
        return [key for _, _, key in self.names()]

    def deleted_before(self, others: Iterable[Object]) -> Sequence[ObjectKey]:
        own, keys = self.cluster.key, map(key_of, others)
        return [
            key
            for key in keys
            if key.namespace == own.namespace
            and key.group_kind != own.group_kind
            and (contract.is_cluster_api(key.group_kind) or key.group_kind == SECRET)
        ]

    def pauses(self, others: Iterable[Object]) -> Sequence[ObjectKey]:
        return [key_of(one) for one in others if paused.with_cluster(self.cluster.manifest, one)]

    def is_held_up_by(self, live: Object, others: Iterable[Object]) -> bool:
        """It is available when all groups of its workers are; those of a topology are deleted by Cluster API itself."""
        is_current = not (terminating(live) or behind(live, self.cluster.old_status))
        if mapping(self.cluster.manifest, *contract.TOPOLOGY) or not is_current or not contract.awaits_workers_only(live):
            return False
        return any(contract.workers_of(one) == self.cluster.key for one in others)


class Cluster(CustomResource):
    group, kind = contract.GROUP, "Cluster"

    def health(self, live: Object) -> Health:
        return paused.unless_paused(self, live, super().health(live))

    def causes(self, live: Object) -> Causes:
        return Causes(contract.referred(live))

    def made(self, live: Object) -> Made | None:
        kinds = contract.made_of_topology(live)
        if not kinds or stored_suffices(self.manifest, self.crd):
            return None
        selector = contract.of_topology(self.key.name)
        return topology.MadeOfTopology(live, [Children(kind, "", self.key.namespace, selector) for kind in kinds])

    def kubeconfig(self) -> SecretEntry | None:
        if self.annotations().get(UNREACHABLE) == "true" or stored_suffices(self.manifest, self.crd):
            return None
        return contract.kubeconfig_entry(self.key.namespace, self.key.name)

    def assess(self, live: Object) -> Health:
        """Its topology can be applied before it is Available, and it can be Available before its counts have changed."""
        health = super().assess(live)
        if health.state is not State.READY or stored_suffices(live, self.crd):
            return health
        if contract.conditions(live) and not contract.is_available(live):
            return waiting("NotAvailable", "no controller has reported yet whether it is available")
        return topology.unfinished(live) or health

    def changes(self) -> Changes:
        return ClusterChanges(self.manifest)

    def relations(self) -> Relations:
        return ClusterRelations(self)

    def parts(self) -> list[CustomResource]:
        return topology.parts(self)
