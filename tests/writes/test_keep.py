# SPDX-License-Identifier: Apache-2.0
"""The annotation k8s-cr-driver/keep: terminate and prune release an object, with all its fields."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from k8s_cr_driver.engine.delete import pruner
from k8s_cr_driver.engine.delete.replacer import Replacement
from k8s_cr_driver.errors import DriverError, NotOurs, Refused
from k8s_cr_driver.journal.inventory import Inventory
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.discovery import Resource, discover
from k8s_cr_driver.kube.dry_run import DryRun
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.objects.dependencies import DEPENDS_ON
from k8s_cr_driver.objects.keys import Object, annotations_of
from k8s_cr_driver.objects.marks import INSTANCE_LABEL, KEEP, KEEPS, KEPT_BY, RELEASED_BY, is_kept, is_managed, used_by, users
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.registry import resource_for
from k8s_cr_driver.writes import create_or_apply, delete
from k8s_cr_driver.writes.context import WriteContext
from tests.fake_api import FakeApi, controllers, faults
from tests.fake_api.kinds import Kind
from tests.fake_api.recording import Request
from tests.instance import (
    BLUE,
    GREEN,
    RED,
    Instance,
    claim,
    config_map,
    controlled_by,
    crontab,
    crontab_crd,
    job,
    kept,
    labelled,
    obj,
    state,
    stateful_set,
    wait_for,
)


@pytest.mark.parametrize("verb", ["terminate", "change"])
def test_a_kept_object_stays_with_its_fields_and_is_nobodys(api: FakeApi, verb: str) -> None:
    blue = Instance(api.url)
    blue.reconcile([kept(config_map("a", x="1")), config_map("b")])
    blue.reconcile([config_map("b")] if verb == "change" else [])
    blue.terminate()
    live = api.get("ConfigMap", "default", "a")
    assert live["data"] == {"x": "1"}
    assert INSTANCE_LABEL not in (live["metadata"].get("labels") or {})
    assert [key.name for key in state(api)] == ["a"]


@pytest.mark.parametrize("keeps", ["stateful set", "claim"])
def test_a_kept_stateful_set_and_a_kept_claim_keep_the_data(api: FakeApi, keeps: str) -> None:
    controllers.run_workloads(api)
    blue = Instance(api.url)
    blue.reconcile([kept(stateful_set("db")) if keeps == "stateful set" else stateful_set("db")])
    api.put(claim("data-db-0", app="db") if keeps == "stateful set" else kept(claim("data-db-0", app="db")))
    blue.terminate()
    assert api.names("PersistentVolumeClaim", "default") == ["data-db-0"]


HOME = obj("v1", "Namespace", "home")


def test_what_is_kept_while_its_deletion_is_under_way_stays_though_it_may_not_be_read(api: FakeApi) -> None:
    """A server that has just restarted forbids the read, and its watch reports the annotation."""
    blue = Instance(api.url)
    blue.reconcile([config_map("a")])

    def keeps(request: Request) -> bool:
        if request.method == "DELETE" and not is_kept(api.get("ConfigMap", "default", "a")):
            api.edit("ConfigMap", "default", "a", lambda live: live["metadata"].update(annotations={KEEP: "true"}))
        return False

    api.fail(faults.unavailable(), when=keeps)
    api.fail(faults.forbidden("get"), method="GET", path="configmaps/a$")
    blue.terminate()
    assert api.faults_pending == 1, "the 403 was met"
    assert api.find("ConfigMap", "default", "a")


@pytest.mark.parametrize("has_restarted", [True, False])
def test_a_namespace_that_may_not_be_read_is_not_taken_for_one_that_nobody_deletes(
    api: FakeApi, caplog: pytest.LogCaptureFixture, has_restarted: bool
) -> None:
    green, blue = Instance(api.url, GREEN), Instance(api.url)
    green.reconcile([obj("v1", "Namespace", "shared")])
    blue.reconcile([kept(config_map("data", "shared"))])
    if has_restarted:
        api.fail(faults.unavailable(), method="GET", path="namespaces/shared$")
    api.fail(faults.forbidden("get", "namespaces"), method="GET", path="namespaces/shared$")
    blue.terminate()
    assert api.faults_pending == 0
    marks = annotations_of(api.get("Namespace", "", "shared"))
    assert (f"{KEEPS}/{BLUE}" in marks) is has_restarted
    warning = "ConfigMap shared/data stays, and another instance may delete its Namespace, which cannot be marked"
    assert (warning in caplog.text) is not has_restarted


def test_a_namespace_outlives_an_object_kept_by_an_earlier_operation(api: FakeApi, caplog: pytest.LogCaptureFixture) -> None:
    blue = Instance(api.url)
    blue.reconcile([HOME, kept(config_map("a", "home")), config_map("b", "home")])
    blue.reconcile([HOME, config_map("b", "home")])
    blue.terminate()
    assert api.names("ConfigMap", "home") == ["a"]
    assert f"Namespace home is released and stays: instances have kept objects in it: keeps.k8s-cr-driver/{BLUE}" in caplog.text


def test_a_namespace_whose_last_user_is_another_instance_outlives_a_kept_object(api: FakeApi) -> None:
    blue, green = Instance(api.url), Instance(api.url, GREEN)
    blue.reconcile([HOME, kept(config_map("a", "home"))])
    green.reconcile([HOME])
    blue.terminate()
    green.terminate()
    assert api.names("ConfigMap", "home") == ["a"]


def test_a_namespace_outlives_an_adopted_object_that_an_earlier_operation_released(api: FakeApi) -> None:
    blue = Instance(api.url, adopt=True)
    blue.reconcile([HOME])
    api.put(config_map("theirs", "home"))
    blue.reconcile([HOME, config_map("theirs", "home")])
    blue.reconcile([HOME])
    blue.terminate()
    assert api.names("ConfigMap", "home") == ["theirs"]


def test_a_kept_object_that_a_later_package_brings_again_has_to_be_adopted(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([kept(config_map("a", x="1")), config_map("b")])
    blue.reconcile([config_map("b")])
    with pytest.raises(NotOurs, match="adopt-existing"):
        blue.reconcile([config_map("a", x="1"), config_map("b")])
    Instance(api.url, adopt=True).reconcile([config_map("a", x="1"), config_map("b")])
    blue.terminate()
    assert api.get("ConfigMap", "default", "a")["data"] == {"x": "1"}


def test_a_rollback_takes_back_what_its_change_has_released(api: FakeApi) -> None:
    """The inventory names it until the change is COMPLETED."""
    blue = Instance(api.url)
    blue.reconcile([kept(config_map("a", x="1")), config_map("b")])
    api.fail(faults.denied("not now"), method="DELETE", path="/configmaps/b$", times=10**6)
    run = blue.start([config_map("c")])
    blue.wait_until_reported("a", "left")
    blue.stop.set()
    run.exception(60)
    api.clear_faults()
    again = Instance(api.url, yields=True)
    again.reconcile([kept(config_map("a", x="1")), config_map("b")])
    assert is_managed(api.get("ConfigMap", "default", "a"), BLUE)


@pytest.mark.parametrize("second", [kept(job("a", "c:2")), job("a", "c:2")], ids=["kept", "kept before"])
def test_a_kept_object_is_not_replaced_when_an_immutable_field_changes(api: FakeApi, second: Object) -> None:
    controllers.run_workloads(api)
    blue = Instance(api.url)
    blue.reconcile([kept(job("a", "c:1"))])
    uid = api.get("Job", "default", "a")["metadata"]["uid"]
    with pytest.raises(Refused, match=r"annotated with k8s-cr-driver/keep, so it is never deleted, nor replaced"):
        blue.reconcile([second])
    live = api.get("Job", "default", "a")
    assert (live["metadata"]["uid"], live["metadata"]["labels"][INSTANCE_LABEL]) == (uid, blue.id)


def test_a_kept_object_is_not_replaced_by_a_heal(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([kept(config_map("a"))])
    with pytest.raises(Refused, match="annotated with k8s-cr-driver/keep, so it is never deleted"):
        blue.reconcile([kept(config_map("a"))], replacement=Replacement([("", [api.get("ConfigMap", "default", "a")])]))
    assert INSTANCE_LABEL in api.get("ConfigMap", "default", "a")["metadata"]["labels"]


@pytest.mark.parametrize("whose", ["kept", "adopted", "a user's"])
def test_a_crd_is_never_replaced(api: FakeApi, whose: str) -> None:
    blue, member = Instance(api.url, adopt=True), crontab("data")
    crd = {**crontab_crd(), "metadata": {**crontab_crd()["metadata"], "annotations": {"k8s-cr-driver/replace": "true"}}}
    blue.reconcile([crd])
    if whose != "kept":
        api.put(member)
    desired = {"kept": [kept(member)], "adopted": [member]}.get(whose, [])
    blue.reconcile([crd, *desired])
    uid = api.get("CronTab", "default", "data")["metadata"]["uid"]
    changed = {**crd, "spec": {**crd["spec"], "names": {**crd["spec"]["names"], "shortNames": ["ct"]}}}
    api.fail(faults.status(422, "Invalid", "spec.scope: field is immutable"), method="PATCH", path="customresourcedefinitions")
    with pytest.raises(Refused, match=r"crontabs.stable.example.com: .* It is never replaced, as objects of others"):
        blue.reconcile([changed, *desired])
    assert api.get("CronTab", "default", "data")["metadata"]["uid"] == uid


def test_an_object_that_a_user_annotates_during_the_terminate_is_kept(api: FakeApi) -> None:
    """The watch is half-open, so it reports no annotation."""
    first, precious = config_map("first"), config_map("precious")
    first["metadata"].update(finalizers=["example.com/hold"])
    first["metadata"]["annotations"] = {DEPENDS_ON: "/namespaces/default/ConfigMap/precious"}
    blue = Instance(api.url)
    blue.reconcile([first, precious])
    run = blue.start([])
    wait_for(api, lambda: "deletionTimestamp" in api.get("ConfigMap", "default", "first")["metadata"])
    sent: list[str] = []

    def annotate(request: Request) -> bool:
        if not sent:
            sent.append(request.method)
            api.edit("ConfigMap", "default", "precious", lambda live: live["metadata"].update(annotations={KEEP: "true"}))
        return False

    api.fail(faults.internal(), method="DELETE", path="configmaps/precious$", when=annotate, times=10**6)
    api.release("ConfigMap", "default", "first")
    run.result(10)
    assert sent == ["DELETE"]
    assert api.names("ConfigMap", "default") == ["precious"]


@pytest.mark.parametrize("how", ["kept", "adopted"])
def test_a_release_touches_no_other_object_of_the_name(api: FakeApi, how: str) -> None:
    blue = Instance(api.url, adopt=True)
    if how == "adopted":
        api.put(config_map("a"))
    blue.reconcile([kept(config_map("a")) if how == "kept" else config_map("a")])
    new: list[Object] = []

    def renew(request: Request) -> bool:
        if not new:
            api.delete("ConfigMap", "default", "a")
            new.append(api.put(kept(config_map("a"))))
        return False

    api.fail(faults.internal(), method="PATCH", path="configmaps/a$", when=renew, times=10**6)
    blue.terminate()
    assert api.get("ConfigMap", "default", "a")["metadata"] == new[0]["metadata"]


@pytest.mark.parametrize("how", ["kept", "adopted"])
@pytest.mark.parametrize("is_controller", [True, False])
def test_an_object_outlives_its_owner_of_the_instance(api: FakeApi, how: str, is_controller: bool) -> None:
    blue, precious = Instance(api.url, adopt=True), config_map("precious")
    if how == "adopted":
        api.put(precious)
    blue.reconcile([config_map("owner"), kept(precious) if how == "kept" else precious])
    owner = {**controlled_by(api.get("ConfigMap", "default", "owner")), "controller": is_controller}
    api.edit("ConfigMap", "default", "precious", lambda live: live["metadata"].update(ownerReferences=[owner]))
    blue.terminate()
    assert api.names("ConfigMap", "default") == ["precious"]
    assert not api.get("ConfigMap", "default", "precious")["metadata"].get("ownerReferences")


CRD_HOME = crontab_crd()
HELD = pytest.mark.parametrize(
    "holder, precious",
    [(HOME, kept(config_map("precious", "home"))), (CRD_HOME, kept(crontab("precious")))],
    ids=["Namespace", "CRD"],
)


def place(holder: Object) -> tuple[str, None, str]:
    return holder["kind"], None, holder["metadata"]["name"]


@HELD
def test_a_kept_object_keeps_its_crd_while_it_exists_and_its_namespace_until_the_mark_is_removed(
    api: FakeApi, holder: Object, precious: Object
) -> None:
    """Whichever instance deletes that then: a kept object is nobody's."""
    blue, green = Instance(api.url), Instance(api.url, GREEN)
    blue.reconcile([holder, precious])
    green.reconcile([holder])
    blue.terminate()
    assert api.find(*place(holder))
    api.delete(precious["kind"], precious["metadata"]["namespace"], "precious")
    api.edit(*place(holder), lambda live: live["metadata"]["annotations"].pop(f"{KEEPS}/{BLUE}", None))
    green.terminate()
    assert state(api) == {}


