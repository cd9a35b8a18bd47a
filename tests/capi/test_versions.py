# SPDX-License-Identifier: Apache-2.0
"""Which changes of a cluster's Kubernetes version are refused, and when a control plane has its version."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from k8s_cr_driver.capi import contract, versions
from k8s_cr_driver.errors import DriverError
from k8s_cr_driver.objects.keys import GroupKind, Object
from k8s_cr_driver.resources.health import State
from k8s_cr_driver.resources.registry import resource_for
from tests.capi.clusters import MACHINES, cluster, crd
from tests.fake_api import FakeApi, faults
from tests.instance import Instance, obj

READY = {"type": "Ready", "status": "True"}


def control_plane(version: str, kind: str = "KubeadmControlPlane", status: Object | None = None) -> Object:
    manifest = obj("controlplane.cluster.x-k8s.io/v1", kind, "blue-cp", "default", spec={"version": version})
    return {**manifest, "status": {"conditions": [{"type": "Available", "status": "True"}], **(status or {})}}


def workers(version: str) -> Object:
    spec = {"clusterName": "blue", "template": {"spec": {"version": version}}}
    return obj("cluster.x-k8s.io/v1", "MachineDeployment", "blue-md", "default", spec=spec)


def plain_cluster() -> Object:
    spec = {"controlPlaneRef": {"kind": "KubeadmControlPlane", "name": "blue-cp"}}
    return obj("cluster.x-k8s.io/v1", "Cluster", "blue", "default", spec=spec)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("v1.35.2", "v1.35.2"),
        ("v1.35.2", "v1.35.9"),
        ("v1.35.2", "v1.36.0"),
        ("v1.35.2", "1.36"),
        ("v1.35", "v1.35.1"),
        ("v1.35.2+rke2r1", "v1.36.1+rke2r1"),
        ("v1.35.2+rke2r2", "v1.35.2+rke2r1"),
        ("v1.36.0-rc.1", "v1.36.0"),
        ("v1.36.0-beta.3", "v1.36.0-rc.0"),
        ("v1.35.2", "v1.36.0-alpha.1"),
        ("1.35.2-gke.200", "1.35.2-gke.100"),
        ("", "v1.36.0"),
        ("v1.36.0", "latest"),
    ],
)
def test_a_patch_a_minor_version_and_what_is_no_version_are_not_refused(before: str, after: str) -> None:
    assert versions.change_error(before, after) == ""


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("v1.35.2", "v1.37.0", "upgrades by one minor version; go to v1.36 first"),
        ("v1.9.0", "v1.11.0", "go to v1.10 first"),
        ("v1.35.2", "v2.0.0", "go to v1.36 first"),
        ("v1.35.2", "v1.34.9", "no downgrade; take v1.35.2 or a newer one"),
        ("v1.35.10", "v1.35.9", "no downgrade"),
        ("v1.36.0", "v1.36.0-rc.1", "no downgrade"),
        ("v1.36.0-rc.10", "v1.36.0-rc.9", "no downgrade"),
        ("v1.36.0-alpha.3", "v1.38.0-alpha.1", "go to v1.37 first"),
    ],
)
def test_a_skip_and_a_downgrade_are_refused_with_the_remedy(before: str, after: str, words: str) -> None:
    assert words in versions.change_error(before, after)


@pytest.mark.parametrize(
    ("reported", "wanted", "reached"),
    [
        ("v1.36.0", "v1.36.0", True),
        ("v1.36", "v1.36.0-rc.1", True),
        ("v1.36.0-rc.1", "v1.36.0", False),
        ("v1.36.0", "v1.36.0-rc.1", False),
        ("v1.36.0+rke2r1", "v1.36.0+rke2r1", True),
        ("v1.36.0+rke2r1", "v1.36.0+rke2r2", False),
        ("v1.36.0", "v1.36.0+rke2r2", True),
        ("1.36.0-gke.100", "v1.36.0", True),
        ("1.36.0-gke.100", "1.36.0-gke.200", False),
        ("v1.36.0-rc.1+k3s1", "v1.36.0-rc.1+k3s2", False),
        ("latest", "v1.36.0", True),
    ],
)
def test_a_version_is_reached_with_its_pre_release_and_its_build_if_both_are_given(
    reported: str, wanted: str, reached: bool
) -> None:
    assert versions.has_reached(reported, wanted) is reached


@pytest.mark.parametrize("kind", ["KubeadmControlPlane", "OtherControlPlane"])
def test_a_control_plane_of_any_provider_names_the_field(kind: str) -> None:
    why = resource_for(control_plane("v1.37.0", kind)).changes().error(control_plane("v1.35.0", kind), [])
    assert why.startswith("spec.version cannot change from v1.35.0 to v1.37.0: ")


def test_the_version_of_a_topology_is_checked() -> None:
    why = resource_for(cluster(version="v1.34.0")).changes().error(cluster(version="v1.35.0"), [])
    assert why.startswith("spec.topology.version cannot change from v1.35.0 to v1.34.0: ")


def cluster_class(spec: Object, name: str = "quick-start") -> Object:
    return obj("cluster.x-k8s.io/v1beta2", "ClusterClass", name, "default", spec=spec)


EXTERNAL_PLAN = {"upgrade": {"external": {"generateUpgradePlanExtension": "plan.example"}}}
LISTED = {"kubernetesVersions": ["v1.35.0", "v1.36.0", "v1.37.0"]}


@pytest.mark.parametrize(
    ("known", "version", "allowed"),
    [
        ([cluster_class(LISTED)], "v1.37.0", True),
        ([cluster_class(EXTERNAL_PLAN)], "v1.37.0", True),
        ([cluster_class({})], "v1.37.0", False),
        ([cluster_class({"kubernetesVersions": []})], "v1.37.0", False),
        ([cluster_class({"kubernetesVersions": "v1.37.0", "upgrade": {"external": {}}})], "v1.37.0", False),
        ([cluster_class(LISTED, "another")], "v1.37.0", False),
        ([], "v1.37.0", False),
        ([cluster_class(LISTED)], "v1.34.0", False),
        ([cluster_class(EXTERNAL_PLAN)], "v1.34.0", False),
    ],
)
def test_a_topology_skips_minor_versions_where_its_class_says_how(known: list[Object], version: str, allowed: bool) -> None:
    after, before = resource_for(cluster(version=version)), cluster(version="v1.35.0")
    assert (after.changes().error(before, known) == "") is allowed
    made = {GroupKind("controlplane.cluster.x-k8s.io", "KubeadmControlPlane"): [control_plane("v1.35.0")]}
    assert version < "v1.35.0" or (after.changes().error_of_made(made, known) == "") is allowed


@pytest.mark.parametrize("live", [None, workers("v1.35.0")])
def test_workers_newer_than_the_control_plane_of_their_cluster_are_refused(live: Object | None) -> None:
    one = resource_for(workers("v1.36.0"))
    why = one.changes().error(live, [plain_cluster(), control_plane("v1.35.0")])
    assert why == (
        "spec.template.spec.version v1.36.0 is newer than v1.35.0 of KubeadmControlPlane.controlplane.cluster.x-k8s.io "
        "default/blue-cp; raise the version of both"
    )
    assert one.changes().error(live, [plain_cluster(), control_plane("v1.36.0")]) == ""
    assert one.changes().error(live, [plain_cluster()]) == ""


@pytest.mark.parametrize(
    ("kubelet", "api_server", "oldest"),
    [
        ("v1.33.9", "v1.36.0", ""),
        ("v1.32.0", "v1.36.0", "v1.33"),
        ("v1.24.0", "v1.26.0", ""),
        ("v1.24.0", "v1.27.0", "v1.25"),
        ("v1.25.0", "v1.28.0", ""),
        ("latest", "v1.36.0", ""),
    ],
)
def test_workers_much_older_than_the_control_plane_of_their_cluster_are_refused(
    kubelet: str, api_server: str, oldest: str
) -> None:
    why = resource_for(workers(kubelet)).changes().error(None, [plain_cluster(), control_plane(api_server)])
    assert bool(why) is bool(oldest)
    assert not oldest or why.startswith(f"spec.template.spec.version {kubelet} must be {oldest} or newer: ")


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ({"version": "v1.35.0"}, State.WAITING),
        ({"version": "v1.36.0"}, State.READY),
        ({"version": "v1.36"}, State.READY),
        ({}, State.READY),
        ({"versions": [{"version": "v1.35.0"}, {"version": "v1.36.0"}]}, State.WAITING),
        ({"versions": [{"version": "v1.36.0"}], "version": "v1.35.0"}, State.READY),
    ],
)
def test_a_control_plane_is_ready_when_all_its_machines_have_the_version(status: Object, state: State) -> None:
    live = control_plane("v1.36.0", status=status)
    assert resource_for(live).health(live).state is state


@pytest.mark.parametrize(
    ("made", "state"),
    [
        ({"versions": [{"version": "v1.35.0", "replicas": 2}]}, State.WAITING),
        ({"versions": [{"version": "v1.36.0", "replicas": 1}, {"version": "v1.35.0", "replicas": 1}]}, State.WAITING),
        ({"deprecated": {"v1beta1": {"updatedReplicas": 0}}}, State.WAITING),
        ({"versions": [{"version": "v1.36.0", "replicas": 2}], "deprecated": {"v1beta1": {"updatedReplicas": 2}}}, State.READY),
        ({}, State.READY),
    ],
)
def test_workers_are_ready_when_all_are_made_of_the_new_template(made: Object, state: State) -> None:
    """As the controller reports it before it has compared any Machine with the new template."""
    types = {"Available": "True", "RollingOut": "False", "ScalingDown": "False", "MachinesUpToDate": "True"}
    conditions = [{"type": name, "status": status, "observedGeneration": 4} for name, status in types.items()]
    counts = dict.fromkeys(("replicas", "readyReplicas", "availableReplicas", "upToDateReplicas"), 2)
    live = workers("v1.36.0")
    live["spec"]["replicas"] = 2
    live["metadata"]["generation"] = 4
    live["status"] = {"observedGeneration": 4, "conditions": conditions, **counts, **made}
    assert resource_for(live).health(live).state is state


def machine_set(**counts: int) -> Object:
    """One that no MachineDeployment controls, of v1.36.0, as its controller reports it after 10 seconds."""
    live = {**workers("v1.36.0"), "kind": "MachineSet"}
    live["spec"]["replicas"] = 2
    live["metadata"]["generation"] = 2
    types = {"MachinesReady": "True", "MachinesUpToDate": "Unknown", "ScalingUp": "False", "ScalingDown": "False"}
    conditions = [{"type": name, "status": status, "observedGeneration": 2} for name, status in types.items()]
    status = {"replicas": 2, "readyReplicas": 2, "availableReplicas": 2, "upToDateReplicas": 0, **counts}
    made = [{"version": "v1.35.0", "replicas": 2}]
    return {**live, "status": {"observedGeneration": 2, "conditions": conditions, "versions": made, **status}}


@pytest.mark.parametrize(
    ("counts", "state"),
    [({}, State.READY), ({"availableReplicas": 1}, State.WAITING), ({"replicas": 1, "readyReplicas": 1}, State.WAITING)],
)
def test_a_machine_set_is_ready_with_its_count_although_it_has_machines_of_a_former_version(
    counts: dict[str, int], state: State
) -> None:
    live = machine_set(**counts)
    assert resource_for(live).health(live).state is state


def older_contract(kind: str, group: str, spec: Object, **counts: int) -> Object:
    """An object of v1beta1 with two Machines that is Ready."""
    live = obj(f"{group}/v1beta1", kind, "blue", "default", spec={"replicas": 2, **spec})
    live["metadata"]["generation"] = 2
    conditions = [{"type": type_, "status": "True"} for type_ in ("Ready", "Available", "MachinesReady")]
    counted = {"replicas": 2, "readyReplicas": 2, "updatedReplicas": 2, "unavailableReplicas": 0, **counts}
    return {**live, "status": {"observedGeneration": 2, "conditions": conditions, **counted}}


@pytest.mark.parametrize(
    ("counts", "state"),
    [
        ({}, State.READY),
        ({"readyReplicas": 1, "unavailableReplicas": 1}, State.WAITING),
        ({"updatedReplicas": 1}, State.WAITING),
    ],
)
@pytest.mark.parametrize(
    ("kind", "group"),
    [("KubeadmControlPlane", "controlplane.cluster.x-k8s.io"), ("MachineDeployment", "cluster.x-k8s.io")],
)
def test_all_machines_of_the_contract_v1beta1_are_to_be_available_and_updated(
    kind: str, group: str, counts: dict[str, int], state: State
) -> None:
    live = older_contract(kind, group, {}, **counts)
    assert resource_for(live).health(live).state is state


@pytest.fixture
def pool(api: FakeApi) -> Object:
    """A MachinePool of the version v1.36.0 that is ready as soon as it exists, as the Machines do that a test puts."""
    pools = MACHINES._replace(kind="MachinePool")
    for kind in (pools, MACHINES):
        api.put(crd(kind, status={}))
    api.react(
        "MachinePool",
        lambda live: live.get("status") or api.set_status("MachinePool", "default", "blue-mp", {"conditions": [READY]}),
    )
    spec = {"clusterName": "blue", "replicas": 1, "template": {"spec": {"version": "v1.36.0"}}}
    return obj("cluster.x-k8s.io/v1", "MachinePool", "blue-mp", "default", spec=spec)


def put_machine(api: FakeApi, name: str, version: str, finalizers: Sequence[str] = ()) -> None:
    machine = obj("cluster.x-k8s.io/v1", "Machine", name, "default", spec={"version": version})
    machine["metadata"] |= {"labels": {"cluster.x-k8s.io/pool-name": "blue-mp"}, "finalizers": list(finalizers)}
    api.put({**machine, "status": {"conditions": [READY]}})


def test_a_pool_waits_for_its_machines_to_have_the_version(api: FakeApi, pool: Object) -> None:
    """Also if they are not found once: a load balancer without an API server responds 404 to every path."""
    put_machine(api, "blue-mp-0", "v1.35.0")
    api.fail(faults.page_not_found(), method="GET", path="/machines")
    blue = Instance(api.url)
    run = blue.start([pool])
    blue.wait_until_reported("blue-mp", "Waiting", "default/blue-mp-0 has the version v1.35.0 instead of v1.36.0")
    api.edit("Machine", "default", "blue-mp-0", lambda live: live["spec"].update(version="v1.36.0"))
    run.result(10)


@pytest.mark.parametrize("version", ["v1.36.4-eks-036c24b", "v1.36.0+vmware.1"])
def test_a_cloud_chooses_the_patch_version_of_a_pool_and_a_distribution_its_build(
    api: FakeApi, pool: Object, version: str
) -> None:
    put_machine(api, "blue-mp-0", version)
    Instance(api.url).reconcile([pool])


def test_a_machine_of_a_pool_that_is_being_deleted_holds_up_nothing(api: FakeApi, pool: Object) -> None:
    """The budget of a Pod may hold its drain for as long as it likes."""
    put_machine(api, "blue-mp-0", "v1.36.0")
    put_machine(api, "blue-mp-1", "v1.35.0", ["machine.cluster.x-k8s.io"])
    api.delete("Machine", "default", "blue-mp-1")
    Instance(api.url).reconcile([pool])


@pytest.mark.parametrize("kind", ["AzureManagedControlPlane", "GCPManagedControlPlane"])
@pytest.mark.parametrize("key", ["apiGroup", "apiVersion"])
def test_the_control_plane_of_a_topology_is_of_the_group_that_the_cluster_names(kind: str, key: str) -> None:
    """Managed ones are in the group of the infrastructure."""
    group = "infrastructure.cluster.x-k8s.io"
    live = cluster(1)
    live["spec"]["controlPlaneRef"] = {"kind": kind, "name": "blue", key: group if key == "apiGroup" else f"{group}/v1beta1"}
    assert GroupKind(group, kind) in contract.made_of_topology(live)


def test_a_cloud_that_has_upgraded_a_control_plane_is_no_reason_to_refuse_a_change() -> None:
    """Its status is ahead of what the package asks for, and says so for ever."""
    group = "controlplane.cluster.x-k8s.io/v1beta2"
    manifest = obj(group, "AWSManagedControlPlane", "blue", "default", spec={"version": "v1.30.0"})
    live = {**manifest, "status": {"version": "v1.30.4-eks-036c24b"}}
    assert resource_for(manifest).changes().error(live, []) == ""


@pytest.mark.parametrize("counts", [{}, {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1}])
def test_a_pool_whose_only_machine_is_of_the_former_version_and_going_is_not_ready(
    api: FakeApi, pool: Object, counts: dict[str, int]
) -> None:
    api.cluster.reactions.clear()
    status = {"conditions": [READY], **counts}
    api.react("MachinePool", lambda live: live.get("status") or api.set_status("MachinePool", "default", "blue-mp", status))
    put_machine(api, "blue-mp-1", "v1.35.0", ["machine.cluster.x-k8s.io"])
    api.delete("Machine", "default", "blue-mp-1")
    with pytest.raises(DriverError, match="blue-mp-1 is being deleted, and no other has its place yet"):
        Instance(api.url, seconds=2).reconcile([pool])
