# SPDX-License-Identifier: Apache-2.0
"""Conductors that die or are overtaken: nothing is orphaned and nothing is doubled."""

import pytest

from ..client import Client
from ..cluster import Cluster
from ..objects import Place, config_map
from ..packages import Package
from ..testbed.processes import until
from ..testbed.tacker import Conductor, worker
from ..vnf import Vnf
from .turbine import Turbine

pytestmark = pytest.mark.alone("tacker")

BIG = 300
PLACE = Place("conductors")
TURBINE = Turbine(PLACE)
MANY = [config_map(f"big-{number}", a="1") for number in range(BIG)]
PACKAGE = Package({"turbine.yaml": TURBINE.manifests, "big.yaml": MANY})


def other(conductors: dict[str, Conductor], one: Conductor) -> Conductor:
    return next(conductor for conductor in conductors.values() if conductor.name != one.name)


def crash(conductor: Conductor) -> None:
    """Kill it, and start it again as an operator's service manager would."""
    conductor.kill()
    conductor.start()


@pytest.mark.parametrize("end", ["retry", "rollback"])
def test_a_conductor_dies_while_it_waits(
    vnf: Vnf, turbine: Turbine, waiting: str, cluster: Cluster, conductors: dict[str, Conductor], end: str
):
    crash(worker(conductors, vnf.id))
    vnf.wait(waiting, "FAILED_TEMP")
    before, objects = turbine.live(cluster), cluster.of(vnf.id)
    assert before and objects == turbine.objects
    if end == "rollback":
        vnf.roll_back(waiting)
        assert cluster.of(vnf.id) == []
        assert cluster.all("Pod", PLACE.name, "app=web") == []
        return
    turbine.make_ready(cluster)
    vnf.retry(waiting)
    after = turbine.live(cluster)
    assert after and after["metadata"]["uid"] == before["metadata"]["uid"]
    assert cluster.of(vnf.id) == objects
    assert len(cluster.all("Pod", PLACE.name, "app=web")) == 1


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
    found = cluster.all("ConfigMap", PLACE.name, f"tacker_vnf_instance_id={vnf.id}")
    return {live["metadata"]["name"]: live["metadata"]["uid"] for live in found}


def test_of_two_conductors_at_work_on_one_operation_the_first_stops(
    vnf: Vnf, turbine: Turbine, waiting: str, cluster: Cluster, tacker: Client, conductors: dict[str, Conductor]
):
    before = turbine.live(cluster)
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
    turbine.make_ready(cluster)
    vnf.wait(waiting)
    after = turbine.live(cluster)
    assert before and after and after["metadata"]["uid"] == before["metadata"]["uid"]
    assert vnf.shown()["instantiationState"] == "INSTANTIATED"
    assert cluster.of(vnf.id) == turbine.objects


def test_a_worker_that_ends_after_the_one_that_took_over_leaves_the_operation_completed(
    vnf: Vnf, turbine: Turbine, waiting: str, cluster: Cluster, tacker: Client, conductors: dict[str, Conductor]
):
    first = worker(conductors, vnf.id)
    crash(other(conductors, first))
    vnf.wait(waiting, "FAILED_TEMP")
    first.pause()
    try:
        tacker.retry(waiting)
        turbine.make_ready(cluster)
        vnf.wait(waiting)
    finally:
        first.resume()
    assert until(lambda: not first.works_on(vnf.id), 60)
    assert f"operation {waiting} runs elsewhere, and is COMPLETED" in first.log.read_text()
    assert tacker.operation(waiting)["operationState"] == "COMPLETED"
    assert vnf.shown()["instantiationState"] == "INSTANTIATED"
