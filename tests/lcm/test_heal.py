# SPDX-License-Identifier: Apache-2.0
"""Heal: what was chosen is replaced, or applied again, and COMPLETED means that it is there and ready."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tacker.sol_refactored import objects
from tacker.sol_refactored.common import exceptions as sol_ex

from k8s_cr_driver.lcm.driver import Driver
from tests.fake_api import FakeApi, controllers, faults
from tests.fake_api.recording import Request
from tests.instance import config_map, controlled_by, crontab, crontab_crd, job, obj, replaced, stateful_set
from tests.lcm.instance import Instance, instantiated
from tests.lcm.web import RUNNING, deployment, selecting
from tests.times import change_times


@pytest.fixture
def web(cluster: FakeApi, tmp_path: Path) -> Instance:
    """Two Pods, and an object that is no VDU."""
    return instantiated(cluster, tmp_path, [deployment(2), config_map("settings")])


@pytest.fixture
def tab(api: FakeApi, tmp_path: Path) -> Instance:
    """A VDU with neither Pods nor Machines."""
    manifest = crontab("tab")
    manifest["metadata"]["annotations"] = {"k8s-cr-driver/vdu": "Web"}
    return instantiated(api, tmp_path, [crontab_crd(), manifest])


def vnfcs(instance: Instance) -> set[str]:
    return {vnfc.id for vnfc in instance.inst.instantiatedVnfInfo.vnfcResourceInfo}


@pytest.mark.parametrize("has_lost_its_label", [False, True])
def test_the_chosen_pod_is_replaced_and_no_other(cluster: FakeApi, web: Instance, has_lost_its_label: bool) -> None:
    if has_lost_its_label:
        replaced(cluster, "Deployment", "default", "web")
    chosen, other = cluster.names("Pod", "default")
    web.heal(chosen)
    after = set(cluster.names("Pod", "default"))
    assert other in after and chosen not in after and len(after) == 2
    assert vnfcs(web) == after


def test_a_deployment_of_others_under_the_name_of_a_vdu_is_reported(cluster: FakeApi, web: Instance) -> None:
    chosen, _ = cluster.names("Pod", "default")
    cluster.delete("Deployment", "default", "web")
    cluster.put({**deployment(2), "metadata": {"name": "web", "namespace": "default"}})
    with pytest.raises(sol_ex.SolException, match=r"Deployment\.apps default/web"):
        web.heal(chosen)


def test_of_all_pods_each_is_replaced_and_every_object_applied_again(cluster: FakeApi, web: Instance) -> None:
    before = set(cluster.names("Pod", "default"))
    cluster.delete("ConfigMap", "default", "settings")
    web.heal()
    after = set(cluster.names("Pod", "default"))
    assert not before & after and len(after) == 2
    assert vnfcs(web) == after
    assert cluster.find("ConfigMap", "default", "settings")


def test_after_a_modify_of_the_vnfd_only_chosen_vnfcs_are_healed(cluster: FakeApi, web: Instance) -> None:
    """Tacker hands over the package that the instance names then, whose objects are not those of the instance."""
    web.vnfd = web.package([deployment(1), config_map("settings", a="2")])
    web.vnfd.vnfd_id = "other"
    with pytest.raises(sol_ex.SolException, match=r"vnfdId: a MODIFY has named 'other'.*change the current VNF package"):
        web.heal()
    assert cluster.get("ConfigMap", "default", "settings")["data"] == {"a": "1"}
    chosen, other = cluster.names("Pod", "default")
    web.heal(chosen)
    assert other in cluster.names("Pod", "default")


def test_a_pod_that_is_not_ready_yet_is_waited_for(cluster: FakeApi, web: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    change_times(monkeypatch, count_every=0.05)
    old = set(cluster.names("Pod", "default"))
    starting: list[str] = []
    looks: list[Request] = []

    def start(pod: dict[str, Any]) -> None:
        name = pod["metadata"]["name"]
        if name not in old and name not in starting and pod.get("status") == RUNNING:
            starting.append(name)
            cluster.set_status("Pod", "default", name, {"phase": "Pending"})

    def looked(request: Request) -> bool:
        if starting and request.path.endswith("/pods") and not request.watch:
            looks.append(request)
            if len(looks) == 3:
                cluster.set_status("Pod", "default", starting[0], RUNNING)
        return False

    cluster.react("Pod", start)
    cluster.fail(faults.internal(), when=looked)
    web.heal(min(old))
    assert len(looks) >= 3
    assert cluster.get("Pod", "default", starting[0])["status"] == RUNNING


def test_heal_of_a_pod_that_no_longer_exists_completes(cluster: FakeApi, web: Instance) -> None:
    chosen, _ = cluster.names("Pod", "default")
    cluster.delete("Pod", "default", chosen)
    web.heal(chosen)
    assert vnfcs(web) == set(cluster.names("Pod", "default"))


def test_changes_by_others_are_undone_with_force_conflicts(cluster: FakeApi, web: Instance) -> None:
    def drift(live: dict[str, Any]) -> None:
        live["spec"]["template"]["spec"]["containers"][0]["image"] = "drifted:1"

    chosen = cluster.names("Pod", "default")[0]
    cluster.edit("Deployment", "default", "web", drift, manager="kubectl-edit")
    with pytest.raises(sol_ex.SolException, match=r"others manage fields .*kubectl-edit"):
        web.heal(chosen)
    web.heal(chosen, **{"force-conflicts": True})
    assert cluster.get("Deployment", "default", "web")["spec"]["template"]["spec"]["containers"][0]["image"] == "web:1"


@pytest.mark.parametrize("everything", [False, True])
def test_a_refused_object_is_reported_before_any_pod_is_deleted(cluster: FakeApi, web: Instance, everything: bool) -> None:
    def drift(live: dict[str, Any]) -> None:
        live["spec"]["template"]["metadata"]["labels"]["app"] = "drifted"

    cluster.edit("Deployment", "default", "web", drift, manager="kubectl-edit")
    before = cluster.names("Pod", "default")
    with pytest.raises(sol_ex.SolException, match=r"others manage fields .*kubectl-edit"):
        web.heal(*(() if everything else before[:1]))
    assert cluster.names("Pod", "default") == before


def test_a_webhook_that_accepts_no_dry_run_does_not_prevent_a_heal(cluster: FakeApi, web: Instance) -> None:
    refusal = faults.status(400, "BadRequest", 'admission webhook "a.example.com" does not support dry run')
    cluster.fail(refusal, method="PATCH", path="deployments/web", when=lambda one: one.query.get("dryRun") == "All")
    before = set(cluster.names("Pod", "default"))
    web.heal()
    assert not before & set(cluster.names("Pod", "default"))


def test_a_replica_that_is_several_pods_is_whole_again(cluster: FakeApi, tmp_path: Path) -> None:
    cluster.put(deployment(2))
    tab = instantiated(cluster, tmp_path, selecting(cluster, 1))
    owner = controlled_by(cluster.get("CronTab", "default", "tab"))
    cluster.edit("Deployment", "default", "web", lambda live: live["metadata"].update(ownerReferences=[owner]))
    chosen, other = cluster.names("Pod", "default")
    assert vnfcs(tab) == {chosen, other}
    tab.heal(chosen)
    after = set(cluster.names("Pod", "default"))
    assert vnfcs(tab) == after and other in after and chosen not in after and len(after) == 2


def test_the_pods_that_a_status_selects_are_found_again_when_their_object_was_deleted(cluster: FakeApi, tmp_path: Path) -> None:
    cluster.put(deployment(2))
    tab = instantiated(cluster, tmp_path, selecting(cluster, 1))
    cluster.delete("CronTab", "default", "tab")
    tab.heal()
    assert vnfcs(tab) == set(cluster.names("Pod", "default"))


def controlled(uid: str = "", kind: str = "CronTab") -> Callable[[dict[str, Any]], None]:
    """An edit of an object, which then names the CronTab of the instance, or almost, as its controller."""

    def edit(live: dict[str, Any]) -> None:
        owner = {"apiVersion": "stable.example.com/v1", "kind": kind, "name": "tab", "uid": uid, "controller": True}
        live["metadata"]["ownerReferences"] = [owner] if uid else []

    return edit


def assert_pods_stay(cluster: FakeApi, tab: Instance, everything: bool) -> None:
    """In a heal of all VNFCs, and in one of a chosen VNFC, which is refused."""
    before = set(cluster.names("Pod", "default"))
    assert vnfcs(tab) == before
    if everything:
        tab.heal()
    else:
        with pytest.raises(sol_ex.SolException, match=r"no object of this VNF instance controls it .*never deleted"):
            tab.heal(min(before))
    assert set(cluster.names("Pod", "default")) == before


@pytest.mark.parametrize("forge", [controlled(), controlled("another"), controlled("another", "Unknown")])
@pytest.mark.parametrize("everything", [False, True])
def test_pods_that_only_the_selector_of_a_status_finds_are_never_deleted(
    cluster: FakeApi, tmp_path: Path, everything: bool, forge: Callable[[dict[str, Any]], None]
) -> None:
    cluster.put(deployment(2))
    tab = instantiated(cluster, tmp_path, selecting(cluster, 1))
    cluster.edit("Deployment", "default", "web", forge)
    assert_pods_stay(cluster, tab, everything)


@pytest.mark.parametrize("everything", [False, True])
def test_the_pods_of_a_restored_copy_of_a_member_are_never_deleted(cluster: FakeApi, tmp_path: Path, everything: bool) -> None:
    """The copy has the instance's label and field manager, but the instance has not created it."""
    cluster.put(deployment(2))
    tab = instantiated(cluster, tmp_path, selecting(cluster, 1))
    member = cluster.get("CronTab", "default", "tab")["metadata"]
    for part in ("labels", "managedFields"):  # an update with both would have its own fields
        cluster.edit("Deployment", "default", "web", lambda live, part=part: live["metadata"].update({part: member[part]}))
    assert_pods_stay(cluster, tab, everything)


