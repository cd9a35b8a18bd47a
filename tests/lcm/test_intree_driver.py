# SPDX-License-Identifier: Apache-2.0
"""Instances that Tacker's real in-tree driver and this driver operate in turn, on the fake API server."""

from __future__ import annotations

import inspect
import itertools
from pathlib import Path
from typing import Any

import pytest
from tacker.sol_refactored import objects
from tacker.sol_refactored.common import exceptions as sol_ex
from tacker.sol_refactored.common import vnf_instance_utils as inst_utils
from tacker.sol_refactored.infra_drivers.kubernetes import (
    kubernetes_common,
    kubernetes_resource,
    kubernetes_utils,
)
from tacker.sol_refactored.nfvo import nfvo_client

from k8s_cr_driver.lcm import intree_driver
from k8s_cr_driver.lcm.driver import Driver
from k8s_cr_driver.lcm.instance_info import StoredInstance
from k8s_cr_driver.objects.keys import GroupKind
from tests.fake_api import FakeApi, controllers, faults
from tests.fake_api.recording import Request
from tests.instance import BLUE, claim, config_map, controlled_by, created_again, obj, stateful_set
from tests.lcm.instance import INTREE_DRIVER, Instance, make_vnfd
from tests.lcm.web import deployment
from tests.times import change_times

INVENTORY = OURS = f"k8s-cr-driver-{BLUE}"
"""The name of the inventory, and of our field manager."""


@pytest.fixture(autouse=True)
def no_long_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tacker's driver looks every 10 seconds."""
    monkeypatch.setattr(kubernetes_common, "CHECK_INTERVAL", 0.02)
    monkeypatch.setattr(kubernetes_resource, "CHECK_INTERVAL", 0.02)


class Handed(Instance):
    """Its first verb is done by Tacker's driver."""

    driver = INTREE_DRIVER

    def switch(self) -> None:
        self.driver = Driver if self.driver is INTREE_DRIVER else INTREE_DRIVER


def intree_instance(cluster: FakeApi, folder: Path, *manifests: dict[str, Any], **params: Any) -> Handed:
    """Made by Tacker's driver; ours is next."""
    blue = Handed(cluster, folder, [deployment(1), *manifests])
    blue.instantiate(**params)
    blue.switch()
    return blue


def own_instance(cluster: FakeApi, folder: Path, *manifests: dict[str, Any], **params: Any) -> Handed:
    """Made by ours; Tacker's is next."""
    blue = Handed(cluster, folder, [deployment(1), *manifests])
    blue.switch()
    blue.instantiate(**params)
    blue.switch()
    return blue


def replicas(cluster: FakeApi) -> int:
    return int(cluster.get("Deployment", "default", "web")["spec"]["replicas"])


def managers(cluster: FakeApi, kind: str, name: str, namespace: str | None = "default") -> set[tuple[str, str]]:
    entries = cluster.get(kind, namespace, name)["metadata"]["managedFields"]
    return {(entry["manager"], entry["operation"]) for entry in entries if entry["manager"] != "controller"}


def config_maps(cluster: FakeApi, namespace: str = "default") -> set[str]:
    return set(cluster.names("ConfigMap", namespace)) - {INVENTORY}


def writes(cluster: FakeApi) -> list[str]:
    return [request.path for request in cluster.requests if request.method != "GET"]


GROUPS = {
    "CoreV1Api": "", "AppsV1Api": "apps", "AutoscalingV1Api": "autoscaling", "BatchV1Api": "batch",
    **{f"{name}V1Api": f"{name.lower()}.k8s.io" for name in ("Apiregistration", "Coordination", "Networking", "Scheduling")},
    "RbacAuthorizationV1Api": "rbac.authorization.k8s.io", "StorageV1Api": "storage.k8s.io",
}
"""Class of Tacker's client -> API group."""


