# SPDX-License-Identifier: Apache-2.0
"""Kinds of Cluster API on the fake API server, and the controllers of a Cluster with a topology."""

from __future__ import annotations

import base64
import contextlib
import itertools
from collections.abc import Mapping

import yaml

from k8s_cr_driver.capi.contract import CONTROL_PLANE_GROUP, GROUP
from k8s_cr_driver.objects.fields import entries, mapping
from k8s_cr_driver.objects.keys import GroupKind, Object, annotations_of, labels
from tests.cli.tool import kubeconfig
from tests.fake_api import FakeApi
from tests.instance import controlled_by, crontab_crd, obj

CLUSTERS = GroupKind(GROUP, "Cluster")
CONTROL_PLANES = GroupKind(CONTROL_PLANE_GROUP, "KubeadmControlPlane")
DEPLOYMENTS = GroupKind(GROUP, "MachineDeployment")
MACHINES = GroupKind(GROUP, "Machine")
LABELS = {
    "machineDeployments": "topology.cluster.x-k8s.io/deployment-name",
    "machinePools": "topology.cluster.x-k8s.io/pool-name",
}
OWNED = {"cluster.x-k8s.io/cluster-name": "blue", "topology.cluster.x-k8s.io/owned": ""}
"""Labels of what is made of the topology of the Cluster `blue`."""


def crd(kind: GroupKind, **subresources: Object) -> Object:
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
    made["spec"]["versions"][0]["subresources"] = subresources
    return made


def cluster(control_plane: int = 1, version: str = "v1.35.0", **workers: int) -> Object:
    """The Cluster `blue` with so many Machines of its control plane, and of the machineDeployments in `workers`."""
    deployments = [{"class": "worker", "name": name, "replicas": count} for name, count in workers.items()]
    topology: Object = {"classRef": {"name": "quick-start"}, "version": version}
    topology |= {"controlPlane": {"replicas": control_plane}, "workers": {"machineDeployments": deployments}}
    return obj(f"{GROUP}/v1", "Cluster", "blue", "default", spec={"topology": topology})


def counts(live: Object) -> dict[str, int]:
    """Name -> count of the entries in the topology of a Cluster; `controlPlane` is that of its control plane."""
    topology = live["spec"]["topology"]
    several = itertools.chain.from_iterable(entries(topology, "workers", kind) for kind in LABELS)
    found = {one["name"]: one.get("replicas") for one in several}
    return {"controlPlane": topology["controlPlane"].get("replicas"), **found}


def machines(api: FakeApi, name: str) -> list[str]:
    """The Machines of an entry that are not being deleted."""
    return [one["metadata"]["name"] for one in _machines(api, name)]


def put_kubeconfig(api: FakeApi, owner: Object, url: str = "", token: str = "workload-token-0123456789") -> None:
    """The Secret that a control plane provider writes for a Cluster; the API server is the same one, or that at `url`."""
    name, namespace = owner["metadata"]["name"], owner["metadata"]["namespace"]
    text = yaml.safe_dump(kubeconfig(url or api.url, token=token))
    secret = obj("v1", "Secret", f"{name}-kubeconfig", namespace, data={"value": base64.b64encode(text.encode()).decode()})
    secret["metadata"]["ownerReferences"] = [{**controlled_by(owner), "controller": False}]
    api.put(secret)


def serve_clusters(api: FakeApi) -> None:
    """Each Cluster gets its kubeconfig."""

    def write(live: Object) -> None:
        if api.find("Secret", live["metadata"]["namespace"], f"{live['metadata']['name']}-kubeconfig") is None:
            put_kubeconfig(api, live)

    api.react("Cluster", write)


