# SPDX-License-Identifier: Apache-2.0
"""Terminate with `abandon: true`: deletes what it can until the deadline, completes, and logs the objects left."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import yaml
from oslo_config import cfg
from tacker.sol_refactored.common import exceptions as sol_ex

from tests.fake_api import FakeApi, controllers, faults
from tests.instance import BLUE, config_map, crontab, crontab_crd, replaced, stateful_set
from tests.lcm.instance import Instance
from tests.lcm.web import deployment

ABANDON = {"abandon": True, "wait-timeout": 1}
INVENTORY = f"k8s-cr-driver-{BLUE}"


@pytest.fixture
def blue(cluster: FakeApi, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Instance:
    one = Instance(cluster, tmp_path, [deployment(1), config_map("a"), config_map("b")])
    one.instantiate()
    caplog.set_level(logging.WARNING)
    return one


def test_terminate_of_an_unreachable_cluster_completes_only_with_abandon(
    api: FakeApi, blue: Instance, caplog: pytest.LogCaptureFixture
) -> None:
    api.close()
    with pytest.raises(sol_ex.SolException, match=r"cannot connect to .* Check vimConnectionInfo\.interfaceInfo\.endpoint"):
        blue.terminate(**{"wait-timeout": 1})
    assert "abandoned" not in caplog.text
    blue.terminate(**ABANDON)
    message = (
        f"Left on {api.url}: VDUs Web (Deployment.apps default/web); namespaces default; the inventory ConfigMap "
        f"default/{INVENTORY}. If that can be reached again, `k8s-cr purge {BLUE}` removes it."
    )
    assert f"VNF instance {BLUE} is abandoned: GET /apis: cannot connect to {api.url}" in caplog.text
    assert message in caplog.text


def test_a_cluster_that_rejects_the_credentials_is_abandoned(
    api: FakeApi, blue: Instance, caplog: pytest.LogCaptureFixture
) -> None:
    api.knobs.tokens = {"another"}
    blue.terminate(**ABANDON)
    assert "is abandoned" in caplog.text
    assert "does not accept the credentials (401)" in caplog.text


def test_a_cluster_that_comes_back_in_time_is_cleaned_up(
    api: FakeApi, blue: Instance, caplog: pytest.LogCaptureFixture
) -> None:
    for path in ("^/apis$", "configmaps/k8s-cr"):
        api.fail(faults.reset_before(), path=path)
    blue.terminate(**{**ABANDON, "wait-timeout": 60})
    assert (api.names("Deployment"), api.names("ConfigMap"), api.faults_pending) == ([], [], 0)
    assert "abandoned" not in caplog.text


@pytest.mark.parametrize("way", ["finalizer", "refusal"])
def test_objects_that_cannot_be_deleted_are_logged_and_the_rest_deleted(
    api: FakeApi, blue: Instance, caplog: pytest.LogCaptureFixture, way: str
) -> None:
    if way == "finalizer":
        api.edit("ConfigMap", "default", "a", lambda live: live["metadata"].update(finalizers=["example.com/stays"]))
        reason = "held by finalizers example.com/stays"
    else:
        api.fail(faults.status(403, "Forbidden", "no"), method="DELETE", path="configmaps/a$", times=1000)
        api.fail(faults.unavailable(), method="DELETE", path="configmaps/b$")  # deleted after the refusal
        reason = "403 Forbidden: no"
    blue.terminate(**{**ABANDON, "wait-timeout": 3})
    assert set(api.names("ConfigMap")) == {"a", INVENTORY}
    assert api.names("Deployment") == []
    assert "ConfigMap default/a: Waiting" in caplog.text
    assert reason in caplog.text


def test_an_instance_that_another_worker_has_taken_over_is_not_abandoned(api: FakeApi, blue: Instance) -> None:
    def take_over(live: dict[str, Any]) -> None:
        live["metadata"]["annotations"]["k8s-cr-driver/token"] = "another"

    api.edit("ConfigMap", "default", "a", lambda live: live["metadata"].update(finalizers=["example.com/stays"]))
    api.react("Deployment", lambda _: api.edit("ConfigMap", "default", INVENTORY, take_over))
    with pytest.raises(sol_ex.SolException, match="nother worker took over"):
        blue.terminate(**{**ABANDON, "wait-timeout": 60})


def test_a_value_that_is_no_flag_is_refused(api: FakeApi, blue: Instance) -> None:
    with pytest.raises(sol_ex.SolException, match="additionalParams abandon: give true or false"):
        blue.terminate(abandon="perhaps")
    assert api.names("Deployment") == ["web"]


def test_null_is_the_same_as_an_absent_flag(api: FakeApi, blue: Instance) -> None:
    api.fail(faults.status(403, "Forbidden", "no"), method="DELETE", path="deployments", times=10**6)
    with pytest.raises(sol_ex.SolException, match="deployments/web: 403 Forbidden: no"):
        blue.terminate(**{**ABANDON, "abandon": None})


def test_a_terminate_abandons_a_cluster_to_which_nobody_may_connect_any_more(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path, [deployment(1)])
    blue.instantiate()
    cfg.CONF.set_override("allowed_endpoints", ["10.0.0.0/8"], "k8s_cr")
    try:
        with pytest.raises(sol_ex.SolException, match="no connection to this host is permitted"):
            blue.terminate(**{"wait-timeout": 1})
        blue.terminate(abandon=True, **{"wait-timeout": 1})
    finally:
        cfg.CONF.set_override("allowed_endpoints", ["127.0.0.1", "localhost"], "k8s_cr")


def test_an_instantiate_after_one_that_was_given_up_finds_what_has_lost_its_label(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path, [deployment(1)])
    never_ready = [crontab_crd(phase={"type": "string"}), crontab("tab"), config_map("a")]
    first, second = "Files/kubernetes/first.yaml", "Files/kubernetes/all.yaml"
    (tmp_path / first).write_text(yaml.safe_dump_all(never_ready))
    with pytest.raises(sol_ex.SolException, match="not ready"):
        blue.instantiate(**{"wait-timeout": 2, "lcm-kubernetes-def-files": [second, first]})
    replaced(cluster, "ConfigMap", "default", "a")
    blue.instantiate(**{"lcm-kubernetes-def-files": [second]})
    assert cluster.find("ConfigMap", "default", "a") is None


@pytest.mark.parametrize("text", ["[", "[" * 100_000])
def test_an_instance_whose_inventory_others_have_spoiled_is_abandoned(api: FakeApi, blue: Instance, text: str) -> None:
    api.edit("ConfigMap", "default", INVENTORY, lambda live: live["data"].update(members=text))
    with pytest.raises(sol_ex.SolException, match=rf"the inventory default/{INVENTORY}: .* delete that ConfigMap"):
        blue.terminate(**{"wait-timeout": 1})
    blue.terminate(**ABANDON)


def test_an_error_of_the_driver_itself_does_not_keep_an_instance_from_being_abandoned(
    blue: Instance, caplog: pytest.LogCaptureFixture
) -> None:
    with mock.patch("k8s_cr_driver.vnf.session.Session.reconcile", side_effect=KeyError("hunter2")):
        with pytest.raises(sol_ex.SolException, match=r"failed in the driver itself \(KeyError\)"):
            blue.terminate()
        blue.terminate(**ABANDON)
    assert "The driver itself has failed" in caplog.text


@pytest.mark.parametrize("params", [{}, ABANDON], ids=["terminate", "abandon"])
def test_a_claim_without_a_creation_time_is_nobodys_claim(api: FakeApi, tmp_path: Path, params: dict[str, Any]) -> None:
    controllers.run_workloads(api)
    blue = Instance(api, tmp_path, [deployment(1), stateful_set("db")])
    blue.instantiate()
    metadata = {"name": "data-db-7", "namespace": "default", "uid": "u", "resourceVersion": "1", "labels": {"app": "db"}}
    listed = {"apiVersion": "v1", "kind": "PersistentVolumeClaimList", "metadata": {}, "items": [{"metadata": metadata}]}
    api.fail(faults.lie(json.dumps(listed).encode()), method="GET", path="persistentvolumeclaims$", times=1)
    blue.terminate(**params)