def test_the_kinds_are_those_of_which_tackers_driver_makes_objects() -> None:
    made = {
        GroupKind(GROUPS[cls.api_class.__name__], name)
        for name, cls in inspect.getmembers(kubernetes_resource, inspect.isclass)
        if issubclass(cls, kubernetes_resource.NamespacedResource | kubernetes_resource.ClusterResource)
        and cls not in (kubernetes_resource.NamespacedResource, kubernetes_resource.ClusterResource)
    }
    assert {kind for kind in intree_driver.KINDS if kind.kind not in ("Binding", "LocalSubjectAccessReview")} == made


def test_objects_are_placed_as_tackers_driver_places_them(cluster: FakeApi, tmp_path: Path) -> None:
    blue = intree_instance(cluster, tmp_path / "web")
    kinds = sorted(intree_driver.KINDS | {GroupKind("stable.example.com", "CronTab")})
    manifests = [
        {
            "apiVersion": f"{kind.group}/v1" if kind.group else "v1",
            "kind": kind.kind,
            "metadata": {"name": "one", "namespace": "own"},
        }
        for kind in kinds
    ]
    vnfd = make_vnfd(tmp_path / "all", manifests)
    by_tacker = _placed_by_tacker(vnfd)
    placed = intree_driver.placed(StoredInstance.read(blue.inst), manifests, "given")
    by_us = {one["kind"]: one["metadata"]["namespace"] for one in placed}
    assert {kind: by_us[kind] for kind in by_tacker} == by_tacker
    assert {by_tacker[kind] for kind in ("Role", "RoleBinding")} == {"own"}


def _placed_by_tacker(vnfd: Any) -> dict[str, str]:
    """Kind -> namespace."""
    client = kubernetes_utils.client.ApiClient()
    found, _ = kubernetes_utils.get_k8s_reses_from_json_files(["Files/kubernetes/all.yaml"], vnfd, client, "given", BLUE)
    return {one.kind: one.namespace for one in found}


def test_scale_counts_on_from_tackers_count(cluster: FakeApi, tmp_path: Path) -> None:
    blue = intree_instance(cluster, tmp_path)
    blue.switch()
    blue.scale("SCALE_OUT")
    blue.switch()
    blue.scale("SCALE_OUT")
    assert replicas(cluster) == 5
    assert len(blue.inst.instantiatedVnfInfo.vnfcResourceInfo) == 5
    blue.scale("SCALE_IN", 2)
    assert replicas(cluster) == 1


def test_every_verb_takes_all_objects_over(cluster: FakeApi, tmp_path: Path) -> None:
    blue = intree_instance(cluster, tmp_path, config_map("a"))
    assert managers(cluster, "ConfigMap", "a") == {(intree_driver.MANAGER, "Update")}
    blue.scale("SCALE_OUT")
    assert managers(cluster, "ConfigMap", "a") == managers(cluster, "Deployment", "web") == {(OURS, "Apply")}
    assert cluster.get("ConfigMap", "default", "a")["metadata"]["labels"]["tacker_vnf_instance_id"] == BLUE
    assert "ConfigMap,Deployment.apps" in str(cluster.get("ConfigMap", "default", INVENTORY)["metadata"]["annotations"])


def test_heal_replaces_the_chosen_pod(cluster: FakeApi, tmp_path: Path) -> None:
    blue = intree_instance(cluster, tmp_path)
    [chosen] = cluster.names("Pod", "default")
    blue.heal(chosen)
    [after] = cluster.names("Pod", "default")
    assert after != chosen
    assert [vnfc.id for vnfc in blue.inst.instantiatedVnfInfo.vnfcResourceInfo] == [after]


