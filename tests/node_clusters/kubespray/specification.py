# SPDX-License-Identifier: Apache-2.0
"""The body of the request in the specification "MgmtDriver with Kubernetes cluster management OSS"."""

from __future__ import annotations

import copy
from typing import Any

_PARAMETER: dict[str, Any] = {
    "script_path": "",
    "vim_name": "kubernetes_vim",
    "ansible": {
        "ip_address": "0.0.0.0",
        "username": "ansible",
        "password": "ansible",
        "kubespray_root_path": "",
        "transferring_inventory_path": "",
    },
    "master_node": {
        "aspect_id": "master_instance",
        "ssh_cp_name": "masterNode_CP1",
        "nic_cp_name": "masterNode_CP1",
        "username": "ubuntu",
        "password": "ubuntu",
        "pod_cidr": "192.168.3.0/16",
        "cluster_cidr": "10.199.187.0/24",
        "cluster_cp_name": "masterNode_CP1",
    },
    "worker_node": {
        "aspect_id": "worker_instance",
        "ssh_cp_name": "workerNode_CP2",
        "nic_cp_name": "workerNode_CP2",
        "username": "ubuntu",
        "password": "ubuntu",
    },
    "proxy": {
        "http_proxy": "http://user1:password1@host1:port1",
        "https_proxy": "https://user2:password2@host2:port2",
        "no_proxy": "192.168.246.0/24,10.0.0.1",
        "k8s_node_cidr": "10.10.0.0/24",
    },
    "external_lb_param": {
        "ssh_cp_name": "externalLB_instance",
        "ssh_username": "ubuntu",
        "ssh_password": "ubuntu",
        "script_path": "./Scripts/ExternalLB_installation.sh",
    },
}
FILLED_IN = {
    "ip_address": "198.51.100.4",
    "kubespray_root_path": "/opt/kubespray",
    "transferring_inventory_path": "/opt/kubespray/inventory",
}
"""Values for what the body leaves to its reader."""


def body() -> dict[str, Any]:
    """`k8s_cluster_installation_param` as it stands there."""
    return copy.deepcopy(_PARAMETER)


def parameter(**sections: Any) -> dict[str, Any]:
    """The same with FILLED_IN, and with other sections; None leaves one out."""
    own = body()
    own["ansible"] |= FILLED_IN
    return {name: value for name, value in {**own, **sections}.items() if value is not None}


def ansible(**fields: Any) -> dict[str, Any]:
    """Its section `ansible`, with other fields."""
    return {**parameter()["ansible"], **fields}


def balancer(**fields: Any) -> dict[str, Any]:
    """Its section `external_lb_param`, with other fields."""
    return {**parameter()["external_lb_param"], **fields}
