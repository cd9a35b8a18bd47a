# SPDX-License-Identifier: Apache-2.0
"""A package made of `helm template`: its test Pod and its Job of pre-delete run only if a request says so."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from tacker.sol_refactored.common import exceptions as sol_ex

from k8s_cr_driver.objects.keys import Object
from tests.fake_api import FakeApi
from tests.instance import config_map, job
from tests.lcm.instance import Instance, make_vnfd
from tests.lcm.web import deployment


def hooked(obj: Object, hook: str) -> Object:
    obj["metadata"]["annotations"] = {"helm.sh/hook": hook}
    return obj


HOOKS: dict[str, Any] = {"test": config_map("nrf-try"), "pre-delete": job("nrf-clean-up", "kubectl:1")}
PACKAGE = [deployment(1), *(hooked(one, hook) for hook, one in HOOKS.items()), hooked(config_map("seed"), "pre-install")]


def test_hooks_of_other_times_are_left_out_with_a_warning_for_each(
    cluster: FakeApi, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blue = Instance(cluster, tmp_path / "old", PACKAGE)
    with caplog.at_level(logging.WARNING):
        blue.instantiate()
    assert "seed" in cluster.names("ConfigMap")
    assert "nrf-try" not in cluster.names("ConfigMap")
    assert cluster.names("Job") == []
    found = [one.getMessage() for one in caplog.records if "helm.sh/hook" in one.getMessage()]
    assert [("nrf-try" in one, "hook test" in one) for one in found] == [(True, True), (False, False)]
    assert "Job.batch default/nrf-clean-up: is not applied, as helm-hooks is not set" in found[1]


def test_a_request_that_says_so_has_them_applied_and_they_stay(
    cluster: FakeApi, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    package = [deployment(1), hooked(config_map("nrf-try"), "test")]
    blue = Instance(cluster, tmp_path / "old", package)
    with caplog.at_level(logging.WARNING):
        blue.instantiate(**{"helm-hooks": True})
    assert "ConfigMap default/nrf-try: is applied as any other object" in caplog.text
    cluster.delete("ConfigMap", "default", "nrf-try")
    blue.heal()
    assert "nrf-try" in cluster.names("ConfigMap")
    with pytest.raises(sol_ex.SolException, match="helm-hooks: only a change of the VNF package can change it"):
        blue.heal(**{"helm-hooks": False})
    blue.change(make_vnfd(tmp_path / "new", package), **{"helm-hooks": False})
    assert "nrf-try" not in cluster.names("ConfigMap")
