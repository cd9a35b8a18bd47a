"""The control plane of a workload cluster: its VNFCs are its Machines."""

from __future__ import annotations

from k8s_cr_driver.capi import contract
from k8s_cr_driver.keys import Object
from k8s_cr_driver.resources.base import Children, CustomResource


class KubeadmControlPlane(CustomResource):
    group, kind = contract.CONTROL_PLANE_GROUP, "KubeadmControlPlane"

    def children(self) -> Children:
        return Children(contract.MACHINES, "", self.key.namespace, {contract.CONTROL_PLANE_NAME_LABEL: self.key.name})

    def child_metadata(self, child: Object) -> dict[str, str]:
        return contract.machine_metadata(child)

    def replicas(self) -> tuple[str, ...]:
        return contract.REPLICAS
