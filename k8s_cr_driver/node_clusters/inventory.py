# SPDX-License-Identifier: Apache-2.0
"""The servers of an instance as nodes: what Tacker records of them, and where the cloud has them.

Addresses are read in each operation. A node's name has a part of its server's id, so a server that replaces another is another
node, and what the dead one has left in etcd and in the cluster is known by its name.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from k8s_cr_driver.errors import InvalidPackage, InvalidRequest
from k8s_cr_driver.node_clusters import balancers
from k8s_cr_driver.node_clusters.groups import Group
from k8s_cr_driver.node_clusters.parameters import API_SERVER_PORT, Parameters
from k8s_cr_driver.objects.fields import entries, text

if TYPE_CHECKING:  # whose libraries are slow to import
    from k8s_cr_driver.cloud.stack import Stack

MASTERS = 3
"""The fewest masters whose etcd survives the loss of one."""


class Role(enum.Enum):
    """What a server is in its cluster, or for it."""

    MASTER = "master"
    WORKER = "worker"
    STORAGE = "storage_server"
    BALANCER = "load_balancer"


@dataclass(frozen=True)
class Node:
    """A server that is, or becomes, a node of the cluster, or serves it."""

    server: str
    """Its id in Nova."""
    role: Role
    name: str
    ssh: str
    """The address at which the conductor reaches it."""
    address: str
    """The address at which the other nodes reach it."""
    is_there: bool = True
    """False for one that leaves, and that Tacker has removed or replaced before the conductor died; it has no addresses."""

    @property
    def is_master(self) -> bool:
        return self.role is Role.MASTER


@dataclass(frozen=True)
class Endpoint:
    """Where the API is."""

    address: str
    """The virtual IP."""
    public: str
    """The floating IP that leads to it; the virtual IP without one."""
    port: int


@dataclass(frozen=True)
class Inventory:
    """All nodes of an instance; masters first, each role in the order of its VNFCs."""

    nodes: tuple[Node, ...]
    endpoint: Endpoint
    balancers: tuple[Node, ...] = ()
    """Servers outside the masters that have the virtual IP; () if the masters have it."""

    @property
    def servers(self) -> tuple[Node, ...]:
        return (*self.nodes, *self.balancers)

    @property
    def masters(self) -> tuple[Node, ...]:
        return tuple(node for node in self.nodes if node.is_master)

    @property
    def is_balanced(self) -> bool:
        """Whether the API is at a virtual IP, and not at the only master."""
        return all(node.address != self.endpoint.address for node in self.masters)

    @property
    def balancing(self) -> tuple[Node, ...]:
        """The servers with HAProxy and keepalived; () where the API is at the only master."""
        return (self.balancers or self.masters) if self.is_balanced else ()

    def without(self, servers: Iterable[str]) -> Inventory:
        """With other nodes only. The balancers stay: another server will be at the address of one that leaves."""
        leaving = set(servers)
        return replace(self, nodes=tuple(node for node in self.nodes if node.server not in leaving))


def stack_of(instance: Mapping[str, Any]) -> tuple[str, str]:
    """Name and id of the instance's stack, as Tacker's OpenStack driver names it. Raises InvalidRequest."""
    identifier = text(instance, "instantiatedVnfInfo", "metadata", "stack_id")
    if not identifier:
        raise InvalidRequest("the VNF instance has no stack of Heat: a node cluster needs the VIM of an OpenStack project")
    return f"vnf-{instance['id']}", identifier


def read(
    instance: Mapping[str, Any], parameters: Parameters, stack: Stack, least: int = MASTERS, leaving: Collection[str] = ()
) -> Inventory:
    """
    The nodes of an instantiated instance.

    least: of masters; a single one may have the API at its own port. leaving: servers that the operation removes.

    Raises InvalidPackage if there are too few masters or balancers, or an even number of masters, or if a server that balances
    may not have the virtual IP.
    """
    masters, workers = nodes(instance, parameters, stack, leaving)
    if len(masters) < least or len(masters) % 2 == 0:
        why = f", and at least {least}, to survive the loss of one" if least > 1 else ""
        raise InvalidPackage(
            f"VDU {parameters.masters.label}: has {len(masters)} masters; etcd needs an odd number{why}: change the number of "
            "instances in the VNFD"
        )
    of = _own_stack(_vnfcs(instance, parameters.masters)[0]) if len(masters) == 1 else stack.id
    of = of if (of, parameters.cluster_cp_name) in stack.resources else stack.id
    vip = stack.port(of, parameters.cluster_cp_name)
    public = stack.address(of, parameters.cluster_fip_name) if parameters.cluster_fip_name else vip.floating
    found = Inventory((*masters, *workers), Endpoint(vip.address, public or vip.address, parameters.api_port))
    group = parameters.masters
    if parameters.balancers:
        group = parameters.balancers.group
        found = replace(found, balancers=_outside(instance, group, stack, leaving))
        _check_apart(found, parameters.cluster_cp_name)
    if not found.is_balanced and len(masters) == 1:
        return replace(found, endpoint=replace(found.endpoint, port=API_SERVER_PORT))
    there = {node.server for node in found.balancers or found.masters if node.is_there}
    _check_pairs([one for one in _vnfcs(instance, group) if server_of(one) in there], group, stack, vip.address)
    return found


def _outside(instance: Mapping[str, Any], group: Group, stack: Stack, leaving: Collection[str]) -> tuple[Node, ...]:
    found = tuple(_node(vnfc, Role.BALANCER, group, stack, leaving) for vnfc in _vnfcs(instance, group))
    if len(found) < balancers.COUNT:
        raise InvalidPackage(
            f"VDU {group.label}: has {len(found)} servers; load balancers are at least {balancers.COUNT}, so that another one "
            "takes the virtual IP over: change the number of instances in the VNFD"
        )
    return found


def _check_apart(found: Inventory, name: str) -> None:
    """With balancers the API cannot be at a server's own port."""
    if any(one.address == found.endpoint.address for one in found.servers):
        raise InvalidPackage(
            f"{name}: is the port of a server; with {balancers.SECTION} cluster_cp_name names a port of its own in the top "
            "template, whose address the load balancers share"
        )


