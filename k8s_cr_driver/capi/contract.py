# SPDX-License-Identifier: Apache-2.0
"""Every field path, label and group of Cluster API that this driver reads, for the contracts v1beta1 and v1beta2.

Source: the Cluster API book, "Contracts" and "Labels and annotations".
"""

from __future__ import annotations

import base64
from collections.abc import Iterable

from k8s_cr_driver.objects.fields import entries, integer, mapping, sequence, text
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, SecretEntry, key_of, kind_of, labels, split

GROUP = "cluster.x-k8s.io"
CONTROL_PLANE_GROUP = "controlplane.cluster.x-k8s.io"
CLUSTERS = GroupKind(GROUP, "Cluster")
MACHINES = GroupKind(GROUP, "Machine")
MACHINE_SETS = GroupKind(GROUP, "MachineSet")

CLUSTER_NAME_LABEL = "cluster.x-k8s.io/cluster-name"
DEPLOYMENT_NAME_LABEL = "cluster.x-k8s.io/deployment-name"
POOL_NAME_LABEL = "cluster.x-k8s.io/pool-name"
SET_NAME_LABEL = "cluster.x-k8s.io/set-name"
CONTROL_PLANE_LABEL = "cluster.x-k8s.io/control-plane"
TOPOLOGY_DEPLOYMENT_LABEL = "topology.cluster.x-k8s.io/deployment-name"
TOPOLOGY_POOL_LABEL = "topology.cluster.x-k8s.io/pool-name"
CONTROL_PLANE_NAME_LABEL = "cluster.x-k8s.io/control-plane-name"
AUTOSCALED = frozenset(f"cluster.x-k8s.io/cluster-api-autoscaler-node-group-{bound}-size" for bound in ("min", "max"))
"""Annotations of a set of machines whose count the cluster autoscaler sets, between these two."""
VERSION = ("spec", "version")
"""Path of the Kubernetes version in a control plane."""
WORKERS = frozenset(GroupKind(GROUP, kind) for kind in ("MachineDeployment", "MachinePool", "MachineSet"))
"""The kinds of groups of workers."""
WORKERS_VERSION = ("spec", "template", "spec", "version")
"""Path of the Kubernetes version in a set of machines."""
TOPOLOGY_VERSION = ("spec", "topology", "version")
TOPOLOGY = ("spec", "topology")
"""Path in a Cluster that a ClusterClass describes."""
TOPOLOGY_CONTROL_PLANE = "controlPlane"
TOPOLOGY_WORKERS = {"machineDeployments": TOPOLOGY_DEPLOYMENT_LABEL, "machinePools": TOPOLOGY_POOL_LABEL}
"""Lists in `workers` of a topology -> the label of their Machines with the name of the entry."""
TOPOLOGY_KINDS = {"machineDeployments": GroupKind(GROUP, "MachineDeployment"), "machinePools": GroupKind(GROUP, "MachinePool")}
"""Lists in `workers` of a topology -> the kind of the objects that are made of their entries, with the same label."""
TOPOLOGY_RECONCILED = "TopologyReconciled"
"""Type of the condition that the objects of a Cluster are as its topology says."""
WORKERS_AVAILABLE = "WorkersAvailable"
"""Type of the condition of a Cluster that all groups of its workers are Available."""
MEMBER_HEALTHY = frozenset({"NodeHealthy", "EtcdMemberHealthy"})
"""Types of the conditions of a Machine that its Node works, and as one of a control plane its member of etcd."""
_SUMMED_UP = frozenset({"RemoteConnectionProbe", "InfrastructureReady", "ControlPlaneAvailable", WORKERS_AVAILABLE})
REPLICA_COUNTS = ("replicas", "upToDateReplicas", "availableReplicas")
"""Counts of Machines in the status of a control plane, of workers, and of both groups in a Cluster."""
ROTATED = ("Template", "ClusterClass")
"""Endings of the kinds that clusters and their Machines are made of, and of what names these for a topology."""
_CLASS = (("classRef", "name", "namespace"), ("", "class", "classNamespace"))
"""Where a topology names its ClusterClass: the mapping in it, and the fields of that; the second is of v1beta1."""
PAUSED = "cluster.x-k8s.io/paused"
"""Annotation of an object that its controllers leave alone."""
_REFERENCES = (("spec", "infrastructureRef"), ("spec", "controlPlaneRef"), ("spec", "bootstrap", "configRef"))
"""Paths of references of a Cluster and of a Machine to what has to be ready before them."""
_TEMPLATES = (
    ("spec", "template", "spec", "infrastructureRef"),
    ("spec", "template", "spec", "bootstrap", "configRef"),
    ("spec", "machineTemplate", "spec", "infrastructureRef"),
    ("spec", "machineTemplate", "infrastructureRef"),
)
"""Paths of references to what Machines are made of, in their owners; the last one is that of a control plane in v1beta1."""
DELETE_MACHINE = "cluster.x-k8s.io/delete-machine"
"""Annotation of a Machine that its owner removes first in a scale in."""
EXTERNAL_ETCD = ("spec", "kubeadmConfigSpec", "clusterConfiguration", "etcd", "external")
"""Path in a KubeadmControlPlane."""
_LONGEST_LABEL = 63


