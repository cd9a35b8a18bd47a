# SPDX-License-Identifier: Apache-2.0
"""The operator's policy is applied before the first write, and to no rollback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg
from tacker.sol_refactored.common import exceptions as sol_ex

from tests.fake_api import FakeApi
from tests.instance import config_map
from tests.lcm.instance import Instance, make_vnfd
from tests.lcm.web import deployment


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    yield
    for option in ("denied_kinds", "allow_force_conflicts"):
        cfg.CONF.clear_override(option, "k8s_cr")


def set_policy(**options: Any) -> None:
    for option, value in options.items():
        cfg.CONF.set_override(option, value, "k8s_cr")


def test_nothing_is_written_of_a_package_with_a_denied_kind(cluster: FakeApi, tmp_path: Path) -> None:
    set_policy(denied_kinds=["ConfigMap"])
    blue = Instance(cluster, tmp_path, [deployment(1), config_map("a")])
    with pytest.raises(sol_ex.SolException, match=r"ConfigMap default/a: .*\[k8s_cr\] denied_kinds") as refused:
        blue.instantiate()
    assert refused.value.status == 403
    assert cluster.requests.writes == []


def test_nothing_is_written_with_a_denied_option(cluster: FakeApi, tmp_path: Path) -> None:
    set_policy(allow_force_conflicts=False)
    with pytest.raises(sol_ex.SolException, match=r"additionalParams force-conflicts: .*\[k8s_cr\] allow_force_conflicts"):
        Instance(cluster, tmp_path, [deployment(1)]).instantiate(**{"force-conflicts": True})
    assert cluster.requests.writes == []


def test_a_change_is_refused_and_its_rollback_is_not(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path / "old", [deployment(1), config_map("a")])
    blue.instantiate()
    set_policy(denied_kinds=["ConfigMap"])
    with pytest.raises(sol_ex.SolException, match="denied_kinds"):
        blue.change(make_vnfd(tmp_path / "new", [deployment(1), config_map("b")]))
    blue.roll_back_change()
    assert "a" in cluster.names("ConfigMap") and "b" not in cluster.names("ConfigMap")
    blue.terminate()
    assert cluster.names("ConfigMap") == []
