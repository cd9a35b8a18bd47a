# SPDX-License-Identifier: Apache-2.0
"""The verbs for clusters of Cluster API: what their kinds forbid is refused before anything is sent."""

from __future__ import annotations

from pathlib import Path

import pytest
from tacker.sol_refactored.common import exceptions as sol_ex

from k8s_cr_driver.kube.connection import MERGE, Connection
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.objects.keys import GroupKind, Object
from tests.capi import clusters
from tests.fake_api import FakeApi
from tests.instance import obj
from tests.lcm.instance import Instance, instantiated


@pytest.fixture
def api(api: FakeApi) -> FakeApi:
    for kind in (clusters.CONTROL_PLANES, clusters.MACHINES):
        api.put(clusters.crd(kind))
    return api


def control_plane(replicas: int) -> Object:
    return obj("controlplane.cluster.x-k8s.io/v1", "KubeadmControlPlane", "web", spec={"replicas": replicas})


def replicas(api: FakeApi) -> int:
    return int(api.get("KubeadmControlPlane", "default", "web")["spec"]["replicas"])


def test_a_control_plane_is_scaled_in_odd_numbers_only(api: FakeApi, tmp_path: Path) -> None:
    blue = instantiated(api, tmp_path, [control_plane(1)])
    blue.scale("SCALE_OUT")
    assert replicas(api) == 3
    api.requests.clear()
    blue.vnfd = blue.package([control_plane(1)], delta=1)
    with pytest.raises(sol_ex.SolException, match=r"spec\.replicas: cannot be 4: etcd") as refused:
        blue.scale("SCALE_OUT")
    assert refused.value.status == 400
    assert not api.requests.writes
    blue.scale("SCALE_IN", 2)
    assert replicas(api) == 1


def test_an_even_control_plane_is_refused_before_it_is_created(api: FakeApi, tmp_path: Path) -> None:
    with pytest.raises(sol_ex.SolException, match=r"spec\.replicas: cannot be 2: etcd"):
        Instance(api, tmp_path, [control_plane(2)]).instantiate()
    assert not api.requests.writes


def test_an_even_control_plane_is_created_if_its_package_says_that_etcd_is_elsewhere(api: FakeApi, tmp_path: Path) -> None:
    manifest = control_plane(2)
    manifest["metadata"]["annotations"] = {"k8s-cr-driver/external-etcd": "true"}
    Instance(api, tmp_path, [manifest]).instantiate()
    assert replicas(api) == 2


def test_a_change_of_package_to_an_even_control_plane_is_refused(api: FakeApi, tmp_path: Path) -> None:
    count = {"COUNT": {"type": "integer", "default": 1}}
    manifest = {**control_plane(1), "spec": {"replicas": "${COUNT}"}}
    blue = Instance(api, tmp_path, [manifest], parameters=count)
    blue.instantiate(parameters={"COUNT": 1})
    api.requests.clear()
    with pytest.raises(sol_ex.SolException, match=r"spec\.replicas: cannot be 2: etcd"):
        blue.change(blue.vnfd, parameters={"COUNT": 2})
    assert not api.requests.writes
    blue.change(blue.vnfd, parameters={"COUNT": 3})
    assert replicas(api) == 3


@pytest.mark.parametrize("force", [False, True])
def test_a_count_that_the_cluster_autoscaler_sets_is_not_taken_by_force(api: FakeApi, tmp_path: Path, force: bool) -> None:
    for kind in ("MachineDeployment", "MachineSet"):
        scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
        api.put(clusters.crd(GroupKind("cluster.x-k8s.io", kind), scale=scale))
    workers = obj("cluster.x-k8s.io/v1", "MachineDeployment", "web", spec={"replicas": 2, "minReadySeconds": 1})
    workers["metadata"]["annotations"] = {"cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size": "9"}
    blue = instantiated(api, tmp_path, [workers])
    path = "/apis/cluster.x-k8s.io/v1/namespaces/default/machinedeployments/web"
    with Connection(Endpoint(api.url)) as connection:
        connection.request("PATCH", f"{path}/scale", body={"spec": {"replicas": 5}}, content_type=MERGE)
        if force:
            connection.request("PATCH", path, body={"spec": {"minReadySeconds": 7}}, content_type=MERGE)
    blue.change(blue.vnfd, **{"force-conflicts": force})
    spec = api.get("MachineDeployment", "default", "web")["spec"]
    assert (spec["replicas"], spec["minReadySeconds"]) == (5, 1)


