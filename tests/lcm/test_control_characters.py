# SPDX-License-Identifier: Apache-2.0
"""No input of a verb writes a record of its own into the conductor's log, nor a line into a ProblemDetails."""

from __future__ import annotations

import importlib
import io
import logging
import pkgutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg
from oslo_log import formatters
from oslo_log import log as oslo_log
from tacker.sol_refactored.common import exceptions as sol_ex

import k8s_cr_driver
from k8s_cr_driver import logs
from tests.fake_api import FakeApi, faults
from tests.hostile import TEXTS, assert_harmless
from tests.instance import config_map, crontab, crontab_crd, obj
from tests.lcm.instance import Instance
from tests.lcm.web import deployment

PARAMETERS = {"COUNT": {"type": "integer", "default": 1}}
OWN_WORDS = {"k8s_cr_driver.lcm.registration"}
"""Loggers of modules that log nothing of others: that one may import nothing."""


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """What all loggers of the driver write, in the default format of oslo.log."""
    conf = cfg.ConfigOpts()
    oslo_log.register_options(conf)
    conf([])
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatters.ContextFormatter(config=conf))
    logger = logging.getLogger("k8s_cr_driver")
    before = logger.level
    logger.setLevel(logging.DEBUG)
    logger.addHandler(handler)
    yield stream
    logger.removeHandler(handler)
    logger.setLevel(before)


def has_records_of_one_line(written: io.StringIO) -> bool:
    """Each line is the begin of a record, which is a date."""
    assert_harmless(written.getvalue())
    return all(line[:2] == "20" for line in written.getvalue().splitlines())


def fails(verb: Callable[[], Any]) -> None:
    """It may also succeed."""
    try:
        verb()
    except sol_ex.SolException as error:
        assert_harmless(error.detail)
        assert_harmless(error.title or "")


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda text: [config_map(text)], id="name"),
        pytest.param(lambda text: [{**config_map("b"), "metadata": {"name": "b", "namespace": text}}], id="namespace"),
        pytest.param(lambda text: [obj("v1", text, "a", "default"), obj(text, "A", "a", "default")], id="kind"),
        pytest.param(lambda text: [{**crontab("b"), "spec": {text: text}}], id="field"),
        pytest.param(lambda text: [config_map("b", data=f"${{{text}}} ${{COUNT:={text}}}")], id="reference"),
    ],
)
def test_a_manifest_writes_no_line(
    spoil: Callable[[str], list[Any]], text: str, cluster: FakeApi, tmp_path: Path, written: io.StringIO
) -> None:
    objects = [deployment(1), crontab_crd(), *spoil(text)]
    blue = Instance(cluster, tmp_path / "package", objects, parameters=PARAMETERS)
    fails(lambda: blue.instantiate(**{"wait-timeout": 1}))
    assert has_records_of_one_line(written)


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
@pytest.mark.parametrize(
    "params",
    [
        lambda text: {"parameters": {text: text}},
        lambda text: {"parameters": {"COUNT": text}},
        lambda text: {text: text},
        lambda text: {"namespace": text},
        lambda text: {"lcm-kubernetes-def-files": [text, f"https://{text}"]},
        lambda text: {"vdu_mapping": {text: {"name": text, text: text}}},
        lambda text: {"wait-timeout": text},
    ],
)
def test_a_request_writes_no_line(
    params: Callable[[str], dict[str, Any]], text: str, cluster: FakeApi, tmp_path: Path, written: io.StringIO
) -> None:
    blue = Instance(cluster, tmp_path / "package", [deployment(1)], parameters=PARAMETERS)
    fails(lambda: blue.instantiate(**params(text)))
    assert has_records_of_one_line(written)


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
@pytest.mark.parametrize("key", ["endpoint", "ssl_ca_cert", "bearer_token", "oidc_token_url", "client_id"])
def test_a_vim_writes_no_line(key: str, text: str, cluster: FakeApi, tmp_path: Path, written: io.StringIO) -> None:
    blue = Instance(cluster, tmp_path / "package", [deployment(1)])
    vim = blue.inst.vimConnectionInfo["vim1"]
    given = vim.interfaceInfo if key in ("endpoint", "ssl_ca_cert") else vim.accessInfo
    given[key] = f"https://{text}" if "endpoint" in key or "url" in key else text
    fails(lambda: blue.instantiate())
    assert has_records_of_one_line(written)


def test_a_cluster_writes_no_line(cluster: FakeApi, tmp_path: Path, written: io.StringIO) -> None:
    text = "".join(TEXTS)
    causes = [{"reason": text, "field": text, "message": text}]
    cluster.fail(faults.status(503, text, text, causes=causes), path="configmaps/a")
    cluster.fail(faults.status(409, text, text, causes=causes), path="configmaps/a")
    pod = obj("v1", "Pod", "p", "default", spec={"containers": [{"name": "c", "image": "c:1"}]})
    blue = Instance(cluster, tmp_path / "package", [deployment(1), config_map("a"), pod])
    fails(lambda: blue.instantiate(**{"wait-timeout": 1}))
    status = {"phase": "Failed", "reason": text, "message": text, "conditions": [{"type": text, "status": text}]}
    cluster.put({**cluster.get("Pod", "default", "p"), "status": status})
    fails(lambda: blue.instantiate(**{"wait-timeout": 1}))
    assert "FORGED" in written.getvalue()
    assert has_records_of_one_line(written)


def test_an_exception_is_part_of_its_line(written: io.StringIO) -> None:
    try:
        raise ValueError("a\nFORGED")
    except ValueError:
        logs.logger("k8s_cr_driver.of_a_test").exception("It has failed, %s", "100%\n")
    assert has_records_of_one_line(written)
    assert "It has failed, 100%\\n: Traceback" in written.getvalue() and "ValueError: a FORGED" in written.getvalue()


def test_each_logger_writes_one_line() -> None:
    for module in pkgutil.walk_packages(k8s_cr_driver.__path__, "k8s_cr_driver."):
        importlib.import_module(module.name)
    own = {name: one for name, one in logging.root.manager.loggerDict.items() if name.startswith("k8s_cr_driver.")}
    loggers = {name: one for name, one in own.items() if isinstance(one, logging.Logger) and name not in OWN_WORDS}
    assert len(loggers) > 20
    assert [name for name, one in loggers.items() if logs._to_one_line not in one.filters] == []
