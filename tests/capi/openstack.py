# SPDX-License-Identifier: Apache-2.0
"""A Cluster on OpenStack as Cluster API makes it on the fake API server, with statuses as CAPO 0.14 writes them."""

from __future__ import annotations

from typing import Any

from k8s_cr_driver.capi.contract import CLUSTER_NAME_LABEL, CLUSTERS, CONTROL_PLANE_NAME_LABEL, GROUP
from k8s_cr_driver.capi.openstack import GROUP as CAPO
from k8s_cr_driver.objects.keys import GroupKind, Object
from tests.capi.clusters import CONTROL_PLANES, MACHINES, crd
from tests.fake_api import FakeApi
from tests.instance import controlled_by, obj

KINDS = ("OpenStackCluster", "OpenStackMachine", "OpenStackServer")
IDENTITY = {"type": "Secret", "name": "cloud-config", "cloudName": "openstack"}


def manifests(**spec: Any) -> list[Object]:
    """A Cluster and its OpenStackCluster."""
    reference = {"apiGroup": CAPO, "kind": "OpenStackCluster", "name": "blue"}
    return [
        obj(f"{GROUP}/v1", "Cluster", "blue", "default", spec={"infrastructureRef": reference}),
        obj(f"{CAPO}/v1", "OpenStackCluster", "blue", "default", spec={"identityRef": IDENTITY, **spec}),
    ]


def capo(kind: str, spec: Object, status: Object | None = None, name: str = "blue") -> Object:
    """An object of the Cluster `blue`."""
    made = obj(f"{CAPO}/v1", kind, name, "default", spec=spec, **({"status": status} if status is not None else {}))
    made["metadata"]["labels"] = {CLUSTER_NAME_LABEL: "blue"}
    return made


def condition(name: str, reason: str, message: str = "", severity: str = "Error", status: str = "False") -> Object:
    """As Cluster API's v1beta1 writes them."""
    return {"type": name, "status": status, "severity": severity, "reason": reason, "message": message}


def serve(api: FakeApi) -> None:
    """The kinds, and the controller of Clusters, which only waits."""
    for kind in (CLUSTERS, CONTROL_PLANES, MACHINES, *(GroupKind(CAPO, one) for one in KINDS)):
        api.put(crd(kind, status={}))

    def waits(live: Object) -> None:
        if "status" not in live and "deletionTimestamp" not in live["metadata"]:
            said = condition("InfrastructureReady", "NotReady", "status.initialization.provisioned is false", "Info")
            api.set_status("Cluster", "default", live["metadata"]["name"], {"conditions": [said]})

    api.react("Cluster", waits)


def make_machine(api: FakeApi, server: Object) -> None:
    """Lets a control plane have a Machine whose OpenStackServer has that status, and the OpenStackMachine none of it."""

    def make(live: Object) -> None:
        if api.find("Machine", "default", "blue-cp-1") is None:
            stale = [condition(name, "WaitingForBootstrapData", severity="Info") for name in ("Ready", "InstanceReady")]
            api.put(capo("OpenStackMachine", {"flavor": "m1.large"}, {"ready": False, "conditions": stale}, "blue-cp-1"))
            api.put(capo("OpenStackServer", {"flavor": "m1.large", "identityRef": IDENTITY}, server, "blue-cp-1"))
            reference = {"apiGroup": CAPO, "kind": "OpenStackMachine", "name": "blue-cp-1"}
            machine = obj(f"{GROUP}/v1", "Machine", "blue-cp-1", "default", spec={"infrastructureRef": reference})
            machine["metadata"]["labels"] = {CONTROL_PLANE_NAME_LABEL: live["metadata"]["name"]}
            machine["metadata"]["ownerReferences"] = [controlled_by(live)]
            api.put({**machine, "status": {"conditions": [condition("Ready", "WaitingForBootstrapData", severity="Info")]}})

    api.react("KubeadmControlPlane", make)