def test_heal_of_all_finds_the_objects_where_tacker_has_put_them(cluster: FakeApi, tmp_path: Path) -> None:
    cluster.put(obj("v1", "Namespace", "own"))
    elsewhere = config_map("a")
    elsewhere["metadata"]["namespace"] = "own"
    blue = intree_instance(cluster, tmp_path, elsewhere, namespace="default")
    cluster.edit("ConfigMap", "default", "a", lambda live: live["data"].clear())
    blue.driver().heal(objects.HealVnfRequest(), blue.inst, blue.grant_req, None, blue.vnfd)
    assert cluster.get("ConfigMap", "default", "a")["data"] == elsewhere["data"]
    assert cluster.names("ConfigMap", "own") == []


def test_a_new_package_adds_changes_and_prunes(cluster: FakeApi, tmp_path: Path) -> None:
    blue = intree_instance(cluster, tmp_path / "old", config_map("kept", x="1", y="1"), config_map("dropped"))
    blue.scale("SCALE_OUT")
    blue.change(blue.package([deployment(1), config_map("kept", x="2"), config_map("added")]))
    assert config_maps(cluster) == {"kept", "added"}
    assert cluster.get("ConfigMap", "default", "kept")["data"] == {"x": "2"}
    assert replicas(cluster) == 3


def test_a_new_package_as_the_first_touch_prunes_what_tacker_made(cluster: FakeApi, tmp_path: Path) -> None:
    blue = intree_instance(cluster, tmp_path / "old", config_map("dropped"), obj("v1", "ServiceAccount", "dropped"))
    blue.change(blue.package([deployment(1)]))
    assert config_maps(cluster) == set()
    assert "dropped" not in cluster.names("ServiceAccount", "default")


def test_rollback_of_a_change_that_tackers_driver_began(cluster: FakeApi, tmp_path: Path) -> None:
    blue = intree_instance(cluster, tmp_path / "old", config_map("a"))
    blue.switch()
    stored = blue.inst.obj_clone()
    changed = deployment(1)
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = "web:2"
    blue.change(blue.package([changed]), **{"lcm-kubernetes-def-files": ["Files/kubernetes/all.yaml"]})
    blue.inst = stored  # the management driver has failed: Tacker saves the instance only after success
    blue.switch()
    blue.roll_back_change()
    containers = cluster.get("Deployment", "default", "web")["spec"]["template"]["spec"]["containers"]
    assert [container["image"] for container in containers] == ["web:1"]


@pytest.mark.parametrize("scaled_before", [False, True])
def test_terminate_leaves_nothing(cluster: FakeApi, tmp_path: Path, scaled_before: bool) -> None:
    everything = [
        config_map("a"),
        obj("v1", "Namespace", "own"),
        obj("rbac.authorization.k8s.io/v1", "ClusterRole", "cluster-role", rules=[]),
        {**obj("rbac.authorization.k8s.io/v1", "Role", "role", rules=[]), "metadata": {"name": "role", "namespace": "own"}},
    ]
    cluster.put(config_map("theirs"))
    blue = intree_instance(cluster, tmp_path, *everything, namespace="default")
    if scaled_before:
        blue.scale("SCALE_OUT")
    blue.terminate()
    assert cluster.names("ConfigMap") == ["theirs"]
    assert cluster.names("Deployment") == cluster.names("Role") == cluster.names("ClusterRole") == []
    assert "own" not in cluster.names("Namespace")


def test_a_copy_that_somebody_made_with_the_label_stays(cluster: FakeApi, tmp_path: Path) -> None:
    blue = intree_instance(cluster, tmp_path)
    copied = config_map("copied")
    copied["metadata"]["labels"] = {"tacker_vnf_instance_id": BLUE}
    cluster.put(copied)
    blue.terminate()
    assert config_maps(cluster) == {"copied"}


