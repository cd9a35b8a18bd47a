"""Verbs that meet a refusal or a hiccup half-way: what runs keeps running, what can pass passes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tacker.sol_refactored import objects
from tacker.sol_refactored.common import exceptions as sol_ex

from k8s_cr_driver.lcm.driver import Driver
from tests.fake_api import FakeApi, faults
from tests.instance import BLUE
from tests.lcm.test_driver import Instance, cluster, deployment

__all__ = ["cluster"]


def test_a_refused_scale_removes_nothing_also_when_the_inventory_was_lost(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path, [deployment(1)])
    blue.instantiate()
    cluster.delete("ConfigMap", "default", f"k8s-cr-driver-{BLUE}")
    cluster.fail(faults.field_conflict(), method="PATCH", path="deployments/web", times=9)
    with pytest.raises(sol_ex.SolException, match="others manage fields"):
        blue.scale("SCALE_OUT")
    assert cluster.names("Deployment") == ["web"]


def test_rollback_of_scale_does_not_read_the_options_that_scale_has_failed_for(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path, [deployment(1)])
    blue.instantiate()
    body = {"type": "SCALE_OUT", "aspectId": "web", "numberOfSteps": 1, "additionalParams": {"wait-timeout": "soon"}}
    req = objects.ScaleVnfRequest.from_dict(body)
    with pytest.raises(sol_ex.SolException, match="wait-timeout"):
        Driver().scale(req, blue.inst, blue.grant_req, None, blue.vnfd)
    Driver().scale_rollback(req, blue.inst, blue.grant_req, None, blue.vnfd)
    assert blue.inst.instantiatedVnfInfo.metadata["vdu_reses"]["Web"]["spec"]["replicas"] == 1


def test_a_server_that_is_busy_when_the_vnfcs_are_listed_is_asked_again(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path, [deployment(1)])
    cluster.fail(faults.unavailable(), method="GET", path="/pods")
    blue.instantiate()
    assert len(blue.inst.instantiatedVnfInfo.vnfcResourceInfo) == 1
