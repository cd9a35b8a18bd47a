# SPDX-License-Identifier: Apache-2.0
"""Heal: chosen VNFCs and all, drift, what a heal waits for, and its retry."""

import pytest

from ..cluster import Cluster
from ..conftest import MakeVnf, Onboard
from ..objects import Place, annotated, config_map, deployment, quota
from ..packages import Package
from ..vnf import Vnf

PLACE = Place("heal")

PACKAGE = Package(
    {
        "all.yaml": [
            deployment("web", 2),
            annotated(PLACE.custom("Ledger", "books", size=1), vdu="Books"),
            PLACE.crd("Ledger"),
            config_map("settings", mode="plain"),
        ]
    },
    vdus={"Web": "web", "Books": "books"},
)


SET = {**deployment("store", 2), "kind": "StatefulSet"}
ORPHANS = Package({"all.yaml": [deployment("web", 2), SET]}, vdus={"Web": "web", "Store": "store"})


@pytest.fixture
def healed(vnf: Vnf) -> Vnf:
    vnf.instantiate("all.yaml")
    return vnf


def pods(cluster: Cluster) -> dict[str, bool]:
    """Name -> is it ready, of the Pods that are to stay."""
    return {
        pod["metadata"]["name"]: all(one["ready"] for one in pod["status"].get("containerStatuses", [{"ready": False}]))
        for pod in cluster.all("Pod", PLACE.name, "app=web")
        if "deletionTimestamp" not in pod["metadata"]
    }


def names(vnf: Vnf, vdu: str) -> set[str]:
    return {vnfc["id"] for vnfc in vnf.vnfcs(vdu)}


def uid(cluster: Cluster) -> str:
    live = cluster.get("Ledger", "books", PLACE.name, PLACE.version)
    assert live is not None
    return str(live["metadata"]["uid"])


def test_a_chosen_pod_is_replaced_by_one_that_is_ready(healed: Vnf, cluster: Cluster):
    chosen, other = names(healed, "Web")
    books = uid(cluster)
    healed.heal(chosen)
    after = pods(cluster)
    assert len(after) == 2 and all(after.values())
    assert other in after and chosen not in after
    assert names(healed, "Web") == set(after)
    assert uid(cluster) == books


def test_of_the_whole_instance_all_pods_are_replaced_and_all_objects_made_as_the_package_says(healed: Vnf, cluster: Cluster):
    before = pods(cluster)
    cluster.delete("ConfigMap", "settings", PLACE.name)
    cluster.change("Ledger", "books", PLACE.name, PLACE.version, spec={"size": 9})
    operation = healed.begin_heal()
    detail = healed.failure(operation)["detail"]
    assert "Ledger.heal.example.com heal/books" in detail and "a-user" in detail
    healed.give_up(operation)

    healed.heal(force_conflicts=True)
    after = pods(cluster)
    assert len(after) == 2 and all(after.values()) and not set(before) & set(after)
    assert names(healed, "Web") == set(after)
    books = cluster.get("Ledger", "books", PLACE.name, PLACE.version)
    settings = cluster.get("ConfigMap", "settings", PLACE.name)
    assert books and books["spec"] == {"size": 1}
    assert settings and settings["data"] == {"mode": "plain"}


def test_a_custom_resource_is_applied_again_or_made_again(healed: Vnf, cluster: Cluster):
    before = uid(cluster)
    [books] = names(healed, "Books")
    healed.heal(books)
    assert uid(cluster) == before
    healed.heal(books, recreate=True)
    assert uid(cluster) != before
    assert names(healed, "Books") == {books}


def test_pods_of_orphaned_workloads_are_replaced(make_vnf: MakeVnf, onboard: Onboard, cluster: Cluster):
    vnf = make_vnf(onboard(ORPHANS))
    vnf.instantiate("all.yaml")
    before = uids(cluster)
    for kind, name in (("Deployment", "web"), ("StatefulSet", "store")):
        cluster.orphan(kind, name, PLACE.name, "apps/v1")
    assert uids(cluster) == before
    vnf.heal()
    after = uids(cluster)
    assert len(before) == len(after) == 4 and not before & after
    assert {*names(vnf, "Web"), *names(vnf, "Store")} >= {"store-0", "store-1"}


def uids(cluster: Cluster) -> set[str]:
    """Of the Pods that are to stay."""
    metadata = [pod["metadata"] for pod in cluster.all("Pod", PLACE.name)]
    return {one["uid"] for one in metadata if "deletionTimestamp" not in one}


def test_a_heal_that_failed_is_retried(healed: Vnf, cluster: Cluster):
    chosen, _ = names(healed, "Web")
    with cluster.holding(quota(PLACE.name, pods=1)):
        # The retry has as long: the ReplicaSet's controller waits longer after each Pod that the quota refuses.
        operation = healed.begin_heal(chosen, wait_timeout=30)
        assert "Deployment.apps heal/web" in healed.failure(operation)["detail"]
    healed.retry(operation)
    after = pods(cluster)
    assert len(after) == 2 and all(after.values()) and names(healed, "Web") == set(after)
