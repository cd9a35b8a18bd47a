# SPDX-License-Identifier: Apache-2.0
"""The control plane of a workload cluster: its VNFCs are its Machines, of which etcd needs a majority."""

from __future__ import annotations

from k8s_cr_driver.capi import contract
from k8s_cr_driver.capi.machines import LabelledMachines, MachineOwner
from k8s_cr_driver.resources.base import ANY


class ControlPlane(MachineOwner):
    """The control planes of all providers (Cluster API book, "Contract rules for ControlPlane").

    One without the subresource `scale` is managed by its cloud: it has no Machines and no count.
    """

    group, kind = contract.CONTROL_PLANE_GROUP, ANY

    def max_unavailable(self, count: int) -> int:
        """As many as leave etcd its quorum."""
        return max(0, count - 1) // 2


class KubeadmControlPlane(ControlPlane, LabelledMachines):
    group, kind = contract.CONTROL_PLANE_GROUP, "KubeadmControlPlane"
    name_label = contract.CONTROL_PLANE_NAME_LABEL
