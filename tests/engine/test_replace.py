"""Children that are replaced: deleted by the run that holds the instance, gone before the set is applied, made anew."""

from __future__ import annotations

import pytest

from k8s_cr_driver.engine.not_ready import NotReady, Report
from k8s_cr_driver.engine.replace import Replacement
from k8s_cr_driver.errors import Refused
from k8s_cr_driver.objects.keys import Object, key_of
from tests.fake_api import FakeApi
from tests.instance import Instance, config_map, obj, wait_for

HOLD = "example.com/hold"


def pod(api: FakeApi, name: str, **metadata: object) -> Object:
    """Somebody's Pod, as a controller makes it."""
    made = obj("v1", "Pod", name, "default", spec={"containers": [{"name": "c", "image": "i"}]})
    made["metadata"].update({"labels": {"app": "web"}, **metadata})
    return api.put(made)


def test_the_set_is_applied_when_the_chosen_are_gone_and_no_others_are_touched(api: FakeApi) -> None:
    chosen, _ = pod(api, "chosen", finalizers=[HOLD]), pod(api, "other")
    run = Instance(api.url).start([config_map("a")], renewal=Replacement([("app=web", [chosen])]))
    wait_for(api, lambda: "deletionTimestamp" in api.get("Pod", "default", "chosen")["metadata"])
    assert api.find("ConfigMap", "default", "a") is None
    api.release("Pod", "default", "chosen")
    run.result(10)
    assert api.names("Pod") == ["other"]
    assert api.find("ConfigMap", "default", "a")


def test_of_the_same_name_another_one_is_not_deleted(api: FakeApi) -> None:
    """As a StatefulSet makes it, at once."""
    old = pod(api, "web-0", finalizers=[HOLD])
    run = Instance(api.url).start([config_map("a")], renewal=Replacement([("app=web", [old])]))
    wait_for(api, lambda: "deletionTimestamp" in api.get("Pod", "default", "web-0")["metadata"])
    with api.cluster.store.lock:
        api.release("Pod", "default", "web-0")
        new = pod(api, "web-0")
    run.result(10)
    assert api.get("Pod", "default", "web-0")["metadata"]["uid"] == new["metadata"]["uid"]


def test_one_that_is_gone_already_is_well(api: FakeApi) -> None:
    gone = pod(api, "gone")
    api.delete("Pod", "default", "gone")
    Instance(api.url).reconcile([config_map("a")], renewal=Replacement([("app=web", [gone])]))


def test_those_with_other_labels_are_awaited_apart(api: FakeApi) -> None:
    web, db = pod(api, "web"), pod(api, "db", labels={"app": "db"}, finalizers=[HOLD])
    run = Instance(api.url).start([config_map("a")], renewal=Replacement([("app=web", [web]), ("app=db", [db])]))
    wait_for(api, lambda: api.names("Pod") == ["db"])
    wait_for(api, lambda: "deletionTimestamp" in api.get("Pod", "default", "db")["metadata"])
    assert api.find("ConfigMap", "default", "a") is None
    api.release("Pod", "default", "db")
    run.result(10)


def test_one_that_stays_is_told_with_what_holds_it(api: FakeApi) -> None:
    held = pod(api, "held", finalizers=[HOLD])
    with pytest.raises(NotReady, match=r"not gone after \d s:\nPod default/held: .*held by finalizers example.com/hold"):
        Instance(api.url, seconds=1).reconcile([config_map("a")], renewal=Replacement([("app=web", [held])]))


def test_what_is_adopted_is_not_deleted(api: FakeApi) -> None:
    theirs = api.put(config_map("theirs"))
    blue = Instance(api.url, adopt=True)
    blue.reconcile([config_map("theirs")])
    with pytest.raises(Refused, match="ConfigMap default/theirs: adopted"):
        blue.reconcile([config_map("theirs")], renewal=Replacement([("", [theirs])]))
    assert not api.requests.select("DELETE")


def test_what_lacks_is_asked_for_until_nothing_does(api: FakeApi) -> None:
    answers = [[Report(key_of(config_map("a")), "Waiting", "Replicas", "one is missing")], []]
    Instance(api.url).reconcile([config_map("a")], renewal=Replacement([], lambda: answers.pop(0)))
    assert answers == []


def test_what_lacks_at_the_end_is_told(api: FakeApi) -> None:
    lacking = [Report(key_of(config_map("a")), "Waiting", "Replicas", "VDU Web has 1 of 2 VNFCs")]
    with pytest.raises(NotReady, match=r"the VNFCs are not as wanted after \d s:\nConfigMap default/a: .*1 of 2 VNFCs"):
        Instance(api.url, seconds=1).reconcile([config_map("a")], renewal=Replacement([], lambda: lacking))
