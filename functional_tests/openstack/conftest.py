# SPDX-License-Identifier: Apache-2.0
"""A tenant of the cloud: its connection, a network that a router connects with the outside, and servers that go at the end."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import openstack
import pytest

from ..testbed.bed import Environment
from ..testbed.openstack import offer
from ..testbed.processes import until

CIDR = "10.6.0.0/24"
# A page of the server's own, by the metadata that Nova gave it.
PAGE = """\
## template: jinja
#cloud-config
write_files:
- path: /srv/index.html
  content: "{{ v1.local_hostname }} {{ v1.instance_id }}"
runcmd:
- [systemd-run, --unit=page, python3, -m, http.server, --directory=/srv, "8080"]
"""
PORT = 8080

MakeServer = Callable[..., Any]


def connection(bed: Environment, cloud: str) -> openstack.connection.Connection:
    config = openstack.config.loader.OpenStackConfig(config_files=[bed["OS_CLIENT_CONFIG_FILE"]], load_envvars=False)
    return openstack.connection.Connection(config=config.get_one(cloud=cloud))


@pytest.fixture(scope="session")
def admin(bed: Environment) -> openstack.connection.Connection:
    return connection(bed, "admin")


@pytest.fixture(scope="session")
def tenant(bed: Environment) -> openstack.connection.Connection:
    return connection(bed, offer.TENANT)


@dataclass(frozen=True)
class Site:
    """Where servers are put."""

    network: str
    subnet: str
    outside: str
    group: str


@pytest.fixture(scope="module")
def site(tenant: openstack.connection.Connection, request: pytest.FixtureRequest) -> Iterator[Site]:
    """A network, its router, and a security group that lets the page through."""
    name, network = request.module.__name__.rpartition(".")[2], tenant.network
    outside = network.find_network(offer.EXTERNAL)
    inside = network.create_network(name=name)
    subnet = network.create_subnet(name=name, network_id=inside.id, ip_version=4, cidr=CIDR)
    router = network.create_router(name=name, external_gateway_info={"network_id": outside.id})
    network.add_interface_to_router(router, subnet_id=subnet.id)
    group = network.create_security_group(name=name)
    network.create_security_group_rule(
        security_group_id=group.id, direction="ingress", ethertype="IPv4", protocol="tcp", port_range_min=PORT,
        port_range_max=PORT,
    )  # fmt: skip
    yield Site(inside.id, subnet.id, outside.id, group.id)
    for server in {port.device_id for port in network.ports(network_id=inside.id) if port.device_owner.startswith("compute")}:
        tenant.compute.delete_server(server, ignore_missing=True)
        eventually(lambda server=server: not any(network.ports(device_id=server)), "a deleted server has no port")
    for left in network.ports(network_id=inside.id, device_owner=""):
        network.delete_port(left)
    network.remove_interface_from_router(router, subnet_id=subnet.id)
    network.delete_router(router)
    network.delete_network(inside)
    network.delete_security_group(group)


@pytest.fixture
def make_server(tenant: openstack.connection.Connection, site: Site) -> Iterator[MakeServer]:
    """Makes servers that are ACTIVE, with a port in the network of the module."""
    made = []

    def make(name: str, user_data: str = PAGE, **attributes: Any) -> Any:
        encoded = base64.b64encode(user_data.encode()).decode()
        values = {
            "image_id": tenant.image.find_image("debian").id, "flavor_id": tenant.compute.find_flavor("small").id,
            "networks": [{"port": port(tenant, site, name).id}],
        }  # fmt: skip
        made.append(tenant.compute.create_server(name=name, user_data=encoded, **values | attributes))
        return tenant.compute.wait_for_server(made[-1], interval=0.2, wait=120)

    yield make
    for server in made:
        tenant.compute.delete_server(server, ignore_missing=True)


def port(tenant: openstack.connection.Connection, site: Site, name: str) -> Any:
    return tenant.network.create_port(name=name, network_id=site.network, security_groups=[site.group])


@pytest.fixture
def reach(tenant: openstack.connection.Connection, site: Site) -> Iterator[Callable[[str], str]]:
    """Gives ports floating IPs."""
    made = []

    def reach(port: str) -> str:
        made.append(tenant.network.create_ip(floating_network_id=site.outside, port_id=port))
        return str(made[-1].floating_ip_address)

    yield reach
    for one in made:
        tenant.network.delete_ip(one)


def eventually(condition: Callable[[], Any], what: str, seconds: float = 60) -> Any:
    """What the condition returns; fails when that is false for so long."""
    found = until(condition, seconds, pause=0.2)
    assert found, f"not so after {seconds:g} s: {what}"
    return found
