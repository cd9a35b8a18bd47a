# SPDX-License-Identifier: Apache-2.0
"""The stack of an instance with masters and workers, as Heat and Neutron list it, and Tacker's record of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from .openstack import OpenStack

INSTANCE, STACK = "4a1f", "top-id"
VIP, VIP_FLOATING = "10.0.0.100", "198.51.100.100"
VDUS = {"masterNode": 3, "workerNode": 1}


@dataclass(frozen=True)
class Server:
    """A server of a VDU, with its port and the floating IP that leads to it, or a second port on a public network."""

    vdu: str
    number: int
    id: str
    address: str
    floating: str = ""
    public: str = ""
    """Of the second port."""

    @property
    def stack(self) -> str:
        """The id of its own stack, which stays when the server is replaced."""
        return f"{self.vdu}-{self.number}-id"


@dataclass
class Volume:
    """A volume of Cinder, as a resource of a server's own stack."""

    id: str
    resource: str
    stack: str
    servers: tuple[str, ...] = ()
    """Ids of those that it is attached to."""


@dataclass
class Deployed:
    """What Heat has made for an instance."""

    servers: list[Server]
    vip: str = VIP
    vip_floating: str = VIP_FLOATING
    instance: str = INSTANCE
    pairs: str = VIP
    """What the servers of the VDUs `paired` may send from, beside their own addresses."""
    paired: tuple[str, ...] = ("masterNode",)
    consoles: dict[str, str] = field(default_factory=dict)
    """What servers have printed, by their ids."""
    volumes: list[Volume] = field(default_factory=list)

    def fill(self, cloud: OpenStack) -> None:
        """The cloud has the stack, and nothing else."""
        cloud.responses = {
            f"/orchestration/stacks/vnf-{self.instance}/{STACK}/resources": {"resources": self._resources(cloud)},
            "/network/v2.0/ports": {"ports": self._ports()},
            "/network/v2.0/floatingips": {"floatingips": self._floating()},
            "/block-storage/volumes/detail": {"volumes": self._volumes()},
        }
        consoles = {f"/compute/servers/{server}/action": {"output": text} for server, text in self.consoles.items()}
        cloud.responses |= consoles

    def record(self) -> dict[str, Any]:
        """Tacker's; VNFCs newest first."""
        vnfcs = [self._vnfc(one) for one in reversed(self.servers)]
        return {"id": self.instance, "instantiatedVnfInfo": {"vnfcResourceInfo": vnfcs, "metadata": {"stack_id": STACK}}}

    def _vnfc(self, one: Server) -> dict[str, Any]:
        stack = f"vnf-{self.instance}-{one.vdu}-{one.number}-x/{one.stack}"
        return {
            "id": one.id,
            "vduId": one.vdu,
            "computeResource": {"resourceId": one.id},
            "metadata": {"stack_id": stack, "vdu_idx": one.number},
        }

    def _resources(self, cloud: OpenStack) -> list[dict[str, Any]]:
        listed = [self.resource(cloud, STACK, "vip_CP", "OS::Neutron::Port", "port-vip")]
        for one in self.servers:
            end = f"{one.vdu}-{one.number}"
            listed += [
                self.resource(cloud, one.stack, one.vdu, "OS::Nova::Server", one.id),
                self.resource(cloud, one.stack, f"{one.vdu}_CP1", "OS::Neutron::Port", f"port-{end}"),
                self.resource(cloud, one.stack, f"{one.vdu}_fip", "OS::Neutron::FloatingIP", f"fip-{end}"),
            ]
            if one.public:
                listed.append(self.resource(cloud, one.stack, f"{one.vdu}_CP2", "OS::Neutron::Port", f"public-{end}"))
        listed += [self.resource(cloud, one.stack, one.resource, "OS::Cinder::Volume", one.id) for one in self.volumes]
        return listed

    def resource(self, cloud: OpenStack, stack: str, name: str, kind: str, identifier: str) -> dict[str, Any]:
        href = f"{cloud.url}/orchestration/stacks/vnf-{self.instance}-{name}/{stack}"
        links = [{"rel": "self", "href": f"{href}/resources/{name}"}, {"rel": "stack", "href": href}]
        return {"resource_name": name, "resource_type": kind, "physical_resource_id": identifier, "links": links}

    def _volumes(self) -> list[dict[str, Any]]:
        """With those of others."""
        found: list[dict[str, Any]] = [{"id": "v1", "attachments": [{"server_id": "s1"}]}, {"id": "v2"}]
        own = ({"id": one.id, "attachments": [{"server_id": server} for server in one.servers]} for one in self.volumes)
        return [*found, *own]

    def _ports(self) -> list[dict[str, Any]]:
        found = [{"id": "port-vip", "fixed_ips": [{"ip_address": self.vip}], "allowed_address_pairs": []}]
        for one in self.servers:
            allowed = [{"ip_address": self.pairs}] if one.vdu in self.paired else []
            fixed = [{"ip_address": one.address}]
            of_server = {"fixed_ips": fixed, "allowed_address_pairs": allowed, "device_id": one.id}
            found.append({"id": f"port-{one.vdu}-{one.number}", **of_server})
            if one.public:
                outside = {**of_server, "fixed_ips": [{"ip_address": one.public}], "allowed_address_pairs": []}
                found.append({"id": f"public-{one.vdu}-{one.number}", **outside})
        return found

    def _floating(self) -> list[dict[str, Any]]:
        """Of a server without one, none."""
        pairs = [("vip", self.vip_floating), *((f"{one.vdu}-{one.number}", one.floating) for one in self.servers)]
        return [
            {"id": f"fip-{name}", "port_id": f"port-{name}", "floating_ip_address": floating}
            for name, floating in pairs
            if floating
        ]


def server(vdu: str, number: int) -> str:
    return f"{number}{vdu[0]}000000-server"


def address(vdu: str, number: int) -> str:
    return f"10.0.{0 if vdu == 'masterNode' else 1}.{10 + number}"


def deployed(masters: int = 3, pairs: str = VIP) -> Deployed:
    """`masters` and a worker."""
    counts = {**VDUS, "masterNode": masters}
    return Deployed(list(_servers(counts)), pairs=pairs)


def _servers(counts: dict[str, int]) -> Iterable[Server]:
    for position, (vdu, count) in enumerate(counts.items()):
        for n in range(count):
            yield Server(vdu, n, server(vdu, n), address(vdu, n), f"198.51.100.{10 * position + n}")


def fill(cloud: OpenStack, pairs: str = VIP) -> None:
    """The cloud has the stack."""
    deployed(pairs=pairs).fill(cloud)


def instance(masters: int = 3) -> dict[str, Any]:
    """Tacker's record."""
    return deployed(masters).record()