@HELD
@pytest.mark.parametrize("how", ["kept", "adopted"])
def test_an_object_that_somebody_has_deleted_keeps_nothing(api: FakeApi, how: str, holder: Object, precious: Object) -> None:
    blue = Instance(api.url, adopt=True)
    blue.reconcile([holder])
    if how == "adopted":
        precious = {**precious, "metadata": {**precious["metadata"], "annotations": {}}}
        api.put(precious)
    blue.reconcile([holder, precious])
    api.delete(precious["kind"], precious["metadata"]["namespace"], "precious")
    blue.terminate()
    assert state(api) == {}


@HELD
def test_delete_guests_takes_no_object_that_the_instance_still_has_and_keeps(
    api: FakeApi, holder: Object, precious: Object
) -> None:
    Instance(api.url).reconcile([holder, precious])
    Instance(api.url, delete_guests=True).terminate()
    assert api.find(precious["kind"], precious["metadata"]["namespace"], "precious")


@HELD
@pytest.mark.parametrize("how", ["kept", "adopted"])
def test_a_retry_of_a_terminate_that_deletes_guests_takes_no_object_that_the_first_try_has_released(
    api: FakeApi, how: str, holder: Object, precious: Object
) -> None:
    """A finalizer has held another object for longer than the first try has waited."""
    blue, where = Instance(api.url, adopt=True), (precious["kind"], precious["metadata"]["namespace"], "precious")
    slow = {**precious, "metadata": {"name": "slow", "namespace": where[1], "finalizers": ["example.com/hold"]}}
    blue.reconcile([holder, slow])
    if how == "adopted":
        precious = {**precious, "metadata": {**precious["metadata"], "annotations": {}}}
        api.put(precious)
    blue.reconcile([holder, slow, precious])
    run = Instance(api.url, delete_guests=True)
    first = run.start([])
    run.wait_until_reported("precious", "left")
    run.end()
    with pytest.raises(DriverError, match=r"example\.com/hold"):
        first.result(60)
    api.release(where[0], where[1], "slow", ["example.com/hold"])
    Instance(api.url, delete_guests=True).terminate()
    assert api.find(*where)


