# SPDX-License-Identifier: Apache-2.0
"""Tacker's periodic database synchronization: it follows what users and controllers do to the cluster."""

import pytest

from ..cluster import Cluster
from ..conftest import Logged
from ..objects import Place, deployment, quota
from ..packages import Package
from ..testbed.processes import until
from ..vnf import SYNCHRONIZED, Vnf

PLACE = Place("sync")

PACKAGE = Package(
    {"all.yaml": [deployment("web", 2), PLACE.custom("Shard", "db", replicas=2), PLACE.crd("Shard", scale=True)]},
    vdus={"Web": "web", "Db": "db"},
)


@pytest.fixture
def synced(vnf: Vnf) -> Vnf:
    vnf.instantiate("all.yaml")
    return vnf


def names(vnf: Vnf, vdu: str) -> set[str]:
    return {vnfc["id"] for vnfc in vnf.vnfcs(vdu)}


def pods(cluster: Cluster) -> set[str]:
    found = [pod["metadata"] for pod in cluster.all("Pod", PLACE.name, "app=web")]
    return {pod["name"] for pod in found if "deletionTimestamp" not in pod}


def test_a_pod_that_was_replaced_is_followed(synced: Vnf, cluster: Cluster):
    gone = min(names(synced, "Web"))
    cluster.delete("Pod", gone, PLACE.name)
    assert until(lambda: names(synced, "Web") == pods(cluster), SYNCHRONIZED)
    assert len(names(synced, "Web")) == 2 and gone not in names(synced, "Web")
    assert (synced.level("Web"), synced.level("Db")) == (0, 0)


def test_a_count_set_by_hand_is_taken_over_with_its_level(synced: Vnf, cluster: Cluster):
    cluster.scale("Shard", "db", PLACE.name, PLACE.version, 4)
    cluster.scale("Deployment", "web", PLACE.name, "apps/v1", 3)
    assert until(lambda: (synced.level("Db"), synced.level("Web")) == (2, 1), SYNCHRONIZED)
    assert names(synced, "Db") == {"db-0", "db-1", "db-2", "db-3"}
    assert names(synced, "Web") == pods(cluster) and len(pods(cluster)) == 3


def test_what_changes_during_an_operation_is_seen_and_taken_over_after_it(
    synced: Vnf, cluster: Cluster, logged: Logged
):
    with cluster.holding(quota(PLACE.name, pods=2)):
        operation = synced.begin_scale("SCALE_OUT", "Web", wait_timeout=SYNCHRONIZED + 60)
        cluster.scale("Shard", "db", PLACE.name, PLACE.version, 4)
        line = f"operation in progress, so skip this DB synchronization. vnf: {synced.id}"
        assert until(lambda: logged(line), SYNCHRONIZED)
        assert (synced.level("Db"), synced.level("Web")) == (0, 0)
    synced.wait(operation)
    assert until(lambda: (synced.level("Db"), synced.level("Web")) == (2, 1), SYNCHRONIZED)
    assert names(synced, "Db") == {"db-0", "db-1", "db-2", "db-3"}
