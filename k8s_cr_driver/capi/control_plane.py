# SPDX-License-Identifier: Apache-2.0
"""The control plane of a workload cluster: its VNFCs are its Machines."""

from __future__ import annotations

from k8s_cr_driver.capi import contract
from k8s_cr_driver.capi.machines import Machines


class KubeadmControlPlane(Machines):
    group, kind = contract.CONTROL_PLANE_GROUP, "KubeadmControlPlane"
    name_label = contract.CONTROL_PLANE_NAME_LABEL

    def max_unavailable(self, count: int) -> int:
        """As many as leave etcd its quorum."""
        return (count - 1) // 2
