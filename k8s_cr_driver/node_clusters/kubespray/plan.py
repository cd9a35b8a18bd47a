# SPDX-License-Identifier: Apache-2.0
"""What is to be done with a cluster that kubespray makes: pure, a table of steps. A second run has none: no playbook runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.node_clusters import load_balancer
from k8s_cr_driver.node_clusters import plan as common
from k8s_cr_driver.node_clusters.facts import Cluster, Facts
from k8s_cr_driver.node_clusters.inventory import Inventory, Node
from k8s_cr_driver.node_clusters.kubespray import playbook
from k8s_cr_driver.node_clusters.kubespray.playbook import Playbook
from k8s_cr_driver.node_clusters.load_balancer import Balancer
from k8s_cr_driver.ssh.files import File

MARK = "kubespray"
"""On a node on which a playbook of kubespray has ended well."""
WHOLE = "heal the whole VNF instance, without vnfcInstanceId, which loses the cluster's content"


@dataclass(frozen=True)
class Write:
    """Replaces files of the instance's folder on the Ansible server."""

    files: tuple[File, ...]


@dataclass(frozen=True)
class Play:
    """Runs a playbook; then `marked` are nodes."""

    playbook: Playbook
    marked: tuple[Node, ...] = ()


@dataclass(frozen=True)
class Balance:
    """Changes the entries of the cluster on the load balancer."""

    inventory: Inventory


@dataclass(frozen=True)
class Forget:
    """Deletes what the instance's folder has of these nodes: facts, which a node of the same name would get."""

    names: tuple[str, ...]


Step = common.Step | Write | Play | Balance | Forget


@dataclass(frozen=True)
class Phase:
    """Steps that follow each other."""

    name: str
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Wanted:
    """The cluster as it has to be."""

    inventory: Inventory
    files: tuple[File, ...]
    """Of the instance's folder."""
    applied: str
    """The digest of the manifests for the cluster; "" if there are none."""
    balancer: Node | None
    installed: str
    """The digest of the load balancer's script; "" without one."""
    node_ports: tuple[int, ...] = ()


@dataclass(frozen=True)
class Found:
    """What there is."""

    facts: Facts
    digests: Mapping[str, str] = field(default_factory=dict)
    """Of the files of the instance's folder."""
    balancer: Balancer = field(default_factory=Balancer)
    balancer_installed: str = ""


def ensure(wanted: Wanted, found: Found) -> list[Phase]:
    """
    The phases that are left, in their order.

    Raises InvalidRequest if a master was replaced: kubespray has no playbook for that.
    """
    facts, inventory = found.facts, wanted.inventory
    cluster = facts.cluster
    _check_masters(inventory, facts)
    stale = sorted(cluster.ready.keys() - {node.name for node in inventory.nodes}) if cluster else []
    missing = tuple(node for node in inventory.nodes if _is_missing(node, facts))
    phases = [
        Phase("removal of what former servers left", tuple(common.DeleteNode(_asked(inventory, facts), one) for one in stale)),
        Phase("installation of the load balancer", _installation(wanted, found)),
        Phase("load balancing", _balancing(wanted, found, inventory)),
        Phase("inventory", _folder(wanted, found, stale)),
        Phase("playbooks", _plays(inventory, missing)),
    ]
    if wanted.applied and wanted.applied not in {facts.of(node).applied for node in inventory.masters}:
        phases.append(Phase("manifests", (common.Apply(inventory.masters[0]),)))
    return [phase for phase in phases if phase.steps]