def test_the_pods_of_a_selector_in_the_spec_are_no_vnfcs(cluster: FakeApi, tmp_path: Path) -> None:
    cluster.put(deployment(2))
    crd, manifest = selecting(cluster, 1)
    crd["spec"]["versions"][0]["subresources"]["scale"]["labelSelectorPath"] = ".spec.selector"
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["selector"] = {"type": "string"}
    manifest["spec"]["selector"] = "app=web"
    tab = instantiated(cluster, tmp_path, [crd, manifest])
    before = set(cluster.names("Pod", "default"))
    assert vnfcs(tab) == {"tab-0"}
    tab.heal()
    assert set(cluster.names("Pod", "default")) == before


@pytest.mark.parametrize("again", [False, True])
def test_an_object_without_pods_is_applied_again_or_made_again(api: FakeApi, tab: Instance, again: bool) -> None:
    before = api.get("CronTab", "default", "tab")["metadata"]["uid"]
    api.edit("CronTab", "default", "tab", lambda live: live["spec"].update(extra="drift"))
    tab.heal("tab-0", recreate=again)
    assert (api.get("CronTab", "default", "tab")["metadata"]["uid"] != before) is again
    assert vnfcs(tab) == {"tab-0"}


def test_an_object_that_has_lost_its_label_is_made_again(api: FakeApi, tab: Instance) -> None:
    before = replaced(api, "CronTab", "default", "tab")["metadata"]["uid"]
    tab.heal("tab-0", recreate=True)
    assert api.get("CronTab", "default", "tab")["metadata"]["uid"] != before
    assert vnfcs(tab) == {"tab-0"}


