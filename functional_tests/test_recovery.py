"""Conductors that die or are overtaken, and an API server that goes away: nothing is orphaned and nothing is doubled."""

from collections.abc import Iterator

import pytest

from .client import Client
from .cluster import Cluster
from .objects import VERSION, Object, config_map, crd, custom, deployment
from .packages import Package
from .testbed.kubernetes import Kubernetes
from .testbed.processes import until
from .testbed.tacker import Conductor, worker
from .vnf import Vnf

BIG = 300

PACKAGE = Package(
    {
        "turbine.yaml": [custom("Turbine", "main", power=1), config_map("config", a="1"), deployment("web")],
        "big.yaml": [config_map(f"big-{number}", a="1") for number in range(BIG)],
    }
)


@pytest.fixture(autouse=True, scope="module")
def turbines(cluster: Cluster) -> Iterator[None]:
    """The operator has installed the CRD, and its controller waits for these tests."""
    with cluster.holding(crd("Turbine", status=True)):
        yield


def turbine(cluster: Cluster) -> Object | None:
    return cluster.get("Turbine", "main", "default", VERSION)


def make_ready(cluster: Cluster) -> None:
    ready = {"type": "Ready", "status": "True", "reason": "Runs", "message": ""}
    ready["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    cluster.set_status("Turbine", "main", "default", VERSION, observedGeneration=1, conditions=[ready])


@pytest.fixture
def waiting(vnf: Vnf, cluster: Cluster) -> str:
    """An instantiate that has written everything, and waits."""
    operation = vnf.begin_instantiate("turbine.yaml")

    def is_written() -> bool:
        others = (cluster.get("ConfigMap", "config", "default"), cluster.get("Deployment", "web", "default", "apps/v1"))
        return bool(turbine(cluster) and all(others))

    assert until(is_written, 20)
    return operation


def other(conductors: dict[str, Conductor], one: Conductor) -> Conductor:
    return next(conductor for conductor in conductors.values() if conductor.name != one.name)


def crash(conductor: Conductor) -> None:
    """Kill it, and start it again as an operator's service manager would."""
    conductor.kill()
    conductor.start()


@pytest.mark.parametrize("end", ["retry", "rollback"])
def test_a_conductor_dies_while_it_waits(
    vnf: Vnf, waiting: str, cluster: Cluster, conductors: dict[str, Conductor], end: str
):
    crash(worker(conductors, vnf.id))
    vnf.wait(waiting, "FAILED_TEMP")
    before, objects = turbine(cluster), cluster.of(vnf.id)
    assert before and objects == ["ConfigMap default/config", "Deployment default/web", "Turbine default/main"]
    if end == "rollback":
        vnf.roll_back(waiting)
        assert cluster.of(vnf.id) == []
        assert cluster.all("Pod", "default", "app=web") == []
        return
    make_ready(cluster)
    vnf.retry(waiting)
    after = turbine(cluster)
    assert after and after["metadata"]["uid"] == before["metadata"]["uid"]
    assert cluster.of(vnf.id) == objects
    assert len(cluster.all("Pod", "default", "app=web")) == 1


@pytest.mark.parametrize("end", ["retry", "rollback"])
def test_a_conductor_dies_while_it_writes(
    vnf: Vnf, cluster: Cluster, tacker: Client, conductors: dict[str, Conductor], end: str
):
    operation = vnf.begin_instantiate("big.yaml")
    busy = worker(conductors, vnf.id)
    assert until(lambda: big(cluster, vnf), 20, pause=0.005)
    busy.kill()
    written = big(cluster, vnf)
    assert 0 < len(written) < BIG
    busy.start()
    vnf.wait(operation, "FAILED_TEMP")
    if end == "retry":
        vnf.retry(operation)
        found = big(cluster, vnf)
        assert len(found) == BIG
        assert written.items() <= found.items()
    else:
        vnf.roll_back(operation)
        assert big(cluster, vnf) == {}


def big(cluster: Cluster, vnf: Vnf) -> dict[str, str]:
    """The objects that the instance has by now, with their uids."""
    found = cluster.all("ConfigMap", "default", f"tacker_vnf_instance_id={vnf.id}")
    return {live["metadata"]["name"]: live["metadata"]["uid"] for live in found}


def test_of_two_conductors_at_work_on_one_operation_the_first_stops(
    vnf: Vnf, waiting: str, cluster: Cluster, tacker: Client, conductors: dict[str, Conductor]
):
    before = turbine(cluster)
    first = worker(conductors, vnf.id)
    second = other(conductors, first)
    # A conductor that starts takes every operation under way for one that has died with it.
    crash(second)
    vnf.wait(waiting, "FAILED_TEMP")
    assert first.works_on(vnf.id)

    tacker.retry(waiting)
    assert until(lambda: f"Another worker took over VNF instance {vnf.id}" in first.log.read_text(), 30)
    assert until(lambda: not first.works_on(vnf.id), 10) and second.works_on(vnf.id)
    assert tacker.operation(waiting)["operationState"] == "PROCESSING"
    make_ready(cluster)
    vnf.wait(waiting)
    after = turbine(cluster)
    assert before and after and after["metadata"]["uid"] == before["metadata"]["uid"]
    assert vnf.tell()["instantiationState"] == "INSTANTIATED"
    assert cluster.of(vnf.id) == ["ConfigMap default/config", "Deployment default/web", "Turbine default/main"]


def test_a_worker_that_ends_after_the_one_that_took_over_leaves_the_operation_completed(
    vnf: Vnf, waiting: str, cluster: Cluster, tacker: Client, conductors: dict[str, Conductor]
):
    first = worker(conductors, vnf.id)
    crash(other(conductors, first))
    vnf.wait(waiting, "FAILED_TEMP")
    first.pause()
    try:
        tacker.retry(waiting)
        make_ready(cluster)
        vnf.wait(waiting)
    finally:
        first.resume()
    assert until(lambda: not first.works_on(vnf.id), 60)
    assert f"operation {waiting} was taken up elsewhere, and is COMPLETED" in first.log.read_text()
    assert tacker.operation(waiting)["operationState"] == "COMPLETED"
    assert vnf.tell()["instantiationState"] == "INSTANTIATED"


@pytest.mark.parametrize("incident", ["API server killed", "etcd killed", "certificate renewed"])
def test_a_control_plane_that_restarts_is_waited_for(
    vnf: Vnf, waiting: str, cluster: Cluster, kubernetes: Kubernetes, incident: str
):
    before = turbine(cluster)
    if incident == "certificate renewed":
        old = kubernetes.certificate()
        kubernetes.renew_certificate()
        assert kubernetes.certificate() != old
    else:
        kubernetes.restart("etcd" if "etcd" in incident else "kube-apiserver")
    make_ready(cluster)
    vnf.wait(waiting)
    after = turbine(cluster)
    assert before and after and after["metadata"]["uid"] == before["metadata"]["uid"]
    assert cluster.of(vnf.id) == ["ConfigMap default/config", "Deployment default/web", "Turbine default/main"]
