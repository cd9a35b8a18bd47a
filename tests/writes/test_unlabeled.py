# SPDX-License-Identifier: Apache-2.0
"""Objects that have lost their label are members all the same: somebody has replaced them from a file of his own."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_cr_driver.engine.report.not_ready import NotReady
from k8s_cr_driver.errors import NotOurs
from k8s_cr_driver.objects.keys import Object, labels
from k8s_cr_driver.objects.marks import INSTANCE_LABEL, is_managed, used_by
from tests.fake_api import FakeApi, controllers, faults
from tests.fake_api.recording import Request
from tests.instance import (
    BLUE,
    GREEN,
    Instance,
    claim,
    config_map,
    crontab,
    crontab_crd,
    deployment,
    obj,
    replaced,
    state,
    stateful_set,
)


def test_terminate_deletes_unlabeled_members(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([crontab_crd(), crontab("one"), obj("v1", "Namespace", "blue"), config_map("a", "blue"), config_map("b")])
    replaced(api, "CronTab", "default", "one")
    replaced(api, "ConfigMap", "blue", "a", app="web")
    blue.terminate()
    assert state(api) == {}
    assert {key.name for key, now, _ in blue.heard if now == "deleted"} >= {"one", "a", "b"}


def test_a_change_of_package_prunes_unlabeled_members(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([config_map("a"), config_map("b"), obj("v1", "Secret", "c", "default", data={"a": "Yg=="})])
    replaced(api, "ConfigMap", "default", "a")
    replaced(api, "Secret", "default", "c")
    blue.reconcile([config_map("b")])
    assert [key.name for key in state(api) if not key.name.startswith("k8s-cr-driver-")] == ["b"]


def test_a_change_waits_for_an_unlabeled_member_that_goes_already(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([config_map("a"), config_map("b")])
    api.edit("ConfigMap", "default", "a", lambda live: live["metadata"].update(finalizers=["example.com/hold"]))
    api.delete("ConfigMap", "default", "a")
    replaced(api, "ConfigMap", "default", "a")
    run = blue.start([config_map("b")])
    blue.wait_until_reported("a", "deleting")
    assert not run.done()
    api.release("ConfigMap", "default", "a")
    run.result(10)
    assert api.find("ConfigMap", "default", "a") is None


def test_unlabeled_objects_of_others_stay(api: FakeApi) -> None:
    blue, green = Instance(api.url, adopt=True), Instance(api.url, id=GREEN)
    api.put(config_map("adopted"))
    api.put(config_map("theirs"))
    blue.reconcile([config_map("adopted", b="1"), config_map("a")])
    green.reconcile([config_map("green")])
    replaced(api, "ConfigMap", "default", "green")
    replaced(api, "ConfigMap", "default", "adopted")
    blue.terminate()
    assert api.names("ConfigMap", "default") == ["adopted", "green", f"k8s-cr-driver-{GREEN}", "theirs"]
    assert INSTANCE_LABEL not in (api.get("ConfigMap", "default", "adopted")["metadata"].get("labels") or {})


LOOK = {"method": "GET", "path": "configmaps/a$"}
MARK = {"method": "PATCH", "path": "configmaps/a$"}


FAULTS = [faults.reset_before(), faults.reset_after(), faults.truncated(), faults.unavailable()]


@pytest.mark.parametrize(
    ("match", "fault"), [*((match, fault) for match in (LOOK, MARK) for fault in FAULTS), (MARK, faults.conflict())]
)
def test_a_fault_while_members_are_reclaimed_is_retried(api: FakeApi, match: dict[str, Any], fault: faults.Answer) -> None:
    blue = Instance(api.url)
    blue.reconcile([config_map("a")])
    replaced(api, "ConfigMap", "default", "a")
    api.fail(fault, **match)
    blue.terminate()
    assert api.faults_pending == 0
    assert state(api) == {}


@pytest.mark.parametrize("another", [True, False])
def test_an_unlabeled_member_that_goes_meanwhile_is_gone(api: FakeApi, another: bool) -> None:
    blue = Instance(api.url)
    blue.reconcile([config_map("a")])
    replaced(api, "ConfigMap", "default", "a")

    def happens(request: Request) -> bool:
        api.delete("ConfigMap", "default", "a")
        if another:
            api.put(config_map("a"))
        return False

    api.fail(faults.unavailable(), **MARK, when=happens)
    blue.terminate()
    assert api.names("ConfigMap", "default") == ["a"] * another


def test_the_claims_of_an_unlabeled_stateful_set_go_too(api: FakeApi) -> None:
    controllers.run_workloads(api)
    blue = Instance(api.url)
    blue.reconcile([stateful_set("db")])
    api.put(claim("data-db-0", app="db"))
    replaced(api, "StatefulSet", "default", "db")
    blue.terminate()
    assert state(api) == {}


def test_an_unlabeled_member_that_may_not_be_patched_is_abandoned(api: FakeApi, caplog: pytest.LogCaptureFixture) -> None:
    blue = Instance(api.url)
    blue.reconcile([config_map("a"), config_map("b")])
    replaced(api, "ConfigMap", "default", "a")
    api.fail(faults.status(403, "Forbidden", "no"), method="PATCH", path="configmaps/a$", times=2)
    with pytest.raises(Exception, match="configmaps/a"):
        blue.terminate()
    blue.abandon = True
    blue.terminate()
    assert api.names("ConfigMap", "default") == ["a"]
    assert "objects without the instance's label are abandoned" in caplog.text


def test_a_kind_that_goes_meanwhile_has_no_unlabeled_members(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([crontab_crd(), config_map("a")])
    blue.reconcile([crontab_crd(), crontab("one")])
    api.fail(faults.status(404, "NotFound", "gone"), method="GET", path="crontabs$", when=lambda request: not request.watch)
    blue.terminate()
    assert api.faults_pending == 0
    assert state(api) == {}


def test_one_404_of_a_list_hides_no_unlabeled_member(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([crontab_crd(), crontab("one")])
    replaced(api, "CronTab", "default", "one")
    api.put({**crontab("user"), "metadata": {"name": "user", "namespace": "default"}})
    api.fail(faults.status(404, "NotFound", "gone"), method="GET", path="crontabs$", when=lambda request: not request.watch)
    seen: list[str] = []
    api.react("CronTab", lambda live: seen.append(live["metadata"]["name"]), "stable.example.com")
    blue.terminate()
    assert api.faults_pending == 0
    assert ("one", "deleted") in {(key.name, now) for key, now, _ in blue.heard}


HOME = obj("v1", "Namespace", "home")


def without_label(api: FakeApi, shared: Object, instance: str = BLUE) -> None:
    """As `kubectl label KIND NAME used-by.k8s-cr-driver/INSTANCE-` leaves it."""
    api.edit(shared["kind"], None, shared["metadata"]["name"], lambda live: live["metadata"]["labels"].pop(used_by(instance)))


@pytest.mark.parametrize("shared", [HOME, crontab_crd()], ids=lambda one: one["kind"])
@pytest.mark.parametrize("verb", ["terminate", "change"])
def test_a_shared_object_that_has_lost_its_label_is_deleted(api: FakeApi, shared: Object, verb: str) -> None:
    blue = Instance(api.url)
    blue.reconcile([shared, config_map("a")])
    without_label(api, shared)
    blue.reconcile([config_map("a")] if verb == "change" else [])
    assert api.find(shared["kind"], None, shared["metadata"]["name"]) is None
    assert (shared["metadata"]["name"], "deleted") in {(key.name, now) for key, now, _ in blue.heard}


@pytest.mark.parametrize("why", ["a guest", "another instance", "it existed before", "its maker is another one"])
def test_a_shared_object_that_has_lost_its_label_stays_where_it_would_stay_with_it(api: FakeApi, why: str) -> None:
    blue = Instance(api.url, adopt=True)
    if why == "it existed before":
        api.put(HOME)
    if why == "its maker is another one":
        Instance(api.url, GREEN).reconcile([HOME])
    blue.reconcile([HOME, config_map("a")])
    if why == "another instance":
        Instance(api.url, GREEN).reconcile([HOME])
    if why == "a guest":
        api.put({**claim("guest"), "metadata": {"name": "guest", "namespace": "home"}})
    without_label(api, HOME)
    blue.terminate()
    live = api.get("Namespace", None, "home")
    assert used_by(BLUE) not in (live["metadata"].get("labels") or {})
    assert not is_managed(live, BLUE) or why == "a guest"
    assert f"k8s-cr-driver-{BLUE}" not in api.names("ConfigMap")


def test_a_namespace_of_the_name_that_somebody_has_made_since_stays(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([HOME, config_map("a")])
    api.delete("Namespace", None, "home")
    api.put(HOME)
    blue.terminate()
    assert api.find("Namespace", None, "home")


def test_shared_objects_with_their_label_are_not_read_by_name(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([HOME, crontab_crd()])
    api.requests.clear()
    blue.reconcile([HOME, crontab_crd()])
    assert not api.requests.select("GET", "namespaces/home$")


@pytest.mark.parametrize("verb", ["terminate", "change"])
def test_a_member_with_the_label_of_another_instance_is_deleted(api: FakeApi, verb: str) -> None:
    blue = Instance(api.url)
    blue.reconcile([config_map("a"), config_map("b")])
    replaced(api, "ConfigMap", "default", "a", **{INSTANCE_LABEL: GREEN})
    blue.reconcile([config_map("b")] if verb == "change" else [])
    assert "a" not in api.names("ConfigMap", "default")


def test_an_object_that_loses_its_label_before_its_deletion_is_waited_for(api: FakeApi) -> None:
    """Its watch reports the same as for an object that no longer exists. Its ReplicaSet holds it."""
    controllers.run_workloads(api)
    blue = Instance(api.url)
    blue.reconcile([deployment()])
    blue.seconds = 2
    [owned] = api.names("ReplicaSet", "default")

    def hold(live: Object) -> None:
        live["metadata"]["finalizers"] = ["example.com/hold"]
        live["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] = True

    api.edit("ReplicaSet", "default", owned, hold)

    def lose_label(request: Request) -> bool:
        if request.method == "DELETE" and "deployments" in request.path:
            replaced(api, "Deployment", "default", "web")
            return True
        return False

    api.fail(faults.held(0.3), when=lose_label)
    run = blue.start([])
    with pytest.raises(NotReady, match=r"Deployment.apps default/web"):
        run.result(10)
    blue.seconds = 60
    api.release("ReplicaSet", "default", owned)
    blue.terminate()
    assert state(api) == {}


@pytest.mark.parametrize("verb", ["change", "terminate"])
def test_an_adopted_object_is_released_though_it_has_lost_its_label(api: FakeApi, verb: str) -> None:
    api.put(config_map("theirs"), manager="user")
    blue = Instance(api.url, adopt=True)
    blue.reconcile([config_map("theirs"), config_map("b")])
    replaced(api, "ConfigMap", "default", "theirs")
    blue.reconcile([config_map("b")] if verb == "change" else [])
    live = api.get("ConfigMap", "default", "theirs")
    assert not is_managed(live, BLUE)
    assert not labels(live)


def test_an_adopted_object_without_label_keeps_the_namespace_of_another_instance(api: FakeApi) -> None:
    home = obj("v1", "Namespace", "home")
    blue, green = Instance(api.url, adopt=True), Instance(api.url, GREEN)
    green.reconcile([home])
    api.put(config_map("theirs", "home"), manager="user")
    blue.reconcile([config_map("theirs", "home")])
    replaced(api, "ConfigMap", "home", "theirs")
    blue.terminate()
    green.terminate()
    assert api.find("ConfigMap", "home", "theirs")


@pytest.mark.parametrize("force", [False, True])
def test_an_object_without_label_is_not_adopted_by_another_instance(api: FakeApi, force: bool) -> None:
    blue, green = Instance(api.url), Instance(api.url, GREEN, adopt=True, force=force)
    blue.reconcile([config_map("a", x="1"), config_map("b")])
    replaced(api, "ConfigMap", "default", "a")
    with pytest.raises(NotOurs, match="belongs to another VNF instance"):
        green.reconcile([config_map("a", x="1" if not force else "2")])
    assert api.get("ConfigMap", "default", "a")["data"] == {"x": "1"}
    green.terminate()
    assert api.get("ConfigMap", "default", "a")
    blue.terminate()
    assert state(api) == {}
