"""Scale in of a custom resource whose status is of the new generation before its pods have gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from k8s_cr_driver.engine import replace
from k8s_cr_driver.vnf import scale_in
from tests.fake_api import FakeApi, faults
from tests.fake_api.recording import Request
from tests.lcm.test_driver import Instance, cluster, deployment, selecting

__all__ = ["cluster"]


@pytest.fixture(autouse=True)
def short_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replace, "READ_EVERY", 0.02)


@pytest.fixture
def tab(cluster: FakeApi, tmp_path: Path) -> Instance:
    """A CronTab of size 3, and as many pods: those that its status selects, which a Deployment of somebody else has."""
    cluster.put(deployment(3))
    made = Instance(cluster, tmp_path, selecting(cluster, 3))
    made.instantiate()
    cluster.requests.clear()
    return made


def told(tab: Instance) -> list[str]:
    return sorted(vnfc.id for vnfc in tab.inst.instantiatedVnfInfo.vnfcResourceInfo)


def looks(cluster: FakeApi) -> int:
    return len(cluster.requests.select("GET", "/api/v1/namespaces/default/pods", watch=False))


def test_pods_are_waited_for_until_they_go(cluster: FakeApi, tab: Instance) -> None:
    def shrink(request: Request) -> bool:
        """The controller comes to it when it has been looked at once before and twice after the scale. No fault."""
        if looks(cluster) == 3:
            cluster.edit("Deployment", "default", "web", lambda live: live["spec"].update(replicas=1))
        return False

    cluster.fail(faults.internal(), when=shrink)
    tab.scale("SCALE_IN")
    assert cluster.get("CronTab", "default", "tab")["spec"]["size"] == 1
    assert told(tab) == cluster.names("Pod", "default") and len(told(tab)) == 1


def test_what_stays_is_believed_in_the_end(
    cluster: FakeApi, tab: Instance, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(scale_in, "GRACE", 0.0)
    tab.scale("SCALE_IN")
    assert told(tab) == cluster.names("Pod", "default") and len(told(tab)) == 3
    assert "VDU Web has 3 VNFCs instead of 1; its status is believed all the same" in caplog.text


def test_nothing_is_counted_where_nothing_goes(cluster: FakeApi, tab: Instance) -> None:
    tab.scale("SCALE_OUT")
    assert looks(cluster) == 1, "to tell the VNFCs"
