# SPDX-License-Identifier: Apache-2.0
"""Sets of worker machines: a count, and Machines as VNFCs."""

from __future__ import annotations

from typing import ClassVar

from k8s_cr_driver.capi import contract
from k8s_cr_driver.objects.keys import GroupKind, Object, as_selector
from k8s_cr_driver.resources.base import REPLICAS, Children, CustomResource


class Machines(CustomResource):
    """An object whose VNFCs are the Machines that carry its name in the label `name_label`."""

    name_label: ClassVar[str]
    through: ClassVar[tuple[GroupKind, ...]] = ()

    def children(self, live: Object | None = None) -> Children:
        del live
        selector = as_selector({self.name_label: self.key.name})
        return Children(contract.MACHINES, "", self.key.namespace, selector, self.through)

    def child_metadata(self, child: Object) -> dict[str, str]:
        return contract.machine_metadata(child)

    def replicas(self) -> tuple[str, ...]:
        return REPLICAS


class MachineDeployment(Machines):
    group, kind, name_label = contract.GROUP, "MachineDeployment", contract.DEPLOYMENT_NAME_LABEL
    through = (contract.MACHINE_SETS,)


class MachineSet(Machines):
    group, kind, name_label = contract.GROUP, "MachineSet", contract.SET_NAME_LABEL
