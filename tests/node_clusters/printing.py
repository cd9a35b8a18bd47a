# SPDX-License-Identifier: Apache-2.0
"""Hosts that only print, of the cluster in `clusters`; as `ssh.hosts.Hosts`."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from k8s_cr_driver.node_clusters import parameters, run
from k8s_cr_driver.node_clusters.contents import Package
from k8s_cr_driver.node_clusters.inventory import Inventory
from k8s_cr_driver.node_clusters.kubeadm import balancing
from k8s_cr_driver.ssh.command import Command
from k8s_cr_driver.ssh.host import Host, Unreachable

from .clusters import INVENTORY, MASTERS
from .test_parameters import GIVEN

SERVER = "interface=eth0\nunit=haproxy active\nunit=keepalived active\n"
PRINTED = {
    "kubeadm token": f"kubeadm join 10.0.0.100:16443 --token t --discovery-token-ca-cert-hash sha256:{'a' * 64}",
    "kubeadm upload-certs": "b" * 64,
}


@dataclass
class Hosts:
    """`dead` do not respond, which the cluster notices at the look `noticed`; `holders` have the virtual IP."""

    dead: Collection[str] = ()
    noticed: int = 1
    holders: Collection[str] = ()
    is_balanced: bool = False
    """Whether the files of the load balancing are right."""
    inventory: Inventory = INVENTORY
    sick: Collection[str] = ()
    """Masters whose member of etcd is not healthy."""
    new: Collection[str] = ()
    """Nodes that have to join."""
    connections: int = 0
    looks: int = 0
    done: list[str] = field(default_factory=list)

    def run(self, host: Host, command: Command) -> str:
        if host.name in self.dead:
            raise Unreachable(host, "no connection")
        if command.what == "the look at the server":
            holds = f"holds={'yes' if host.name in self.holders else ''}\n"
            joined = "" if host.name in self.new else "joined=yes\ncontrol=yes\n"
            return SERVER + joined + holds + (_files(host.name, self.inventory) if self.is_balanced else "")
        if command.what == "the look at the cluster":
            self.looks += 1
            members = [{"ID": one.server, "name": one.name, "peerURLs": [f"https://{one.address}:2380"]} for one in MASTERS]
            healthy = [one.address for one in MASTERS if one.name not in self.sick]
            return "\n".join((json.dumps({"items": self._nodes()}), json.dumps({"members": members}), *healthy))
        self.done.append(command.what)
        return PRINTED.get(command.what, "")

    def _nodes(self) -> list[dict[str, Any]]:
        return [_node(node.name, node.name not in self.dead or self.looks < self.noticed) for node in INVENTORY.nodes]


def _files(name: str, inventory: Inventory) -> str:
    found = [balancing.haproxy(MASTERS, inventory.endpoint)]
    able = inventory.balancing
    found += [balancing.keepalived(one, able, inventory.endpoint, "4a1f", "eth0") for one in able if one.name == name]
    return "".join(f"file={one.digest} {one.path}\n" for one in found)


def _node(name: str, is_ready: bool) -> dict[str, Any]:
    return {"metadata": {"name": name}, "status": {"conditions": [{"type": "Ready", "status": str(is_ready)}]}}


def operation(hosts: Hosts, inventory: Inventory = INVENTORY) -> run.Run:
    """On all servers of the cluster."""
    hosts.inventory = inventory
    reach = {node.name: Host(node.name, node.ssh, "u") for node in inventory.servers}
    given = parameters.read(GIVEN, {}, "4a1f")
    return run.Run(hosts, reach, "4a1f", inventory, given, Package(), lambda _: None)  # type: ignore[arg-type]
