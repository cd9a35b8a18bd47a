# SPDX-License-Identifier: Apache-2.0
"""Clusters on servers for the tests of plans: three masters and workers, and what is on them."""

from __future__ import annotations

from dataclasses import replace

from k8s_cr_driver.node_clusters import plan
from k8s_cr_driver.node_clusters.facts import Cluster, Facts, Member, Server
from k8s_cr_driver.node_clusters.inventory import Endpoint, Inventory, Node, Role
from k8s_cr_driver.node_clusters.kubeadm import balancing

ENDPOINT = Endpoint("10.0.0.100", "198.51.100.7", 16443)
MASTERS = tuple(Node(f"m{k}", Role.MASTER, f"master-m{k}", f"198.51.100.1{k}", f"10.0.0.1{k}") for k in range(3))
WORKERS = tuple(Node(f"w{k}", Role.WORKER, f"worker-w{k}", f"198.51.100.2{k}", f"10.0.0.2{k}") for k in range(2))
INVENTORY = Inventory((*MASTERS, *WORKERS), ENDPOINT)
BALANCERS = tuple(Node(f"b{k}", Role.BALANCER, f"balancer-b{k}", f"198.51.100.3{k}", f"10.0.0.3{k}") for k in range(2))
OUTSIDE = replace(INVENTORY, balancers=BALANCERS)
"""The same nodes behind two servers of their own."""
INSTANCE = "4a1f"


def wanted(inventory: Inventory = INVENTORY) -> plan.Wanted:
    return plan.Wanted(INSTANCE, inventory, installed="i1", applied="a1", installed_balancers="b1")


def settled(node: Node, inventory: Inventory = INVENTORY) -> Server:
    """A server that has all that `ensure` gives it."""
    files, is_balancer = [], node.role is Role.BALANCER
    if node in inventory.balancing:
        files = [
            balancing.haproxy(inventory.masters, ENDPOINT),
            balancing.keepalived(node, inventory.balancing, ENDPOINT, INSTANCE, "eth0"),
        ]
    return Server(
        interface="eth0",
        holds_vip=node == inventory.balancing[0],
        is_joined=not is_balancer,
        is_control_plane=node.is_master,
        installed="b1" if is_balancer else "i1",
        applied="a1" if node == inventory.masters[0] else "",
        digests={file.path: file.digest for file in files},
        active=frozenset({"haproxy", "keepalived"}) if files else frozenset(),
    )


def cluster(inventory: Inventory = INVENTORY, dead: tuple[str, ...] = ()) -> Cluster:
    """All nodes of the inventory; those in `dead` are neither Ready nor healthy."""
    return Cluster(
        {node.name: node.name not in dead for node in inventory.nodes},
        frozenset(node.name for node in inventory.masters),
        tuple(Member(f"id-{node.name}", node.name, node.address, node.name not in dead) for node in inventory.masters),
    )


def facts(inventory: Inventory = INVENTORY, dead: tuple[str, ...] = ()) -> Facts:
    """A whole cluster, whose servers in `dead` do not respond."""
    servers = {node.name: settled(node, inventory) for node in inventory.servers if node.name not in dead}
    return Facts(servers, cluster(inventory, dead))


def empty(inventory: Inventory = INVENTORY) -> Facts:
    """New servers."""
    return Facts({node.name: Server(interface="eth0") for node in inventory.servers})