def vdus(instance: Mapping[str, Any], group: Group) -> list[str]:
    """The VDUs of a group's servers: one, also where the group is named by its aspect."""
    return sorted({group.vdu_id, *(text(vnfc, "vduId") for vnfc in _vnfcs(instance, group))} - {""})


def nodes(
    instance: Mapping[str, Any], parameters: Parameters, stack: Stack, leaving: Collection[str]
) -> tuple[list[Node], list[Node]]:
    """The masters and the workers."""
    masters, workers = (
        [_node(vnfc, role, group, stack, leaving) for vnfc in _vnfcs(instance, group)]
        for role, group in ((Role.MASTER, parameters.masters), (Role.WORKER, parameters.workers))
    )
    return masters, workers


def _vnfcs(instance: Mapping[str, Any], group: Group) -> list[Mapping[str, Any]]:
    """In the order of their numbers; those of groups of Heat have none, and keep that of Tacker."""
    found = [one for one in entries(instance, "instantiatedVnfInfo", "vnfcResourceInfo") if _is_of(instance, one, group)]
    return sorted(found, key=lambda one: (one.get("metadata", {}).get("vdu_idx", 0), text(one, "id")))


def _is_of(instance: Mapping[str, Any], vnfc: Mapping[str, Any], group: Group) -> bool:
    if group.vdu_id:
        return vnfc.get("vduId") == group.vdu_id
    parent = text(vnfc, "metadata", "parent_stack_id").partition("/")[0]
    return parent.rpartition("-")[0] == f"vnf-{instance['id']}-{group.aspect_id}"


def server_of(vnfc: Mapping[str, Any]) -> str:
    return text(vnfc, "computeResource", "resourceId")


def _own_stack(vnfc: Mapping[str, Any]) -> str:
    """Of `name/id`, the id."""
    return text(vnfc, "metadata", "stack_id").rpartition("/")[2]


def _node(vnfc: Mapping[str, Any], role: Role, group: Group, stack: Stack, leaving: Collection[str]) -> Node:
    of, server = _own_stack(vnfc), server_of(vnfc)
    name = name_of(text(vnfc, "vduId"), server)
    if server in leaving and not stack.is_of(of, group.nic_cp_name, server):
        return Node(server, role, name, "", "", is_there=False)
    ssh, nic = stack.address(of, group.ssh_cp_name), stack.port(of, group.nic_cp_name)
    return Node(server, role, name, ssh, nic.address)


def name_of(vdu: str, server: str) -> str:
    """The name of a node: lower case, as Kubernetes wants it, and unlike that of a server which it replaces."""
    return f"{re.sub(r'[^a-z0-9]+', '-', vdu.lower()).strip('-')[:40]}-{server[:8]}"


def _check_pairs(vnfcs: Iterable[Mapping[str, Any]], group: Group, stack: Stack, vip: str) -> None:
    wrong = [server_of(vnfc) for vnfc in vnfcs if not stack.port(_own_stack(vnfc), group.nic_cp_name).allows(vip)]
    if wrong:
        raise InvalidPackage(
            f"{group.nic_cp_name}: the port of the servers {', '.join(wrong)} may not send from the virtual IP {vip}: add it "
            f"to allowed_address_pairs of this port in the template of the VDU {group.label}"
        )


def leaving(grant_request: Mapping[str, Any]) -> list[str]:
    """The servers that a scale in, or a heal, removes (GrantRequest of SOL003, removeResources)."""
    removed: Sequence[Mapping[str, Any]] = entries(grant_request, "removeResources")
    return [text(one, "resource", "resourceId") for one in removed if one.get("type") == "COMPUTE"]