def upgradable(version: str, workers: str = "") -> list[Object]:
    """A cluster of plain objects."""
    ref = {"kind": "KubeadmControlPlane", "name": "web"}
    template = {"spec": {"version": workers or version}}
    machines = {"clusterName": "blue", "replicas": 0, "template": template}
    return [
        obj("cluster.x-k8s.io/v1", "Cluster", "blue", spec={"controlPlaneRef": ref}),
        obj("controlplane.cluster.x-k8s.io/v1", "KubeadmControlPlane", "web", spec={"replicas": 1, "version": version}),
        obj("cluster.x-k8s.io/v1", "MachineDeployment", "workers", spec=machines),
    ]


@pytest.fixture
def plain(api: FakeApi, tmp_path: Path) -> Instance:
    """A cluster of v1.35.0, whose control plane is upgraded as soon as its version changes."""
    for kind in ("Cluster", "MachineDeployment", "MachineSet"):
        api.put(clusters.crd(GroupKind("cluster.x-k8s.io", kind)))
    clusters.serve_clusters(api)
    return instantiated(api, tmp_path / "v1.35", upgradable("v1.35.0"))


def versions(api: FakeApi) -> tuple[str, str]:
    control_plane, workers = (api.get(kind, "default", name)["spec"] for kind, name in (
        ("KubeadmControlPlane", "web"), ("MachineDeployment", "workers"),
    ))  # fmt: skip
    return control_plane["version"], workers["template"]["spec"]["version"]


@pytest.mark.parametrize(
    ("package", "words"),
    [
        (upgradable("v1.37.0"), r"spec\.version cannot change from v1\.35\.0 to v1\.37\.0: .*go to v1\.36 first"),
        (upgradable("v1.34.0"), r"spec\.version cannot change from v1\.35\.0 to v1\.34\.0: Kubernetes has no downgrade"),
        (upgradable("v1.35.0", "v1.36.0"), r"workers: spec\.template\.spec\.version v1\.36\.0 is newer than v1\.35\.0"),
    ],
)
def test_a_skip_a_downgrade_and_newer_workers_are_refused_before_anything_is_written(
    api: FakeApi, plain: Instance, package: list[Object], words: str
) -> None:
    api.requests.clear()
    with pytest.raises(sol_ex.SolException, match=words) as refused:
        plain.change(plain.package(package))
    assert refused.value.status == 400
    assert not api.requests.writes


def test_workers_are_upgraded_after_the_control_plane(api: FakeApi, plain: Instance) -> None:
    new = plain.package(upgradable("v1.36.0"))
    upgrading = {"conditions": [{"type": "Available", "status": "True"}], "version": "v1.35.0"}
    api.set_status("KubeadmControlPlane", "default", "web", upgrading)
    stored = plain.inst.obj_clone()
    with pytest.raises(sol_ex.SolException, match=r"has Machines of version v1\.35\.0 instead of v1\.36\.0"):
        plain.change(new, **{"wait-timeout": 2})
    assert versions(api) == ("v1.36.0", "v1.35.0")
    api.set_status("KubeadmControlPlane", "default", "web", {**upgrading, "version": "v1.36.0"})
    plain.change(new)
    assert versions(api) == ("v1.36.0", "v1.36.0")
    plain.inst = stored
    api.set_status("KubeadmControlPlane", "default", "web", {**upgrading, "version": "v1.35.0"})
    plain.roll_back_change()
    assert versions(api) == ("v1.35.0", "v1.35.0")


def test_a_version_is_not_skipped_by_two_changes_of_which_the_first_has_failed(api: FakeApi, plain: Instance) -> None:
    conditions = [{"type": "Available", "status": "True"}]
    former = {"conditions": conditions, "version": "v1.35.0", "versions": [{"version": "v1.35.0", "replicas": 1}]}
    api.set_status("KubeadmControlPlane", "default", "web", former)
    with pytest.raises(sol_ex.SolException):
        plain.change(plain.package(upgradable("v1.36.0")), **{"wait-timeout": 2})
    with pytest.raises(sol_ex.SolException, match=r"cannot change from v1\.35\.0 to v1\.37\.0"):
        plain.change(plain.package(upgradable("v1.37.0")), **{"wait-timeout": 2})


def test_workers_alone_are_not_downgraded(plain: Instance) -> None:
    with pytest.raises(sol_ex.SolException, match="downgrade"):
        plain.change(plain.package(upgradable("v1.35.0", "v1.34.0")))