def test_an_object_that_was_deleted_is_made_again(api: FakeApi, tab: Instance) -> None:
    api.delete("CronTab", "default", "tab")
    tab.heal("tab-0")
    assert api.names("CronTab", "default") == ["tab"]


@pytest.mark.parametrize("manifest", [obj("v1", "Namespace", "home"), crontab_crd()], ids=["Namespace", "CRD"])
def test_what_may_hold_objects_of_others_is_never_deleted(api: FakeApi, tmp_path: Path, manifest: dict[str, Any]) -> None:
    home = copy.deepcopy(manifest)
    home["metadata"]["annotations"] = {"k8s-cr-driver/vdu": "Web"}
    instance = instantiated(api, tmp_path, [home, config_map("settings", "home" if home["kind"] == "Namespace" else "default")])
    where = home["kind"], None, home["metadata"]["name"]
    before = api.get(*where)["metadata"]["uid"]
    [vnfc] = instance.inst.instantiatedVnfInfo.vnfcResourceInfo
    with pytest.raises(sol_ex.SolException, match="a heal never deletes it; heal it without recreate"):
        instance.heal(vnfc.id, recreate=True)
    instance.heal(recreate=True)
    assert api.get(*where)["metadata"]["uid"] == before


def bare_pod(**spec: Any) -> dict[str, Any]:
    """It is the VDU."""
    pod = obj("v1", "Pod", "one", "default", spec={"containers": [{"name": "c", "image": "i"}], **spec})
    pod["metadata"] |= {"labels": {"app": "one"}, "annotations": {"k8s-cr-driver/vdu": "Web"}}
    return pod


