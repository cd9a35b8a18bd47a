# SPDX-License-Identifier: Apache-2.0
"""A tenant with a network, an operator's key that opens its servers, and the package of the sample with the bed's network."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import asyncssh
import openstack
import pytest

import sample_packages
from k8s_cr_driver.package import csar

from ..client import Body, Client
from ..openstack.conftest import connection
from ..testbed import config
from ..testbed.bed import Environment
from ..testbed.ledger import Ledger
from ..testbed.openstack import offer
from ..testbed.tacker import config_folder

SAMPLE = "ha_masters"
CIDR = "10.7.0.0/24"
# The image has all that a node needs but for a network of its Pods.
_SCRIPT = """\
#!/bin/sh
set -eu
address=$(jq --raw-output .address)
mkdir -p /etc/cni/net.d
sed "s/NODE/${address##*.}/" >/etc/cni/net.d/10-pods.conflist <<'END'
%s
END
command -v kubeadm haproxy keepalived
"""
_OPTIONS = """\
[k8s_cr_ssh_key:bed]
private_key = {key}
hosts = {hosts}
keystone = {keystone}
projects = {project}
"""


@pytest.fixture(scope="module")
def tenant(bed: Environment) -> openstack.connection.Connection:
    return connection(bed, offer.TENANT)


@dataclass(frozen=True)
class Place:
    """Where servers are put, and who may log in there."""

    network: str
    outside: str
    authorized: str


@pytest.fixture(scope="module")
def place(tenant: openstack.connection.Connection, ledger: Ledger, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A network whose router leads outside, and a key of the operator of the conductors."""
    key = asyncssh.generate_private_key("ssh-ed25519")
    file = tmp_path_factory.mktemp("operator") / "key"
    file.write_bytes(key.export_private_key())
    keystone = tenant.config.config["auth"]["auth_url"]
    project = tenant.current_project_id
    options = config_folder(ledger) / "nodes.conf"
    options.write_text(_OPTIONS.format(key=file, hosts=offer.SUBNET, keystone=keystone, project=project))
    network = tenant.network
    outside = network.find_network(offer.EXTERNAL)
    inside = network.create_network(name="nodes")
    subnet = network.create_subnet(name="nodes", network_id=inside.id, ip_version=4, cidr=CIDR)
    router = network.create_router(name="nodes", external_gateway_info={"network_id": outside.id})
    network.add_interface_to_router(router, subnet_id=subnet.id)
    yield Place(inside.id, outside.id, key.export_public_key().decode().strip())
    options.unlink()
    network.remove_interface_from_router(router, subnet_id=subnet.id)
    network.delete_router(router)
    network.delete_network(inside)


@pytest.fixture(scope="module")
def cloud(tenant: openstack.connection.Connection) -> Body:
    """The VimConnectionInfo of the tenant."""
    login = tenant.config.config["auth"]
    return {
        "vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3",
        "interfaceInfo": {"endpoint": login["auth_url"]},
        "accessInfo": {
            "username": login["username"],
            "password": login["password"],
            "region": tenant.config.region_name,
            "project": login["project_name"],
            "projectDomain": "Default",
            "userDomain": "Default",
        },
    }


@pytest.fixture(scope="module")
def vnfd(tacker: Client, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The id of the sample's VNFD, onboarded with a script for the bed's image."""
    work = tmp_path_factory.mktemp("package")
    folder = Path(shutil.copytree(Path(sample_packages.__file__).parent / SAMPLE, work / SAMPLE))
    (folder / "Scripts" / "install.sh").write_text(_SCRIPT % config.render("pods.conflist", pods="10.244.NODE.0/24").strip())
    info = tacker.onboard(csar.build(folder, work / f"{SAMPLE}.csar"))
    yield info["vnfdId"]
    tacker.delete_package(info["id"])
