# SPDX-License-Identifier: Apache-2.0
"""The control plane of a workload cluster: its VNFCs are its Machines, of which etcd needs a majority."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from k8s_cr_driver.capi import contract
from k8s_cr_driver.capi.changes import ControlPlaneChanges
from k8s_cr_driver.capi.machines import LabelledMachines, MachineOwner, MachineScaling
from k8s_cr_driver.capi.rollout import rolled_out
from k8s_cr_driver.objects.fields import mapping, text
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.resources.base import ANY
from k8s_cr_driver.resources.health import Health
from k8s_cr_driver.resources.hooks import Changes, Scaling

EXTERNAL_ETCD = "k8s-cr-driver/external-etcd"
"""Annotation `k8s-cr-driver/external-etcd: "true"`: etcd does not run on the Machines of this control plane."""


@dataclass(frozen=True)
class ControlPlaneScaling(MachineScaling):
    """`has_external_etcd`: no member of etcd runs on the Machines."""

    has_external_etcd: bool
    few_unavailable: ClassVar[str] = ", as etcd needs a majority of them"

    def max_unavailable(self, count: int) -> int:
        """As many as leave etcd its quorum."""
        return max(0, count - 1) // 2

    def error(self, count: int) -> str:
        """Two members of etcd tolerate no more failures than one, so that kubeadm's provider refuses even numbers, too."""
        if count < 1:
            return "a control plane needs a Machine; to remove the cluster, terminate the VNF instance"
        if count % 2 == 0 and not self.has_external_etcd:
            return (
                "etcd on the Machines of a control plane needs an odd number of them; scale in steps of two, or if etcd runs "
                f'elsewhere, add the annotation {EXTERNAL_ETCD}: "true"'
            )
        return ""


class ControlPlane(MachineOwner):
    """The control planes of all providers (Cluster API book, "Contract rules for ControlPlane").

    One without the subresource `scale` is managed by its cloud: it has no Machines and no count.
    """

    group, kind = contract.CONTROL_PLANE_GROUP, ANY

    def assess(self, live: Object) -> Health:
        return rolled_out(live, super().assess(live), text(live, *contract.VERSION))

    def changes(self) -> Changes:
        return ControlPlaneChanges(self.manifest)

    def scaling(self) -> Scaling:
        return ControlPlaneScaling(self.annotations(), self._has_external_etcd())

    def _has_external_etcd(self) -> bool:
        return self.annotations().get(EXTERNAL_ETCD) == "true"


class KubeadmControlPlane(ControlPlane, LabelledMachines):
    group, kind = contract.CONTROL_PLANE_GROUP, "KubeadmControlPlane"
    name_label = contract.CONTROL_PLANE_NAME_LABEL

    def _has_external_etcd(self) -> bool:
        return bool(mapping(self.manifest, *contract.EXTERNAL_ETCD)) or super()._has_external_etcd()
