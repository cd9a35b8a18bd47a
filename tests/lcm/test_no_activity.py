# SPDX-License-Identifier: Apache-2.0
"""`no-activity-timeout` of a request, or of an object of the package, ends an operation early."""

from __future__ import annotations

from pathlib import Path

import pytest
from tacker.sol_refactored.common import exceptions as sol_ex

from k8s_cr_driver.engine.report import activity
from k8s_cr_driver.objects import rule_texts
from tests.fake_api import FakeApi
from tests.instance import CONDITIONS, crontab, crontab_crd
from tests.lcm.instance import Instance
from tests.lcm.web import deployment


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activity, "SHORTEST", 0.05)
    monkeypatch.setattr(rule_texts, "LEAST", 0.1)


@pytest.mark.parametrize("of_request", [True, False])
def test_operation_ends_early(cluster: FakeApi, tmp_path: Path, of_request: bool) -> None:
    tab = crontab("one")
    tab["metadata"]["annotations"] = {} if of_request else {"k8s-cr-driver/no-activity-timeout": "0.5"}
    blue = Instance(cluster, tmp_path / "package", [deployment(), crontab_crd(**CONDITIONS), tab])
    params = {"no-activity-timeout": 0.5} if of_request else {}
    with pytest.raises(sol_ex.SolException) as raised:
        blue.instantiate(**params)
    assert "(no-activity-timeout)" in str(raised.value.detail)
    assert "CronTab.stable.example.com default/one: Waiting" in str(raised.value.detail)


def test_time_of_a_request_is_stored_and_holds_for_later_operations(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path / "package", [deployment()])
    blue.instantiate(**{"no-activity-timeout": 300})
    assert blue.inst.instantiatedVnfInfo.metadata["k8s_cr"]["no-activity-timeout"] == 300
    blue.heal()
    assert blue.inst.instantiatedVnfInfo.metadata["k8s_cr"]["no-activity-timeout"] == 300
