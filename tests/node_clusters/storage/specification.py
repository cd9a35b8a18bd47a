# SPDX-License-Identifier: Apache-2.0
"""The body of the request in the specification "Support persistent volumes for Kubernetes cluster with MgmtDriver"."""

from __future__ import annotations

import copy
from typing import Any

from tests.node_clusters.specification import NODES

_PARAMETER: dict[str, Any] = {
    "script_path": "Scripts/install_k8s_cluster.sh",
    "vim_name": "kubernetes_vim",
    **NODES,
    "storage_server": {
        "ssh_cp_name": "storage_server_CP",
        "username": "ubuntu",
        "password": "ubuntu",
        "cinder_volume_setup_params": [{"volume_resource_id": "storage_server_volume", "mount_to": "/volume"}],
        "nfs_server_setup_params": [
            {"export_dir": "/volume/nfs/pv1", "export_to": "10.10.0.0/24"},
            {"export_dir": "/volume/nfs/pv2", "export_to": "10.10.0.0/24"},
            {"export_dir": "/volume/nfs/pv3", "export_to": "10.10.0.0/24"},
        ],
    },
    "pv_registration_params": [
        {"pv_manifest_file_path": "Files/kubernetes/nfs-pv1.yaml", "nfs_server_cp": "storage_server_CP"},
        {"pv_manifest_file_path": "Files/kubernetes/nfs-pv2.yaml", "nfs_server_cp": "storage_server_CP"},
        {"pv_manifest_file_path": "Files/kubernetes/nfs-pv3.yaml", "nfs_server_cp": "storage_server_CP"},
    ],
}


def parameter(**sections: Any) -> dict[str, Any]:
    """The value of `k8s_cluster_installation_param`, with other sections; None leaves one out."""
    changed = {**copy.deepcopy(_PARAMETER), **sections}
    return {name: value for name, value in changed.items() if value is not None}


def storage_server(**fields: Any) -> dict[str, Any]:
    """Its section `storage_server`, with other fields."""
    return {**copy.deepcopy(_PARAMETER["storage_server"]), **fields}