@HELD
@pytest.mark.parametrize("whose", ["of this instance", "of another instance"])
def test_delete_guests_takes_what_an_earlier_operation_of_the_instance_has_kept(
    api: FakeApi, whose: str, holder: Object, precious: Object
) -> None:
    blue, keeper = Instance(api.url), Instance(api.url, GREEN if whose == "of another instance" else BLUE)
    blue.reconcile([holder])
    keeper.reconcile([holder, precious])
    keeper.reconcile([holder])
    if whose == "of another instance":
        keeper.terminate()
    assert api.find(precious["kind"], precious["metadata"]["namespace"], "precious")
    Instance(api.url, delete_guests=True).terminate()
    if whose == "of another instance":
        assert api.find(precious["kind"], precious["metadata"]["namespace"], "precious")
    else:
        assert state(api) == {}


HOME = obj("v1", "Namespace", "home")


def test_an_adopted_object_that_is_kept_is_never_deleted(api: FakeApi) -> None:
    """A package that brings it again after a change without it has to adopt it again."""
    api.put(kept(config_map("theirs", x="1")), manager="user")
    blue = Instance(api.url, adopt=True)
    for objects in ([config_map("theirs", x="1"), config_map("b")], [config_map("b")]):
        blue.reconcile(objects)
    with pytest.raises(NotOurs):
        Instance(api.url).reconcile([config_map("theirs", x="1"), config_map("b")])
    blue.reconcile([config_map("theirs", x="1"), config_map("b")])
    api.edit("ConfigMap", "default", "theirs", lambda live: live["metadata"]["annotations"].pop(KEEP), manager="user")
    blue.terminate()
    assert api.find("ConfigMap", "default", "theirs")


