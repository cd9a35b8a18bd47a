# SPDX-License-Identifier: Apache-2.0
"""Log lines of an operation, as oslo.log formats them in a conductor."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from oslo_config import cfg
from oslo_context import context as oslo_context
from oslo_log import formatters
from oslo_log import log as oslo_log
from tacker import context
from tacker.sol_refactored.common import exceptions as sol_ex

from tests.fake_api import FakeApi, faults
from tests.instance import BLUE, config_map, crontab, crontab_crd
from tests.lcm.instance import Instance
from tests.lcm.web import deployment

REQUEST = "req-8f0e2ef0-5d8a-4a43-a1f0-0000000000ff"


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """What all loggers write at INFO, in the default format of oslo.log, while a request is served."""
    conf = cfg.ConfigOpts()
    oslo_log.register_options(conf)
    conf([])
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(formatters.ContextFormatter(config=conf))
    logger = logging.getLogger("k8s_cr_driver")
    before = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    context.Context(request_id=REQUEST, is_admin=True).update_store()
    yield written
    logger.removeHandler(handler)
    logger.setLevel(before)
    oslo_context.RequestContext().update_store()


@pytest.fixture
def blue(cluster: FakeApi, tmp_path: Path) -> Instance:
    return Instance(cluster, tmp_path / "package", [deployment(1), config_map("a")])


def test_a_worker_threads_line_names_request_instance_and_operation(
    cluster: FakeApi, tmp_path: Path, lines: io.StringIO
) -> None:
    cluster.put(config_map("a", owner="somebody"), manager="kubectl")
    blue = Instance(cluster, tmp_path / "package", [deployment(1), config_map("a")])
    blue.instantiate(**{"adopt-existing": True, "force-conflicts": True})
    written = lines.getvalue().splitlines()
    assert any("ConfigMap default/a existed before and is adopted" in line for line in written)
    for line in written:
        assert REQUEST in line and f"[instance: {BLUE} operation operation] " in line, line


def test_the_lines_of_the_next_request_do_not_name_the_instance(blue: Instance, lines: io.StringIO) -> None:
    blue.instantiate()
    assert not hasattr(oslo_context.get_current(), "instance")
    assert oslo_context.get_current().request_id == REQUEST


def test_the_first_line_has_the_plan_and_the_last_one_the_result(
    cluster: FakeApi, blue: Instance, lines: io.StringIO
) -> None:
    cluster.fail(faults.unavailable(), path="configmaps/a")
    blue.instantiate()
    first, *_, last = lines.getvalue().splitlines()
    assert first.endswith(
        f"instantiate of VNF instance {BLUE} begins: package vnfd, cluster {cluster.url}, applies 2 objects"
    )
    assert re.search(
        rf"instantiate of VNF instance {BLUE} completed in \d+\.\d s: 2 objects, \d+ requests, 1 of them repeated, "
        r"slowest (Deployment.apps|ConfigMap) default/\w+ \(\d+\.\d s\)$",
        last,
    )


def test_a_failed_operation_has_a_last_line_too(cluster: FakeApi, tmp_path: Path, lines: io.StringIO) -> None:
    blue = Instance(cluster, tmp_path / "package", [crontab_crd(), crontab("tab", "missing")])
    with pytest.raises(sol_ex.SolException):
        blue.instantiate(**{"wait-timeout": 2})
    assert re.search(r"instantiate of VNF instance \S+ failed in \d+\.\d s: \d objects", lines.getvalue())


def test_terminate_names_what_stays_on_the_cluster(cluster: FakeApi, tmp_path: Path, lines: io.StringIO) -> None:
    cluster.put(config_map("a"), manager="kubectl")
    kept = config_map("b")
    kept["metadata"]["annotations"] = {"k8s-cr-driver/keep": "true"}
    blue = Instance(cluster, tmp_path / "package", [deployment(1), config_map("a"), kept])
    blue.instantiate(**{"adopt-existing": True})
    blue.terminate()
    warnings = [line for line in lines.getvalue().splitlines() if " WARNING " in line]
    for name in ("a", "b"):
        assert any(f"ConfigMap default/{name} is released and stays" in line for line in warnings)
