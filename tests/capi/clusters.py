# SPDX-License-Identifier: Apache-2.0
"""Kinds of Cluster API on the fake API server."""

from __future__ import annotations

from k8s_cr_driver.capi.contract import CONTROL_PLANE_GROUP, GROUP
from k8s_cr_driver.objects.keys import GroupKind, Object
from tests.instance import crontab_crd

CONTROL_PLANES = GroupKind(CONTROL_PLANE_GROUP, "KubeadmControlPlane")
DEPLOYMENTS = GroupKind(GROUP, "MachineDeployment")
MACHINES = GroupKind(GROUP, "Machine")
MACHINE_SETS = GroupKind(GROUP, "MachineSet")


def crd(kind: GroupKind) -> Object:
    """The CRD of a kind, of version v1, whose objects may have any fields."""
    made = crontab_crd()
    plural = f"{kind.kind.lower()}s"
    made["metadata"]["name"] = f"{plural}.{kind.group}"
    made["spec"]["group"] = kind.group
    made["spec"]["names"] = {"plural": plural, "singular": kind.kind.lower(), "kind": kind.kind}
    made["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
    }
    return made