@pytest.mark.parametrize("is_restored", [False, True], ids=["exported", "restored with managedFields"])
def test_the_copy_of_a_kept_object_is_not_taken_back(api: FakeApi, is_restored: bool) -> None:
    blue = Instance(api.url)
    for objects in ([kept(config_map("a", x="1")), config_map("b")], [config_map("b")]):
        blue.reconcile(objects)
    metadata = copy.deepcopy(api.get("ConfigMap", "default", "a")["metadata"])
    made = config_map("theirs", x="1")
    made["metadata"]["annotations"] = metadata["annotations"]
    api.put(made, manager="kubectl-create")
    if is_restored:
        old = [{**entry, "time": "2020-01-01T00:00:00Z"} for entry in metadata["managedFields"]]
        api.edit("ConfigMap", "default", "theirs", lambda live: live["metadata"].update(managedFields=old))
    with pytest.raises(NotOurs):
        blue.reconcile([config_map("theirs", y="2"), config_map("b")])


def test_a_namespace_stays_while_the_api_of_a_kept_object_is_down(api: FakeApi) -> None:
    remote = Kind("remote.example.com", "v1", "Remote", "remotes", generation=True, custom=True)
    api.cluster.serve(remote.resource, [remote])
    made = kept(obj("remote.example.com/v1", "Remote", "r", "home", spec={}))
    made["metadata"]["annotations"]["k8s-cr-driver/ready-when"] = "stored"
    blue = Instance(api.url)
    for objects in ([HOME, made, config_map("b", "home")], [HOME, config_map("b", "home")]):
        blue.reconcile(objects)
    api.knobs.down.add(("remote.example.com", "v1"))
    blue.terminate()
    api.knobs.down.clear()
    assert api.find("Remote", "home", "r")


