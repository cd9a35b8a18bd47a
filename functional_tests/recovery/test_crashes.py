# SPDX-License-Identifier: Apache-2.0
"""A conductor that is killed at a write of any verb: rollback and retry reach their states, and Tacker knows them.

Two writes of each verb; `faults.campaign` has all requests, without Tacker.
"""

from dataclasses import dataclass, replace
from typing import Any

import pytest

from k8s_cr_driver.kube.endpoint import Endpoint
from tests.fake_api.tls import server_context

from ..client import Body
from ..cluster import Cluster
from ..conftest import MakeVnf, Onboard, Summary
from ..faults.injections import killing
from ..objects import Place, config_map, deployment, namespace
from ..packages import Package
from ..proxy import Exchange, Proxy, Upstream, is_write
from ..testbed.processes import until
from ..testbed.tacker import Conductor, worker
from ..vnf import Vnf

pytestmark = pytest.mark.alone("tacker")

KINDS = Place("crashes")

WHERE = "crashes"
VDUS = {"Web": "web"}
BOTH = [namespace(WHERE), KINDS.crd("Gauge"), deployment("web", namespace=WHERE)]
FIRST = [*BOTH, KINDS.custom("Gauge", "main", WHERE, unit="V"), config_map("old", WHERE, a="1")]
PACKAGE = Package({"first.yaml": FIRST}, vdus=VDUS)
SECOND = [*BOTH, KINDS.custom("Gauge", "main", WHERE, unit="A"), config_map("new", WHERE, a="1")]
NEXT = Package({"next.yaml": SECOND}, vdus=VDUS)


@dataclass(frozen=True)
class Life:
    """One VNF instance, which Tacker reaches through a proxy."""

    vnf: Vnf
    proxy: Proxy
    vim: Body
    next_package: str
    cluster: Cluster
    conductors: dict[str, Conductor]

    def begin(self, verb: str) -> str:
        """The operation's id."""
        if verb == "instantiate":
            return self.vnf.begin_instantiate("first.yaml", vim=self.vim)
        if verb == "scale":
            return self.vnf.begin_scale("SCALE_OUT", "Web")
        if verb == "heal":
            return self.vnf.begin_heal()
        if verb == "change":
            return self.vnf.begin_change(self.next_package, "next.yaml")
        return self.vnf.begin_terminate()

    def crash(self, verb: str, index: int) -> str:
        """The operation whose conductor was killed when it had sent the write of that index; it is FAILED_TEMP."""
        killed: list[Conductor] = []

        def kill() -> None:
            busy = worker(self.conductors, self.vnf.id)
            busy.kill()
            killed.append(busy)

        self.proxy.strike(killing(kill), index, is_write)
        operation = self.begin(verb)
        assert until(lambda: killed, 60), f"{verb} has sent no write {index}"
        killed[0].start()
        self.vnf.wait(operation, "FAILED_TEMP")
        return operation

    def writes(self, verb: str) -> int:
        """How many there are when nobody is killed."""
        self.proxy.strike(Exchange.relay, -1)
        self.vnf.wait(self.begin(verb))
        return sum(map(is_write, self.proxy.requests))

    def state(self) -> dict[str, Any]:
        """What there is, and what Tacker says of it."""
        names = self.cluster.of(self.vnf.id)
        gauge = self.cluster.get("Gauge", "main", WHERE, KINDS.version)
        pods = [pod for pod in self.cluster.all("Pod", WHERE) if "deletionTimestamp" not in pod["metadata"]]
        record = self.vnf.shown()
        known = {vnfc["id"] for vnfc in self.vnf.vnfcs("Web")} if record["instantiationState"] == "INSTANTIATED" else set()
        return {
            "objects": names,
            "unit": gauge and gauge["spec"]["unit"],
            "pods": len(pods),
            "known": known == {pod["metadata"]["name"] for pod in pods},
            "state": record["instantiationState"],
        }

    def reaches(self, state: dict[str, Any]) -> bool:
        """When controllers are done with what they were left."""
        return bool(until(lambda: self.state() == state, 20, pause=0.3))


VERBS = ("instantiate", "scale", "heal", "change", "terminate")
UNDOABLE = ("instantiate", "scale", "change")


@pytest.fixture
def next_package(onboard: Onboard) -> str:
    return onboard(NEXT)


def test_at_writes_of_every_verb(
    make_vnf: MakeVnf,
    next_package: str,
    vim: Body,
    endpoint: Endpoint,
    cluster: Cluster,
    conductors: dict[str, Conductor],
    summary: Summary,
):
    context, ca = server_context()
    with Proxy(Upstream(endpoint.url, endpoint.ca), context) as proxy:
        through = {**vim, "interfaceInfo": {"endpoint": proxy.url, "ssl_ca_cert": ca}}
        life = Life(make_vnf(), proxy, through, next_package, cluster, conductors)
        nothing = life.state()
        counts, states = {}, {}
        for verb in VERBS:
            counts[verb] = life.writes(verb)
            states[verb] = life.state()
        assert states["terminate"] == nothing

        life, before, crashes = replace(life, vnf=make_vnf()), nothing, 0
        for verb in VERBS:
            if verb in UNDOABLE:
                life.vnf.roll_back(life.crash(verb, counts[verb] * 2 // 3))
                assert life.reaches(before), f"after rollback of {verb}: {life.state()}, not {before}"
            life.vnf.retry(life.crash(verb, counts[verb] // 3))
            assert life.reaches(states[verb]), f"after retry of {verb}: {life.state()}, not {states[verb]}"
            before = states[verb]
            crashes += 1 + (verb in UNDOABLE)
    summary(f"{crashes} conductors killed at writes of {counts}: every rollback and retry has reached its state")