def leave(wanted: Wanted, found: Found, servers: Iterable[str]) -> list[Phase]:
    """
    The phases after which the servers can be removed: drained, then without a route, then no nodes.

    Raises InvalidRequest for a master.
    """
    facts, gone = found.facts, set(servers)
    left, nodes = wanted.inventory.without(gone), [one for one in wanted.inventory.nodes if one.server in gone]
    if masters := [one.name for one in nodes if one.is_master]:
        raise InvalidRequest(
            f"{', '.join(masters)}: a master cannot be replaced, because kubespray has no playbook for it; {WHOLE}"
        )
    if not nodes:
        return []
    cluster = facts.cluster
    if cluster is None:
        raise InvalidRequest(f"no master of the cluster responds, so no node can leave it; {WHOLE}")
    by = _asked(wanted.inventory, facts)
    known = [one.name for one in nodes if one.name in cluster.ready]
    alive = tuple(one.name for one in nodes if one.name in known and one.name in facts.servers)
    dead = tuple(name for name in known if name not in alive)
    plays = [Playbook(playbook.REMOVE, removed=alive)] if alive else []
    plays += [Playbook(playbook.REMOVE, removed=dead, is_dead=True)] if dead else []
    phases = [
        Phase("drain", tuple(common.Drain(by, name) for name in known if cluster.ready[name])),
        Phase("load balancing", _balancing(wanted, found, left)),
        # The node has to be in the inventory until its playbook has ended.
        Phase("inventory", _folder(wanted, found, ()) if plays else ()),
        Phase("playbooks", tuple(map(Play, plays))),
        Phase("facts", (Forget(tuple(known)),) if known else ()),
    ]
    return [phase for phase in phases if phase.steps]


def _is_missing(node: Node, facts: Facts) -> bool:
    """Whether a playbook has to make it a node; one that was removed without a reset still has its files."""
    server, cluster = facts.of(node), facts.cluster
    return server.installed != MARK or not server.is_joined or (cluster is not None and node.name not in cluster.ready)


def _check_masters(inventory: Inventory, facts: Facts) -> None:
    """A playbook marks all nodes after its end. So where one has a mark, a master without one that is no node is a new one."""
    if not any(facts.of(node).installed == MARK for node in inventory.nodes):
        return
    cluster = facts.cluster or Cluster()
    new = [one.name for one in inventory.masters if facts.of(one).installed != MARK and one.name not in cluster.ready]
    if new:
        raise InvalidRequest(
            f"{', '.join(new)}: is a new master of a cluster that is there, and kubespray has no playbook for it; {WHOLE}"
        )


def _asked(inventory: Inventory, facts: Facts) -> Node:
    """A master that is in the cluster."""
    return next(node for node in inventory.masters if facts.of(node).is_control_plane)


def _plays(inventory: Inventory, missing: tuple[Node, ...]) -> tuple[Step, ...]:
    """The whole cluster while a master is missing; else workers alone, after the facts of all, which --limit leaves out."""
    if any(node.is_master for node in missing):
        return (Play(Playbook(playbook.CLUSTER), inventory.nodes),)
    if not missing:
        return ()
    scale = Playbook(playbook.SCALE, limit=tuple(node.name for node in missing))
    return Play(Playbook(playbook.FACTS)), Play(scale, missing)


def _folder(wanted: Wanted, found: Found, stale: Iterable[str]) -> tuple[Step, ...]:
    changed = tuple(file for file in wanted.files if found.digests.get(file.path) != file.digest)
    written: tuple[Step, ...] = (Write(changed),) if changed else ()
    names = tuple(stale)
    return (*written, Forget(names)) if names else written


def _installation(wanted: Wanted, found: Found) -> tuple[Step, ...]:
    lacks = wanted.balancer is not None and wanted.installed and found.balancer_installed != wanted.installed
    return (common.Install(wanted.balancer),) if wanted.balancer is not None and lacks else ()


def _balancing(wanted: Wanted, found: Found, inventory: Inventory) -> tuple[Step, ...]:
    if wanted.balancer is None:
        return ()
    entries = load_balancer.of_cluster(inventory, wanted.node_ports)
    return () if load_balancer.is_right(found.balancer, load_balancer.CLUSTER, entries) else (Balance(inventory),)
