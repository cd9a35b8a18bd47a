# SPDX-License-Identifier: Apache-2.0
"""What a cluster on servers of the bed's cloud needs: a network, an operator's key, a request, and a script for its image."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncssh
import openstack

from functional_tests.heat_servers import USER, USER_DATA, group, links
from functional_tests.testbed import config
from functional_tests.testbed.ledger import Ledger
from functional_tests.testbed.openstack import offer
from functional_tests.testbed.tacker import config_folder

SAMPLE = "ha_masters"
CIDR = "10.7.0.0/24"
VIM = "blue"
MASTERS, WORKERS, STORAGE = "masterNode", "workerNode", "storageServer"
ASPECT = "worker_instance"
VOLUME, EXPORT = f"{STORAGE}_volume", "/volume/nfs/one"
PERSISTENT_VOLUME = "Files/volumes/one.yaml"
AGAIN = {name.replace("-", "_"): value for name, value in USER_DATA.items()}
"""What each request repeats, as arguments of `Vnf`."""
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


@dataclass(frozen=True)
class Place:
    """Where servers are put, and who may log in there."""

    network: str
    outside: str
    authorized: str


def script() -> str:
    """The package's."""
    return _SCRIPT % config.render("pods.conflist", pods="10.244.NODE.0/24").strip()


@contextmanager
def placed(tenant: openstack.connection.Connection, ledger: Ledger, folder: Path, more: str = "") -> Iterator[Place]:
    """A network whose router leads outside, and a key of the operator of the conductors. more: options of theirs."""
    key = asyncssh.generate_private_key("ssh-ed25519")
    file = folder / "key"
    file.write_bytes(key.export_private_key())
    keystone = tenant.config.config["auth"]["auth_url"]
    project = tenant.current_project_id
    options = config_folder(ledger) / "nodes.conf"
    options.write_text(_OPTIONS.format(key=file, hosts=offer.SUBNET, keystone=keystone, project=project) + more)
    network = tenant.network
    outside = network.find_network(offer.EXTERNAL)
    inside = network.create_network(name="nodes")
    subnet = network.create_subnet(name="nodes", network_id=inside.id, ip_version=4, cidr=CIDR)
    router = network.create_router(name="nodes", external_gateway_info={"network_id": outside.id})
    network.add_interface_to_router(router, subnet_id=subnet.id)
    try:
        yield Place(inside.id, outside.id, key.export_public_key().decode().strip())
    finally:
        options.unlink()
        network.remove_interface_from_router(router, subnet_id=subnet.id)
        network.delete_router(router)
        network.delete_network(inside)


def request(place: Place) -> dict[str, Any]:
    """What an instantiate says beside the VIM."""
    masters, workers = group(MASTERS), group(WORKERS)
    virtual_ip = {"cluster_cp_name": "vip_CP", "cluster_fip_name": "vip_CP_floating_ip", "pod_cidr": "10.244.0.0/16"}
    storage_server = {
        "ssh_cp_name": f"{STORAGE}_CP1_floating_ip",
        "username": USER,
        "nfs_server": "ganesha",
        "cinder_volume_setup_params": [{"volume_resource_id": VOLUME, "mount_to": "/volume"}],
        "nfs_server_setup_params": [{"export_dir": EXPORT, "export_to": CIDR}],
    }
    parameter = {
        "script_path": "Scripts/install.sh",
        "ssh_key": "bed",
        "vim_cloud": "bed",
        "vim_name": VIM,
        "master_node": {**masters, **virtual_ip},
        "worker_node": workers,
        "storage_server": storage_server,
        "pv_registration_params": [{"pv_manifest_file_path": PERSISTENT_VOLUME, "nfs_server_cp": f"{STORAGE}_CP1"}],
    }
    nfv = {"user": USER, "authorized_key": place.authorized, "vip_network": place.network, "external_network": place.outside}
    return {
        "extVirtualLinks": links(place.network, (MASTERS, WORKERS, STORAGE)),
        "additionalParams": {**USER_DATA, "nfv": nfv, "k8s_cluster_installation_param": parameter},
    }
