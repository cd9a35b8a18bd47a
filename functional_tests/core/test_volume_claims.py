# SPDX-License-Identifier: Apache-2.0
"""PersistentVolumeClaims: those of an instance's StatefulSets go with it, those of others never, whatever their names."""

from collections.abc import Iterator
from datetime import datetime, timezone

import pytest

from ..cluster import Cluster
from ..conftest import MakeVnf
from ..objects import Object, Place, annotated, deployment, make, pod, volume_claim
from ..packages import Package
from ..testbed.processes import until
from ..vnf import Vnf

PLACE = Place("claims")


def database() -> Object:
    """A StatefulSet `db` whose Pod waits for its claim `data-db-0`, for the bed has no volumes."""
    labels = {"app": "db"}
    claim = volume_claim("data")
    spec = {
        "serviceName": "db",
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod("db")["spec"]},
        "volumeClaimTemplates": [{"metadata": claim["metadata"], "spec": claim["spec"]}],
    }
    return annotated(make("apps/v1", "StatefulSet", "db", spec=spec), ready_when="stored")


PACKAGE = Package(
    {
        "db.yaml": database(),
        "claim.yaml": annotated(volume_claim("data-db-8"), ready_when="stored"),
        "refused.yaml": make("v1", "Service", "refused", spec={"ports": [{"port": 70000}]}),
        "stuck.yaml": deployment("stuck", image="error-image"),
    }
)


@pytest.fixture
def users_claim(place: Place, cluster: Cluster) -> Iterator[Object]:
    """Named as the StatefulSet's own, and older than the instance by a second, the unit of creation timestamps."""
    with cluster.holding(volume_claim("data-db-7", PLACE.name)) as [made]:
        created = datetime.fromisoformat(made["metadata"]["creationTimestamp"].replace("Z", "+00:00"))
        assert until(lambda: (datetime.now(timezone.utc) - created).total_seconds() >= 1, 5)
        yield made


def claims(cluster: Cluster) -> dict[str, str]:
    return {live["metadata"]["name"]: live["metadata"]["uid"] for live in cluster.all("PersistentVolumeClaim", PLACE.name)}


def test_a_terminate_deletes_the_claims_of_its_statefulsets_alone(make_vnf: MakeVnf, cluster: Cluster, users_claim: Object):
    other, vnf = make_vnf(), make_vnf()
    other.instantiate("claim.yaml")
    before = claims(cluster)
    vnf.instantiate("db.yaml")
    assert until(lambda: claims(cluster).keys() == {"data-db-0", "data-db-7", "data-db-8"}, 20)
    vnf.terminate()
    assert claims(cluster) == before
    other.terminate()
    assert claims(cluster) == {"data-db-7": users_claim["metadata"]["uid"]}


def test_a_refused_instantiate_leaves_the_claims_of_others(make_vnf: MakeVnf, cluster: Cluster, users_claim: Object):
    other, vnf = make_vnf(), make_vnf()
    other.instantiate("claim.yaml")
    before = claims(cluster)
    problem = vnf.refusal("db.yaml", "refused.yaml")
    assert "Service claims/refused" in problem["detail"]
    assert claims(cluster) == before


def test_the_rollback_of_an_instantiate_leaves_the_claims_of_others(vnf: Vnf, cluster: Cluster, users_claim: Object):
    operation = vnf.begin_instantiate("db.yaml", "stuck.yaml", wait_timeout=3)
    assert "Deployment.apps claims/stuck" in vnf.failure(operation)["detail"]
    assert until(lambda: "data-db-0" in claims(cluster), 20)
    vnf.roll_back(operation)
    assert claims(cluster) == {"data-db-7": users_claim["metadata"]["uid"]}
