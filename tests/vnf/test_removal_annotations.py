# SPDX-License-Identifier: Apache-2.0
"""Which annotations ask the controllers of VDUs to remove the VNFCs that a grant names."""

from __future__ import annotations

import pytest

from k8s_cr_driver.resources.registry import resource_for
from tests.instance import obj

MACHINES = {"cluster.x-k8s.io/delete-machine": "true"}
PODS = {"controller.kubernetes.io/pod-deletion-cost": "-2147483648"}


@pytest.mark.parametrize(
    ("api_version", "kind", "annotations"),
    [
        ("cluster.x-k8s.io/v1beta2", "MachineDeployment", MACHINES),
        ("cluster.x-k8s.io/v1beta2", "MachineSet", MACHINES),
        ("controlplane.cluster.x-k8s.io/v1beta2", "KubeadmControlPlane", MACHINES),
        ("controlplane.cluster.x-k8s.io/v1beta2", "OtherControlPlane", MACHINES),
        ("apps/v1", "Deployment", PODS),
        ("apps/v1", "ReplicaSet", PODS),
        ("apps/v1", "StatefulSet", {}),
        ("stable.example.com/v1", "CronTab", {}),
    ],
)
def test_what_asks_a_controller_to_remove_a_child_first(api_version: str, kind: str, annotations: dict[str, str]) -> None:
    assert resource_for(obj(api_version, kind, "blue", "default")).scaling().removal_annotations == annotations
