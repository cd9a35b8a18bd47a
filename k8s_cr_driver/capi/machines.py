# SPDX-License-Identifier: Apache-2.0
"""Kinds with a count whose VNFCs are Machines: by name, or by the subresource `scale` of their CRD."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from k8s_cr_driver.capi import contract, paused, versions
from k8s_cr_driver.capi.changes import WorkersChanges
from k8s_cr_driver.capi.rollout import rolled_out
from k8s_cr_driver.objects.crds import status_selector
from k8s_cr_driver.objects.fields import integer, text
from k8s_cr_driver.objects.keys import GroupKind, Object, as_selector, key_of, labels
from k8s_cr_driver.resources.base import ANY, REPLICAS, CustomResource
from k8s_cr_driver.resources.health import Health
from k8s_cr_driver.resources.health.custom import terminating
from k8s_cr_driver.resources.health.model import waiting
from k8s_cr_driver.resources.hooks import Causes, Changes, Children, Made, Relations, Scaling


@dataclass(frozen=True)
class MachineScaling(Scaling):
    """`annotations` are those of what has the count."""

    annotations: Mapping[str, str]
    removal_annotations: ClassVar[Mapping[str, str]] = {contract.DELETE_MACHINE: "true"}

    def autoscaler(self) -> str:
        """The annotations that make it a node group of the cluster autoscaler (its documents, "clusterapi", "Enabling")."""
        if not (found := contract.AUTOSCALED & self.annotations.keys()):
            return ""
        return f"the cluster autoscaler sets it, by the annotations {', '.join(sorted(found))}; change these, or remove them"


class Rotated(Relations):
    """Most templates are immutable; a change of a bootstrap template reaches no Machine that exists."""

    is_rotated = True


class MachineOwner(CustomResource):
    """Any kind of Cluster API or a provider with the subresource `scale`: its VNFCs are the Machines that it controls."""

    group, kind = contract.GROUP, ANY
    through: ClassVar[tuple[GroupKind, ...]] = ()

    def children(self, live: Object | None = None) -> Children | None:
        if not self.replicas():
            return None
        return Children(contract.MACHINES, "", self.key.namespace, self._selector(live), self.through)

    def _selector(self, live: Object | None) -> str:
        """The selector in the status, where the CRD's subresource `scale` has it; "" finds all Machines of the namespace."""
        path = status_selector(self.crd, self.manifest["apiVersion"])
        return text(live, *path) if path else ""

    def health(self, live: Object) -> Health:
        return paused.unless_paused(self, live, super().health(live))

    def causes(self, live: Object) -> Causes:
        return Causes(contract.referred(live))

    def child_metadata(self, child: Object) -> dict[str, str]:
        return contract.machine_metadata(child)

    def relations(self) -> Relations:
        return Rotated() if self.key.kind.endswith(contract.ROTATED) else Relations()

    def scaling(self) -> Scaling:
        return MachineScaling(self.annotations())


class Machine(MachineOwner):
    """
    In v1beta1 its condition Ready sums up neither what its Node reports, nor what the control plane says of its etcd.

    For a member of a control plane both decide: etcd may lose its majority.
    """

    group, kind = contract.GROUP, contract.MACHINES.kind

    def assess(self, live: Object) -> Health:
        health = super().assess(live)
        found = (one for one in contract.conditions(live) if one.get("type") in contract.MEMBER_HEALTHY)
        unmet = next((one for one in found if one.get("status") != "True"), None)
        if unmet is None or not health.settled or contract.CONTROL_PLANE_LABEL not in labels(live):
            return health
        return waiting(text(unmet, "type"), f"{text(unmet, 'reason')}: {text(unmet, 'message')}", trouble=True)


class LabelledMachines(MachineOwner):
    """A kind of a known count whose Machines carry its name in the label `name_label`."""

    group, kind = contract.GROUP, ""
    name_label: ClassVar[str]

    def _selector(self, live: Object | None) -> str:
        del live
        return as_selector({self.name_label: contract.label_value(self.key.name)})

    def replicas(self) -> tuple[str, ...]:
        return REPLICAS

    def assess(self, live: Object) -> Health:
        return rolled_out(live, super().assess(live), self._version(live))

    def changes(self) -> Changes:
        return WorkersChanges(self.manifest)

    @staticmethod
    def _version(workers: Object) -> str:
        return text(workers, *contract.WORKERS_VERSION)


class MachineDeployment(LabelledMachines):
    kind, name_label = "MachineDeployment", contract.DEPLOYMENT_NAME_LABEL
    through = (contract.MACHINE_SETS,)


class MachineSet(LabelledMachines):
    """It keeps a count of Machines, and replaces none: those that exist stay as they are when its template changes."""

    kind, name_label = "MachineSet", contract.SET_NAME_LABEL

    def assess(self, live: Object) -> Health:
        counted = contract.without_up_to_date(live)
        return rolled_out(counted, MachineOwner.assess(self, counted), "")


class MachinePool(LabelledMachines):
    """Not every provider creates Machines for a pool; where it does not, each replica is a VNFC."""

    kind, name_label = "MachinePool", contract.POOL_NAME_LABEL

    def children(self, live: Object | None = None) -> Children | None:
        machines = super().children(live)
        return replace(machines, or_replicas=True) if machines else None

    def made(self, live: Object) -> Made | None:
        """Its own status does not say of which version its Machines are."""
        machines = Children(contract.MACHINES, "", self.key.namespace, self._selector(live))
        return MadeOfPool(live, [machines]) if self._version(live) else None


class MadeOfPool(Made):
    """A Machine of a pool has the version of its Node, of which a cloud chooses the patch, and a distribution the build."""

    are_awaited = False

    def missing(self, found: Mapping[GroupKind, Sequence[Object]]) -> str:
        wanted, machines = text(self.live, *contract.WORKERS_VERSION), found.get(contract.MACHINES, ())
        staying = [one for one in machines if not terminating(one)]
        if machines and not staying and integer(self.live, "spec", "replicas") != 0:
            return f"{key_of(machines[0])} is being deleted, and no other has its place yet"
        older = (one for one in staying if versions.is_newer(wanted, text(one, *contract.VERSION)))
        why = (f"{key_of(one)} has the version {text(one, *contract.VERSION)} instead of {wanted}" for one in older)
        return next(why, "")
