# SPDX-License-Identifier: Apache-2.0
"""The parts of a Cluster with a topology (Cluster API book, "ClusterClass"): each has a count, and Machines.

A controller makes a control plane and sets of machines of them, and reverts every other change to the counts of these. So
a count is changed in the Cluster. The Machines are found by label, because a Cluster controls none of these objects.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from k8s_cr_driver.capi import contract, versions
from k8s_cr_driver.capi.control_plane import ControlPlane
from k8s_cr_driver.capi.machines import MachineOwner
from k8s_cr_driver.objects.fields import ListEntry, entries, integer, mapping, text
from k8s_cr_driver.objects.keys import GroupKind, Object, key_of, kind_of, labels
from k8s_cr_driver.resources.base import REPLICAS, CustomResource
from k8s_cr_driver.resources.health import Health
from k8s_cr_driver.resources.health.conditions import is_trouble, status_of
from k8s_cr_driver.resources.health.freshness import is_stale
from k8s_cr_driver.resources.health.model import waiting
from k8s_cr_driver.resources.hooks import Children, Made
from k8s_cr_driver.resources.registry import resource_for


class TopologyPart(MachineOwner):
    """What the parts have in common. `path` is the place of the part in the Cluster."""

    kind = ""
    path: tuple[str, ...]
    label = contract.CONTROL_PLANE_LABEL
    """The label of the part's Machines, as a requirement of a selector."""

    @property
    def name(self) -> str:
        return self.path[-1]

    @property
    def full_name(self) -> str:
        return f"{self.key.name}-{self.name}"

    def annotations(self) -> dict[str, str]:
        return mapping(self.manifest, *self.path, "metadata", "annotations")

    def whole(self) -> CustomResource:
        return resource_for(self.manifest, self.crd)

    def replicas(self) -> tuple[str, ...] | None:
        """None where the autoscaler sets the count: the controller would undo that if the topology had one."""
        return None if self.scaling().autoscaler() else (*self.path, "replicas")

    def children(self, live: Object | None = None) -> Children:
        del live
        selector = f"{contract.CLUSTER_NAME_LABEL}={self.key.name},{self.label}"
        is_pool = contract.TOPOLOGY_POOL_LABEL in self.label
        return Children(
            contract.MACHINES, "", self.key.namespace, selector, by_selector=True, one_each=True, or_replicas=is_pool
        )


class TopologyWorkers(TopologyPart):
    """An entry of `workers.machineDeployments` or `workers.machinePools`."""

    def __init__(self, cluster: CustomResource, workers: str, name: str) -> None:
        super().__init__(cluster.manifest, cluster.crd)
        self.part = f"{workers}/{name}"
        self.path = (*contract.TOPOLOGY, "workers", workers, ListEntry(name))
        self.label = f"{contract.TOPOLOGY_WORKERS[workers]}={name}"


class TopologyControlPlane(TopologyPart, ControlPlane):
    """Whether etcd runs on its Machines is in the ClusterClass; so only the annotation can say that it does not."""

    kind = ""

    def __init__(self, cluster: CustomResource) -> None:
        super().__init__(cluster.manifest, cluster.crd)
        self.part = contract.TOPOLOGY_CONTROL_PLANE
        self.path = (*contract.TOPOLOGY, contract.TOPOLOGY_CONTROL_PLANE)


def parts(cluster: CustomResource) -> list[CustomResource]:
    """The parts of a Cluster; none without a topology."""
    topology = mapping(cluster.manifest, *contract.TOPOLOGY)
    workers: list[CustomResource] = [
        TopologyWorkers(cluster, kind, name)
        for kind in contract.TOPOLOGY_WORKERS
        for entry in entries(topology, "workers", kind)
        if (name := text(entry, "name"))
    ]
    return [*([TopologyControlPlane(cluster)] if topology else []), *workers]


def unfinished(live: Object) -> Health | None:
    """WAITING while a topology is not applied, or has other Machines than it says; None without a topology."""
    topology = mapping(live, *contract.TOPOLOGY)
    if not topology:
        return None
    for condition in contract.conditions(live):
        if condition.get("type") == contract.TOPOLOGY_RECONCILED and not _is_true(condition, live):
            trouble = is_trouble(condition) and not is_stale(condition, integer(live, "metadata", "generation"))
            message = f"its topology is not applied: {text(condition, 'message')}"
            return waiting(text(condition, "reason"), message, trouble=trouble)
    workers = [entry for kind in contract.TOPOLOGY_WORKERS for entry in entries(topology, "workers", kind)]
    short = [
        *_short(live, "controlPlane", [mapping(topology, contract.TOPOLOGY_CONTROL_PLANE)]),
        *_short(live, "workers", workers),
    ]
    return waiting("ReplicasNotReady", "; ".join(short)) if short else None


class MadeOfTopology(Made):
    """Before Cluster API 1.9 a Cluster reports no counts, and no condition says of which topology it speaks."""

    def missing(self, found: Mapping[GroupKind, Sequence[Object]]) -> str:
        topology = mapping(self.live, *contract.TOPOLOGY)
        behind = (_behind(topology, one) for one in itertools.chain.from_iterable(found.values()))
        return next(filter(None, behind), "") or _missing(topology, found)


def _behind(topology: Object, one: Object) -> str:
    part = _part(topology, one)
    if part is None:
        return f"{key_of(one)} is not removed yet"
    if not mapping(one, "status"):
        return f"{key_of(one)} has no status yet"
    reached, wanted = contract.version_in(one), text(topology, "version")
    if not versions.has_reached(reached, wanted):
        return f"{key_of(one)} has the version {reached} instead of {wanted}"
    count, replicas = integer(one, *REPLICAS), integer(part, "replicas")
    if None not in (count, replicas) and count != replicas:
        return f"{key_of(one)} has {count} replicas instead of {replicas}"
    return ""


def _missing(topology: Object, made: Mapping[GroupKind, Sequence[Object]]) -> str:
    for workers, kind in contract.TOPOLOGY_KINDS.items():
        there = {labels(one).get(contract.TOPOLOGY_WORKERS[workers]) for one in made.get(kind, ())}
        for name in (text(entry, "name") for entry in entries(topology, "workers", workers)):
            if kind in made and name not in there:
                return f"there is no {kind} of {name} yet"
    return ""


def _part(topology: Object, made: Object) -> Object | None:
    """The part of a topology of which an object was made; None if the topology has it no longer."""
    for workers, kind in contract.TOPOLOGY_KINDS.items():
        if kind_of(made) == kind:
            name = labels(made).get(contract.TOPOLOGY_WORKERS[workers])
            return next((entry for entry in entries(topology, "workers", workers) if entry.get("name") == name), None)
    return mapping(topology, contract.TOPOLOGY_CONTROL_PLANE)


def _is_true(condition: Object, live: Object) -> bool:
    return status_of(condition) == "true" and not is_stale(condition, integer(live, "metadata", "generation"))


def _short(live: Object, group: str, wanted: list[Object]) -> list[str]:
    """
    Which counts in the status contradict those that are wanted.

    More can be desired: Machines that are not of the topology, or of an entry whose count the autoscaler sets.
    """
    status = contract.status_of_group(live, group)
    desired = integer(status, "desiredReplicas")
    if desired is None:
        return []
    least = sum(integer(one, "replicas") or 0 for one in wanted)
    found = contract.replica_counts(status).items()
    short = [f"{group}: {name} is {count} of {desired}" for name, count in found if count != desired]
    return [f"{group}: desiredReplicas is {desired} instead of {least}", *short] if desired < least else short
