# SPDX-License-Identifier: Apache-2.0
"""Database synchronization: changes on the cluster that no LCM operation made are found, and stored in the record."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg
from tacker import context
from tacker.sol_refactored import objects
from tacker.sol_refactored.common import exceptions as sol_ex
from tacker.sol_refactored.common import vnf_instance_utils as inst_utils
from tacker.sol_refactored.common.vnfd_utils import Vnfd
from tacker.sol_refactored.nfvo import nfvo_client

from k8s_cr_driver.errors import TransportError
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.lcm import sync_round
from k8s_cr_driver.lcm.driver import Driver
from tests.fake_api import FakeApi, faults
from tests.instance import BLUE, crontab, crontab_crd
from tests.lcm.instance import make_vnfd
from tests.lcm.synced import Synced
from tests.lcm.web import deployment
from tests.oidc_provider import OidcProvider


def set_count(api: FakeApi, count: int, kind: str = "Deployment", name: str = "web") -> None:
    api.edit(kind, "default", name, lambda live: live["spec"].update(replicas=count))


def scalable(*names: str) -> list[dict[str, Any]]:
    """Custom resources with a count of 1, and their CRD."""
    crd = crontab_crd()
    version = crd["spec"]["versions"][0]
    version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["replicas"] = {"type": "integer"}
    version["subresources"] = {"scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}}
    manifests = [crontab(name) for name in names]
    for manifest in manifests:
        manifest["spec"]["replicas"] = 1
    return [crd, *manifests]


def test_an_unchanged_instance_has_no_difference(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Synced(cluster, tmp_path, [deployment(2)])
    cluster.requests.clear()
    assert not blue.differs()
    assert {request.method for request in cluster.requests} == {"GET"}


def test_replaced_pods_are_stored(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Synced(cluster, tmp_path, [deployment(2)])
    cluster.delete("Pod", "default", cluster.names("Pod", "default")[0])
    assert blue.differs()
    blue.sync()
    assert blue.vnfcs() == set(cluster.names("Pod", "default"))
    assert blue.levels() == {"web": 1}
    assert not blue.differs()


def test_the_node_of_a_pod_is_stored_when_it_has_one(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Synced(cluster, tmp_path, [deployment(1)])
    [pod] = cluster.names("Pod", "default")
    bound = {**cluster.get("Pod", "default", pod), "spec": {"nodeName": "n1"}}  # what only a scheduler may write
    with cluster.cluster.writing():
        cluster.cluster.store.put(("", "pods"), bound)
    assert blue.differs()
    blue.sync()
    assert [vnfc.metadata["node"] for vnfc in blue.info.vnfcResourceInfo] == ["n1"]
    assert not blue.differs()


def test_a_count_set_by_hand_is_stored_with_its_scale_level(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Synced(cluster, tmp_path, [deployment(1)])
    set_count(cluster, 5)
    blue.sync()
    assert blue.levels() == {"web": 3}
    assert len(blue.vnfcs()) == 5
    assert blue.info.metadata["vdu_reses"]["Web"]["spec"]["replicas"] == 5


def test_a_count_without_a_scale_level_changes_nothing(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Synced(cluster, tmp_path, [deployment(1)])
    before = blue.vnfcs()
    set_count(cluster, 4)
    with pytest.raises(sol_ex.DbSyncFailed, match="VDU Web has 4 replicas, which no level of the scaling aspect web means"):
        blue.sync()
    assert (blue.levels(), blue.vnfcs()) == ({"web": 1}, before)


def test_the_count_of_a_custom_resource_scaled_by_hand_is_stored(api: FakeApi, tmp_path: Path) -> None:
    blue = Synced(api, tmp_path, scalable("web"))
    set_count(api, 3, "CronTab")
    assert blue.differs()
    blue.sync()
    assert (blue.vnfcs(), blue.levels()) == ({"web-0", "web-1", "web-2"}, {"web": 2})


def test_a_deleted_object_has_no_vnfcs_and_keeps_its_count(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Synced(cluster, tmp_path, [deployment(2)])
    cluster.delete("Deployment", "default", "web")
    blue.sync()
    assert (blue.vnfcs(), blue.levels()) == (set(), {"web": 1})
    assert not blue.differs()
    blue.heal()
    assert len(blue.vnfcs()) == 2


def test_vdus_of_one_aspect_must_agree_on_a_level(api: FakeApi, tmp_path: Path) -> None:
    blue = Synced(api, tmp_path, scalable("web", "db"), vdus={"Web": "web", "Db": "db"}, aspects={"web": ["Web", "Db"]})
    set_count(api, 3, "CronTab")
    with pytest.raises(sol_ex.DbSyncFailed, match="VDU Db has 1 replicas, VDU Web has 3 replicas, which no level"):
        blue.sync()
    set_count(api, 3, "CronTab", "db")
    blue.sync()
    assert blue.levels() == {"web": 2}


@pytest.mark.parametrize("aspects", [{"web": ["Web"]}, {"web": ["Web"], "more": ["Web"]}])
def test_an_aspect_with_a_delta_of_zero_has_no_part_in_the_levels(
    cluster: FakeApi, tmp_path: Path, aspects: dict[str, list[str]]
) -> None:
    blue = Synced(cluster, tmp_path / "old", [deployment(1)])
    blue.vnfd = make_vnfd(tmp_path / "new", [deployment(1)], aspects=aspects, delta=0, initial=1)
    blue.change(blue.vnfd)
    set_count(cluster, 3)
    blue.sync()
    assert blue.levels() == dict.fromkeys(aspects, 0) | {"web": 1}
    assert len(blue.vnfcs()) == 3


@pytest.mark.parametrize(("initial", "level"), [(1, 1), (None, 0)])
def test_new_scaling_aspects_are_stored(cluster: FakeApi, tmp_path: Path, initial: int | None, level: int) -> None:
    blue = Synced(cluster, tmp_path / "old", [deployment(3)])
    aspects = {"web": ["Web"], "more": ["Web"]}
    blue.vnfd = make_vnfd(tmp_path / "new", [deployment(3)], aspects=aspects, initial=initial)
    blue.change(blue.vnfd)
    assert blue.differs()
    blue.sync()
    assert blue.levels() == {"web": 1, "more": level}
    assert {one.aspectId: one.scaleLevel for one in blue.info.maxScaleLevels} == {"web": 5, "more": 5}
    assert not blue.differs()


@pytest.mark.parametrize("running", ["STARTING", "PROCESSING", "ROLLING_BACK"])
def test_no_request_is_sent_while_an_operation_runs(cluster: FakeApi, tmp_path: Path, running: str) -> None:
    blue = Synced(cluster, tmp_path, [deployment(1)])
    set_count(cluster, 3)
    cluster.requests.clear()
    with pytest.raises(sol_ex.OtherOperationInProgress):
        blue.sync(running)
    assert len(cluster.requests) == 0


def test_no_request_is_sent_for_an_instance_that_was_terminated_meanwhile(cluster: FakeApi, tmp_path: Path) -> None:
    """Tacker reads the record again under its lock, and terminate has removed the VIM from it."""
    blue = Synced(cluster, tmp_path, [deployment(1)])
    blue.inst.vimConnectionInfo = {}
    cluster.requests.clear()
    with pytest.raises(sol_ex.DbSyncNoDiff):
        blue.sync()
    assert len(cluster.requests) == 0


def look(blue: Synced) -> float:
    """Seconds of a look at a cluster that does not respond."""
    begun = time.monotonic()
    with pytest.raises(sol_ex.SolException):
        blue.differs()
    return time.monotonic() - begun


@pytest.fixture
def hurried() -> Iterator[None]:
    cfg.CONF.set_override("sync_timeout", 0.5, "k8s_cr")
    yield
    cfg.CONF.clear_override("sync_timeout", "k8s_cr")


def test_a_look_is_four_requests(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Synced(cluster, tmp_path, [deployment(2)])
    cluster.requests.clear()
    assert not blue.differs()
    asked = sorted(request.path.rpartition("/")[2] for request in cluster.requests)
    assert asked == ["apis", "deployments", "pods", "replicasets"]


def test_looks_at_the_instances_of_an_account_share_one_login(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Synced(cluster, tmp_path, [deployment(2)])
    cluster.knobs.tokens = set()
    with OidcProvider(cluster.knobs.tokens) as provider:
        blue.inst.vimConnectionInfo["vim1"].accessInfo = provider.access()
        for _ in range(3):
            assert not blue.differs()
        assert len(provider.asked) == 1


@pytest.mark.parametrize("fault", [faults.hang(), faults.unavailable()])
def test_a_look_ends_after_the_seconds_of_the_option(
    cluster: FakeApi, tmp_path: Path, hurried: None, fault: faults.Action
) -> None:
    blue = Synced(cluster, tmp_path, [deployment(2)])
    cluster.fail(fault, times=100)
    assert look(blue) < 4.5, 'the default is 5'


def test_a_response_that_cannot_be_read_keeps_no_other_instance_from_its_look(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Synced(cluster, tmp_path, [deployment(2)])
    cluster.fail(faults.lie(b'{"a":' * 500 + b"1" + b"}" * 500), path="/pods$", times=100)
    with pytest.raises(sol_ex.SolException, match="nested deeper than 300 levels"):
        blue.differs()
    cluster.clear_faults()
    assert not blue.differs()


def test_a_cluster_that_does_not_respond_is_asked_once_in_a_round(
    cluster: FakeApi, tmp_path: Path, hurried: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    blue = Synced(cluster, tmp_path, [deployment(2)])
    cluster.fail(faults.reset_before(), times=100)
    look(blue)
    cluster.requests.clear()
    with pytest.raises(sol_ex.SolException, match=r"not asked again in this round .*: GET /apis"):
        blue.differs()
    assert len(cluster.requests) == 0

    cluster.clear_faults()
    cfg.CONF.set_override("sync_timeout", 60.0, "k8s_cr")
    with monkeypatch.context() as patch:
        patch.setattr(sync_round, "ROUND", 0.0)
        assert not blue.differs()
    assert not blue.differs()


def test_a_cluster_that_no_instance_has_any_more_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        with pytest.raises(TransportError), sync_round.once_in_a_round(Endpoint(f"https://{name}", authorization="token")):
            raise TransportError("no response")
    monkeypatch.setattr(sync_round, "ROUND", 0.0)
    with sync_round.once_in_a_round(Endpoint("https://c")):
        assert not sync_round._failed


def test_an_operation_does_not_wait_for_the_next_round(cluster: FakeApi, tmp_path: Path, hurried: None) -> None:
    blue = Synced(cluster, tmp_path, [deployment(2)])
    cluster.fail(faults.reset_before(), times=100)
    look(blue)
    cluster.clear_faults()
    blue.heal()


@pytest.fixture
def stored(cluster: FakeApi, tmp_path: Path) -> Iterator[Synced]:
    """An instance that is in Tacker's database."""
    admin, blue = context.get_admin_context(), Synced(cluster, tmp_path, [deployment(1)])
    blue.inst.instantiationState = "INSTANTIATED"
    for name in ("vnfProvider", "vnfProductName", "vnfSoftwareVersion", "vnfdVersion"):
        setattr(blue.inst, name, "1")
    blue.inst.create(admin)
    yield blue
    inst_utils.get_inst(admin, BLUE).delete(admin)