def label_value(name: str) -> str:
    """The name of an object as Cluster API writes it into a label: a hash if it is too long (util/labels/format)."""
    if len(name) <= _LONGEST_LABEL:
        return name
    digest = base64.urlsafe_b64encode(_fnv32a(name.encode()).to_bytes(4, "big")).decode().rstrip("=")
    return f"hash_{digest}_z"


def _fnv32a(data: bytes) -> int:
    """FNV-1a of 32 bits (IETF draft-eastlake-fnv), which Go has as hash/fnv.New32a."""
    value = 0x811C9DC5
    for byte in data:
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value


def is_cluster_api(kind: GroupKind) -> bool:
    """Groups of the core and of its providers end alike: infrastructure.cluster.x-k8s.io, ..."""
    return kind.group == GROUP or kind.group.endswith("." + GROUP)


def kubeconfig_entry(namespace: str, cluster: str) -> SecretEntry:
    """Where the admin kubeconfig of a Cluster is."""
    return SecretEntry(namespace, f"{cluster}-kubeconfig", "value")


def conditions(cluster: Object) -> list[Object]:
    """The conditions of a Cluster; those of the contract v1beta1, and those that it has of v1beta2 beside them."""
    return entries(cluster, "status", "conditions") + entries(cluster, "status", "v1beta2", "conditions")


def is_available(cluster: Object) -> bool:
    """Whether a Cluster has the condition that speaks for all of it: Available, in v1beta1 Ready."""
    return any(one.get("type") in ("Available", "Ready") and one.get("status") == "True" for one in conditions(cluster))


def awaits_workers_only(cluster: Object) -> bool:
    """Whether nothing but WorkersAvailable keeps a Cluster from being Available (v1beta2), which sums up such conditions."""
    gates = {text(gate, "conditionType") for gate in entries(cluster, "spec", "availabilityGates")}
    unmet = {text(one, "type") for one in conditions(cluster) if one.get("status") != "True"}
    return unmet & (_SUMMED_UP | gates) == {WORKERS_AVAILABLE}


def version_in(owner: Object) -> str:
    """The version in the spec of a control plane or a set of machines."""
    return text(owner, *VERSION) or text(owner, *WORKERS_VERSION)


def versions_reached(owner: Object) -> list[str]:
    """The versions of its Machines; older contracts have only the oldest one of a control plane, `status.version`."""
    several = [text(entry, "version") for entry in entries(owner, "status", "versions")]
    return list(filter(None, several or [text(owner, "status", "version")]))


def replica_counts(status: Object) -> dict[str, int]:
    """Those of REPLICA_COUNTS that a status has, or a group of Machines in it."""
    return {name: count for name in REPLICA_COUNTS if (count := integer(status, name)) is not None}


def updated_replicas(deployment: Object) -> int | None:
    """
    How many Machines are made of the latest template: a count of v1beta1, which v1beta2 keeps.

    The own `upToDateReplicas` of v1beta2 counts a condition that another controller writes into the Machines: it is that of the
    former template until then.
    """
    kept = integer(deployment, "status", "deprecated", "v1beta1", "updatedReplicas")
    return integer(deployment, "status", "updatedReplicas") if kept is None else kept


def without_up_to_date(machine_set: Object) -> Object:
    """
    A MachineSet without what its status says of Machines that are up to date.

    Of one that no MachineDeployment controls nobody judges that: none of its Machines counts, and the condition is unknown.
    """
    status = mapping(machine_set, "status")
    others = [one for one in entries(status, "conditions") if one.get("type") != "MachinesUpToDate"]
    kept = {name: value for name, value in status.items() if name not in ("upToDateReplicas", "conditions")}
    return {**machine_set, "status": {**kept, "conditions": others} if status else {}}


def status_of_group(cluster: Object, group: str) -> Object:
    """The counts of Machines in the status of a Cluster; `group` is "controlPlane" or "workers"."""
    return mapping(cluster, "status", group) or mapping(cluster, "status", "v1beta2", group)