@pytest.mark.parametrize("kind", ["Deployment", "ConfigMap"])
def test_what_a_controller_in_python_has_made_stays(cluster: FakeApi, tmp_path: Path, kind: str) -> None:
    """Its client has the same name, and it copies the labels of the owner, which may be the instance's or another object."""
    blue = intree_instance(cluster, tmp_path / "old")
    cluster.put(config_map("theirs"))
    owner = cluster.get(kind, "default", "web" if kind == "Deployment" else "theirs")
    made = claim("data", tacker_vnf_instance_id=BLUE)
    made["metadata"]["ownerReferences"] = [controlled_by(owner)]
    uid = cluster.put(made, manager=intree_driver.MANAGER)["metadata"]["uid"]
    blue.change(blue.package([deployment(1)]))
    blue.scale("SCALE_OUT")
    assert cluster.get("PersistentVolumeClaim", "default", "data")["metadata"]["uid"] == uid


def test_rollback_of_an_instantiate_that_tackers_driver_began(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Handed(cluster, tmp_path, [config_map("a"), deployment(1)])
    cluster.fail(faults.status(403, "Forbidden", "no"), method="POST", path="/deployments")
    with pytest.raises(sol_ex.SolException):
        blue.instantiate()
    assert config_maps(cluster) == {"a"}
    blue.switch()
    blue.roll_back_instantiate()
    assert cluster.names("ConfigMap") == []


@pytest.mark.parametrize("after", range(6))
def test_a_crash_in_the_middle_is_harmless(cluster: FakeApi, tmp_path: Path, after: int) -> None:
    blue = intree_instance(cluster, tmp_path, config_map("a"), obj("v1", "Namespace", "own"))
    stored = blue.inst.obj_clone()
    writes = itertools.count()
    cluster.fail(faults.status(400, "BadRequest", "crash"), when=lambda one: one.method == "PATCH" and next(writes) == after)
    with pytest.raises(sol_ex.SolException, match="crash"):
        blue.scale("SCALE_OUT")
    blue.inst = stored
    blue.scale("SCALE_OUT")
    assert replicas(cluster) == 3
    blue.terminate()
    assert cluster.names("ConfigMap") == cluster.names("Deployment") == []
    assert "own" not in cluster.names("Namespace")


def test_a_takeover_that_has_lost_the_instance_transfers_nothing_more(
    cluster: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_times(monkeypatch, trusted=-1)
    blue = intree_instance(cluster, tmp_path, config_map("a"), config_map("b"))

    def lose(request: Request) -> bool:
        live = cluster.get("ConfigMap", "default", INVENTORY)
        live["metadata"]["annotations"]["k8s-cr-driver/token"] = "another"
        cluster.put(live)
        return False

    cluster.fail(faults.unavailable(), method="PATCH", path="/configmaps/a$", when=lose)
    with pytest.raises(sol_ex.SolException, match="Another worker took over"):
        blue.scale("SCALE_OUT")
    assert managers(cluster, "ConfigMap", "a") == {(OURS, "Apply")}
    assert managers(cluster, "ConfigMap", "b") == {(intree_driver.MANAGER, "Update")}


def test_an_object_that_changes_during_the_takeover_is_read_again(cluster: FakeApi, tmp_path: Path) -> None:
    blue = intree_instance(cluster, tmp_path, config_map("a"))
    cluster.fail(faults.status(409, "Conflict", "the object has been modified"), method="PATCH", path="configmaps/a")
    blue.scale("SCALE_OUT")
    assert managers(cluster, "ConfigMap", "a") == {(OURS, "Apply")}


def test_an_object_that_changes_all_the_time_ends_the_operation_at_the_deadline(cluster: FakeApi, tmp_path: Path) -> None:
    blue = intree_instance(cluster, tmp_path, config_map("a"))
    cluster.fail(faults.conflict(), method="PATCH", path="configmaps/a", times=10**6)
    with pytest.raises(sol_ex.SolException, match=r"configmaps/a.*: 409 Conflict"):
        blue.terminate(**{"wait-timeout": 1})


def test_an_account_that_may_create_but_not_list_a_kind_is_refused(cluster: FakeApi, tmp_path: Path) -> None:
    blue = intree_instance(cluster, tmp_path, config_map("a"))
    cluster.knobs.denied.add(("list", "", "configmaps", "*"))
    with pytest.raises(sol_ex.SolException, match="must be allowed to list configmaps") as refused:
        blue.terminate()
    assert refused.value.status == 403
    assert config_maps(cluster) == {"a"}


def test_a_kind_that_the_account_may_neither_list_nor_create_is_skipped(cluster: FakeApi, tmp_path: Path) -> None:
    blue = intree_instance(cluster, tmp_path)
    cluster.knobs.denied.add(("list", "storage.k8s.io", "*", "*"))
    cluster.knobs.denied.add(("create", "storage.k8s.io", "*", "*"))
    blue.terminate()
    assert cluster.names("Deployment") == []


def test_a_check_for_differences_writes_nothing(cluster: FakeApi, tmp_path: Path) -> None:
    blue = intree_instance(cluster, tmp_path)
    vim = blue.inst.vimConnectionInfo["vim1"]
    before = len(writes(cluster))
    with pytest.raises(sol_ex.DbSyncNoDiff):
        Driver().diff_check_inst(blue.inst, vim)
    [pod] = cluster.names("Pod", "default")
    cluster.delete("Pod", "default", pod)
    Driver().diff_check_inst(blue.inst, vim)
    assert len(writes(cluster)) == before
    assert "k8s_cr" not in blue.inst.instantiatedVnfInfo.metadata


# --- and back -----------------------------------------------------------------------------------------------------------


def test_tackers_driver_scales_heals_and_terminates_what_ours_made(cluster: FakeApi, tmp_path: Path) -> None:
    blue = own_instance(cluster, tmp_path, config_map("a"))
    blue.scale("SCALE_OUT")
    assert replicas(cluster) == 3
    chosen = cluster.names("Pod", "default")[0]
    blue.heal(chosen)
    assert chosen not in cluster.names("Pod", "default")
    blue.scale("SCALE_IN")
    assert replicas(cluster) == 1
    blue.terminate()
    assert cluster.names("Deployment") == []
    assert config_maps(cluster) == set()


def test_tackers_driver_terminates_what_it_made_and_ours_scaled_healed_and_changed(cluster: FakeApi, tmp_path: Path) -> None:
    blue = intree_instance(cluster, tmp_path / "old", config_map("a"))
    blue.scale("SCALE_OUT")
    blue.heal(*cluster.names("Pod", "default"))
    blue.vnfd = blue.package([deployment(1), config_map("b")])
    blue.change(blue.vnfd)
    blue.switch()
    blue.scale("SCALE_IN")
    assert replicas(cluster) == 1
    blue.terminate()
    assert cluster.names("Deployment") == []
    assert config_maps(cluster) == set()


def test_tackers_driver_finds_objects_in_the_namespace_of_their_manifests(cluster: FakeApi, tmp_path: Path) -> None:
    cluster.put(obj("v1", "Namespace", "own"))
    pod = obj("v1", "Pod", "web", spec={"containers": [{"name": "web", "image": "web:1"}]})
    pod["metadata"]["namespace"] = "own"
    _runs_at_once(cluster)
    blue = Handed(cluster, tmp_path, [pod])
    blue.switch()
    blue.instantiate()
    blue.switch()
    blue.terminate()
    assert cluster.names("Pod", "own") == []


def test_objects_that_the_intree_driver_has_written_since_are_taken_over_again(cluster: FakeApi, tmp_path: Path) -> None:
    blue = own_instance(cluster, tmp_path)
    blue.scale("SCALE_OUT")
    blue.switch()
    blue.scale("SCALE_OUT")
    assert replicas(cluster) == 5
    assert managers(cluster, "Deployment", "web") == {(OURS, "Apply")}


def lose_nodes(blue: Handed, *, all_of_them: bool = False) -> None:
    """The VNFCs as this driver stores them for Pods that have no node."""
    vnfcs = blue.inst.instantiatedVnfInfo.vnfcResourceInfo
    for vnfc in vnfcs if all_of_them else vnfcs[:1]:
        vnfc.metadata = {key: value for key, value in vnfc.metadata.items() if key != "node"}


@pytest.mark.parametrize("form", ["present", "first"])
def test_a_pod_without_a_node_does_not_hand_an_instance_over(cluster: FakeApi, tmp_path: Path, form: str) -> None:
    """The count must not become that of the Pods that are present: one may be lost with its node."""
    blue = Handed(cluster, tmp_path, [deployment(5)])
    blue.switch()
    blue.instantiate()
    info = blue.inst.instantiatedVnfInfo
    if form == "first":
        del info.metadata["k8s_cr"]["version"]
        for number, vnfc in enumerate(info.vnfcResourceInfo):
            vnfc.metadata = {"node": f"n{number}"}
    lose_nodes(blue, all_of_them=form == "present")
    info.vnfcResourceInfo = info.vnfcResourceInfo[:4]
    blue.heal(info.vnfcResourceInfo[0].id)
    assert replicas(cluster) == 5


def test_a_synchronization_leaves_the_takeover_to_the_next_verb(cluster: FakeApi, tmp_path: Path) -> None:
    blue = own_instance(cluster, tmp_path)
    blue.scale("SCALE_OUT")
    blue.inst.vnfdId = "vnfd"
    blue.inst.instantiatedVnfInfo.scaleStatus = []
    cluster.delete("Pod", "default", cluster.names("Pod", "default")[0])
    in_database = blue.inst.obj_clone()
    with pytest.MonkeyPatch.context() as tacker:
        tacker.setattr(objects.VnfLcmOpOccV2, "get_by_filter", lambda *_, **__: [])
        tacker.setattr(inst_utils, "get_inst", lambda *_: in_database)
        tacker.setattr(nfvo_client.NfvoClient, "get_vnfd", lambda *_: blue.vnfd)
        Driver().sync_db(None, blue.inst, blue.inst.vimConnectionInfo["vim1"])
    blue.switch()
    blue.scale("SCALE_OUT")
    assert managers(cluster, "Deployment", "web") == {(OURS, "Apply")}
    assert replicas(cluster) == 5


def test_a_bare_pod_that_the_intree_driver_has_created_again_is_deleted_by_terminate(cluster: FakeApi, tmp_path: Path) -> None:
    _runs_at_once(cluster)
    blue = Handed(cluster, tmp_path, [obj("v1", "Pod", "web", spec={"containers": [{"name": "web", "image": "web:1"}]})])
    blue.switch()
    blue.instantiate()
    blue.switch()
    blue.heal("web")
    blue.switch()
    blue.terminate()
    assert cluster.names("Pod", "default") == []


def _runs_at_once(cluster: FakeApi) -> None:
    def run(live: dict[str, Any]) -> None:
        metadata = live["metadata"]
        if (live.get("status") or {}).get("phase") != "Running" and not metadata.get("deletionTimestamp"):
            status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            cluster.set_status("Pod", metadata["namespace"], metadata["name"], status)

    cluster.react("Pod", run)


@pytest.mark.parametrize(("scaled", "left"), [("Retain", []), ("Delete", ["data-db-0"])])
def test_the_default_of_a_stateful_set_keeps_no_claims_after_a_takeover(
    cluster: FakeApi, tmp_path: Path, scaled: str, left: list[str]
) -> None:
    """The client that has created it owns the API server's default whenDeleted: Retain, too; another policy is the author's."""
    blue = intree_instance(cluster, tmp_path)
    made = stateful_set("db", persistentVolumeClaimRetentionPolicy={"whenDeleted": "Retain", "whenScaled": scaled})
    made["metadata"]["labels"] = {"tacker_vnf_instance_id": BLUE}
    cluster.put(made, manager=intree_driver.MANAGER)
    ready = {"observedGeneration": 1, "replicas": 1, "readyReplicas": 1, "availableReplicas": 1}
    cluster.set_status("StatefulSet", "default", "db", ready, manager=controllers.MANAGER)
    cluster.put(claim("data-db-0", app="db"), manager=controllers.MANAGER)
    blue.terminate()
    assert (cluster.names("StatefulSet", "default"), cluster.names("PersistentVolumeClaim", "default")) == ([], left)


def test_a_vdu_that_others_have_created_again_is_taken_over(cluster: FakeApi, tmp_path: Path) -> None:
    blue = intree_instance(cluster, tmp_path, config_map("a"))
    created_again(cluster, "Deployment", "default", "web")
    blue.terminate()
    assert cluster.find("Deployment", "default", "web") is None


def test_a_copy_by_another_python_client_in_another_namespace_stays(cluster: FakeApi, tmp_path: Path) -> None:
    """Ansible uses the client that Tacker uses, so its field manager is the same."""
    blue = intree_instance(cluster, tmp_path, config_map("a"))
    cluster.put(obj("v1", "Namespace", "backup"))
    metadata = {"name": "a", "namespace": "backup", "labels": {"tacker_vnf_instance_id": BLUE}}
    cluster.put({**config_map("a"), "metadata": metadata}, manager=intree_driver.MANAGER)
    blue.terminate()
    assert cluster.find("ConfigMap", "default", "a") is None
    assert cluster.find("ConfigMap", "backup", "a") is not None


def test_a_heal_that_is_refused_after_the_takeover_gives_the_token_back(cluster: FakeApi, tmp_path: Path) -> None:
    """Else the next operation waits for it: 41.8 s with Tacker, and as long after each further failure."""
    blue = intree_instance(cluster, tmp_path)
    cluster.fail(faults.status(422, "Invalid", "the dry run is refused"), method="PATCH", path="deployments/web", times=1)
    with pytest.raises(sol_ex.SolException, match="the dry run is refused"):
        blue.heal(recreate=True)
    assert cluster.get("ConfigMap", "default", INVENTORY)["metadata"]["annotations"]["k8s-cr-driver/released"] == "true"


def with_two_names_of_a_port(count: int = 1) -> dict[str, Any]:
    """Case 29: the API server creates it, and refuses every apply of it."""
    made = deployment(count)
    [container] = made["spec"]["template"]["spec"]["containers"]
    container["ports"] = [{"name": "sbi", "containerPort": 8000}, {"name": "m", "containerPort": 8000, "protocol": "TCP"}]
    return made


def test_an_object_that_no_apply_can_touch_is_scaled_healed_changed_and_terminated(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Handed(cluster, tmp_path / "old", [with_two_names_of_a_port()])
    blue.instantiate()
    blue.switch()
    before = cluster.get("Deployment", "default", "web")["spec"]["template"]
    blue.scale("SCALE_OUT")
    assert replicas(cluster) == 3
    assert managers(cluster, "Deployment", "web") == {(OURS, "Apply")}
    first = cluster.names("Pod", "default")[0]
    blue.heal(blue.inst.instantiatedVnfInfo.vnfcResourceInfo[0].id)
    blue.heal()
    assert first not in cluster.names("Pod", "default")
    assert cluster.get("Deployment", "default", "web")["spec"]["template"] == before
    with pytest.raises(sol_ex.SolException, match=r"Files/kubernetes/all\.yaml.*same containerPort, protocol"):
        blue.change(blue.package([with_two_names_of_a_port()]))
    fixed = with_two_names_of_a_port()
    fixed["spec"]["template"]["spec"]["containers"][0]["ports"].pop()
    blue.vnfd = blue.package([fixed])
    blue.change(blue.vnfd)
    blue.scale("SCALE_OUT")
    assert replicas(cluster) == 5
    blue.terminate()
    assert cluster.find("Deployment", "default", "web") is None
