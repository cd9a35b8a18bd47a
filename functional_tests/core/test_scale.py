# SPDX-License-Identifier: Apache-2.0
"""Scale, its failure, rollback and retry: Deployments by their Pods, custom resources by their scale subresource."""

from collections.abc import Iterator

import pytest

from ..cluster import Cluster
from ..conftest import MakeVnf, Onboard
from ..objects import Place, deployment, quota
from ..packages import Package
from ..vnf import Vnf

PLACE = Place("scale")

PACKAGE = Package(
    {"all.yaml": [deployment("web"), PLACE.custom("Shard", "db", replicas=2), PLACE.crd("Shard", scale=True)]},
    vdus={"Web": "web", "Db": "db"},
)
POOLS = PLACE.crd("Pool", scale=True)
POOLS["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["replicas"]["default"] = 5
UNSAID = Package(
    {"unsaid.yaml": [POOLS, PLACE.custom("Pool", "pool"), deployment("idle", 2)]},
    vdus={"Pool": "pool", "Idle": "idle"},
    counts={"Idle": 0},
)
# The ReplicaSet controller tries again after 5 ms, 10 ms, ... 10 s: what failed by then is tried once more in as much time.
LATE = {"wait_timeout": 12}


@pytest.fixture
def scaled(vnf: Vnf) -> Vnf:
    vnf.instantiate("all.yaml")
    return vnf


@pytest.fixture
def full_namespace(cluster: Cluster, scaled: Vnf) -> Iterator[None]:
    """No more Pods than there are."""
    with cluster.holding(quota(PLACE.name, pods=1)):
        yield


def replicas(cluster: Cluster, kind: str = "Deployment", name: str = "web", api_version: str = "apps/v1") -> int:
    live = cluster.get(kind, name, PLACE.name, api_version)
    assert live is not None
    return int(live["spec"]["replicas"])


def test_the_vnfcs_of_a_deployment_are_its_pods_newest_first(scaled: Vnf, cluster: Cluster):
    [first] = scaled.vnfcs("Web")
    scaled.scale_out("Web", 2)
    assert replicas(cluster) == 3
    nodes = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in cluster.all("Pod", PLACE.name, "app=web")}
    vnfcs = scaled.vnfcs("Web")
    assert {vnfc["computeResource"]["resourceId"] for vnfc in vnfcs} == set(nodes)
    assert vnfcs[-1]["id"] == first["id"]
    assert {vnfc["metadata"]["node"] for vnfc in vnfcs} == set(nodes.values())
    shown = {one["vnfcResourceInfoId"] for one in scaled.shown()["instantiatedVnfInfo"]["vnfcInfo"]}
    assert {vnfc["id"] for vnfc in vnfcs} < shown

    scaled.scale_in("Web", 2)
    assert replicas(cluster) == 1
    pods = [pod["metadata"] for pod in cluster.all("Pod", PLACE.name, "app=web")]
    assert [vnfc["id"] for vnfc in scaled.vnfcs("Web")] == [
        metadata["name"] for metadata in pods if "deletionTimestamp" not in metadata
    ]


def test_a_custom_resource_is_scaled_where_its_crd_says(scaled: Vnf, cluster: Cluster):
    before = {vnfc["id"] for vnfc in scaled.vnfcs("Db")}
    scaled.scale_out("Db", 3)
    assert replicas(cluster, "Shard", "db", PLACE.version) == 5
    after = {vnfc["id"] for vnfc in scaled.vnfcs("Db")}
    assert len(before) == 2 and before < after and len(after) == 5
    scaled.scale_in("Db", 3)
    assert {vnfc["id"] for vnfc in scaled.vnfcs("Db")} == before
    assert (replicas(cluster, "Shard", "db", PLACE.version), replicas(cluster)) == (2, 1)


@pytest.mark.usefixtures("full_namespace")
def test_a_scale_out_that_fails_is_rolled_back(scaled: Vnf, cluster: Cluster):
    before = scaled.shown()["instantiatedVnfInfo"]
    operation = scaled.begin_scale("SCALE_OUT", "Web", **LATE)
    detail = scaled.failure(operation)["detail"]
    assert "Deployment.apps scale/web" in detail and "exceeded quota" in detail
    scaled.roll_back(operation)
    assert replicas(cluster) == 1
    after = scaled.shown()["instantiatedVnfInfo"]
    assert after["vnfcResourceInfo"] == before["vnfcResourceInfo"]
    assert after["scaleStatus"] == before["scaleStatus"]


def test_a_scale_out_that_failed_is_retried(scaled: Vnf, cluster: Cluster):
    with cluster.holding(quota(PLACE.name, pods=1)):
        operation = scaled.begin_scale("SCALE_OUT", "Web", **LATE)
        assert "Deployment.apps scale/web" in scaled.failure(operation)["detail"]
    scaled.retry(operation)
    assert replicas(cluster) == 2
    assert len(scaled.vnfcs("Web")) == 2


def test_a_paused_deployment_is_scaled_all_the_same(scaled: Vnf, cluster: Cluster):
    cluster.change("Deployment", "web", PLACE.name, "apps/v1", spec={"paused": True})
    with cluster.holding(quota(PLACE.name, pods=1)):
        operation = scaled.begin_scale("SCALE_OUT", "Web", **LATE)
        assert "spec.paused is true, and 1 replicas are not available" in scaled.failure(operation)["detail"]
    scaled.retry(operation)
    assert len(scaled.vnfcs("Web")) == 2


def test_a_count_is_the_live_ones_where_the_crd_defaults_it_or_the_level_is_none(
    make_vnf: MakeVnf, onboard: Onboard, cluster: Cluster
):
    vnf = make_vnf(onboard(UNSAID))
    vnf.instantiate("unsaid.yaml")
    assert replicas(cluster, "Pool", "pool", PLACE.version) == len(vnf.vnfcs("Pool")) == 5
    assert replicas(cluster, name="idle") == len(vnf.vnfcs("Idle")) == 0
    vnf.scale_out("Pool", 2)
    assert replicas(cluster, "Pool", "pool", PLACE.version) == len(vnf.vnfcs("Pool")) == 7
    vnf.scale_out("Idle")
    assert replicas(cluster, name="idle") == len(vnf.vnfcs("Idle")) == 1
    vnf.scale_in("Idle")
    assert replicas(cluster, name="idle") == len(vnf.vnfcs("Idle")) == 0
