# SPDX-License-Identifier: Apache-2.0
"""Rules of a request, a package and an operator end the wait for an object whose status says nothing."""

from __future__ import annotations

import collections
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from oslo_config import cfg
from tacker.sol_refactored.common import exceptions as sol_ex

from k8s_cr_driver.objects.keys import GroupKind
from k8s_cr_driver.resources.health import operator_rules
from tests.fake_api import FakeApi
from tests.instance import CONDITIONS, crontab, crontab_crd
from tests.lcm.instance import Instance
from tests.lcm.web import deployment, run_web

ENTRY = {"apiVersion": "stable.example.com/v1", "kind": "CronTab", "current": "has(spec) && !has(self.status)"}


@pytest.fixture
def blue(cluster: FakeApi, tmp_path: Path) -> Iterator[Instance]:
    """An instance with an object that no controller ever acts on."""
    yield Instance(cluster, tmp_path / "package", [deployment(), crontab_crd(**CONDITIONS), crontab("one")])
    cfg.CONF.clear_override("health_rules", "k8s_cr")
    operator_rules.use_once.cache_clear()
    operator_rules.use("")


def test_rules_of_a_request_are_stored_and_decide(blue: Instance) -> None:
    blue.instantiate(**{"health-rules": [ENTRY]})
    assert blue.inst.instantiatedVnfInfo.metadata["k8s_cr"]["health-rules"] == [ENTRY]
    blue.heal()


def test_rules_of_a_package_decide_in_every_verb(blue: Instance, tmp_path: Path) -> None:
    rules = tmp_path / "package/Files/kubernetes/health.yaml"
    rules.write_text(yaml.safe_dump({"healthCheckExprs": [ENTRY]}))
    blue.instantiate()
    blue.heal()


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"healthCheckExprs": [ENTRY, ENTRY | {"kind": "Crontap"}]}, "[1] (Crontap.stable.example.com): there are rules"),
        ({"healthCheckExprs": [ENTRY | {"failed": "has(status.phse)"}]}, "failed: column 12: status.phse: there is no such"),
        ({"healthChecks": [ENTRY]}, "health.yaml: is not read, because it begins with 'healthChecks'"),
    ],
)
def test_operation_warns_once_of_rules_that_are_not_meant_so(
    blue: Instance, tmp_path: Path, caplog: pytest.LogCaptureFixture, rules: Any, words: str
) -> None:
    (tmp_path / "package/Files/kubernetes/health.yaml").write_text(yaml.safe_dump(rules))
    with caplog.at_level(logging.WARNING):
        blue.instantiate(**{"health-rules": [ENTRY]})
    found = [one.getMessage() for one in caplog.records if "health.yaml" in one.getMessage()]
    assert len(found) == 1 and words in found[0] and blue.inst.id in found[0]


def test_rules_of_an_operator_decide(blue: Instance, tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules/tabs.yaml").write_text(yaml.safe_dump({"healthCheckExprs": [ENTRY]}))
    cfg.CONF.set_override("health_rules", str(tmp_path / "rules"), "k8s_cr")
    blue.instantiate()


def test_rules_of_an_operator_that_cannot_be_read_stop_the_verb_before_any_write(
    blue: Instance, cluster: FakeApi, tmp_path: Path
) -> None:
    cfg.CONF.set_override("health_rules", str(tmp_path / "absent"), "k8s_cr")
    with pytest.raises(sol_ex.SolException, match="absent: is no folder"):
        blue.instantiate()
    assert not cluster.requests


SOURCES = ("none", "object", "request", "crd", "package", "operator")


def requests_of(source: str, folder: Path) -> collections.Counter[tuple[str, str]]:
    """The requests of an instantiate whose object is ready by a rule of this source.

    Without those whose number depends on the time that it takes: watches, and writes of the inventory.
    """
    tab, crd, given = crontab("one"), crontab_crd(), {"health-rules": [ENTRY]} if source == "request" else {}
    if source in ("object", "crd"):
        {"object": tab, "crd": crd}[source]["metadata"]["annotations"] = {"k8s-cr-driver/ready-when": "cel: has(self.spec)"}
    with FakeApi() as api:
        run_web(api)
        red = Instance(api, folder / "package", [deployment(), crd, tab])
        for name, path in (("package", folder / "package/Files/kubernetes"), ("operator", folder / "rules")):
            if source == name:
                path.mkdir(exist_ok=True)
                (path / "health.yaml").write_text(yaml.safe_dump({"healthCheckExprs": [ENTRY]}))
        if source == "operator":
            cfg.CONF.set_override("health_rules", str(folder / "rules"), "k8s_cr")
        red.instantiate(**given)
        assert operator_rules.of(GroupKind("stable.example.com", "CronTab")) or source != "operator"
        counted = (one for one in api.requests if not one.watch and "/configmaps/" not in one.path)
        return collections.Counter((one.method, one.path) for one in counted)


@pytest.mark.parametrize("source", SOURCES[1:])
def test_no_rule_adds_a_request(tmp_path: Path, source: str) -> None:
    for name in ("without", "with"):
        (tmp_path / name).mkdir()
    try:
        assert requests_of(source, tmp_path / "with") == requests_of("none", tmp_path / "without")
    finally:
        cfg.CONF.clear_override("health_rules", "k8s_cr")
        operator_rules.use_once.cache_clear()
        operator_rules.use("")
