# SPDX-License-Identifier: Apache-2.0
"""Guests: what others have in a Namespace of an instance, or of a CRD of it, when the instance or a package goes."""

from collections.abc import Iterator

import pytest

from k8s_cr_driver.kube.endpoint import Endpoint

from ..cluster import CRDS, INSTANCE, USED_BY, Cluster, name_of
from ..conftest import Logged, MakeEngine
from ..objects import Object, Place, config_map, make, namespace, pod, volume_claim
from ..packages import Package
from ..vnf import Vnf

PLACE = Place("guests")
HOUSE = "guest-house"
VISITS = f"visits.{PLACE.group}"
ELSEWHERE = "guests"

FURNITURE = config_map("furniture", HOUSE, a="1")
VISIT = PLACE.custom("Visit", "ours")
PACKAGE = Package(
    {
        "namespace.yaml": [namespace(HOUSE), FURNITURE],
        "crd.yaml": [PLACE.crd("Visit"), VISIT],
        "objects.yaml": [FURNITURE, VISIT],
    }
)


def labelled(manifest: Object, **labels: str) -> Object:
    return {**manifest, "metadata": {**manifest["metadata"], "labels": labels}}


RELEASE = labelled(make("v1", "Secret", "sh.helm.release.v1.theirs.v1", HOUSE, type="helm.sh/release.v1"), owner="helm")
OF_ANOTHER = labelled(pod("theirs", HOUSE), **{INSTANCE: "another"})


@pytest.fixture(autouse=True)
def swept(place: Place, cluster: Cluster) -> Iterator[None]:
    """What a test means to stay goes after it."""
    yield
    cluster.delete("Namespace", HOUSE)
    cluster.delete("CustomResourceDefinition", VISITS, api_version=CRDS)


def uids(cluster: Cluster) -> dict[str, str]:
    found = [*containers(cluster), cluster.get("ConfigMap", "furniture", HOUSE)]
    found.append(cluster.get("Visit", "ours", PLACE.name, PLACE.version))
    return {name_of(live): live["metadata"]["uid"] for live in found if live}


def containers(cluster: Cluster) -> list[Object]:
    """The Namespace and the CRD, if they are there."""
    found = [cluster.get("Namespace", HOUSE), cluster.get("CustomResourceDefinition", VISITS, api_version=CRDS)]
    return [live for live in found if live]


def marks(lives: list[Object]) -> list[str]:
    return [label for live in lives for label in live["metadata"].get("labels") or {} if label.startswith(USED_BY)]


@pytest.mark.parametrize(
    "guest", [RELEASE, pod("stranger", HOUSE), volume_claim("data", HOUSE)], ids=lambda guest: guest["kind"]
)
def test_a_namespace_with_a_guest_stays_unmarked_and_is_reported(vnf: Vnf, cluster: Cluster, logged: Logged, guest: Object):
    vnf.instantiate("namespace.yaml")
    with cluster.holding(guest) as [made]:
        operation = vnf.terminate()
        live = cluster.get(guest["kind"], guest["metadata"]["name"], HOUSE)
        assert live and live["metadata"]["uid"] == made["metadata"]["uid"] and "deletionTimestamp" not in live["metadata"]
    [house] = containers(cluster)
    assert marks([house]) == [] and "deletionTimestamp" not in house["metadata"]
    assert cluster.get("ConfigMap", "furniture", HOUSE) is None
    line = f"Namespace {HOUSE} is released and stays: it holds objects of others: {name_of(made)}"
    assert logged(f"{operation['id']}: {line}")


def test_a_namespace_that_an_instance_with_its_inventory_elsewhere_uses_stays(
    vnf: Vnf, cluster: Cluster, make_engine: MakeEngine, endpoint: Endpoint, logged: Logged
):
    vnf.instantiate("namespace.yaml")
    other = make_engine(endpoint, ELSEWHERE)
    other.reconcile([config_map("theirs", HOUSE, b="2")])
    operation = vnf.terminate()
    assert cluster.of(other.id) == [f"ConfigMap {HOUSE}/theirs"]
    assert marks(containers(cluster)) == []
    assert logged(f"{operation['id']}: Namespace {HOUSE} is released and stays: other instances use it")


def test_a_crd_with_a_custom_resource_of_a_user_stays_unmarked_and_is_reported(vnf: Vnf, cluster: Cluster, logged: Logged):
    vnf.instantiate("crd.yaml")
    made = cluster.create(PLACE.custom("Visit", "theirs", PLACE.name))
    operation = vnf.terminate()
    assert [live["metadata"]["uid"] for live in cluster.all("Visit", api_version=PLACE.version)] == [made["metadata"]["uid"]]
    assert marks(containers(cluster)) == []
    line = f"{VISITS} is released and stays: it holds objects of others: Visit.{PLACE.group} {PLACE.name}/theirs"
    assert logged(line)
    assert logged(operation["id"])


def test_delete_guests_takes_all_of_users_and_names_it(vnf: Vnf, cluster: Cluster, logged: Logged):
    vnf.instantiate("namespace.yaml", "crd.yaml")
    guests = [RELEASE, pod("stranger", HOUSE), volume_claim("data", HOUSE)]
    with cluster.holding(*guests, PLACE.custom("Visit", "theirs", PLACE.name)):
        operation = vnf.terminate(delete_guests=True)
        assert containers(cluster) == []
    assert logged(f"Namespace {HOUSE} is to be deleted with objects of others: ")
    assert logged(operation["id"])


def test_delete_guests_takes_nothing_of_another_instance(vnf: Vnf, cluster: Cluster):
    vnf.instantiate("namespace.yaml")
    with cluster.holding(OF_ANOTHER, pod("stranger", HOUSE)):
        vnf.terminate(delete_guests=True)
        assert cluster.get("Pod", "stranger", HOUSE) and cluster.get("Pod", "theirs", HOUSE)


def test_a_new_package_without_its_namespace_and_crd_keeps_them_and_what_it_has_there(
    vnf: Vnf, cluster: Cluster, package: str
):
    vnf.instantiate("namespace.yaml", "crd.yaml")
    before = uids(cluster)
    vnf.change(package, "objects.yaml")
    assert uids(cluster) == before
    assert marks(containers(cluster)) == []
    assert cluster.of(vnf.id) == [f"ConfigMap {HOUSE}/furniture", f"Visit {PLACE.name}/ours"]
    vnf.terminate()
    assert [name_of(live) for live in containers(cluster)] == [f"Namespace {HOUSE}", f"CustomResourceDefinition {VISITS}"]
    assert cluster.leftovers([vnf.id]) == []
