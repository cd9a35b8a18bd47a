# SPDX-License-Identifier: Apache-2.0
"""A project with a network, an operator's key that opens its servers, and the module's sample package, made for the bed."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import asyncssh
import openstack
import pytest
import yaml

import sample_packages
from k8s_cr_driver.package import csar

from ..client import Body, Client
from ..heat_servers import connection_info
from ..node_clusters import leaks
from ..openstack.conftest import connection
from ..testbed import network
from ..testbed.bed import Environment
from ..testbed.ledger import Ledger
from ..testbed.openstack import offer
from ..testbed.tacker import config_folder
from ..vnf import Vnf
from .clusters import PATIENCE, Place

CIDR = "10.7.0.0/24"
_OPTIONS = """\
[k8s_cr_ssh_key:{name}]
private_key = {folder}/key
hosts = {hosts}
keystone = {keystone}
projects = {project}
[k8s_cr_vim_cloud:{name}]
clouds_file = {folder}/clouds.yaml
keystone = {keystone}
projects = {project}
"""


@pytest.fixture(scope="module")
def tenant(bed: Environment, request: pytest.FixtureRequest) -> openstack.connection.Connection:
    """The module's PROJECT, which it has to itself."""
    return connection(bed, request.module.PROJECT)


@pytest.fixture(scope="module")
def place(
    tenant: openstack.connection.Connection,
    bed: Environment,
    ledger: Ledger,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Place]:
    """A network whose router leads outside; of the operator of the conductors a key, and a cloud for new VIMs."""
    name, folder = request.module.PROJECT, tmp_path_factory.mktemp("operator")
    key = asyncssh.generate_private_key("ssh-ed25519")
    (folder / "key").write_bytes(key.export_private_key())
    (folder / "clouds.yaml").write_text(yaml.safe_dump({"clouds": {"tacker": _entry(bed)}}))
    keystone, project = tenant.config.config["auth"]["auth_url"], tenant.current_project_id
    options = config_folder(ledger) / f"{name}.conf"
    hosts = f"{offer.SUBNET}, {network.NETWORK}"
    options.write_text(_OPTIONS.format(name=name, folder=folder, hosts=hosts, keystone=keystone, project=project))
    neutron = tenant.network
    outside = neutron.find_network(offer.EXTERNAL)
    inside = neutron.create_network(name=name)
    subnet = neutron.create_subnet(name=name, network_id=inside.id, ip_version=4, cidr=CIDR)
    router = neutron.create_router(name=name, external_gateway_info={"network_id": outside.id})
    neutron.add_interface_to_router(router, subnet_id=subnet.id)
    yield Place(name, inside.id, outside.id, folder / "key", key.export_public_key().decode().strip())
    options.unlink()
    neutron.remove_interface_from_router(router, subnet_id=subnet.id)
    neutron.delete_router(router)
    neutron.delete_network(inside)


def _entry(bed: Environment) -> Body:
    """Of clouds.yaml: Tacker, as the client has it."""
    names = ("username", "password", "project_name", "auth_url")
    ids = {f"{one}_domain_name": bed[f"OS_{one.upper()}_DOMAIN_NAME"] for one in ("user", "project")}
    return {"auth": {**{one: bed[f"OS_{one.upper()}"] for one in names}, **ids}, "region_name": bed["OS_REGION_NAME"]}


@pytest.fixture(scope="module")
def cloud(tenant: openstack.connection.Connection) -> Body:
    """The VimConnectionInfo of the project."""
    return connection_info(tenant)


@pytest.fixture(scope="module")
def vnfd(request: pytest.FixtureRequest, tacker: Client, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The id of the VNFD of the module's SAMPLE, onboarded after its `adapt` has changed the folder."""
    work, sample = tmp_path_factory.mktemp("package"), request.module.SAMPLE
    folder = Path(shutil.copytree(Path(sample_packages.__file__).parent / sample, work / sample))
    request.module.adapt(folder)
    info = tacker.onboard(csar.write(folder, work / f"{sample}.csar"))
    yield info["vnfdId"]
    tacker.delete_package(info["id"])


@pytest.fixture(scope="module")
def make(tacker: Client, cloud: Body, vnfd: str, place: Place) -> Iterator[Callable[[], Vnf]]:
    """Makes instances of the module's package, which go at its end."""
    made: list[Vnf] = []

    def one() -> Vnf:
        made.append(Vnf.create(tacker, cloud, vnfd))
        made[-1].patience = PATIENCE
        return made[-1]

    yield one
    for vnf in made:
        vnf.remove()


@pytest.fixture(scope="module")
def vnf(make: Callable[[], Vnf]) -> Vnf:
    """That of the module's tests."""
    return make()


@pytest.fixture(scope="module", autouse=True)
def arguments(vnfd: str) -> Iterator[leaks.Arguments]:
    """Those of all processes of the host and of its servers, from the first test on."""
    with leaks.watched() as found:
        yield found
