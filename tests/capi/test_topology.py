# SPDX-License-Identifier: Apache-2.0
"""Clusters with a topology: which parts are VDUs, whose Machines theirs are, and when the Cluster is ready."""

from __future__ import annotations

import pytest

from k8s_cr_driver.engine.report.not_ready import NotReady
from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.objects.keys import GroupKind, Object
from k8s_cr_driver.resources import replicas
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.health import Health, State
from k8s_cr_driver.resources.registry import resource_for
from k8s_cr_driver.vnf import counts, vdus
from tests.capi.clusters import CLUSTERS, CONTROL_PLANES, DEPLOYMENTS, LABELS, OWNED, cluster, crd, serve_clusters
from tests.fake_api import FakeApi
from tests.instance import Instance, obj

AUTOSCALED = {"cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size": "1"}
CONTROL_PLANE, WORKERS = "controlPlane", "machineDeployments/md-0"


def parts(manifest: Object) -> dict[str, CustomResource]:
    return {part.part: part for part in resource_for(manifest).parts()}


def with_pool(manifest: Object, **pool: object) -> Object:
    workers = manifest["spec"]["topology"]["workers"]
    workers["machinePools"] = [{"class": "pool", "name": "mp-0", "replicas": 2, **pool}]
    return manifest


def annotated(manifest: Object, **annotations: str) -> Object:
    manifest["spec"]["topology"]["workers"]["machineDeployments"][0]["metadata"] = {"annotations": annotations}
    return manifest


def node(name: str) -> Object:
    return {"type": "tosca.nodes.nfv.Vdu.Compute", "properties": {"name": name}}


def test_the_parts_are_the_control_plane_and_each_set_of_workers_with_its_count_and_machines() -> None:
    found = parts(with_pool(cluster(3, **{"md-0": 2, "md-1": 0})))
    assert {part: replicas.count(one) for part, one in found.items()} == {
        CONTROL_PLANE: 3, WORKERS: 2, "machineDeployments/md-1": 0, "machinePools/mp-0": 2,
    }  # fmt: skip
    selectors = {part: children.selector for part, one in found.items() if (children := one.children())}
    assert selectors[CONTROL_PLANE] == "cluster.x-k8s.io/cluster-name=blue,cluster.x-k8s.io/control-plane"
    assert selectors[WORKERS] == "cluster.x-k8s.io/cluster-name=blue,topology.cluster.x-k8s.io/deployment-name=md-0"
    assert selectors["machinePools/mp-0"] == "cluster.x-k8s.io/cluster-name=blue,topology.cluster.x-k8s.io/pool-name=mp-0"


def test_a_cluster_of_plain_objects_has_no_parts() -> None:
    assert parts(obj("cluster.x-k8s.io/v1", "Cluster", "blue", "default", spec={})) == {}


def test_a_vdu_is_the_part_of_its_name_or_with_its_annotation() -> None:
    manifest = annotated(cluster(1, **{"md-0": 2, "md-1": 3}), **{vdus.VDU: "Web"})
    nodes = {"ControlPlane": node("controlPlane"), "Web": node("other"), "Db": node("md-1")}
    found = vdus.assign([resource_for(manifest)], nodes)
    assert {vdu: one.part for vdu, one in found.items()} == {
        "ControlPlane": CONTROL_PLANE, "Web": WORKERS, "Db": "machineDeployments/md-1",
    }  # fmt: skip
    assert [type(one).__name__ for one in vdus.whole_objects(found)] == ["Cluster"]


def test_two_vdus_of_one_part_are_an_error_that_names_it() -> None:
    with pytest.raises(InvalidPackage, match=r"one object: Cluster\.\S+ default/blue machineDeployments/md-0\."):
        vdus.assign([resource_for(cluster(1, **{"md-0": 1}))], {"A": node("md-0"), "B": node("md-0")})


def test_stored_form_of_one_name_are_an_error_that_lists_them() -> None:
    manifest = with_pool(cluster(1, **{"md-0": 1}), name="md-0")
    with pytest.raises(InvalidPackage, match=r"several objects: .*machineDeployments/md-0, .*machinePools/md-0\."):
        vdus.assign([resource_for(manifest)], {"A": node("md-0")})


def test_a_count_that_is_set_is_seen_by_the_other_parts_of_the_object() -> None:
    found = parts(cluster(1, **{"md-0": 2, "md-1": 3}))
    after = counts.with_counts(found, {CONTROL_PLANE: 3, WORKERS: 0})
    assert after.keys() == found.keys()
    for one in after.values():
        assert counts.of(parts(one.manifest)) == {CONTROL_PLANE: 3, WORKERS: 0, "machineDeployments/md-1": 3}
    assert counts.of(found)[WORKERS] == 2


