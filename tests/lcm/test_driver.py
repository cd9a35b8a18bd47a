# SPDX-License-Identifier: Apache-2.0
"""The verbs as Tacker's conductor calls them, with Tacker's own objects, on the fake API server."""

from __future__ import annotations

from pathlib import Path

import pytest
from oslo_config import cfg
from tacker.sol_refactored.common import exceptions as sol_ex

from tests.fake_api import FakeApi, faults
from tests.instance import config_map, crontab, crontab_crd, obj
from tests.lcm.instance import Instance
from tests.lcm.web import deployment


def test_instantiate_stores_its_vnfcs_and_options(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path, [deployment(2), crontab_crd(), crontab("tab", "")])
    blue.instantiate()
    info = blue.inst.instantiatedVnfInfo
    assert sorted(vnfc.id for vnfc in info.vnfcResourceInfo) == sorted(cluster.names("Pod", "default"))
    assert len(info.vnfcResourceInfo) == 2
    assert {vnfc.vduId for vnfc in info.vnfcResourceInfo} == {"Web"}
    assert [vnfc.vnfcResourceInfoId for vnfc in info.vnfcInfo] == [vnfc.id for vnfc in info.vnfcResourceInfo]
    assert info.metadata["k8s_cr"]["wait-timeout"] == 60
    assert cluster.names("CronTab", "default") == ["tab"]


@pytest.mark.parametrize("end", ["terminate", "roll_back_instantiate"])
def test_the_end_of_an_instance_leaves_nothing(cluster: FakeApi, tmp_path: Path, end: str) -> None:
    blue = Instance(cluster, tmp_path, [deployment(1), config_map("a"), obj("v1", "Namespace", "blue")])
    blue.instantiate()
    getattr(blue, end)()
    assert cluster.names("Deployment") == []
    assert cluster.names("ConfigMap") == []
    assert "blue" not in cluster.names("Namespace")


def test_a_graceful_terminate_has_the_time_of_the_pods_as_well(cluster: FakeApi, tmp_path: Path) -> None:
    held = config_map("held")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    blue = Instance(cluster, tmp_path, [deployment(1), held])
    blue.instantiate()
    with pytest.raises(sol_ex.SolException, match=r"not deleted after ([2-9]|\d\d) s.*\n.*held by finalizers example.com/hold"):
        blue.terminate("GRACEFUL", grace_period=1, **{"wait-timeout": 1})


def test_the_namespace_of_the_inventory_is_not_brought_by_a_package(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path, [deployment(1), obj("v1", "Namespace", "default")])
    with pytest.raises(sol_ex.SolException, match=r"Namespace default holds .*\[k8s_cr\] inventory_namespace") as refused:
        blue.instantiate(**{"adopt-existing": True})
    assert refused.value.status == 400
    assert cluster.requests.writes == []


def test_with_adopt_existing_a_package_sets_no_finalizers(cluster: FakeApi, tmp_path: Path) -> None:
    held = config_map("held")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    blue = Instance(cluster, tmp_path, [deployment(1), held])
    with pytest.raises(sol_ex.SolException, match=r"ConfigMap default/held: metadata.finalizers: .* adopt-existing"):
        blue.instantiate(**{"adopt-existing": True})
    assert cluster.requests.writes == []


@pytest.mark.parametrize("damage", ["a: &a [*a]", "9" * 5000, "{" * 5000])
def test_rollback_survives_a_package_that_cannot_be_loaded(cluster: FakeApi, tmp_path: Path, damage: str) -> None:
    blue = Instance(cluster, tmp_path, [deployment(1), config_map("a")])
    blue.instantiate()
    (tmp_path / "Files/kubernetes/all.yaml").write_text(damage)
    blue.vnfd.definitions["broken"] = {"data_types": 1, "node_types": {"a": {"interfaces": []}}}
    blue.roll_back_instantiate()
    assert cluster.names("Deployment") == cluster.names("ConfigMap") == []


def test_rollback_survives_whatever_loading_raises(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path, [deployment(1)])
    blue.instantiate()
    blue.vnfd.definitions = None
    blue.roll_back_instantiate()
    assert cluster.names("Deployment") == []


def test_a_refused_package_leaves_nothing(cluster: FakeApi, tmp_path: Path) -> None:
    cluster.put(config_map("theirs"))
    blue = Instance(cluster, tmp_path, [deployment(1), config_map("theirs"), config_map("ours")])
    with pytest.raises(sol_ex.SolException, match="ConfigMap default/theirs exists already") as refused:
        blue.instantiate()
    assert refused.value.status == 409
    assert cluster.names("Deployment") == []
    assert cluster.names("ConfigMap") == ["theirs"]


def test_a_vdu_without_an_object_is_refused_before_anything_is_written(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path, [config_map("a")])
    with pytest.raises(sol_ex.SolException, match="VDU Web is no object of the manifests"):
        blue.instantiate()
    assert cluster.names("ConfigMap") == []


def test_an_object_that_is_not_ready_in_time_is_reported_with_its_reason(api: FakeApi, tmp_path: Path) -> None:
    blue = Instance(api, tmp_path, [deployment(1)])
    with pytest.raises(sol_ex.SolException, match=r"not ready after \d s:\nDeployment.apps default/web: Waiting"):
        blue.instantiate(**{"wait-timeout": 1})


def test_discovery_is_repeated_while_the_server_is_busy(cluster: FakeApi, tmp_path: Path) -> None:
    cluster.fail(faults.too_many(0), path="^/apis$")
    cluster.fail(faults.unavailable(), path="^/apis$")
    blue = Instance(cluster, tmp_path, [deployment(1)])
    blue.instantiate()
    assert cluster.names("Deployment") == ["web"]
    assert not cluster.faults_pending


def test_terminate_finds_the_inventory_in_its_former_namespace(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path, [deployment(1)])
    blue.instantiate()
    cfg.CONF.set_override("inventory_namespace", "kube-system", "k8s_cr")
    try:
        blue.terminate()
    finally:
        cfg.CONF.clear_override("inventory_namespace", "k8s_cr")
    assert cluster.names("Deployment") == []
    assert cluster.names("ConfigMap") == []


def test_the_list_of_vnfcs_is_repeated_while_the_server_is_busy(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path, [deployment(1)])
    cluster.fail(faults.unavailable(), method="GET", path="/pods")
    blue.instantiate()
    assert len(blue.inst.instantiatedVnfInfo.vnfcResourceInfo) == 1


def test_another_spelling_of_a_file_hides_no_vdu(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path, [config_map("a")])
    with pytest.raises(sol_ex.SolException, match="Web"):
        blue.instantiate(**{"lcm-kubernetes-def-files": ["./Files/kubernetes/all.yaml"]})


def test_an_entry_that_is_no_url_is_an_error_of_the_request(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path, [deployment(1)])
    with pytest.raises(sol_ex.SolException, match="give an entry that is no URL once"):
        blue.instantiate(**{"lcm-kubernetes-def-files": ["http://[a", "http://[a"]})
