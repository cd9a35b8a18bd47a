# SPDX-License-Identifier: Apache-2.0
"""A tenant of the cloud: its connection, a network that a router connects with the outside, and servers that go at the end.

And what clusters of such servers need: a management cluster, the tenant's credentials there, a receiver of kubeconfigs.
"""

from __future__ import annotations

import base64
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openstack
import pytest

from .. import sample_onboarding, turns
from ..client import Body, Client
from ..cluster import Cluster
from ..conftest import Shown
from ..credentials.receiver import Receiver
from ..families import BROUGHT
from ..objects import Place, make
from ..sample_onboarding import Sample
from ..testbed import processes
from ..testbed.bed import Environment
from ..testbed.kubernetes import Kubernetes
from ..testbed.ledger import Ledger
from ..testbed.openstack import offer
from ..testbed.processes import until
from ..vnf import Vnf
from .clusters import MANAGEMENT, SAMPLE, SECRET

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


@pytest.fixture(scope="module")
def tenant(bed: Environment, request: pytest.FixtureRequest) -> openstack.connection.Connection:
    """The module's TENANT. Clusters have one for themselves, so that a test sees what they leave in the cloud."""
    return connection(bed, getattr(request.module, "TENANT", offer.OTHER))


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


@pytest.fixture(scope="module")
def management(tacker: Client, vim: Body, kubernetes: Kubernetes, shown: Shown) -> Iterator[Vnf]:
    """A management cluster with the provider for OpenStack, made of the sample package."""
    with ExitStack() as stack:
        for name in BROUGHT:
            stack.enter_context(turns.to_itself(name))
        with shown():
            sample_onboarding.load(kubernetes, [MANAGEMENT], "openstack")
        sample = sample_onboarding.onboard(tacker, [MANAGEMENT], "openstack")[MANAGEMENT]
        stack.callback(tacker.delete_package, sample.package_id)
        vnf = Vnf.create(tacker, vim, sample.vnfd_id)
        stack.callback(vnf.remove)
        vnf.instantiate(*sample.files, wait_timeout=200)
        yield vnf


@pytest.fixture(scope="module")
def secret(management: Vnf, cluster: Cluster, place: Place, bed: Environment) -> Iterator[None]:
    """The tenant's credentials, which an operator puts into the module's PLACE on a management cluster."""
    clouds = Path(bed["OS_CLIENT_CONFIG_FILE"]).read_text()
    with cluster.holding(make("v1", "Secret", SECRET, place.name, stringData={"clouds.yaml": clouds})):
        yield


@pytest.fixture
def receiver(bed: Environment, tmp_path: Path) -> Iterator[Receiver]:
    receiver = Receiver.prepare(tmp_path, bed)
    receiver.start()
    yield receiver
    receiver.forget()


@pytest.fixture
def sample(request: pytest.FixtureRequest, receiver: Receiver, tacker: Client, tmp_path: Path) -> Iterator[Sample]:
    """The package of a workload cluster, which sends its kubeconfig to the receiver; the test may say another name."""
    name = getattr(request, "param", SAMPLE)
    settings = tmp_path / "sender.yaml"
    settings.write_text(receiver.settings())
    sample = sample_onboarding.onboard(tacker, [name], sender=settings)[name]
    yield sample
    tacker.delete_package(sample.package_id)


@contextmanager
def away(ledger: Ledger, service: str) -> Iterator[None]:
    """A service of the cloud accepts connections and does not respond, as behind a network that loses packets."""
    token = f"{ledger.token}/{service}"
    for process in processes.with_token(token):
        processes.send(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes.with_token(token):
            processes.send(process, signal.SIGCONT)


def eventually(condition: Callable[[], Any], what: str, seconds: float = 60) -> Any:
    """What the condition returns; fails when that is false for so long."""
    found = until(condition, seconds, pause=0.2)
    assert found, f"not so after {seconds:g} s: {what}"
    return found