def released_home(api: FakeApi, manifest: Object = HOME) -> None:
    """A Namespace that a guest has kept."""
    red = Instance(api.url, RED)
    red.reconcile([manifest])
    api.put({**claim("guest"), "metadata": {"name": "guest", "namespace": "home"}}, manager="user")
    red.terminate()


def takes_back(request: Request) -> bool:
    return request.method == "PATCH" and "managedFields" in request.body["metadata"]


@pytest.mark.parametrize("is_new", [False, True])
def test_a_lost_response_when_a_namespace_is_taken_back_is_repeated(api: FakeApi, is_new: bool) -> None:
    released_home(api)
    blue = Instance(api.url)
    if not is_new:
        blue.reconcile([config_map("a")])
    api.fail(faults.reset_after(), path="/namespaces/home$", when=takes_back)
    blue.reconcile([config_map("a"), HOME])
    assert api.faults_pending == 0
    assert users(api.get("Namespace", None, "home")) == {BLUE}


@pytest.mark.parametrize("is_killed", [True, False])
@pytest.mark.parametrize("manifest", [HOME, labelled(HOME, team="red")], ids=["plain", "labelled"])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_namespace_whose_taker_has_died_can_be_used_by_others(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, manifest: Object, is_killed: bool, is_first: bool
) -> None:
    released_home(api, manifest)
    blue, original = Instance(api.url), create_or_apply.apply
    if not is_first:
        blue.reconcile([config_map("b")])

    def die(context: WriteContext, obj: CustomResource, *rest: Any, **options: Any) -> Object:
        if obj.key.kind == "Namespace":
            raise DriverError("it has died")
        return original(context, obj, *rest, **options)

    with monkeypatch.context() as patch:
        patch.setattr(create_or_apply, "apply", die)
        if is_killed:
            patch.setattr(Inventory, "release", lambda _: None)
        with pytest.raises(DriverError, match="it has died"):
            blue.reconcile([config_map("b"), manifest])
    live = api.get("Namespace", None, "home")
    assert users(live) == {BLUE} and is_managed(live, BLUE)
    blue.terminate()
    assert users(api.get("Namespace", None, "home")) == set()
    Instance(api.url, GREEN).reconcile([labelled(HOME, team="green")])
    assert api.get("Namespace", None, "home")["metadata"]["labels"]["team"] == "green"


