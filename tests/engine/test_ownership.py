"""Whose an object is: ours is changed and deleted, others' is left alone, what is shared goes with its last user."""

from __future__ import annotations

import pytest

from k8s_cr_driver.errors import Conflict, NotOurs, Refused
from k8s_cr_driver.keys import Object
from tests.engine.instance import BLUE, GREEN, Instance, config_map, crontab, crontab_crd, job, obj, state
from tests.fake_api import FakeApi, controllers

SHARED = [crontab_crd(), obj("v1", "Namespace", "both")]


def test_labels_that_a_controller_copies_to_a_child_do_not_make_it_ours(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.converge([config_map("a")])
    copy = config_map("copy")
    copy["metadata"]["labels"] = api.get("ConfigMap", "default", "a")["metadata"]["labels"]
    api.put(copy)
    blue.terminate()
    assert api.names("ConfigMap") == ["copy"]


def test_an_object_whose_owner_goes_is_left_to_it(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.converge([crontab_crd(), crontab("owner"), config_map("child"), config_map("single")])
    owner = api.get("CronTab", "default", "owner")
    api.edit("ConfigMap", "default", "child", lambda live: live["metadata"].update(ownerReferences=[controlled_by(owner)]))
    api.requests.clear()
    blue.terminate()
    assert not api.requests.select("DELETE", "configmaps/child")
    assert len(api.requests.select("DELETE", "configmaps/single")) == 1
    assert state(api) == {}


def test_an_object_whose_owner_is_only_released_is_deleted(api: FakeApi) -> None:
    api.put(crontab_crd())
    owner = api.put(crontab("theirs"))
    blue = Instance(api.url, adopt=True)
    child = config_map("child")
    child["metadata"]["ownerReferences"] = [controlled_by(owner)]
    blue.converge([crontab("theirs"), child])
    blue.terminate()
    assert api.names("ConfigMap") == []
    assert api.names("CronTab") == ["theirs"]


def test_an_adopted_object_is_never_replaced(api: FakeApi) -> None:
    blue = Instance(api.url, adopt=True, force=True)
    api.put(job("a", "one"))
    controllers.run_workloads(api)
    api.set_status("Job", "default", "a", {"succeeded": 1, "conditions": [controllers.condition("Complete")]})
    blue.converge([job("a", "one")])
    before = api.get("Job", "default", "a")
    with pytest.raises(Refused, match="immutable"):
        blue.converge([job("a", "two")])
    assert api.get("Job", "default", "a") == before


def controlled_by(owner: Object) -> Object:
    name = {part: owner["metadata"][part] for part in ("name", "uid")}
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], **name, "controller": True}


def test_an_adoption_outlives_a_retry_without_the_option(api: FakeApi) -> None:
    api.put(config_map("a", theirs="1"))
    Instance(api.url, adopt=True).converge([config_map("a", ours="2")])
    Instance(api.url).converge([config_map("a", ours="3")])
    assert api.get("ConfigMap", "default", "a")["data"] == {"theirs": "1", "ours": "3"}
    Instance(api.url).terminate()
    assert api.get("ConfigMap", "default", "a")["data"] == {"theirs": "1"}


def test_an_adopted_object_that_leaves_the_set_is_released(api: FakeApi) -> None:
    api.put(config_map("a", theirs="1"))
    blue = Instance(api.url, adopt=True)
    blue.converge([config_map("a", ours="2"), config_map("b")])
    blue.converge([config_map("b")])
    assert api.get("ConfigMap", "default", "a")["data"] == {"theirs": "1"}
    inventory = api.get("ConfigMap", "default", f"k8s-cr-driver-{BLUE}")
    assert inventory["metadata"]["annotations"]["k8s-cr-driver/adopted"] == "[]"


@pytest.mark.parametrize("attempt", range(5))
def test_two_instances_that_leave_at_the_same_time_leave_nothing(api: FakeApi, attempt: int) -> None:
    instances = [Instance(api.url, id) for id in (BLUE, GREEN)]
    for one in instances:
        one.converge([*SHARED, crontab(f"tab-{one.id[-1:]}", "both"), config_map(f"map-{one.id[-1:]}", "both")])
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


def test_a_crd_that_differs_from_that_of_another_instance_is_a_conflict_that_names_it(api: FakeApi) -> None:
    Instance(api.url, GREEN).converge([crontab_crd()])
    other = crontab_crd()
    schema = other["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["cronSpec"]["type"] = "integer"
    before = api.get("CustomResourceDefinition", None, "crontabs.stable.example.com")
    with pytest.raises(Conflict, match=f"shared with VNF instance {GREEN}") as raised:
        Instance(api.url, BLUE).converge([other])
    assert raised.value.fields
    assert api.get("CustomResourceDefinition", None, "crontabs.stable.example.com") == before


def test_a_namespace_that_holds_objects_of_another_instance_stays(api: FakeApi) -> None:
    blue, green = Instance(api.url, BLUE), Instance(api.url, GREEN)
    blue.converge([obj("v1", "Namespace", "home"), config_map("a", "home")])
    green.converge([config_map("guest", "home")])
    blue.terminate()
    assert "home" in api.names("Namespace")
    assert api.names("ConfigMap", "home") == ["guest"]
    green.terminate()
    assert api.names("ConfigMap", "home") == []


def test_a_users_objects_of_the_same_name_survive_everything(api: FakeApi) -> None:
    api.put(crontab_crd())
    theirs = [api.put(crontab("one")), api.put(config_map("a"))]
    blue = Instance(api.url)
    for wanted in ([crontab("one"), config_map("b")], [config_map("a"), config_map("b")]):
        with pytest.raises(NotOurs):
            blue.converge(wanted)
    blue.terminate()
    assert [api.get(live["kind"], "default", live["metadata"]["name"]) for live in theirs] == theirs
    assert api.names("ConfigMap") == ["a"]