def test_a_scale_of_another_conductor_that_completes_meanwhile_is_not_overwritten(
    stored: Synced, cluster: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tacker's lock is by default one of each host."""
    admin = context.get_admin_context()
    cluster.delete("Pod", "default", cluster.names("Pod", "default")[0])
    monkeypatch.setattr(nfvo_client.NfvoClient, "__init__", lambda _: None)

    def package_after_a_scale(*_: object) -> object:
        stored.inst = inst_utils.get_inst(admin, BLUE)
        stored.scale("SCALE_OUT")
        stored.inst.update(admin)
        return stored.vnfd

    monkeypatch.setattr(nfvo_client.NfvoClient, "get_vnfd", package_after_a_scale)
    read = inst_utils.get_inst(admin, BLUE)
    with pytest.raises(sol_ex.OtherOperationInProgress):
        Driver().sync_db(admin, read, read.vimConnectionInfo["vim1"])


def test_a_scale_of_another_conductor_that_fails_meanwhile_is_left_to_its_retry(
    stored: Synced, cluster: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed operation leaves the record as it was."""
    admin = context.get_admin_context()
    asked: list[str] = []

    def operations(context: Any, vnfInstanceId: str, operationState: str) -> list[str]:  # noqa: N803 - Tacker's names
        asked.append(operationState)
        return ["operation"] if operationState == "FAILED_TEMP" else []

    set_count(cluster, 3)
    monkeypatch.setattr(nfvo_client.NfvoClient, "__init__", lambda _: None)
    monkeypatch.setattr(nfvo_client.NfvoClient, "get_vnfd", lambda *_: stored.vnfd)
    monkeypatch.setattr(objects.VnfLcmOpOccV2, "get_by_filter", operations)
    read = inst_utils.get_inst(admin, BLUE)
    with pytest.raises(sol_ex.OtherOperationInProgress):
        Driver().sync_db(admin, read, read.vimConnectionInfo["vim1"])
    assert "FAILED_TEMP" not in asked[:3]  # of one from before the round Tacker asks itself


def test_the_highest_level_is_that_of_the_new_package(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Synced(cluster, tmp_path / "old", [deployment(1)])
    new = make_vnfd(tmp_path / "new", [deployment(1)], highest=2)
    blue.change(new)
    blue.vnfd = new
    assert blue.differs()
    blue.sync()
    assert {one.aspectId: one.scaleLevel for one in blue.info.maxScaleLevels} == {"web": 2}
    assert not blue.differs()


def test_levels_and_aspects_are_those_of_the_package_that_was_applied_last(cluster: FakeApi, tmp_path: Path) -> None:
    """A MODIFY has named another one since."""
    blue = Synced(cluster, tmp_path / "old", [deployment(3)])
    applied = make_vnfd(tmp_path / "new", [deployment(3)], aspects={"web": ["Web"], "more": ["Web"]}, initial=1)
    applied.vnfd_id = "applied"
    blue.change(applied)
    other = make_vnfd(tmp_path / "other", [deployment(3)], delta=1)
    blue.inst.vnfdId = other.vnfd_id = "other"
    blue.packages = {"applied": applied, "other": other}
    set_count(cluster, 5)
    blue.sync()
    assert blue.levels() == {"web": 2, "more": 2}
    assert {one.aspectId: one.scaleLevel for one in blue.info.maxScaleLevels} == {"web": 5, "more": 5}


def test_the_policies_are_not_looked_through_for_each_scaling_aspect(
    cluster: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A VNFD of 4 MiB has 30,000 of both: half an hour, in which Tacker synchronizes no instance."""
    looks: list[str] = []
    look_through = Vnfd.get_policy_values_by_type

    def counted(vnfd: Vnfd, flavour: str, kind: str) -> Any:
        looks.append(kind)
        return look_through(vnfd, flavour, kind)

    blue = Synced(cluster, tmp_path / "old", [deployment(3)])
    aspects = {f"a{number}": ["Web"] for number in range(50)}
    new = make_vnfd(tmp_path / "new", [deployment(3)], aspects=aspects, initial=1)
    monkeypatch.setattr(Vnfd, "get_policy_values_by_type", counted)
    blue.change(new)
    blue.vnfd = new
    blue.sync()
    assert blue.levels() == {"web": 1, **dict.fromkeys(aspects, 1)}
    assert len(looks) < 20


@pytest.mark.parametrize(
    ("policy", "initial"), [("VduInitialDelta", 1), ("VduScalingAspectDeltas", 1), ("InstantiationLevels", None)]
)
def test_malformed_policies_do_not_fail_a_synchronization(
    cluster: FakeApi, tmp_path: Path, policy: str, initial: int | None
) -> None:
    blue = Synced(cluster, tmp_path / "old", [deployment(3)])
    blue.vnfd = make_vnfd(tmp_path / "new", [deployment(3)], aspects={"more": ["Web"]}, initial=initial, levels={"small": 3})
    blue.change(blue.vnfd)
    [found] = blue.vnfd.get_policy_values_by_type("simple", f"tosca.policies.nfv.{policy}")
    found["properties"], found["targets"] = {"aspect": "more", "default_level": ["small"]}, None
    blue.sync()
    assert blue.levels() == {"web": 1, "more": 0}


def test_a_delta_whose_id_is_a_number_gives_its_level(cluster: FakeApi, tmp_path: Path) -> None:
    """YAML reads an id without quotes as a number, and Tacker scales by it."""
    blue = Synced(cluster, tmp_path, [deployment(3)])
    [aspects] = blue.vnfd.get_policy_values_by_type("simple", "tosca.policies.nfv.ScalingAspects")
    aspects["properties"]["aspects"]["web"]["step_deltas"] = [1]
    [deltas] = blue.vnfd.get_policy_values_by_type("simple", "tosca.policies.nfv.VduScalingAspectDeltas")
    deltas["properties"]["deltas"] = {1: {"number_of_instances": 2}}
    set_count(cluster, 5)
    blue.sync()
    assert blue.levels() == {"web": 2}


def test_a_highest_level_that_is_a_text_of_digits_is_one(cluster: FakeApi, tmp_path: Path) -> None:
    """Tacker stores it as a number, and scales."""
    blue = Synced(cluster, tmp_path, [deployment(3)])
    [aspects] = blue.vnfd.get_policy_values_by_type("simple", "tosca.policies.nfv.ScalingAspects")
    aspects["properties"]["aspects"]["web"]["max_scale_level"] = "5"
    set_count(cluster, 5)
    blue.sync()
    assert blue.levels() == {"web": 2}
