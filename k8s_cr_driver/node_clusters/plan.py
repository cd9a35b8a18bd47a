# SPDX-License-Identifier: Apache-2.0
"""What is to be done, from what there is and what there has to be: pure, a table of steps.

`ensure` makes the cluster of all servers of the instance, from whatever state: it serves instantiate, scale out, heal, and each
retry. `leave` takes servers out of it before Tacker removes them. A step is there only if it changes something.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.node_clusters.facts import Cluster, Facts, Member
from k8s_cr_driver.node_clusters.inventory import Inventory, Node, Role
from k8s_cr_driver.node_clusters.kubeadm import balancing
from k8s_cr_driver.node_clusters.phases import Phase as PhaseOf
from k8s_cr_driver.ssh.files import File


@dataclass(frozen=True)
class Install:
    """Runs the package's script on a server."""

    node: Node


@dataclass(frozen=True)
class Configure:
    """Replaces files of a server, and starts or reloads the services that read them."""

    node: Node
    files: tuple[File, ...]
    start: tuple[str, ...]


@dataclass(frozen=True)
class Release:
    """Ends keepalived on a load balancer that leaves, so that another one takes the virtual IP at once."""

    node: Node


@dataclass(frozen=True)
class Initialize:
    """kubeadm init on the first master."""

    node: Node


@dataclass(frozen=True)
class Apply:
    """Applies the package's manifests to the cluster, by a master."""

    by: Node


@dataclass(frozen=True)
class Join:
    """kubeadm join."""

    node: Node


@dataclass(frozen=True)
class RemoveMember:
    """Takes a master out of etcd. `by`: the master that is asked."""

    by: Node
    member: Member


@dataclass(frozen=True)
class Drain:
    """Moves the Pods of a node to others."""

    by: Node
    name: str


@dataclass(frozen=True)
class DeleteNode:
    """Deletes the Node of a server that is no longer one of the cluster."""

    by: Node
    name: str


Step = Install | Configure | Release | Initialize | Apply | Join | RemoveMember | Drain | DeleteNode

Phase = PhaseOf[Step]

BALANCING, RELEASE = "load balancing", "virtual IP"
"""Phases after which exactly one server has the virtual IP."""


@dataclass(frozen=True)
class Wanted:
    """The cluster as it has to be."""

    instance: str
    inventory: Inventory
    installed: str
    """The digest of the installation; "" if the images have all that a node needs."""
    applied: str
    """The digest of the manifests for the cluster; "" if there are none."""
    installed_balancers: str = ""
    """As `installed`, of the load balancers outside the masters."""

    def installed_of(self, node: Node) -> str:
        return self.installed_balancers if node.role is Role.BALANCER else self.installed


def ensure(wanted: Wanted, facts: Facts) -> list[Phase]:
    """
    The phases that are left, in their order.

    Raises InvalidRequest if etcd has no majority.
    """
    inventory, cluster = wanted.inventory, facts.cluster
    stale = _stale(inventory, cluster) if cluster else []
    new = [node for node in inventory.nodes if not facts.of(node).is_joined]
    first = next((node for node in inventory.masters if facts.of(node).is_control_plane), None)
    phases = [
        Phase("removal of what former servers left", tuple(_forgotten(inventory, facts, stale)), in_turn=True),
        Phase("installation", tuple(Install(node) for node in inventory.servers if _lacks(wanted, facts, node))),
        Phase(BALANCING, tuple(_balancing(wanted.instance, inventory, facts))),
    ]
    if first is None:
        first = inventory.masters[0]
        phases.append(Phase("first master", (Initialize(first),)))
    if wanted.applied and wanted.applied not in {facts.of(node).applied for node in inventory.masters}:
        phases.append(Phase("manifests", (Apply(first),)))
    masters = tuple(Join(node) for node in new if node.is_master and node != first)
    workers = tuple(Join(node) for node in new if not node.is_master)
    phases += [Phase("masters", masters, in_turn=True), Phase("workers", workers)]
    return [phase for phase in phases if phase.steps]


def leave(wanted: Wanted, facts: Facts, servers: Iterable[str]) -> list[Phase]:
    """
    The phases after which the servers can be removed: nothing of the cluster needs them any more.

    Raises InvalidRequest for all masters at once, where etcd would lose its majority, and for the last load balancer.
    """
    gone = set(servers)
    left, nodes = wanted.inventory.without(gone), [one for one in wanted.inventory.nodes if one.server in gone]
    released = _released(wanted.inventory, facts, gone)
    phases = _left(wanted, facts, left, nodes) if nodes else []
    phases.append(Phase(RELEASE, released))
    return [phase for phase in phases if phase.steps]