def test_of_a_topology_control_plane_only_the_annotation_says_that_etcd_is_elsewhere() -> None:
    manifest = cluster()
    assert parts(manifest)[CONTROL_PLANE].scaling().error(2)
    topology = manifest["spec"]["topology"]
    topology["controlPlane"]["metadata"] = {"annotations": {"k8s-cr-driver/external-etcd": "true"}}
    assert not parts(manifest)[CONTROL_PLANE].scaling().error(2)


def test_the_count_of_an_entry_that_the_autoscaler_scales_is_never_written() -> None:
    part = parts(annotated(cluster(1, **{"md-0": 2}), **AUTOSCALED))[WORKERS]
    assert part.replicas() is None
    assert "cluster autoscaler" in part.scaling().autoscaler()


def test_of_a_control_plane_in_a_topology_etcd_keeps_its_quorum() -> None:
    assert [parts(cluster())[CONTROL_PLANE].scaling().max_unavailable(count) for count in (1, 3, 5)] == [0, 1, 2]


def health(
    manifest: Object, workers: Object, reconciled: str = "True", generation: int = 2, *, v1beta1: bool = False
) -> Health:
    """Of a Cluster in generation 2 that is Available in that generation."""
    conditions = [
        {"type": "Available", "status": "True", "observedGeneration": 2},
        {"type": "TopologyReconciled", "status": reconciled, "observedGeneration": generation, "message": "MachineDeployment"},
    ]
    control_plane = dict.fromkeys(("desiredReplicas", "replicas", "upToDateReplicas", "availableReplicas"), 1)
    status: Object = {"conditions": conditions, "controlPlane": control_plane, "workers": workers}
    if v1beta1:
        status = {"conditions": [{"type": "Ready", "status": "True"}], "v1beta2": status}
    status["observedGeneration"] = 2
    live = {**manifest, "metadata": {**manifest["metadata"], "generation": 2}, "status": status}
    return resource_for(live).health(live)


def workers(desired: int, **other: int) -> Object:
    return {**dict.fromkeys(("desiredReplicas", "replicas", "upToDateReplicas", "availableReplicas"), desired), **other}


def test_a_cluster_whose_machines_are_those_of_its_topology_is_ready() -> None:
    assert health(cluster(1, **{"md-0": 2}), workers(2)).state is State.READY
    assert health(cluster(1, **{"md-0": 2}), workers(3)).state is State.READY, "one is not of the topology"


@pytest.mark.parametrize(
    ("reason", "generation", "trouble"),
    [
        ("ReconcileFailed", 2, True),
        ("ReconcileFailed", 1, False),
        ("ControlPlaneUpgradePending", 2, False),
        ("MachineDeploymentsUpgradePending", 2, False),
        ("ClusterCreating", 2, False),
        ("", 2, False),
    ],
)
def test_a_topology_that_cannot_be_applied_is_in_trouble(reason: str, generation: int, trouble: bool) -> None:
    """Though Available is True: a provider's webhook denies the new version, and the former Machines are well."""
    manifest = cluster(1, **{"md-0": 2})
    conditions = [
        {"type": "Available", "status": "True", "observedGeneration": 2},
        {"type": "TopologyReconciled", "status": "False", "reason": reason, "observedGeneration": generation},
    ]
    status = {"conditions": conditions, "observedGeneration": 2}
    live = {**manifest, "metadata": {**manifest["metadata"], "generation": 2}, "status": status}
    found = resource_for(live).health(live)
    assert (found.state, found.trouble) == (State.WAITING, trouble)


@pytest.mark.parametrize(
    ("reported", "words"),
    [
        (workers(1), "workers: desiredReplicas is 1 instead of 2"),
        (workers(2, availableReplicas=1), "workers: availableReplicas is 1 of 2"),
        (workers(2, upToDateReplicas=0), "workers: upToDateReplicas is 0 of 2"),
        (workers(2, replicas=3), "workers: replicas is 3 of 2"),
    ],
)
def test_a_cluster_waits_for_the_machines_of_its_topology(reported: Object, words: str) -> None:
    found = health(cluster(1, **{"md-0": 2}), reported)
    assert (found.state, found.message) == (State.WAITING, words)


@pytest.mark.parametrize(("reconciled", "generation"), [("False", 2), ("Unknown", 2), ("True", 1)])
def test_a_cluster_waits_until_its_topology_is_applied(reconciled: str, generation: int) -> None:
    assert health(cluster(1, **{"md-0": 2}), workers(2), reconciled, generation).state is State.WAITING


def test_a_cluster_of_the_contract_v1beta1_waits_for_the_same() -> None:
    manifest = cluster(1, **{"md-0": 2})
    assert health(manifest, workers(2), v1beta1=True).state is State.READY
    assert health(manifest, workers(1), v1beta1=True).state is State.WAITING
    assert health(manifest, workers(2), generation=1, v1beta1=True).state is State.WAITING


def made(kind: GroupKind, name: str, entry: str, spec: Object) -> Object:
    """An object that a controller has made of the topology, or of an entry in it, and that is ready."""
    own = {LABELS["machineDeployments"]: entry} if entry else {}
    live = obj(f"{kind.group}/v1", kind.kind, name, "default", spec=spec)
    live["metadata"]["labels"] = {**OWNED, **own}
    return {**live, "status": {"conditions": [{"type": "Available", "status": "True"}]}}


