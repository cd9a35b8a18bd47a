"""Sets of worker machines: a count, and Machines as VNFCs."""

from __future__ import annotations

from typing import ClassVar

from k8s_cr_driver.capi import contract
from k8s_cr_driver.keys import Object
from k8s_cr_driver.resources.base import Children, CustomResource


class Machines(CustomResource):
    """An object whose VNFCs are the Machines that carry its name in the label `name_label`."""

    name_label: ClassVar[str]

    def children(self) -> Children:
        return Children(contract.MACHINES, "", self.key.namespace, {self.name_label: self.key.name})

    def child_metadata(self, child: Object) -> dict[str, str]:
        return contract.machine_metadata(child)

    def replicas(self) -> tuple[str, ...]:
        return contract.REPLICAS


class MachineDeployment(Machines):
    group, kind, name_label = contract.GROUP, "MachineDeployment", contract.DEPLOYMENT_NAME_LABEL


class MachineSet(Machines):
    group, kind, name_label = contract.GROUP, "MachineSet", contract.SET_NAME_LABEL