@pytest.mark.parametrize("chosen", [["one"], []], ids=["chosen", "all"])
@pytest.mark.parametrize("recreate", [False, True])
def test_a_bare_pod_that_was_evicted_is_replaced(api: FakeApi, tmp_path: Path, chosen: list[str], recreate: bool) -> None:
    """Database synchronization has taken it out of the record: a failed Pod is no VNFC."""
    controllers.run_workloads(api)
    instance = instantiated(api, tmp_path, [bare_pod()])
    before = api.get("Pod", "default", "one")["metadata"]["uid"]
    api.set_status("Pod", "default", "one", {"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory"})
    if not chosen:
        instance.inst.instantiatedVnfInfo.vnfcResourceInfo = []
    instance.heal(*chosen, recreate=recreate)
    assert api.get("Pod", "default", "one")["metadata"]["uid"] != before
    assert vnfcs(instance) == {"one"}


@pytest.mark.parametrize("is_recorded", [True, False])
def test_a_bare_pod_that_is_missing_is_created_by_a_heal_of_all(api: FakeApi, tmp_path: Path, is_recorded: bool) -> None:
    controllers.run_workloads(api)
    instance = instantiated(api, tmp_path, [bare_pod()])
    api.delete("Pod", "default", "one")
    if not is_recorded:
        instance.inst.instantiatedVnfInfo.vnfcResourceInfo = []
    instance.heal()
    assert vnfcs(instance) == {"one"}


def test_a_failed_pod_that_runs_to_its_end_is_healed(api: FakeApi, tmp_path: Path) -> None:
    """It has succeeded at the end of the heal, and is no VNFC then."""
    phases = iter(["Running", "Succeeded"])

    def run(live: dict[str, Any]) -> None:
        if live.get("status", {}).get("phase") in (None, "Pending") and "deletionTimestamp" not in live["metadata"]:
            status = {"phase": next(phases), "conditions": [{"type": "Ready", "status": "True"}]}
            api.set_status("Pod", "default", "one", status)

    api.react("Pod", run)
    instance = instantiated(api, tmp_path, [bare_pod(restartPolicy="Never")])
    api.set_status("Pod", "default", "one", {"phase": "Failed", "reason": "Evicted"})
    instance.heal()
    assert api.get("Pod", "default", "one")["status"]["phase"] == "Succeeded"


def test_recreate_is_true_or_false(tab: Instance) -> None:
    with pytest.raises(sol_ex.SolException, match="additionalParams recreate: give true or false"):
        tab.heal("tab-0", recreate="perhaps")


@pytest.mark.parametrize(("key", "value"), [("namespace", "other"), ("lcm-kubernetes-def-files", ["Files/other.yaml"])])
@pytest.mark.parametrize("verb", ["heal", "terminate"])
def test_a_key_that_would_select_or_place_other_objects_is_refused(
    cluster: FakeApi, web: Instance, verb: str, key: str, value: Any
) -> None:
    cluster.put(obj("v1", "Namespace", "other"))
    cluster.requests.clear()
    with pytest.raises(sol_ex.SolException, match=f"additionalParams {key}: only a change of the VNF package") as refused:
        getattr(web, verb)(**{key: value})
    assert refused.value.status == 400
    assert len(cluster.requests) == 0


def test_the_namespace_of_the_instance_may_be_repeated(web: Instance) -> None:
    web.heal(namespace="default")
    assert len(vnfcs(web)) == 2


