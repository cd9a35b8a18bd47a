# SPDX-License-Identifier: Apache-2.0
"""The stack of an instance with three masters and a worker, as Heat and Neutron list it, and Tacker's record of it."""

from __future__ import annotations

from typing import Any

from .openstack import OpenStack

INSTANCE, STACK = "4a1f", "top-id"
VIP, VIP_FLOATING = "10.0.0.100", "198.51.100.100"
VDUS = {"masterNode": 3, "workerNode": 1}


def resources(cloud: OpenStack) -> list[dict[str, Any]]:
    listed = [_resource(cloud, STACK, "vip_CP", "OS::Neutron::Port", "port-vip")]
    for vdu, count in VDUS.items():
        for number in range(count):
            of = f"{vdu}-{number}-id"
            listed += [
                _resource(cloud, of, vdu, "OS::Nova::Server", server(vdu, number)),
                _resource(cloud, of, f"{vdu}_CP1", "OS::Neutron::Port", f"port-{vdu}-{number}"),
                _resource(cloud, of, f"{vdu}_fip", "OS::Neutron::FloatingIP", f"fip-{vdu}-{number}"),
            ]
    return listed


def server(vdu: str, number: int) -> str:
    return f"{number}{vdu[0]}000000-server"


def _resource(cloud: OpenStack, stack: str, name: str, kind: str, identifier: str) -> dict[str, Any]:
    href = f"{cloud.url}/orchestration/stacks/vnf-{INSTANCE}-{name}/{stack}"
    links = [{"rel": "self", "href": f"{href}/resources/{name}"}, {"rel": "stack", "href": href}]
    return {"resource_name": name, "resource_type": kind, "physical_resource_id": identifier, "links": links}


def address(vdu: str, number: int) -> str:
    return f"10.0.{0 if vdu == 'masterNode' else 1}.{10 + number}"


def ports(pairs: str = VIP) -> list[dict[str, Any]]:
    """`pairs`: the address that the masters may have beside their own."""
    found = [{"id": "port-vip", "fixed_ips": [{"ip_address": VIP}], "allowed_address_pairs": []}]
    for vdu, count in VDUS.items():
        allowed = [{"ip_address": pairs}] if vdu == "masterNode" else []
        found += [
            {"id": f"port-{vdu}-{n}", "fixed_ips": [{"ip_address": address(vdu, n)}], "allowed_address_pairs": allowed}
            for n in range(count)
        ]
    return found


def floating() -> list[dict[str, Any]]:
    found = [{"id": "fip-vip", "port_id": "port-vip", "floating_ip_address": VIP_FLOATING}]
    for number, (vdu, count) in enumerate(VDUS.items()):
        found += [
            {"id": f"fip-{vdu}-{n}", "port_id": f"port-{vdu}-{n}", "floating_ip_address": f"198.51.100.{10 * number + n}"}
            for n in range(count)
        ]
    return found


def fill(cloud: OpenStack, pairs: str = VIP) -> None:
    """The cloud has the stack."""
    cloud.responses |= {
        f"/orchestration/stacks/vnf-{INSTANCE}/{STACK}/resources": {"resources": resources(cloud)},
        "/network/v2.0/ports": {"ports": ports(pairs)},
        "/network/v2.0/floatingips": {"floatingips": floating()},
        "/block-storage/volumes/detail": {"volumes": [{"id": "v1", "attachments": [{"server_id": "s1"}]}, {"id": "v2"}]},
    }


def instance(masters: int = 3) -> dict[str, Any]:
    """Tacker's record; VNFCs newest first."""
    vnfcs = [_vnfc("workerNode", 0), *(_vnfc("masterNode", number) for number in reversed(range(masters)))]
    info = {"vnfcResourceInfo": vnfcs, "metadata": {"stack_id": STACK}}
    return {"id": INSTANCE, "instantiatedVnfInfo": info}


def _vnfc(vdu: str, number: int) -> dict[str, Any]:
    return {
        "id": server(vdu, number),
        "vduId": vdu,
        "computeResource": {"resourceId": server(vdu, number)},
        "metadata": {"stack_id": f"vnf-{INSTANCE}-{vdu}-{number}-x/{vdu}-{number}-id", "vdu_idx": number},
    }
