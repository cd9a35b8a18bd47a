# SPDX-License-Identifier: Apache-2.0
"""Scale and its rollback: counts continue from the stored ones, and a scale in waits until its VNFCs are deleted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tacker.sol_refactored import objects
from tacker.sol_refactored.common import exceptions as sol_ex

from k8s_cr_driver.engine import replace
from k8s_cr_driver.lcm.driver import Driver
from k8s_cr_driver.vnf import scale_in
from tests.fake_api import FakeApi, faults
from tests.fake_api.recording import Request
from tests.instance import BLUE, crontab, crontab_crd
from tests.lcm.instance import Instance
from tests.lcm.web import deployment, selecting


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


def vnfcs(tab: Instance) -> list[str]:
    return sorted(vnfc.id for vnfc in tab.inst.instantiatedVnfInfo.vnfcResourceInfo)


def looks(cluster: FakeApi) -> int:
    return len(cluster.requests.select("GET", "/api/v1/namespaces/default/pods", watch=False))


def test_scale_counts_from_what_is_stored(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path, [deployment(1)])
    blue.instantiate()
    blue.scale("SCALE_OUT", 2)
    assert cluster.get("Deployment", "default", "web")["spec"]["replicas"] == 5
    assert len(blue.inst.instantiatedVnfInfo.vnfcResourceInfo) == 5
    blue.scale("SCALE_IN")
    assert cluster.get("Deployment", "default", "web")["spec"]["replicas"] == 3
    assert blue.inst.instantiatedVnfInfo.metadata["vdu_reses"]["Web"]["spec"]["replicas"] == 3


def with_default(count: int) -> list[dict[str, Any]]:
    """A CronTab that names no count, and a CRD with that default for it."""
    crd, manifest = crontab_crd(), crontab("web")
    version = crd["spec"]["versions"][0]
    count_schema = {"type": "integer", "default": count}
    version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["replicas"] = count_schema
    version["subresources"] = {"scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}}
    return [crd, manifest]


@pytest.mark.parametrize("is_stored", [True, False])
def test_scale_continues_from_the_default_count_of_the_crd(api: FakeApi, tmp_path: Path, is_stored: bool) -> None:
    """Also of an instance whose record has no count, as earlier versions of this driver stored it."""
    blue = Instance(api, tmp_path, with_default(5))
    blue.instantiate()
    assert vnfcs(blue) == [f"web-{index}" for index in range(5)]
    if not is_stored:
        del blue.inst.instantiatedVnfInfo.metadata["vdu_reses"]["Web"]["spec"]["replicas"]
    blue.scale("SCALE_OUT")
    assert api.get("CronTab", "default", "web")["spec"]["replicas"] == 7
    assert len(vnfcs(blue)) == 7


def test_a_level_of_zero_instances_is_instantiated_and_scaled_from(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path, [deployment(3)], levels={"none": 0, "some": 2})
    blue.instantiate(level="none")
    assert cluster.get("Deployment", "default", "web")["spec"]["replicas"] == 0
    assert vnfcs(blue) == []
    blue.scale("SCALE_OUT")
    assert cluster.get("Deployment", "default", "web")["spec"]["replicas"] == 2


def test_a_level_that_does_not_name_the_vdu_keeps_the_count_of_its_manifest(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path, [deployment(3)], levels={"other": 1, "empty": None})
    blue.instantiate(level="empty")
    assert cluster.get("Deployment", "default", "web")["spec"]["replicas"] == 3


def test_scale_in_below_zero_is_refused(cluster: FakeApi, tmp_path: Path) -> None:
    """A change of package may have set a count that is below the one of the scale level."""
    blue = Instance(cluster, tmp_path, [deployment(1)])
    blue.instantiate()
    with pytest.raises(sol_ex.SolException, match="numberOfSteps: VDU Web has 1 replicas and cannot lose 2") as refused:
        blue.scale("SCALE_IN")
    assert refused.value.status == 400
    assert cluster.get("Deployment", "default", "web")["spec"]["replicas"] == 1


def test_a_refused_scale_deletes_nothing_although_the_inventory_is_new(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path, [deployment(1)])
    blue.instantiate()
    cluster.delete("ConfigMap", "default", f"k8s-cr-driver-{BLUE}")
    cluster.fail(faults.field_conflict(), method="PATCH", path="deployments/web", times=9)
    with pytest.raises(sol_ex.SolException, match="others manage fields"):
        blue.scale("SCALE_OUT")
    assert cluster.names("Deployment") == ["web"]


def test_rollback_of_scale_ignores_the_options_of_the_request(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path, [deployment(1)])
    blue.instantiate()
    body = {"type": "SCALE_OUT", "aspectId": "web", "numberOfSteps": 1, "additionalParams": {"wait-timeout": "soon"}}
    req = objects.ScaleVnfRequest.from_dict(body)
    with pytest.raises(sol_ex.SolException, match="wait-timeout"):
        Driver().scale(req, blue.inst, blue.grant_req, None, blue.vnfd)
    Driver().scale_rollback(req, blue.inst, blue.grant_req, None, blue.vnfd)
    assert blue.inst.instantiatedVnfInfo.metadata["vdu_reses"]["Web"]["spec"]["replicas"] == 1


def test_scale_in_waits_until_the_surplus_pods_are_deleted(cluster: FakeApi, tab: Instance) -> None:
    def shrink(request: Request) -> bool:
        """The controller comes to it after one look before the scale and two after it. No fault."""
        if looks(cluster) == 3:
            cluster.edit("Deployment", "default", "web", lambda live: live["spec"].update(replicas=1))
        return False

    cluster.fail(faults.internal(), when=shrink)
    tab.scale("SCALE_IN")
    assert cluster.get("CronTab", "default", "tab")["spec"]["size"] == 1
    assert vnfcs(tab) == cluster.names("Pod", "default") and len(vnfcs(tab)) == 1


def test_surplus_pods_are_accepted_after_the_grace_time(
    cluster: FakeApi, tab: Instance, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(scale_in, "GRACE", 0.0)
    tab.scale("SCALE_IN")
    assert vnfcs(tab) == cluster.names("Pod", "default") and len(vnfcs(tab)) == 3
    assert "VDU Web has 3 VNFCs instead of 1; its status is trusted all the same" in caplog.text


def test_scale_out_does_not_count_pods_before(cluster: FakeApi, tab: Instance) -> None:
    tab.scale("SCALE_OUT")
    assert looks(cluster) == 1, "to store the VNFCs"
