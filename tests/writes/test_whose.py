# SPDX-License-Identifier: Apache-2.0
"""Whose an object is: ours is changed and deleted, others' is left alone, what is shared goes with its last user."""

from __future__ import annotations

import itertools
import json
from concurrent.futures import Future

import pytest
import urllib3

from k8s_cr_driver.engine.delete import pruner
from k8s_cr_driver.engine.report.not_ready import NotReady
from k8s_cr_driver.errors import DriverError, NotOurs
from k8s_cr_driver.objects.dependencies import DEPENDS_ON
from k8s_cr_driver.objects.keys import Object, ObjectKey
from k8s_cr_driver.objects.marks import ADOPTED, INSTANCE_LABEL
from tests.fake_api import FakeApi, controllers, faults
from tests.fake_api.recording import Request
from tests.instance import (
    BLUE,
    CONDITIONS,
    GREEN,
    Instance,
    config_map,
    controlled_by,
    crontab,
    crontab_crd,
    deployment,
    labelled,
    obj,
    state,
    status,
    wait_for,
)

SHARED = [crontab_crd(), obj("v1", "Namespace", "both")]


def test_an_object_whose_owner_goes_is_left_to_it(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([crontab_crd(), crontab("owner"), config_map("child"), config_map("single")])
    owner = api.get("CronTab", "default", "owner")
    api.edit("ConfigMap", "default", "child", lambda live: live["metadata"].update(ownerReferences=[controlled_by(owner)]))
    api.requests.clear()
    blue.terminate()
    assert not api.requests.select("DELETE", "configmaps/child")
    assert len(api.requests.select("DELETE", "configmaps/single")) == 1
    assert state(api) == {}


def owned_by(live: Object, *owners: Object) -> None:
    first, *others = [controlled_by(owner) for owner in owners]
    live["metadata"]["ownerReferences"] = [first, *({**other, "controller": False} for other in others)]


def test_an_object_with_another_owner_that_stays_is_deleted(api: FakeApi, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    blue = Instance(api.url)
    blue.reconcile([crontab_crd(), crontab("owner"), config_map("child")])
    owners = api.get("CronTab", "default", "owner"), api.put(config_map("theirs"))
    api.edit("ConfigMap", "default", "child", lambda live: owned_by(live, *owners))
    blue.terminate()
    assert api.names("ConfigMap") == ["theirs"]
    assert "child has another owner that may stay" in caplog.text


def test_an_object_left_to_an_owner_that_releases_it_is_deleted(api: FakeApi) -> None:
    blue = Instance(api.url)
    owner = crontab("owner")
    owner["metadata"]["finalizers"] = ["example.com/hold"]
    blue.reconcile([crontab_crd(), owner, config_map("child")])
    live = api.get("CronTab", "default", "owner")
    api.edit("ConfigMap", "default", "child", lambda child: owned_by(child, live))
    run = blue.start([])
    blue.wait_until_reported("child", "deleting")
    api.edit("ConfigMap", "default", "child", lambda child: owned_by(child, api.put(config_map("theirs"))))
    api.release("CronTab", "default", "owner")
    run.result(10)
    assert api.names("ConfigMap") == ["theirs"]


def test_an_object_whose_owner_is_only_released_is_deleted(api: FakeApi) -> None:
    api.put(crontab_crd())
    owner = api.put(crontab("theirs"))
    blue = Instance(api.url, adopt=True)
    child = config_map("child")
    child["metadata"]["ownerReferences"] = [controlled_by(owner)]
    blue.reconcile([crontab("theirs"), child])
    blue.terminate()
    assert api.names("ConfigMap") == []
    assert api.names("CronTab") == ["theirs"]


def test_an_adoption_outlives_a_retry_without_the_option(api: FakeApi) -> None:
    api.put(config_map("a", theirs="1"))
    Instance(api.url, adopt=True).reconcile([config_map("a", ours="2")])
    Instance(api.url).reconcile([config_map("a", ours="3")])
    assert api.get("ConfigMap", "default", "a")["data"] == {"theirs": "1", "ours": "3"}
    Instance(api.url).terminate()
    assert api.get("ConfigMap", "default", "a")["data"] == {"theirs": "1"}


def test_an_adopted_object_that_another_instance_has_now_is_refused(api: FakeApi) -> None:
    api.put(config_map("a", theirs="1"))
    blue, green = Instance(api.url, BLUE, adopt=True), Instance(api.url, GREEN)
    blue.reconcile([config_map("a")])
    api.delete("ConfigMap", "default", "a")
    green.reconcile([config_map("a", greens="1")])
    before = api.get("ConfigMap", "default", "a")
    with pytest.raises(NotOurs, match="belongs to another VNF instance"):
        blue.reconcile([config_map("a", blues="1")])
    blue.terminate()
    assert api.get("ConfigMap", "default", "a") == before


def test_an_adopted_object_that_leaves_the_set_is_released(api: FakeApi) -> None:
    api.put(config_map("a", theirs="1"))
    blue = Instance(api.url, adopt=True)
    blue.reconcile([config_map("a", ours="2"), config_map("b")])
    blue.reconcile([config_map("b")])
    assert api.get("ConfigMap", "default", "a")["data"] == {"theirs": "1"}
    inventory = api.get("ConfigMap", "default", f"k8s-cr-driver-{BLUE}")
    assert json.loads(inventory["data"]["adopted"]) == {}


def test_an_adopted_object_that_was_deleted_and_made_again_is_ours(api: FakeApi) -> None:
    api.put(config_map("a", theirs="1"))
    blue = Instance(api.url, adopt=True)
    blue.reconcile([config_map("a", ours="2")])
    api.delete("ConfigMap", "default", "a")
    blue.reconcile([config_map("a", ours="2")])
    blue.terminate()
    assert state(api) == {}


@pytest.mark.parametrize("adopted", [config_map("a", theirs="1"), crontab_crd(), obj("v1", "Namespace", "both")])
@pytest.mark.parametrize("runs", [1, 2])
def test_an_annotation_does_not_end_an_adoption(api: FakeApi, adopted: Object, runs: int) -> None:
    """The record decides: who may write the object may write the annotation, too."""
    live = api.put(adopted)
    where = live["kind"], live["metadata"].get("namespace"), live["metadata"]["name"]
    for number in range(runs):
        Instance(api.url, adopt=True).reconcile([adopted, config_map(f"b-{number}")])
        api.edit(*where, lambda live: live["metadata"].update(annotations={"k8s-cr-driver/made": "true"}))
    Instance(api.url).terminate()
    assert api.get(*where)["metadata"]["uid"] == live["metadata"]["uid"]


@pytest.mark.parametrize("next_run", ["retry", "terminate"])
def test_an_object_whose_creation_got_no_response_is_ours(api: FakeApi, next_run: str) -> None:
    api.put(config_map("a", theirs="1"))
    blue = Instance(api.url, adopt=True)
    blue.reconcile([config_map("a", ours="2")])
    api.delete("ConfigMap", "default", "a")
    api.fail(faults.reset_after(), method="PATCH", path="configmaps/a$")
    if next_run == "terminate":  # by another worker, for this one dies at once
        api.fail(faults.reset_before(), method="PATCH", path="configmaps/a$", times=1000)
        run = blue.start([config_map("a", ours="2")])
        wait_for(api, lambda: api.find("ConfigMap", "default", "a") is not None)
        blue.end()
        with pytest.raises(NotReady):
            run.result(10)
        api.clear_faults()
    else:
        blue.reconcile([config_map("a", ours="2")])
    assert api.find("ConfigMap", "default", "a")
    Instance(api.url).terminate()
    assert state(api) == {}


def test_an_object_whose_label_somebody_took_off_is_found_again_after_the_next_apply(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([config_map("a")])
    api.edit("ConfigMap", "default", "a", lambda live: live["metadata"]["labels"].pop("tacker_vnf_instance_id"))
    blue.reconcile([config_map("a")], prune=False)
    blue.terminate()
    assert state(api) == {}


def test_force_adoption_and_release_are_logged_as_warnings(api: FakeApi, caplog: pytest.LogCaptureFixture) -> None:
    api.put(config_map("a", x="theirs", y="1"), manager="kubectl")
    blue = Instance(api.url, adopt=True, force=True)
    blue.reconcile([config_map("a", x="ours")])
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 2
    assert warnings[0] == "ConfigMap default/a existed before and is adopted: it will be released, not deleted"
    assert 'ConfigMap default/a: fields of other managers are taken by force: .data.x (conflict with "kubectl"' in warnings[1]
    assert "restored by neither rollback nor terminate" in warnings[1]
    assert "theirs" not in warnings[1]
    caplog.clear()
    blue.terminate()
    assert "ConfigMap default/a is released, not deleted. Values taken from other managers" in caplog.text
    assert api.get("ConfigMap", "default", "a")["data"] == {"x": "ours", "y": "1"}


def co_own(api: FakeApi, path: str, live: Object) -> None:
    """Has another manager apply the labels of an object just as they are."""
    metadata = {"name": live["metadata"]["name"], "labels": live["metadata"]["labels"]}
    body = json.dumps({"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": metadata})
    headers = {"Content-Type": "application/apply-patch+yaml"}
    with urllib3.PoolManager() as pool:
        answer = pool.request("PATCH", f"{api.url}{path}?fieldManager=gitops", body=body, headers=headers)
        assert answer.status == 200, answer.data


def test_a_released_object_may_keep_labels_of_another_manager(api: FakeApi) -> None:
    api.put(config_map("a", theirs="1"))
    blue = Instance(api.url, adopt=True)
    blue.reconcile([config_map("a", ours="2")])
    co_own(api, "/api/v1/namespaces/default/configmaps/a", api.get("ConfigMap", "default", "a"))
    blue.terminate()
    live = api.get("ConfigMap", "default", "a")
    assert live["data"] == {"theirs": "1"}
    assert live["metadata"]["labels"]["tacker_vnf_instance_id"] == BLUE
    assert api.names("ConfigMap") == ["a"]


def last_waits_for_first(api: FakeApi) -> tuple[Instance, Future[dict[ObjectKey, Object]]]:
    """A terminate in which one object cannot be deleted before another, which a finalizer holds."""
    last, first = config_map("last"), config_map("first")
    first["metadata"]["finalizers"] = ["example.com/hold"]
    first["metadata"]["annotations"] = {"config.kubernetes.io/depends-on": "/namespaces/default/ConfigMap/last"}
    blue = Instance(api.url)
    blue.reconcile([last, first])
    run = blue.start([])
    blue.wait_until_reported("first", "deleting")
    return blue, run


def test_an_object_that_has_lost_our_label_while_it_waits_is_deleted_all_the_same(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruner, "READ_EVERY", 0.02)
    blue, run = last_waits_for_first(api)
    api.edit("ConfigMap", "default", "last", lambda live: live["metadata"].update(labels={}, finalizers=["example.com/too"]))
    wait_for(api, lambda: len(api.requests.select("GET", "/configmaps/last")) > 0)
    api.release("ConfigMap", "default", "first")
    blue.wait_until_reported("last", "deleting")
    api.release("ConfigMap", "default", "last")
    run.result(10)
    assert state(api) == {}


def test_an_object_that_somebody_else_deletes_while_it_waits_is_gone(api: FakeApi) -> None:
    blue, run = last_waits_for_first(api)
    api.delete("ConfigMap", "default", "last")
    blue.wait_until_reported("last", "deleted")
    api.release("ConfigMap", "default", "first")
    run.result(10)
    assert not api.requests.select("DELETE", "/configmaps/last")


def test_an_object_that_has_lost_our_label_is_applied_again(api: FakeApi) -> None:
    crd = crontab_crd(**CONDITIONS)
    blue = Instance(api.url)
    run = blue.start([crd, crontab("one"), config_map("a")])
    blue.wait_until_reported("a", "Ready")
    blue.wait_until_reported("one", "Waiting")
    api.edit("ConfigMap", "default", "a", lambda live: live["metadata"].update(labels={}))
    wait_for(api, lambda: "tacker_vnf_instance_id" in api.get("ConfigMap", "default", "a")["metadata"].get("labels", {}))
    api.set_status("CronTab", "default", "one", status())
    run.result(10)


@pytest.mark.parametrize("attempt", range(5))
def test_two_instances_that_leave_at_the_same_time_leave_nothing(api: FakeApi, attempt: int) -> None:
    instances = [Instance(api.url, id) for id in (BLUE, GREEN)]
    for one in instances:
        one.reconcile([*SHARED, crontab(f"tab-{one.id[-1:]}", "both"), config_map(f"map-{one.id[-1:]}", "both")])
    for run in [one.start([]) for one in instances]:
        run.result(10)
    assert state(api) == {}


def test_two_instances_that_come_at_the_same_time_share(api: FakeApi) -> None:
    instances = [Instance(api.url, id) for id in (BLUE, GREEN)]
    for run in [one.start([*SHARED, crontab(f"tab-{one.id[-1:]}", "both")]) for one in instances]:
        run.result(10)
    marks = api.get("Namespace", None, "both")["metadata"]["labels"]
    assert {f"used-by.k8s-cr-driver/{id}" for id in (BLUE, GREEN)} <= set(marks)
    instances[0].terminate()
    assert api.names("CronTab") == ["tab-2"]
    instances[1].terminate()
    assert state(api) == {}


def test_a_namespace_that_holds_objects_of_another_instance_stays(api: FakeApi) -> None:
    blue, green = Instance(api.url, BLUE), Instance(api.url, GREEN)
    level = {"pod-security.kubernetes.io/enforce": "privileged"}
    blue.reconcile([labelled(obj("v1", "Namespace", "home"), **level), config_map("a", "home")])
    green.reconcile([config_map("guest", "home")])
    blue.terminate()
    assert api.get("Namespace", None, "home")["metadata"]["labels"] == level
    assert api.names("ConfigMap", "home") == ["guest"]
    green.terminate()
    assert api.names("ConfigMap", "home") == []


def test_a_users_objects_of_the_same_name_survive_everything(api: FakeApi) -> None:
    api.put(crontab_crd())
    theirs = [api.put(crontab("one")), api.put(config_map("a"))]
    blue = Instance(api.url)
    for wanted in ([crontab("one"), config_map("b")], [config_map("a"), config_map("b")]):
        with pytest.raises(NotOurs):
            blue.reconcile(wanted)
    blue.terminate()
    assert [api.get(live["kind"], "default", live["metadata"]["name"]) for live in theirs] == theirs
    assert api.names("ConfigMap") == ["a"]


def test_an_owner_that_waits_for_what_it_owns_does_not_hold_it(api: FakeApi) -> None:
    blue = Instance(api.url)
    child = config_map("child")
    child["metadata"]["annotations"] = {DEPENDS_ON: "stable.example.com/namespaces/default/CronTab/owner"}
    blue.reconcile([crontab_crd(), crontab("owner"), child])
    owner = api.get("CronTab", "default", "owner")
    api.edit("ConfigMap", "default", "child", lambda live: live["metadata"].update(ownerReferences=[controlled_by(owner)]))
    blue.terminate()
    assert state(api) == {}


def test_adoptions_are_recorded_in_few_writes_and_before_the_objects_are_written(api: FakeApi) -> None:
    maps = [config_map(f"map-{number}") for number in range(60)]
    for one in maps:
        api.put(one)
    api.requests.clear()
    Instance(api.url, adopt=True).reconcile(maps)
    assert len(api.requests.select("PATCH", "configmaps/k8s-cr-driver-")) < 20
    Instance(api.url).terminate()
    assert len(api.names("ConfigMap", "default")) == 60


def test_a_member_that_somebody_has_created_again_with_its_labels_is_deleted(api: FakeApi) -> None:
    """As `kubectl replace --force` and a restore from a backup do."""
    blue = Instance(api.url)
    blue.reconcile([crontab_crd(), crontab("one"), config_map("a")])
    for kind, name in (("CronTab", "one"), ("ConfigMap", "a")):
        live = api.get(kind, "default", name)
        api.delete(kind, "default", name)
        live["metadata"] = {part: live["metadata"][part] for part in ("name", "namespace", "labels")}
        api.put(live, manager="velero")
    blue.terminate()
    assert state(api) == {}


@pytest.mark.parametrize("is_lost", [False, True])
def test_an_adopted_object_outlives_the_inventory_of_a_failed_instantiate(api: FakeApi, is_lost: bool) -> None:
    """Tacker stores nothing of an instantiate that has failed."""
    theirs = api.put(config_map("theirs", data="precious"))
    package = [config_map("theirs", more="2"), deployment("web")]
    with pytest.raises(NotReady):
        Instance(api.url, adopt=True, seconds=2).reconcile(package)
    if is_lost:
        api.delete("ConfigMap", "default", f"k8s-cr-driver-{BLUE}")
    controllers.run_workloads(api)
    api.delete("Deployment", "default", "web")  # its controller works now
    blue = Instance(api.url, adopt=True)
    blue.reconcile(package)
    assert api.get("ConfigMap", "default", "theirs")["data"] == {"data": "precious", "more": "2"}
    blue.terminate()
    left = api.get("ConfigMap", "default", "theirs")
    assert (left["metadata"]["uid"], left["data"]) == (theirs["metadata"]["uid"], {"data": "precious"})
    assert ADOPTED not in left["metadata"].get("annotations", {})


def test_a_rollback_keeps_what_the_failed_change_has_adopted_when_the_inventory_is_lost(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([config_map("ours")])
    blue.record()
    theirs = api.put(config_map("theirs", data="precious"))
    with pytest.raises(NotReady):
        Instance(api.url, adopt=True, seconds=2).reconcile([config_map("ours"), config_map("theirs", m="2"), deployment("web")])
    api.delete("ConfigMap", "default", f"k8s-cr-driver-{BLUE}")
    blue.reconcile([config_map("ours")])
    assert api.get("ConfigMap", "default", "theirs")["metadata"]["uid"] == theirs["metadata"]["uid"]


def test_the_annotation_of_adopted_objects_is_no_consent(api: FakeApi) -> None:
    """An export of an adopted object has it, too."""
    api.put(config_map("theirs", data="precious"))
    Instance(api.url, adopt=True).reconcile([config_map("theirs", more="2")])
    annotations = api.get("ConfigMap", "default", "theirs")["metadata"]["annotations"]
    assert annotations[ADOPTED] == "true"
    copy = config_map("copy", data="precious")
    copy["metadata"]["annotations"] = annotations
    before = api.put(copy)
    with pytest.raises(NotOurs):
        Instance(api.url, GREEN).reconcile([config_map("copy", more="2")])
    assert api.get("ConfigMap", "default", "copy") == before


def test_an_adopted_object_whose_fields_stay_is_not_adopted_for_ever(api: FakeApi) -> None:
    api.put(config_map("theirs", data="precious"))
    blue = Instance(api.url, adopt=True)
    blue.reconcile([config_map("theirs", more="2")])
    required = faults.status(422, "Invalid", "data.more: Required value")
    api.fail(required, method="PATCH", path="/configmaps/theirs", when=lambda one: "apply-patch" in one.content_type, times=9)
    blue.terminate()
    assert ADOPTED not in api.get("ConfigMap", "default", "theirs")["metadata"]["annotations"]


def test_a_shared_namespace_with_the_annotation_of_adopted_objects_is_not_changed(api: FakeApi) -> None:
    home, enforce = obj("v1", "Namespace", "home"), "pod-security.kubernetes.io/enforce"
    Instance(api.url).reconcile([home, config_map("blue", "home")])
    api.edit("Namespace", None, "home", lambda live: live["metadata"]["annotations"].update({ADOPTED: "true"}))
    Instance(api.url, GREEN).reconcile([labelled(home, **{enforce: "restricted"}), config_map("green", "home")])
    assert enforce not in api.get("Namespace", None, "home")["metadata"]["labels"]


@pytest.mark.parametrize("how", ["refused", "forced", "yielded"])
def test_a_conflict_names_no_key_of_an_entry_of_a_custom_resource(
    api: FakeApi, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    value, crd, error = "Zm9v-4711-qxyz", crontab_crd(), ""
    fields = {"licence": {"type": "string"}, "seats": {"type": "integer"}}
    entry = {"type": "object", "required": ["licence"], "properties": fields}
    licences = {"type": "array", "items": entry, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["licence"]}
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["licences"] = licences

    def tab(seats: int) -> Object:
        made = crontab("tab")
        made["spec"]["licences"] = [{"licence": value, "seats": seats}]
        return made

    Instance(api.url).reconcile([crd, tab(1)])
    api.edit("CronTab", "default", "tab", lambda live: live["spec"]["licences"][0].update(seats=2), manager="kubectl-edit")
    try:
        Instance(api.url, force=how == "forced", yields=how == "yielded").reconcile([crd, tab(3)])
    except DriverError as found:
        error = str(found)
    assert "kubectl-edit" in error + caplog.text and value not in error + caplog.text


def test_what_others_create_in_place_of_an_adopted_object_is_not_changed(api: FakeApi) -> None:
    api.put(config_map("a", theirs="1"), manager="kubectl")
    Instance(api.url, adopt=True).reconcile([config_map("a", ours="2")])
    api.delete("ConfigMap", "default", "a")
    api.put(config_map("a", theirs="3"), manager="kubectl")
    with pytest.raises(NotOurs, match=r"ConfigMap default/a exists already .*adopt-existing: true"):
        Instance(api.url).reconcile([config_map("a", ours="2")], prune=False)
    assert api.get("ConfigMap", "default", "a")["data"] == {"theirs": "3"}
    before = api.get("ConfigMap", "default", "a")
    Instance(api.url, yields=True).reconcile([config_map("a", ours="2")])  # a controller may create it again and again
    Instance(api.url).terminate()
    assert api.get("ConfigMap", "default", "a") == before


def test_a_rollback_has_another_remedy_for_what_exists_already(api: FakeApi) -> None:
    api.put(config_map("a", theirs="1"), manager="kubectl")
    with pytest.raises(NotOurs, match=r"ConfigMap default/a exists already .*or delete it and roll back again"):
        Instance(api.url, yields=True).reconcile([config_map("a", ours="2")], prune=False)


def test_a_rollback_writes_nothing_of_what_others_have_created_in_place_of_an_adopted_object(api: FakeApi) -> None:
    api.put(config_map("a", theirs="1"), manager="kubectl")
    Instance(api.url, adopt=True).reconcile([config_map("a", ours="2"), config_map("b")])
    api.delete("ConfigMap", "default", "a")
    other = config_map("a", theirs="3")
    other["metadata"]["ownerReferences"] = [controlled_by(api.get("ConfigMap", "default", "b"))]
    api.put(other, manager="operator")
    before = api.get("ConfigMap", "default", "a")
    Instance(api.url, yields=True).reconcile([config_map("a", ours="2")])
    assert api.find("ConfigMap", "default", "a") in (None, before)


def test_an_object_of_others_that_goes_is_waited_for(api: FakeApi) -> None:
    green = Instance(api.url, GREEN)
    green.reconcile([config_map("a")])
    api.edit("ConfigMap", "default", "a", lambda live: live["metadata"].update(finalizers=["example.com/slow"]))
    leaving = green.start([])
    wait_for(api, lambda: "deletionTimestamp" in api.get("ConfigMap", "default", "a")["metadata"])
    tries = itertools.count(1)

    def goes(request: Request) -> bool:
        """With the second try."""
        if request.method == "PATCH" and request.path.endswith("/configmaps/a") and next(tries) == 2:
            api.release("ConfigMap", "default", "a")
        return False

    api.fail(faults.unavailable(), when=goes)
    Instance(api.url).reconcile([config_map("a", ours="1")])
    leaving.result(10)
    assert api.get("ConfigMap", "default", "a")["data"] == {"ours": "1"}


def test_what_a_user_creates_again_while_the_run_that_has_created_it_goes_on_is_adopted(api: FakeApi) -> None:
    api.put(crontab_crd(**CONDITIONS))
    run = Instance(api.url, adopt=True).start([config_map("a", ours="1"), crontab("slow")])
    wait_for(api, lambda: bool(api.find("ConfigMap", "default", "a") and api.find("CronTab", "default", "slow")))
    with api.cluster.writing():
        api.delete("ConfigMap", "default", "a")
        api.put(config_map("a", theirs="2"), manager="kubectl-create")
    wait_for(api, lambda: api.get("ConfigMap", "default", "a")["data"].get("ours") == "1")
    api.set_status("CronTab", "default", "slow", status(), manager="controller")
    run.result(10)


@pytest.mark.parametrize("what", ["edit", "delete"])
def test_what_becomes_of_an_object_that_a_rollback_leaves_to_others_is_their_matter(api: FakeApi, what: str) -> None:
    """It may have the instance's label, so that the watch reports it: a copy of the former object."""
    api.put(crontab_crd(**CONDITIONS))
    api.put(crontab("a"), manager="kubectl")
    api.set_status("CronTab", "default", "a", status())
    Instance(api.url, adopt=True).reconcile([crontab("a")])
    api.delete("CronTab", "default", "a")
    api.put(labelled(crontab("a", schedule="1 * * * *"), **{INSTANCE_LABEL: BLUE}), manager="kubectl")
    last = crontab("last")
    last["metadata"]["annotations"] = {DEPENDS_ON: "stable.example.com/namespaces/default/CronTab/a"}
    run = Instance(api.url, yields=True).start([crontab("a"), last])
    wait_for(api, lambda: api.find("CronTab", "default", "last") is not None)
    if what == "delete":
        api.delete("CronTab", "default", "a")
    else:
        api.set_status("CronTab", "default", "a", status("False"))
    api.set_status("CronTab", "default", "last", status())
    run.result(10)


def test_what_was_made_again_in_place_of_an_adopted_object_is_deleted_though_the_inventory_was_lost(api: FakeApi) -> None:
    """Tacker's record has the uid of the object that was adopted; the worker that has created it again has died."""
    blue, desired = Instance(api.url, adopt=True), [config_map("a"), config_map("b")]
    api.put(config_map("a"), manager="user")
    blue.reconcile(desired)
    blue.record()
    api.delete("ConfigMap", "default", "a")
    api.delete("ConfigMap", "default", f"k8s-cr-driver-{blue.id}")
    api.delete("ConfigMap", "default", "b")
    api.fail(faults.unavailable(), method="PATCH", path="/configmaps/b$", times=10**6)
    run = blue.start(desired, prune=False)
    wait_for(api, lambda: api.find("ConfigMap", "default", "a") is not None)
    api.fail(faults.unavailable(), method="PATCH", path=f"/configmaps/k8s-cr-driver-{blue.id}$", times=10**6)
    blue.stop.set()
    run.exception(10)
    api.clear_faults()
    blue.stop.clear()
    blue.reconcile(desired, prune=False)
    blue.terminate()
    assert api.find("ConfigMap", "default", "a") is None
