# SPDX-License-Identifier: Apache-2.0
"""One project holds a share of a conductor's workers, and no longer than an hour each by default."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest
from oslo_config import cfg
from tacker.sol_refactored.common import exceptions as sol_ex

from k8s_cr_driver.lcm.workers import Busy, most_of_a_project, worker_of
from tests.fake_api import FakeApi
from tests.instance import config_map
from tests.lcm.instance import Instance
from tests.lcm.vims import OTHER_PROJECT, PROJECT, request_of
from tests.lcm.web import deployment


@pytest.fixture
def blue(cluster: FakeApi, tmp_path: Path) -> Instance:
    return Instance(cluster, tmp_path / "package", [deployment(1), config_map("a")])


def test_a_project_has_half_of_the_workers_by_default() -> None:
    assert most_of_a_project(cfg.CONF) == 32


def test_an_operation_beyond_the_share_fails_before_it_writes_and_can_be_retried(
    cluster: FakeApi, blue: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    cfg.CONF.set_override("project_share", 0.01, "k8s_cr")
    try:
        with request_of(PROJECT, is_admin=True):
            with worker_of(PROJECT, 1), pytest.raises(sol_ex.SolException) as raised:
                blue.instantiate()
            assert raised.value.status == 503 and "project_share" in raised.value.detail
            assert cluster.requests.writes == []
            blue.instantiate()
        with worker_of(OTHER_PROJECT, 1), request_of(OTHER_PROJECT):  # it is the instance's project that counts
            blue.terminate()
    finally:
        cfg.CONF.clear_override("project_share", "k8s_cr")


def test_a_project_that_is_not_known_has_no_limit() -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(worker_of("", 1))
        stack.enter_context(worker_of(PROJECT, 1))
        with pytest.raises(Busy):
            stack.enter_context(worker_of(PROJECT, 1))


def test_workers_that_scripts_of_the_conductor_hold_count_until_their_process_ends() -> None:
    """A killed one holds none."""
    hold = f"with workers.worker_of({PROJECT!r}, 1): print('held', flush=True); input()"
    script = [sys.executable, "-c", f"from k8s_cr_driver.lcm import workers\n{hold}"]
    with subprocess.Popen(script, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"held\n"
        with pytest.raises(Busy), worker_of(PROJECT, 1):
            pass
        process.kill()
    with worker_of(PROJECT, 1):
        pass


def test_a_request_holds_a_worker_for_an_hour_at_most_by_default(blue: Instance) -> None:
    with pytest.raises(sol_ex.SolException) as raised:
        blue.instantiate(**{"wait-timeout": 3601})
    assert "3600" in raised.value.detail.replace(",", "")