def test_a_pod_is_chosen_by_its_vdu_in_a_record_with_names_as_ids(api: FakeApi, tmp_path: Path) -> None:
    """Earlier versions stored the names of VNFCs as their ids, also where two VDUs have VNFCs of one name."""
    controllers.run_workloads(api)
    several = []
    for vdu, namespace in (("Web", "default"), ("Db", "blue")):
        manifest = stateful_set("web")
        manifest["metadata"] |= {"namespace": namespace, "annotations": {"k8s-cr-driver/vdu": vdu}}
        several.append(manifest)
    web = instantiated(api, tmp_path, [obj("v1", "Namespace", "blue"), *several], vdus={"Web": "web", "Db": "web"})
    for vnfc in web.inst.instantiatedVnfInfo.vnfcResourceInfo:
        vnfc.id = vnfc.computeResource.resourceId
    before = [api.get("Pod", namespace, "web-0")["metadata"]["uid"] for namespace in ("default", "blue")]
    web.heal("web-0")
    chosen, other = (api.get("Pod", namespace, "web-0")["metadata"]["uid"] for namespace in ("default", "blue"))
    assert chosen != before[0] and other == before[1]
    assert vnfcs(web) == {"Web.web-0", "Db.web-0"}


@pytest.mark.parametrize("kind", ["StatefulSet", "Deployment"])
def test_pods_of_an_orphaned_workload_are_replaced(api: FakeApi, tmp_path: Path, kind: str) -> None:
    """`kubectl delete --cascade=orphan` leaves Pods that the workload takes over when a heal creates it again."""
    controllers.run_workloads(api)
    manifest = stateful_set("web", replicas=2) if kind == "StatefulSet" else deployment(2)
    web = instantiated(api, tmp_path, [manifest])
    theirs = obj("v1", "Pod", "web-shell", "default", spec=manifest["spec"]["template"]["spec"], status=RUNNING)
    api.put({**theirs, "metadata": {**theirs["metadata"], "labels": {"app": "web"}}})
    before = {name: api.get("Pod", "default", name)["metadata"]["uid"] for name in api.names("Pod", "default")}
    known = vnfcs(web)
    api.delete(kind, "default", "web", policy="Orphan")
    assert set(api.names("Pod", "default")) == set(before)
    web.heal()
    after = {name: api.get("Pod", "default", name)["metadata"]["uid"] for name in api.names("Pod", "default")}
    assert set(after.values()) & set(before.values()) == {before["web-shell"]}
    assert vnfcs(web) == known and len(after) == 3


def test_a_heal_creates_again_what_has_gone_with_its_crd(cluster: FakeApi, tmp_path: Path) -> None:
    tab = crontab("tab")
    tab["metadata"]["annotations"] = {"k8s-cr-driver/vdu": "Web"}
    blue = instantiated(cluster, tmp_path, [crontab_crd(), tab])
    cluster.delete("CustomResourceDefinition", None, "crontabs.stable.example.com")
    blue.heal()
    assert cluster.names("CronTab", "default") == ["tab"]


@pytest.mark.parametrize("labels", [{"app": "migrate"}, {}, None])
def test_a_finished_job_that_is_a_vdu_runs_once(cluster: FakeApi, tmp_path: Path, labels: Any) -> None:
    """Tacker's record has the objects of VDUs with the label of the instance."""
    ran: list[str] = []
    controllers.run_workloads(cluster)
    cluster.react("Job", lambda live: ran.append(live["metadata"]["uid"]) if not live.get("status") else None)
    migrate = job("migrate", "i:1", **{"k8s-cr-driver/vdu": "Web"})
    migrate["metadata"]["labels"] = labels
    blue = instantiated(cluster, tmp_path / "a", [migrate])
    cluster.delete("Job", "default", "migrate")
    blue.heal()
    blue.change(blue.package([migrate]))
    blue.heal()
    assert len(set(ran)) == 1


def test_a_heal_of_the_whole_instance_replaces_also_pods_that_the_record_does_not_name(
    cluster: FakeApi, tmp_path: Path
) -> None:
    blue = instantiated(cluster, tmp_path, [deployment(2)])
    cluster.delete("Pod", "default", cluster.names("Pod", "default")[0])
    before = set(cluster.names("Pod", "default"))
    blue.heal()
    assert len(before) == 2 and not before & set(cluster.names("Pod", "default"))


def test_a_heal_of_an_empty_list_of_vnfcs_is_refused(web: Instance) -> None:
    """Tacker accepts it, as a client sends it whose filter finds nothing: nothing was healed, and the operation COMPLETED."""
    req = objects.HealVnfRequest.from_dict({"vnfcInstanceId": []})
    with pytest.raises(sol_ex.SolException, match="vnfcInstanceId: names no VNFC; name some, or leave it out") as refused:
        Driver().heal(req, web.inst, web.grant_req, None, web.vnfd)
    assert refused.value.status == 400