def _left(wanted: Wanted, facts: Facts, left: Inventory, nodes: list[Node]) -> list[Phase]:
    """The phases after which the nodes can be removed."""
    cluster = facts.cluster
    if not left.masters:
        raise InvalidRequest("all masters would be replaced at once, and the cluster with them: heal them one after another")
    if cluster is None:
        raise InvalidRequest("no master of the cluster responds, so no node can leave it; heal the whole VNF instance")
    names = {one.name for one in nodes}
    members = [member for member in cluster.members if member.name in names]
    _check_quorum(cluster, members)
    by = _asked(left, facts)
    drained = tuple(Drain(by, one.name) for one in nodes if cluster.ready.get(one.name))
    balancing_of_left = tuple(_balancing(wanted.instance, left, facts)) if any(one.is_master for one in nodes) else ()
    return [
        Phase("drain", drained, in_turn=True),
        Phase(BALANCING, balancing_of_left),
        Phase("etcd", tuple(RemoveMember(by, member) for member in members), in_turn=True),
        Phase("nodes", tuple(DeleteNode(by, name) for name in sorted(names) if name in cluster.ready)),
    ]


def _released(inventory: Inventory, facts: Facts, gone: set[str]) -> tuple[Release, ...]:
    """On those that leave and respond. The others keep their files: a successor has the address of the one that it replaces."""
    leaving = [one for one in inventory.balancers if one.server in gone and one.name in facts.servers]
    if leaving and not any(one.server not in gone and one.name in facts.servers for one in inventory.balancers):
        raise InvalidRequest(
            f"{', '.join(one.name for one in leaving)}: no other load balancer responds, so nobody would have the virtual IP: "
            "heal those that do not respond first, or these one after another"
        )
    return tuple(Release(one) for one in leaving if "keepalived" in facts.of(one).active)


def silent(inventory: Inventory, facts: Facts, servers: Iterable[str]) -> list[str]:
    """Nodes that leave, and do not respond, but are Ready: a drain would wait for Pods of a dead kubelet."""
    gone, ready = set(servers), facts.cluster.ready if facts.cluster else {}
    leaving = [node.name for node in inventory.nodes if node.server in gone]
    return [name for name in leaving if name not in facts.servers and ready.get(name)]


def holders(inventory: Inventory, facts: Facts) -> list[str]:
    """The servers that have the virtual IP; one, if all is right."""
    return [node.name for node in inventory.servers if facts.of(node).holds_vip]


def _lacks(wanted: Wanted, facts: Facts, node: Node) -> bool:
    installed = wanted.installed_of(node)
    return bool(installed) and facts.of(node).installed != installed


def _balancing(instance: str, inventory: Inventory, facts: Facts) -> Iterator[Configure]:
    """On each server that balances and responds, what differs. Where one is gone, the peers of its successor are not known."""
    is_whole = all(node.is_there for node in inventory.balancing)
    for node in inventory.balancing:
        server = facts.servers.get(node.name)
        if server is None:
            continue
        files = [balancing.haproxy(inventory.masters, inventory.endpoint)]
        if is_whole:
            files.append(balancing.keepalived(node, inventory.balancing, inventory.endpoint, instance, server.interface))
        changed = tuple(file for file in files if server.digests.get(file.path) != file.digest)
        stopped = tuple(unit for unit in balancing.UNITS.values() if unit not in server.active)
        if changed or stopped:
            yield Configure(node, changed, stopped)


def _stale(inventory: Inventory, cluster: Cluster) -> list[str]:
    """Nodes and members of servers that the instance does not have."""
    known = {node.name for node in inventory.nodes}
    return sorted(({*cluster.ready} | {member.name for member in cluster.members if member.name}) - known)


def _forgotten(inventory: Inventory, facts: Facts, stale: list[str]) -> Iterator[Step]:
    cluster = facts.cluster
    if cluster is None or not stale:
        return
    members = [member for member in cluster.members if member.name in stale]
    _check_quorum(cluster, members)
    by = _asked(inventory, facts)
    yield from (RemoveMember(by, member) for member in members)
    yield from (DeleteNode(by, name) for name in stale if name in cluster.ready)


def _asked(inventory: Inventory, facts: Facts) -> Node:
    """A master that is in the cluster and healthy."""
    cluster = facts.cluster
    healthy = {member.name for member in cluster.members if member.is_healthy} if cluster else set()
    found = next((node for node in inventory.masters if node.name in healthy and facts.of(node).is_control_plane), None)
    if found is None:
        raise InvalidRequest("no healthy master would be left to ask; heal the whole VNF instance")
    return found


def _check_quorum(cluster: Cluster, removed: list[Member]) -> None:
    """Each removal needs a majority of the members of then, among those that stay and are healthy."""
    if not removed:
        return
    healthy = sum(member.is_healthy for member in cluster.members if member not in removed)
    total = len(cluster.members)
    if healthy < total // 2 + 1:
        names = ", ".join(member.name or member.id for member in removed)
        raise InvalidRequest(
            f"etcd has {total} members, and without {names} only {healthy} are healthy, which is no majority: repair another "
            "master first, or heal the whole VNF instance, which loses the cluster's content"
        )