def workers_made(name: str = "md-0", replicas: int = 2, version: str = "v1.35.0") -> Object:
    return made(DEPLOYMENTS, f"blue-{name}", name, {"replicas": replicas, "template": {"spec": {"version": version}}})


def control_plane_made(replicas: int = 1, version: str = "v1.35.0") -> Object:
    return made(CONTROL_PLANES, "blue-cp", "", {"replicas": replicas, "version": version})


@pytest.mark.parametrize(
    ("several", "words"),
    [
        ([control_plane_made()], "there is no MachineDeployment.cluster.x-k8s.io of md-0 yet"),
        ([workers_made(replicas=3), control_plane_made()], "default/blue-md-0 has 3 replicas instead of 2"),
        ([workers_made(version="v1.34.0"), control_plane_made()], "blue-md-0 has the version v1.34.0 instead of v1.35.0"),
        ([workers_made(), control_plane_made(version="v1.34.0")], "blue-cp has the version v1.34.0 instead of v1.35.0"),
        ([workers_made(), control_plane_made(replicas=3)], "default/blue-cp has 3 replicas instead of 1"),
        ([workers_made(), workers_made("md-9"), control_plane_made()], "default/blue-md-9 is not removed yet"),
        ([{**workers_made(), "status": {}}, control_plane_made()], "default/blue-md-0 has no status yet"),
        ([workers_made(), control_plane_made()], ""),
    ],
)
def test_a_cluster_of_cluster_api_1_8_waits_until_its_objects_are_as_its_topology_says(
    api: FakeApi, several: list[Object], words: str
) -> None:
    """It has no counts, and its conditions are those of before: its controller has acted, that of the topology has not."""
    manifest = cluster(1, **{"md-0": 2})
    reference = {"apiVersion": "controlplane.cluster.x-k8s.io/v1beta1", "kind": "KubeadmControlPlane", "name": "blue-cp"}
    manifest["spec"]["controlPlaneRef"] = reference
    for kind in (CLUSTERS, CONTROL_PLANES, DEPLOYMENTS):
        api.put(crd(kind, status={}))
    for one in several:
        api.put(one)

    def report(live: Object) -> None:
        conditions = [{"type": name, "status": "True"} for name in ("Ready", "ControlPlaneReady", "TopologyReconciled")]
        status = {"observedGeneration": live["metadata"]["generation"], "conditions": conditions}
        if live.get("status") != status:
            api.set_status("Cluster", "default", "blue", status)

    serve_clusters(api)
    api.react("Cluster", report)
    if not words:
        Instance(api.url).reconcile([manifest])
        return
    with pytest.raises(NotReady) as error:
        Instance(api.url, seconds=2).reconcile([manifest])
    assert [(one.key.kind, one.reason) for one in error.value.reports][:1] == [("Cluster", "PartsNotReady")]
    assert words in error.value.reports[0].message


def test_a_count_that_the_topology_leaves_to_the_autoscaler_is_not_compared() -> None:
    manifest = cluster(1, **{"md-0": 2})
    del manifest["spec"]["topology"]["workers"]["machineDeployments"][0]["replicas"]
    assert resource_for(manifest).made(manifest).missing({DEPLOYMENTS: [workers_made(replicas=7)]}) == ""


def test_a_cluster_whose_topology_is_applied_is_not_ready_before_it_is_available() -> None:
    """As its controllers report it in the first second: no object of the topology has a status yet."""
    reconciled = {"type": "TopologyReconciled", "status": "True", "reason": "ReconcileSucceeded", "observedGeneration": 2}
    manifest = cluster()
    live = {**manifest, "metadata": {**manifest["metadata"], "generation": 2}, "status": {"conditions": [reconciled]}}
    assert resource_for(live).health(live).reason == "NotAvailable"


@pytest.mark.parametrize("reference", [{"classRef": {"name": "quick"}}, {"class": "quick", "classRef": None}])
def test_a_cluster_is_applied_when_its_class_is_ready(api: FakeApi, reference: Object) -> None:
    """A webhook refuses the change to a ClusterClass that does not exist."""
    class_ = GroupKind("cluster.x-k8s.io", "ClusterClass")
    for kind in (CLUSTERS, class_):
        api.put(crd(kind, status={}))
    manifest = cluster()
    manifest["spec"]["topology"] |= reference
    with pytest.raises(NotReady) as error:
        quick = obj("cluster.x-k8s.io/v1", "ClusterClass", "quick", "default", spec={})
        Instance(api.url, seconds=2).reconcile([manifest, quick])
    assert {one.key.kind: one.reason for one in error.value.reports} == {"ClusterClass": "NoStatus", "Cluster": "Blocked"}
    assert api.find("Cluster", "default", "blue") is None
