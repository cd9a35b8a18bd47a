# SPDX-License-Identifier: Apache-2.0
"""Whatever becomes of any one request, or of the process that has sent it: nothing is orphaned, nothing is doubled.

At every index of the requests of instantiate, scale, heal, change of the package and terminate, on the real API server;
of the writes alone where the process is killed.
Each index meets TURNS of the faults, every one of them with --every-fault, which takes some minutes more.
"""

import pytest

from k8s_cr_driver.kube.endpoint import Endpoint

from ..cluster import Cluster
from ..conftest import Summary
from . import campaign
from .campaign import Reference, Tally
from .injections import HALF_OPEN, OF_REQUESTS, SIGKILL

TURNS = 2


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "turn" in metafunc.fixturenames:
        metafunc.parametrize("turn", range(len(OF_REQUESTS) if metafunc.config.getoption("every_fault") else TURNS))


@pytest.fixture(scope="module")
def world(endpoint: Endpoint) -> campaign.Cluster:
    return campaign.Cluster.of(endpoint)


@pytest.fixture(scope="module")
def expected(world: campaign.Cluster) -> dict[int, Reference]:
    """Lives without faults, without and with a pod."""
    return {pods: campaign.reference(world, pods) for pods in (0, 1)}


def check(tally: Tally, cluster: Cluster, summary: Summary) -> None:
    summary(str(tally))
    assert tally.problems == []
    assert cluster.leftovers(tally.instances) == []


def test_a_process_is_killed_at_every_write(
    world: campaign.Cluster, expected: dict[int, Reference], cluster: Cluster, summary: Summary
):
    check(campaign.campaign(world, expected[1], [SIGKILL], pods=1), cluster, summary)


def test_a_fault_befalls_every_request(
    world: campaign.Cluster, expected: dict[int, Reference], cluster: Cluster, summary: Summary, turn: int
):
    first = turn * 3 % len(OF_REQUESTS)
    faults = OF_REQUESTS[first:] + OF_REQUESTS[:first]
    check(campaign.campaign(world, expected[0], faults, pods=0), cluster, summary)


def test_every_stream_falls_silent(
    world: campaign.Cluster, expected: dict[int, Reference], cluster: Cluster, summary: Summary
):
    check(campaign.campaign(world, expected[0], [HALF_OPEN], pods=0), cluster, summary)