def test_two_instances_take_a_namespace_back_at_one_time(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    released_home(api)
    green, original = Instance(api.url, GREEN), create_or_apply.apply

    def apply(context: WriteContext, *rest: Any, **options: Any) -> Object:
        if context.instance == BLUE and not users(api.get("Namespace", None, "home")) - {BLUE}:
            green.reconcile([HOME])
        return original(context, *rest, **options)

    monkeypatch.setattr(create_or_apply, "apply", apply)
    Instance(api.url).reconcile([HOME])
    assert users(api.get("Namespace", None, "home")) == {BLUE, GREEN}


def keep(api: FakeApi, kind: str, namespace: str | None, name: str) -> None:
    def edit(live: Object) -> None:
        live["metadata"]["annotations"] = {**live["metadata"].get("annotations", {}), KEEP: "true"}

    api.edit(kind, namespace, name, edit, manager="kubectl-annotate")


@pytest.mark.parametrize("shared", [HOME, crontab_crd()], ids=["Namespace", "CRD"])
def test_a_shared_object_that_is_annotated_before_its_deletion_is_kept(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, shared: Object
) -> None:
    """Its watch has not reported it yet."""
    blue, kind, name = Instance(api.url), shared["kind"], shared["metadata"]["name"]
    blue.reconcile([shared, config_map("a")])
    original = Inventory.withdraw

    def withdraw(self: Inventory, *what: Any) -> None:
        original(self, *what)
        keep(api, kind, None, name)

    monkeypatch.setattr(Inventory, "withdraw", withdraw)
    blue.terminate()
    assert users(api.get(kind, None, name)) == set()


def test_a_namespace_without_label_that_is_kept_no_more_is_deleted(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    blue = Instance(api.url)
    blue.reconcile([kept(HOME), config_map("a")])
    api.edit("Namespace", None, "home", lambda live: live["metadata"]["labels"].pop(used_by(BLUE)), manager="kubectl")
    original, done = delete.remove, []

    def remove(*args: Any, **options: Any) -> Any:
        if not done and args[1].key.name == "home":
            done.append(True)
            api.edit("Namespace", None, "home", lambda live: live["metadata"]["annotations"].pop(KEEP), manager="kubectl")
        return original(*args, **options)

    monkeypatch.setattr(pruner, "remove", remove)
    blue.terminate()
    assert api.find("Namespace", None, "home") is None


def test_a_mark_that_another_instance_writes_meanwhile_is_no_conflict(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    released_home(api)
    blue = Instance(api.url)
    blue.reconcile([labelled(HOME, team="1")])
    original, done = Client.apply, []

    def apply(self: Client, resource: Resource, manifest: Object, *rest: Any, **options: Any) -> Object:
        if manifest["kind"] == "Namespace" and "uid" in manifest["metadata"] and not done:
            done.append(True)
            mark = {RELEASED_BY: GREEN}
            api.edit("Namespace", None, "home", lambda live: live["metadata"]["annotations"].update(mark), manager=KEPT_BY)
        return original(self, resource, manifest, *rest, **options)

    monkeypatch.setattr(Client, "apply", apply)
    blue.reconcile([labelled(HOME, team="2")])
    assert done and api.get("Namespace", None, "home")["metadata"]["labels"]["team"] == "2"


@pytest.mark.parametrize("what", ["Namespace", "CRD"])
def test_a_dry_run_of_what_is_taken_back_meets_no_conflict(api: FakeApi, what: str) -> None:
    """It stores no take-back, so that the fields are still those of KEPT_BY when it applies."""
    blue = Instance(api.url)
    if what == "Namespace":
        released_home(api, labelled(HOME, team="red"))
        newer = labelled(HOME, team="blue")
    else:
        newer = kept(crontab_crd(runs={"type": "integer"}))
        for objects in ([config_map("b"), kept(crontab_crd())], [config_map("b")]):
            blue.reconcile(objects)
    before = state(api)
    with DryRun(Endpoint(api.url)) as connection:
        client, obj = Client(connection, discover(connection)), resource_for(newer)
        context = WriteContext(client, Inventory(connection, "default", BLUE), is_trial=True)
        resource = client.resources.find(obj.key.group_kind)
        assert resource
        create_or_apply.write(context, obj, resource, client.read(resource, obj.key))
    assert state(api) == before
    blue.reconcile([config_map("b"), newer])


def test_a_kept_object_that_another_instance_has_adopted_since_is_not_taken_back(api: FakeApi) -> None:
    blue, green = Instance(api.url), Instance(api.url, GREEN, adopt=True)
    blue.reconcile([kept(config_map("data", a="1")), config_map("other")])
    blue.reconcile([config_map("other")])
    green.reconcile([config_map("data", b="2")])
    with pytest.raises(NotOurs):
        blue.reconcile([kept(config_map("data", a="1")), config_map("other")])
    assert api.get("ConfigMap", "default", "data")["metadata"]["labels"][INSTANCE_LABEL] == GREEN
    green.reconcile([config_map("data", b="3")])
    green.terminate()
    assert api.get("ConfigMap", "default", "data")["data"] == {"a": "1"}


def test_a_namespace_that_may_not_be_marked_fails_no_release(api: FakeApi, caplog: pytest.LogCaptureFixture) -> None:
    """It is another instance's, which this account may read alone."""
    Instance(api.url, GREEN).reconcile([HOME])
    blue = Instance(api.url)
    blue.reconcile([kept(config_map("a", "home"))])
    api.knobs.denied.add(("patch", "", "namespaces", "*"))
    blue.terminate()
    assert api.names("ConfigMap", "home") == ["a"]
    assert "another instance may delete its Namespace" in caplog.text


def test_a_namespace_stays_with_a_kept_object_that_others_have_created_again_when_no_inventory_names_it(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([HOME, kept(config_map("a", "home"))])
    blue.record()
    live = api.get("ConfigMap", "home", "a")
    metadata = {name: live["metadata"][name] for name in ("name", "namespace", "labels", "annotations")}
    api.delete("ConfigMap", "home", "a")
    api.put({**live, "metadata": metadata}, manager="kubectl-replace")
    api.delete("ConfigMap", "default", f"k8s-cr-driver-{BLUE}")
    blue.terminate()
    assert api.names("ConfigMap", "home") == ["a"]
