# SPDX-License-Identifier: Apache-2.0
"""The endpoint of an instance changes: the same cluster at another URL is accepted, and another cluster is refused."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from tacker.sol_refactored.common import exceptions as sol_ex

from tests.fake_api import FakeApi
from tests.instance import BLUE
from tests.lcm.instance import Instance
from tests.lcm.web import deployment, run_web

VERBS: dict[str, Callable[[Instance], None]] = {
    "scale": lambda blue: blue.scale("SCALE_OUT"),
    "heal": lambda blue: blue.heal(),
    "change": lambda blue: blue.change(blue.vnfd),
    "terminate": lambda blue: blue.terminate(),
}


MOVED: dict[str, Callable[[Instance], None]] = {
    "heal": lambda blue: blue.heal(moved=True),
    "change": lambda blue: blue.change(blue.vnfd, moved=True),
    "terminate": lambda blue: blue.terminate(moved=True),
}


@pytest.fixture
def blue(cluster: FakeApi, tmp_path: Path) -> Instance:
    blue = Instance(cluster, tmp_path, [deployment(1)])
    blue.instantiate()
    return blue


def move(blue: Instance, url: str) -> None:
    blue.inst.vimConnectionInfo["vim1"].interfaceInfo = {"endpoint": url}


@pytest.mark.parametrize("verb", VERBS)
def test_another_cluster_is_refused(cluster: FakeApi, blue: Instance, verb: str) -> None:
    with FakeApi() as other:
        move(blue, other.url)
        with pytest.raises(sol_ex.SolException, match=f"is on the cluster at {cluster.url}.*another cluster"):
            VERBS[verb](blue)
        assert other.requests.writes == []
    assert cluster.names("Deployment") == ["web"]


def test_an_inventory_with_another_uid_is_that_of_another_cluster(cluster: FakeApi, blue: Instance) -> None:
    blue.inst.instantiatedVnfInfo.metadata["k8s_cr"]["inventory"]["uid"] = "another"
    move(blue, cluster.url.replace("127.0.0.1", "localhost"))
    with pytest.raises(sol_ex.SolException, match="another cluster"):
        blue.terminate()


def carried(cluster: FakeApi, other: FakeApi) -> None:
    """Everything is created again on another cluster, with new uids and the same field managers, as `clusterctl move` does."""
    for kind in ("ConfigMap", "Deployment"):
        resource = other.cluster.by_kind(kind).resource
        for live in cluster.objects(kind):
            live["metadata"]["uid"] = other.put(live)["metadata"]["uid"]
            with other.cluster.writing():
                other.cluster.store.put(resource, live)


@pytest.mark.parametrize("verb", MOVED)
def test_what_was_moved_to_another_cluster_is_accepted_where_the_request_says_so(
    cluster: FakeApi, blue: Instance, verb: str
) -> None:
    with FakeApi() as other:
        run_web(other)
        carried(cluster, other)
        move(blue, other.url)
        with pytest.raises(sol_ex.SolException, match=r"were moved there, use additionalParams moved: true in a new request"):
            VERBS[verb](blue)
        MOVED[verb](blue)
        assert other.names("Deployment") == ([] if verb == "terminate" else ["web"])
        assert [one for one in other.names("ConfigMap") if verb == "terminate"] == []
        if verb != "terminate":
            VERBS[verb](blue)  # it is the instance's cluster now
    assert cluster.names("Deployment") == ["web"]


def test_what_was_not_moved_is_refused_whatever_the_request_says(cluster: FakeApi, blue: Instance) -> None:
    with FakeApi() as other:
        move(blue, other.url)
        with pytest.raises(sol_ex.SolException, match="does not have the inventory"):
            blue.heal(moved=True)
        assert other.requests.writes == []


@pytest.mark.parametrize("verb", VERBS)
def test_the_same_cluster_at_another_endpoint_is_accepted(cluster: FakeApi, blue: Instance, verb: str) -> None:
    url = cluster.url.replace("127.0.0.1", "localhost")
    move(blue, url)
    VERBS[verb](blue)
    if verb != "terminate":
        assert blue.inst.instantiatedVnfInfo.metadata["k8s_cr"]["endpoint"] == url
    assert cluster.names("Deployment") == ([] if verb == "terminate" else ["web"])


def test_terminate_with_abandon_completes_and_names_the_first_cluster(
    cluster: FakeApi, blue: Instance, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    with FakeApi() as other:
        move(blue, other.url)
        blue.terminate(abandon=True)
    assert f"Left on {cluster.url}: VDUs Web" in caplog.text
    assert f"VNF instance {BLUE} is abandoned" in caplog.text


@pytest.mark.parametrize("verb", ["rollback of a change", "look"])
def test_another_cluster_is_refused_in_rollback_and_synchronization(cluster: FakeApi, blue: Instance, verb: str) -> None:
    with FakeApi() as other:
        move(blue, other.url)
        with pytest.raises(sol_ex.SolException, match=f"is on the cluster at {cluster.url}.*another cluster"):
            if verb == "look":
                blue.driver().diff_check_inst(blue.inst, blue.inst.vimConnectionInfo["vim1"])
            else:
                blue.roll_back_change()
        assert other.requests.writes == []