def run_topology(api: FakeApi) -> None:
    """The Cluster `blue` gets its Machines at once; those with the annotation `delete-machine` are removed first.

    Those of machinePools get none, as with many providers.
    """
    for kind, subresources in ((CLUSTERS, {"status": {}}), (MACHINES, {}), (CONTROL_PLANES, {}), (DEPLOYMENTS, {})):
        api.put(crd(kind, **subresources))
    numbers = itertools.count()

    def run(_: Object) -> None:
        live = api.find("Cluster", "default", "blue")
        topology = mapping(live, "spec", "topology")
        if live is None or not topology or "deletionTimestamp" in live["metadata"]:
            return
        wanted = {"controlPlane": topology["controlPlane"].get("replicas") or 1}
        wanted |= {one["name"]: one.get("replicas") or 1 for one in entries(topology, "workers", "machineDeployments")}
        for name, count in wanted.items():
            _update(api, _owner(api, name, live), count, topology["version"])
            while len(several := _machines(api, name)) > count:
                unwanted = max(several, key=lambda one: "cluster.x-k8s.io/delete-machine" in annotations_of(one))
                with contextlib.suppress(LookupError):  # another write has removed it
                    api.delete("Machine", "default", unwanted["metadata"]["name"])
            while len(_machines(api, name)) < count:  # each Machine calls this controller again
                with contextlib.suppress(LookupError):
                    api.put(_machine(_owner(api, name, live), name, next(numbers), topology["version"]))
        for one in api.objects(DEPLOYMENTS.kind, "default"):
            if labels(one)[LABELS["machineDeployments"]] not in wanted:
                api.delete(DEPLOYMENTS.kind, "default", one["metadata"]["name"])
        pools = {one["name"]: one["replicas"] for one in entries(topology, "workers", "machinePools")}
        _report(api, wanted | pools)

    serve_clusters(api)
    api.react("Cluster", run)
    api.react("Machine", run)


def _report(api: FakeApi, wanted: Mapping[str, int]) -> None:
    live = api.find("Cluster", "default", "blue")
    if live is None:
        return
    generation = live["metadata"]["generation"]
    conditions = [_true(type_, generation) for type_ in ("Available", "TopologyReconciled")]
    counted = {"controlPlane": wanted["controlPlane"], "workers": sum(wanted.values()) - wanted["controlPlane"]}
    several = ("desiredReplicas", "replicas", "upToDateReplicas", "readyReplicas", "availableReplicas")
    groups = {group: dict.fromkeys(several, count) for group, count in counted.items()}
    status = {"observedGeneration": generation, "conditions": conditions, **groups}
    if live.get("status") != status:
        api.set_status("Cluster", "default", "blue", status)


def _true(type_: str, generation: int) -> Object:
    time = "2026-01-01T00:00:00Z"
    return {"type": type_, "status": "True", "reason": type_, "observedGeneration": generation, "lastTransitionTime": time}


def _owner(api: FakeApi, name: str, cluster: Object) -> Object:
    """What controls the Machines of an entry. The Cluster controls its control plane, and only owns a MachineDeployment."""
    kind = CONTROL_PLANES if name == "controlPlane" else DEPLOYMENTS
    owner = obj(f"{kind.group}/v1", kind.kind, f"blue-{name.lower()}", "default")
    own = {} if name == "controlPlane" else {LABELS["machineDeployments"]: name}
    owner["metadata"]["labels"] = {**OWNED, **own}
    owner["metadata"]["ownerReferences"] = [{**controlled_by(cluster), "controller": name == "controlPlane"}]
    return api.find(kind.kind, "default", owner["metadata"]["name"]) or api.put(owner)


def _update(api: FakeApi, owner: Object, count: int, version: str) -> None:
    """Gives a control plane or MachineDeployment what the topology says."""
    spec = {"version": version} if owner["kind"] == CONTROL_PLANES.kind else {"template": {"spec": {"version": version}}}
    wanted = {"spec": {"replicas": count, **spec}, "status": {"conditions": [{"type": "Available", "status": "True"}]}}
    if owner.get("spec") != wanted["spec"]:
        api.edit(owner["kind"], "default", owner["metadata"]["name"], lambda live: live.update(wanted))


def _machine(owner: Object, name: str, number: int, version: str) -> Object:
    made = obj(f"{GROUP}/v1", "Machine", f"blue-{name.lower()}-{number:04}", "default")
    own = {"cluster.x-k8s.io/control-plane": ""} if name == "controlPlane" else {LABELS["machineDeployments"]: name}
    made["metadata"]["labels"] = {"cluster.x-k8s.io/cluster-name": "blue", **own}
    made["metadata"]["ownerReferences"] = [controlled_by(owner)]
    return {**made, "spec": {"version": version}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}


def _machines(api: FakeApi, name: str) -> list[Object]:
    return [
        one
        for one in api.objects("Machine", "default")
        if "deletionTimestamp" not in one["metadata"] and _name(labels(one)) == name
    ]


def _name(own: Mapping[str, str]) -> str:
    return own.get(LABELS["machineDeployments"]) or "controlPlane"
