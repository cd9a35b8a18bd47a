# SPDX-License-Identifier: Apache-2.0
"""An operation ends when its objects are ready, not when they are stored; and reports why when they are not."""

import re
from collections.abc import Iterator

import pytest

from ..client import Client
from ..cluster import Cluster
from ..objects import Place, annotated, config_map, deployment, make
from ..packages import Package
from ..testbed import processes
from ..vnf import Vnf

PLACE = Place("readiness")

PACKAGE = Package(
    {
        "engine.yaml": PLACE.custom("Engine", "main", power=1),
        "second.yaml": PLACE.custom("Engine", "second", power=1),
        "mute.yaml": annotated(PLACE.custom("Engine", "mute", power=1), ready_when="stored"),
        "config.yaml": config_map("config", a="1"),
        "unknown-image.yaml": deployment("unknown-image", image="example.org/unknown:1"),
    }
)


@pytest.fixture(autouse=True, scope="module")
def engines(cluster: Cluster) -> Iterator[None]:
    """The operator has installed the CRD, and its controller is slow: it is these tests."""
    with cluster.holding(PLACE.crd("Engine", status=True)):
        yield


def exists(cluster: Cluster, name: str = "main") -> bool:
    return processes.until(lambda: cluster.get("Engine", name, PLACE.name, PLACE.version) is not None, 20) is True


def condition(cluster: Cluster, name: str, type_: str, status: str, reason: str, message: str = "") -> None:
    condition = {"type": type_, "status": status, "reason": reason, "message": message}
    condition["lastTransitionTime"] = "2026-01-02T03:04:05Z"
    cluster.set_status("Engine", name, PLACE.name, PLACE.version, observedGeneration=1, conditions=[condition])


def test_a_late_controller_is_waited_for(vnf: Vnf, cluster: Cluster, tacker: Client):
    operation = vnf.begin_instantiate("engine.yaml", "config.yaml")
    assert exists(cluster)
    condition(cluster, "main", "Ready", "False", "Starting", "the engine is warming up")
    assert tacker.operation(operation)["operationState"] == "PROCESSING"
    condition(cluster, "main", "Ready", "True", "Runs")
    vnf.wait(operation)


def test_stored_is_ready_where_the_author_says_so(vnf: Vnf, cluster: Cluster):
    vnf.instantiate("mute.yaml")
    live = cluster.get("Engine", "mute", PLACE.name, PLACE.version)
    assert live is not None and "status" not in live


def test_a_timeout_names_each_object_the_worst_first(vnf: Vnf, cluster: Cluster):
    operation = vnf.begin_instantiate("engine.yaml", "second.yaml", "config.yaml", "unknown-image.yaml", wait_timeout=8)
    assert exists(cluster, "second") and exists(cluster)
    condition(cluster, "main", "Ready", "False", "Starting", "the engine is warming up")
    condition(cluster, "second", "Failed", "True", "Broken", "the piston is stuck")
    warn(cluster, "second", "PistonStuck", "try oil")
    headline, *lines = vnf.failure(operation)["detail"].splitlines()
    assert re.fullmatch(r"3 of 4 objects not ready after \d+ s:", headline)  # a loaded machine waits somewhat less, or longer
    said = r"Failed \(Broken\): .*the piston is stuck \[since \d{4}-\d\d-\d\dT[\d:]+Z\]; event: PistonStuck: try oil"
    assert re.fullmatch(rf"Engine\.{PLACE.group} readiness/second: {said}", lines[0])
    named = {line.partition(": ")[0] for line in lines[1:]}
    causes = {one for one in named if one.startswith("Pod readiness/unknown-image-")}
    assert named - causes == {"Deployment.apps readiness/unknown-image", f"Engine.{PLACE.group} readiness/main"}
    [waiting] = [line for line in lines if "readiness/main" in line]
    assert re.search(r"Waiting \(Starting\): .*the engine is warming up", waiting)
    vnf.roll_back(operation)
    assert cluster.of(vnf.id) == []


def warn(cluster: Cluster, name: str, reason: str, message: str) -> None:
    """An event as a controller reports it."""
    live = cluster.get("Engine", name, PLACE.name, PLACE.version)
    assert live is not None
    reference = {"apiVersion": PLACE.version, "kind": "Engine", "name": name, "namespace": PLACE.name}
    reference["uid"] = live["metadata"]["uid"]
    event = make("v1", "Event", f"{name}.test", PLACE.name, involvedObject=reference, type="Warning")
    cluster.delete("Event", f"{name}.test", PLACE.name)
    cluster.create({**event, "reason": reason, "message": message, "lastTimestamp": "2026-01-02T03:04:05Z"})


def test_retry_goes_on_with_what_is_there(vnf: Vnf, cluster: Cluster):
    operation = vnf.begin_instantiate("engine.yaml", "config.yaml", wait_timeout=5)
    assert "Waiting" in vnf.failure(operation)["detail"]
    before = cluster.contents(PLACE), cluster.get("Engine", "main", PLACE.name, PLACE.version)
    condition(cluster, "main", "Ready", "True", "Runs")
    vnf.retry(operation)
    after = cluster.contents(PLACE), cluster.get("Engine", "main", PLACE.name, PLACE.version)
    assert after[0] == before[0]
    assert before[1] and after[1] and after[1]["metadata"]["uid"] == before[1]["metadata"]["uid"]
    assert vnf.shown()["instantiationState"] == "INSTANTIATED"
