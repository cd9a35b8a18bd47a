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
from tests.lcm.web import deployment

VERBS: dict[str, Callable[[Instance], None]] = {
    "scale": lambda blue: blue.scale("SCALE_OUT"),
    "heal": lambda blue: blue.heal(),
    "change": lambda blue: blue.change(blue.vnfd),
    "terminate": lambda blue: blue.terminate(),
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
