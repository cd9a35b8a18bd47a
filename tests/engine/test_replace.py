# SPDX-License-Identifier: Apache-2.0
"""Children that are replaced: deleted by the run that holds the instance, gone before the set is applied, made anew."""

from __future__ import annotations

import pytest

from k8s_cr_driver.engine.delete.replacer import Replacement
from k8s_cr_driver.engine.report.not_ready import NotReady, Report
from k8s_cr_driver.errors import Refused
from k8s_cr_driver.objects.keys import Object, key_of
from tests.fake_api import FakeApi, faults
from tests.instance import Instance, config_map, obj, wait_for
from tests.times import change_times

HOLD = "example.com/hold"


def pod(api: FakeApi, name: str, **metadata: object) -> Object:
    """Somebody's Pod, as a controller makes it."""
    made = obj("v1", "Pod", name, "default", spec={"containers": [{"name": "c", "image": "i"}]})
    made["metadata"].update({"labels": {"app": "web"}, **metadata})
    return api.put(made)


def test_replacement_applies_the_set_when_the_chosen_are_gone(api: FakeApi) -> None:
    chosen, _ = pod(api, "chosen", finalizers=[HOLD]), pod(api, "other")
    run = Instance(api.url).start([config_map("a")], replacement=Replacement([("app=web", [chosen])]))
    wait_for(api, lambda: "deletionTimestamp" in api.get("Pod", "default", "chosen")["metadata"])
    assert api.find("ConfigMap", "default", "a") is None
    api.release("Pod", "default", "chosen")
    run.result(10)
    assert api.names("Pod") == ["other"]
    assert api.find("ConfigMap", "default", "a")


def test_replacement_deletes_no_new_object_of_the_same_name(api: FakeApi) -> None:
    """As a StatefulSet makes it, at once."""
    old = pod(api, "web-0", finalizers=[HOLD])
    run = Instance(api.url).start([config_map("a")], replacement=Replacement([("app=web", [old])]))
    wait_for(api, lambda: "deletionTimestamp" in api.get("Pod", "default", "web-0")["metadata"])
    with api.cluster.store.lock:
        api.release("Pod", "default", "web-0")
        new = pod(api, "web-0")
    run.result(10)
    assert api.get("Pod", "default", "web-0")["metadata"]["uid"] == new["metadata"]["uid"]


def test_replacement_skips_what_is_gone_already(api: FakeApi) -> None:
    gone = pod(api, "gone")
    api.delete("Pod", "default", "gone")
    Instance(api.url).reconcile([config_map("a")], replacement=Replacement([("app=web", [gone])]))


@pytest.mark.parametrize("fault", [faults.unavailable(), faults.conflict(), faults.reset_before()], ids=["503", "409", "reset"])
def test_replacement_deletes_an_object_whose_first_deletion_fails(
    api: FakeApi, fault: faults.Answer | faults.Cut, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = pod(api, "chosen")
    change_times(monkeypatch, first_backoff=0.3)
    api.fail(fault, method="DELETE", path="pods/chosen$", times=2)
    Instance(api.url).reconcile([config_map("a")], replacement=Replacement([("app=web", [chosen])]))
    assert api.names("Pod") == []


def test_replacements_that_take_long_are_counted_less_often(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a Machine take minutes, and each count lists all VNFCs."""
    blue, counts = Instance(api.url, seconds=2), list[list[Report]]()
    change_times(monkeypatch, count_every=0.02, count_share=1.0)

    def unfinished() -> list[Report]:
        counts.append([Report(key_of(config_map("a")), "Waiting", "Replicas", "none yet")])
        return counts[-1]

    with pytest.raises(NotReady):
        blue.reconcile([config_map("a")], replacement=Replacement([], unfinished))
    assert 2 < len(counts) < 12


def test_replacement_waits_for_objects_of_several_selectors(api: FakeApi) -> None:
    web, db = pod(api, "web"), pod(api, "db", labels={"app": "db"}, finalizers=[HOLD])
    run = Instance(api.url).start([config_map("a")], replacement=Replacement([("app=web", [web]), ("app=db", [db])]))
    wait_for(api, lambda: api.names("Pod") == ["db"])
    wait_for(api, lambda: "deletionTimestamp" in api.get("Pod", "default", "db")["metadata"])
    assert api.find("ConfigMap", "default", "a") is None
    api.release("Pod", "default", "db")
    run.result(10)


def test_replacement_reports_what_holds_an_object(api: FakeApi) -> None:
    held = pod(api, "held", finalizers=[HOLD])
    with pytest.raises(NotReady, match=r"not deleted after \d s:\nPod default/held: .*held by finalizers example.com/hold"):
        Instance(api.url, seconds=2).reconcile([config_map("a")], replacement=Replacement([("app=web", [held])]))


def test_replacement_refuses_adopted_objects(api: FakeApi) -> None:
    theirs = api.put(config_map("theirs"))
    blue = Instance(api.url, adopt=True)
    blue.reconcile([config_map("theirs")])
    with pytest.raises(Refused, match="ConfigMap default/theirs: adopted"):
        blue.reconcile([config_map("theirs")], replacement=Replacement([("", [theirs])]))
    assert not api.requests.select("DELETE")


def test_replacement_counts_until_nothing_is_missing(api: FakeApi) -> None:
    answers = [[Report(key_of(config_map("a")), "Waiting", "Replicas", "one is missing")], []]
    Instance(api.url).reconcile([config_map("a")], replacement=Replacement([], lambda: answers.pop(0)))
    assert answers == []


def test_replacement_reports_what_is_missing_at_the_deadline(api: FakeApi) -> None:
    unfinished = [Report(key_of(config_map("a")), "Waiting", "Replicas", "VDU Web has 1 of 2 VNFCs")]
    with pytest.raises(NotReady, match=r"VNFCs are missing, or too many, after \d s:\nConfigMap default/a: .*1 of 2 VNFCs"):
        Instance(api.url, seconds=2).reconcile([config_map("a")], replacement=Replacement([], lambda: unfinished))