def control_plane_of(workers: Object, desired: Iterable[Object]) -> Object | None:
    """The control plane among `desired` of the cluster to which a set of machines belongs."""
    by_key = {key_of(obj): obj for obj in desired}
    namespace = key_of(workers).namespace
    cluster = by_key.get(ObjectKey(*CLUSTERS, namespace, text(workers, "spec", "clusterName")))
    kind, name = (text(cluster, "spec", "controlPlaneRef", field) for field in ("kind", "name"))
    return by_key.get(ObjectKey(CONTROL_PLANE_GROUP, kind, namespace, name))


def workers_of(obj: Object) -> ObjectKey | None:
    """The Cluster of a group of workers; None of another object."""
    if kind_of(obj) not in WORKERS:
        return None
    return ObjectKey(*CLUSTERS, key_of(obj).namespace, text(obj, "spec", "clusterName"))


def belongs_to(obj: Object, cluster: Object) -> bool:
    """Whether an object of Cluster API names the Cluster as its own, or the Cluster refers to it."""
    key, name = key_of(obj), text(cluster, "metadata", "name")
    is_named = name in (text(obj, "spec", "clusterName"), labels(obj).get(CLUSTER_NAME_LABEL))
    is_near = is_cluster_api(key.group_kind) and key.namespace == key_of(cluster).namespace
    return is_near and (is_named or key in referred(cluster))


def referred(live: Object) -> list[ObjectKey]:
    """The objects of providers that a Cluster or a Machine waits for; v1beta1 has versions in references, v1beta2 groups."""
    found = [reference for path in _REFERENCES if (reference := mapping(live, *path))]
    return [ObjectKey(*_kind_of(one), key_of(live).namespace, text(one, "name")) for one in found]


def _kind_of(reference: Object) -> GroupKind:
    return GroupKind(text(reference, "apiGroup") or split(text(reference, "apiVersion"))[0], text(reference, "kind"))


def templates(owner: Object) -> dict[tuple[str, ...], str]:
    """Path of each reference to a template in an owner of Machines -> the template's name."""
    return {path: name for path in _TEMPLATES if (name := text(owner, *path, "name"))}


def made_of_topology(cluster: Object) -> list[GroupKind]:
    """The kinds of the objects with Machines that a controller makes of a topology; none without one."""
    if not mapping(cluster, *TOPOLOGY):
        return []
    return [_kind_of(mapping(cluster, "spec", "controlPlaneRef")), *TOPOLOGY_KINDS.values()]


def of_topology(cluster: str) -> str:
    """The label selector for what a controller makes of the topology of a Cluster."""
    return f"{CLUSTER_NAME_LABEL}={cluster},topology.cluster.x-k8s.io/owned"


def class_names(cluster: Object) -> list[tuple[Object, str, ObjectKey]]:
    """Where a Cluster names its ClusterClass: the mapping, the field in that with the name, and the ClusterClass."""
    topology, own = mapping(cluster, *TOPOLOGY), key_of(cluster).namespace
    places = [(mapping(topology, part) if part else topology, name, namespace) for part, name, namespace in _CLASS]
    return [
        (place, name, ObjectKey(GROUP, "ClusterClass", text(place, namespace) or own, text(place, name)))
        for place, name, namespace in places
        if text(place, name)
    ]


def upgrades_in_chain(cluster_class: Object) -> bool:
    """Whether Cluster API >= 1.12 plans an upgrade over several minor versions for the Clusters of a ClusterClass.

    A webhook of it refuses a version that is not in `kubernetesVersions`, and a list of these that leaves out a minor version.
    """
    plan = text(cluster_class, "spec", "upgrade", "external", "generateUpgradePlanExtension")
    return bool(plan) or bool(sequence(cluster_class, "spec", "kubernetesVersions"))


def machine_metadata(machine: Object) -> dict[str, str]:
    """
    What is known of a Machine: its Node, the id that the infrastructure provider gave it, addresses, version, place.

    The addresses are separated by commas. The failure domain in the spec is the one that was asked for, if any was.
    """
    addresses = dict.fromkeys(text(entry, "address") for entry in entries(machine, "status", "addresses"))
    known = {
        "machine": text(machine, "metadata", "name"),
        "node": text(machine, "status", "nodeRef", "name"),
        "providerID": text(machine, "spec", "providerID"),
        "addresses": ",".join(filter(None, addresses)),
        "version": text(machine, "spec", "version"),
        "failureDomain": text(machine, "status", "failureDomain") or text(machine, "spec", "failureDomain"),
    }
    return {key: value for key, value in known.items() if value}
