# SPDX-License-Identifier: Apache-2.0
"""The body of the request in the specification "MgmtDriver with Kubernetes cluster management OSS"."""

from __future__ import annotations

import copy
from typing import Any

from tests.node_clusters.specification import NODES

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
    **NODES,
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
