# SPDX-License-Identifier: Apache-2.0
"""A workload cluster as a whole.

Its controllers need templates and Secrets to delete machines. So a Cluster is deleted first: the other objects of Cluster
API in its namespace, and the Secrets there, are deleted only after it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence

from k8s_cr_driver.capi import contract, paused, topology, versions
from k8s_cr_driver.objects.fields import mapping, text
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, SecretEntry, key_of
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.health import Health, State
from k8s_cr_driver.resources.health.custom import stored_suffices, terminating
from k8s_cr_driver.resources.health.freshness import behind
from k8s_cr_driver.resources.health.model import waiting
from k8s_cr_driver.resources.hooks import Children

SECRET = GroupKind("", "Secret")
UNREACHABLE = "k8s-cr-driver/unreachable"
"""Annotation `k8s-cr-driver/unreachable: "true"`: the driver cannot connect to the workload cluster, and does not try to."""


class Cluster(CustomResource):
    group, kind = contract.GROUP, "Cluster"
    checks_changes = True
    sums_up = True

    def health(self, live: Object) -> Health:
        return paused.unless_paused(self, live, super().health(live))

    def pauses(self, others: Iterable[Object]) -> list[ObjectKey]:
        return [key_of(one) for one in others if paused.with_cluster(self.manifest, one)]

    def explained_by(self, live: Object) -> Sequence[ObjectKey]:
        return contract.referred(live) if live else []

    def made(self, live: Object) -> Sequence[Children]:
        if stored_suffices(self.manifest, self.crd):
            return []
        selector = contract.of_topology(self.key.name)
        return [Children(kind, "", self.key.namespace, selector) for kind in contract.made_of_topology(live)]

    def unmade(self, live: Object, made: Mapping[GroupKind, Sequence[Object]]) -> str:
        return topology.unmade(live, made)

    def names(self) -> Sequence[tuple[Object, str, ObjectKey]]:
        return contract.class_names(self.manifest)

    def applied_after(self) -> Sequence[ObjectKey]:
        """A webhook refuses the change to a ClusterClass that does not exist."""
        return [key for _, _, key in self.names()]

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

    def change_error(self, live: Object | None, desired: Sequence[Object]) -> str:
        error = versions.downgrade_error if self._upgrades_in_chain(desired) else versions.change_error
        return self._version_error([text(live, *contract.TOPOLOGY_VERSION)], error)

    def change_error_of_made(self, made: Mapping[GroupKind, Sequence[Object]], desired: Sequence[Object]) -> str:
        """Machines may not have reached the version yet that a change before this one has asked for."""
        if self._upgrades_in_chain(desired):
            return ""
        control_planes = itertools.chain.from_iterable(made[kind] for kind in made if kind not in contract.WORKERS)
        former = ([contract.version_in(one), *contract.versions_reached(one)] for one in control_planes)
        return self._version_error(itertools.chain.from_iterable(former), versions.skip_error)

    def _upgrades_in_chain(self, known: Iterable[Object]) -> bool:
        """Cluster API goes through the minor versions itself, if the ClusterClass says how."""
        classes = set(self.applied_after())
        return any(key_of(one) in classes and contract.upgrades_in_chain(one) for one in known)

    def _version_error(self, former: Iterable[str], error: Callable[[str, str], str]) -> str:
        after = text(self.manifest, *contract.TOPOLOGY_VERSION)
        why = next(filter(None, (error(before, after) for before in former)), "")
        return why and f"spec.topology.version {why}"

    def is_held_up_by(self, live: Object, others: Iterable[Object]) -> bool:
        """It is available when all groups of its workers are; those of a topology are deleted by Cluster API itself."""
        is_current = not (terminating(live) or behind(live, self.old_status))
        if mapping(self.manifest, *contract.TOPOLOGY) or not is_current or not contract.awaits_workers_only(live):
            return False
        return any(contract.workers_of(one) == self.key for one in others)

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
