# SPDX-License-Identifier: Apache-2.0
"""What Neutron and Octavia describe, read as a whole. Objects are as their APIs show them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keystoneauth1.session import Session

from . import network

Object = dict[str, Any]
_NEUTRON = ("networks", "subnets", "ports", "routers", "floatingips", "security_groups")
_OCTAVIA = ("loadbalancers", "listeners", "pools")


@dataclass(frozen=True)
class View:
    """All objects by their ids, of one moment or nearly so."""

    networks: Mapping[str, Object]
    subnets: Mapping[str, Object]
    ports: Mapping[str, Object]
    routers: Mapping[str, Object]
    floatingips: Mapping[str, Object]
    security_groups: Mapping[str, Object]
    loadbalancers: Mapping[str, Object]
    listeners: Mapping[str, Object]
    pools: Mapping[str, Object]
    members: Mapping[str, Sequence[Object]]
    """By the ids of their pools."""

    @classmethod
    def read(cls, access: Session) -> "View":
        """Raises an exception of keystoneauth1 when an API does not respond."""
        found = {kind: _get(access, "network", f"/v2.0/{kind.replace('_', '-')}", kind) for kind in _NEUTRON}
        found |= {kind: _get(access, "load-balancer", f"/v2.0/lbaas/{kind}", kind) for kind in _OCTAVIA}
        members = {
            pool: list(_get(access, "load-balancer", f"/v2.0/lbaas/pools/{pool}/members", "members").values())
            for pool in found["pools"]
        }
        return cls(**found, members=members)

    def port(self, shown: Object) -> network.Port:
        """A port as it is plugged in, with the gateway of its first subnet."""
        subnets = [self.subnets[one["subnet_id"]] for one in shown["fixed_ips"]]
        pairs = zip(shown["fixed_ips"], subnets, strict=True)
        addresses = tuple(network.with_prefix(one["ip_address"], subnet["cidr"]) for one, subnet in pairs)
        gateway = next((subnet["gateway_ip"] for subnet in subnets if subnet["gateway_ip"]), "")
        return network.Port(shown["id"], shown["network_id"], shown["mac_address"], addresses, gateway)

    def ports_of(self, device: str) -> list[Object]:
        """The ports of a server or a router."""
        return [port for port in self.ports.values() if port["device_id"] == device]

    def group_members(self) -> dict[str, list[str]]:
        """The IPv4 addresses of the ports in each security group."""
        found = defaultdict(list)
        for port in self.ports.values():
            for group in port["security_groups"]:
                found[group] += [one["ip_address"] for one in port["fixed_ips"] if ":" not in one["ip_address"]]
        return found


def _get(access: Session, service: str, path: str, kind: str) -> dict[str, Object]:
    response = access.get(path, endpoint_filter={"service_type": service, "interface": "public"})
    return {one["id"]: one for one in response.json()[kind]}
