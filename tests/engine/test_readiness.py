# SPDX-License-Identifier: Apache-2.0
"""An object counts as ready when its newest state says so, and never before."""

from __future__ import annotations

import re
from concurrent.futures import Future

import pytest
import yaml

from k8s_cr_driver.engine.report import progress_log
from k8s_cr_driver.engine.report.diagnosis import Seen
from k8s_cr_driver.engine.report.not_ready import NotReady
from k8s_cr_driver.engine.run.nodes import Desired
from k8s_cr_driver.kube import watch
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.kube.sent_values import SentValues
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey
from k8s_cr_driver.resources.registry import resource_for
from tests.fake_api import FakeApi, faults
from tests.fake_api.recording import Request
from tests.instance import CONDITIONS, Instance, config_map, crontab, crontab_crd, deployment, job, obj, status, wait_for
from tests.times import change_times

CRD = crontab_crd(**CONDITIONS)


def crontab_crd_with(spec: Object | None = None, **fields: Object) -> Object:
    """With these fields in the schema of the spec, of which `spec` is more."""
    crd = crontab_crd(**CONDITIONS)
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    schema |= {**(spec or {}), "properties": schema["properties"] | fields}
    return crd


def test_a_status_that_a_server_computes_at_each_read_is_judged_in_the_same_version(api: FakeApi) -> None:
    blue = Instance(api.url)
    run = blue.start([CRD, crontab("one")])
    blue.wait_until_reported("one", "Waiting")
    api.get("CronTab", "default", "one")
    with api.cluster.store.lock:
        [live] = [live for _, live in api.cluster.store.everything() if live["kind"] == "CronTab"]
        live["status"] = status()
    api.break_streams(faults.stream_error(), "CronTab")  # 410, so that it is listed again
    run.result(10)


def test_an_object_without_its_status_is_waited_for_until_an_event_says_that_it_is_ready(api: FakeApi) -> None:
    blue = Instance(api.url)
    run = blue.start([CRD, crontab("one")])
    blue.wait_until_reported("one", "Waiting")
    api.set_status("CronTab", "default", "one", status("False", "Starting"))
    assert not run.done()
    api.set_status("CronTab", "default", "one", status())
    lives = run.result(10)
    assert [live["status"]["conditions"][0]["status"] for live in lives.values() if live["kind"] == "CronTab"] == ["True"]


def test_what_was_ready_before_our_write_does_not_count(api: FakeApi) -> None:
    blue = Instance(api.url)
    api.react("CronTab", lambda live: ready_once(api, live))
    blue.reconcile([CRD, crontab("one")])
    run = blue.start([CRD, crontab("one", schedule="0 * * * *")])
    blue.wait_until_reported("one", "Waiting")
    assert not run.done()
    api.set_status("CronTab", "default", "one", status(generation=2))
    run.result(10)


def ready_once(api: FakeApi, live: Object) -> None:
    """A controller that sees the first generation only."""
    if "status" not in live and "deletionTimestamp" not in live["metadata"]:
        api.set_status("CronTab", live["metadata"]["namespace"], live["metadata"]["name"], status())


def test_an_object_that_somebody_deletes_while_others_are_waited_for_is_made_again(api: FakeApi) -> None:
    blue = Instance(api.url)
    run = blue.start([CRD, crontab("one"), config_map("a")])
    blue.wait_until_reported("a", "Ready")
    blue.wait_until_reported("one", "Waiting")
    first = api.get("ConfigMap", "default", "a")["metadata"]["uid"]
    api.delete("ConfigMap", "default", "a")
    wait_for(api, lambda: api.find("ConfigMap", "default", "a") is not None)
    api.set_status("CronTab", "default", "one", status())
    run.result(10)
    assert api.get("ConfigMap", "default", "a")["metadata"]["uid"] != first


def test_an_object_that_is_no_longer_ready_is_waited_for_again(api: FakeApi) -> None:
    blue = Instance(api.url)
    run = blue.start([CRD, crontab("one"), crontab("two")])
    blue.wait_until_reported("one", "Waiting")
    blue.wait_until_reported("two", "Waiting")
    api.set_status("CronTab", "default", "one", status())
    blue.wait_until_reported("one", "Ready")
    api.set_status("CronTab", "default", "one", status("False"))
    wait_until_last_told(blue, "one", "Waiting")
    api.set_status("CronTab", "default", "two", status())
    blue.wait_until_reported("two", "Ready")
    assert not run.done()
    api.set_status("CronTab", "default", "one", status())
    run.result(10)


def wait_until_last_told(one: Instance, name: str, state: str) -> None:
    with one._reported:
        assert one._reported.wait_for(lambda: [s for key, s, _ in one.heard if key.name == name][-1:] == [state], 10)


@pytest.mark.usefixtures("failed_soon")
def test_the_report_names_the_worst_first_with_its_warnings(api: FakeApi) -> None:
    blue = Instance(api.url)
    needs = {"config.kubernetes.io/depends-on": "stable.example.com/namespaces/default/CronTab/slow"}
    blocked = config_map("blocked")
    blocked["metadata"]["annotations"] = needs
    run = blue.start([CRD, crontab("broken"), crontab("slow"), crontab("fine"), blocked])
    for name in ("broken", "slow", "fine"):
        blue.wait_until_reported(name, "Waiting")
    for message in ("the first", "the last"):
        event = api.event(api.get("CronTab", "default", "broken"), "FailedMount", message)
        event["lastTimestamp"] = f"2026-01-01T00:00:0{1 if message == 'the first' else 2}Z"
        api.put(event)
    api.event(api.get("CronTab", "default", "broken"), "Pulled", "all is well", type_="Normal")
    api.event(api.get("CronTab", "default", "fine"), "Other", "not of the broken one")
    api.set_status("CronTab", "default", "fine", status())
    api.set_status("CronTab", "default", "slow", status("False", "Starting", "3 of 4 are up"))
    api.set_status("CronTab", "default", "broken", status("True", "BadImage", "no such image", type="Stalled"))
    with pytest.raises(NotReady) as raised:
        run.result(10)
    worst, second, last = raised.value.reports
    assert str(worst.key) == "CronTab.stable.example.com default/broken"
    assert (worst.state, worst.reason) == ("Failed", "BadImage")
    assert "no such image" in worst.message
    assert worst.events == ("FailedMount: the last", "FailedMount: the first")
    assert (second.key.name, second.state, second.reason) == ("slow", "Waiting", "Starting")
    assert (last.key.name, last.reason) == ("blocked", "Blocked")
    assert "CronTab.stable.example.com default/slow" in last.message
    assert worst.since
    assert str(raised.value).startswith("3 of 5 objects not ready, and CronTab.stable.example.com default/broken has failed:")


def test_a_failure_that_passes_within_the_grace_is_none(api: FakeApi) -> None:
    blue = Instance(api.url)
    run = blue.start([CRD, crontab("one"), crontab("two")])
    for name in ("one", "two"):
        blue.wait_until_reported(name, "Waiting")
    api.set_status("CronTab", "default", "one", status("True", "Oops", type="Stalled"))
    blue.wait_until_reported("one", "Failed")
    api.set_status("CronTab", "default", "one", status())
    blue.wait_until_reported("one", "Ready")
    api.set_status("CronTab", "default", "two", status())
    run.result(10)


def test_what_is_suspended_is_not_waited_for(api: FakeApi) -> None:
    paused = crontab("one")
    paused["spec"]["suspend"] = True
    blue = Instance(api.url)
    blue.reconcile([crontab_crd_with(suspend={"type": "boolean"}), paused])
    assert blue.heard[-1][1] == "Suspended"


def test_where_being_stored_is_enough_nothing_is_waited_for(api: FakeApi) -> None:
    stored = crontab("one")
    stored["metadata"]["annotations"] = {"k8s-cr-driver/ready-when": "stored"}
    Instance(api.url).reconcile([CRD, stored])
    definition = crontab_crd(**CONDITIONS)
    definition["metadata"]["annotations"] = {"k8s-cr-driver/ready-when": "stored"}
    Instance(api.url).reconcile([definition, crontab("one"), crontab("two")])


def test_rule_of_an_annotation_decides_when_the_wait_ends_and_costs_no_request(api: FakeApi) -> None:
    plain, ruled = crontab("plain"), crontab("ruled")
    ruled["metadata"]["annotations"] = {"k8s-cr-driver/ready-when": "jsonpath={.status.phase}=Frobnicated"}
    desired = [crontab_crd(phase={"type": "string"}, **CONDITIONS)]
    blue, counts = Instance(api.url), []
    for tab, phase in ((plain, "Ready"), (ruled, "Frobnicated")):
        name = tab["metadata"]["name"]
        desired.append(tab)
        run = blue.start(desired)
        blue.wait_until_reported(name, "Waiting")
        api.requests.clear()
        api.set_status("CronTab", "default", name, {"phase": phase})
        run.result(10)
        # Without those whose number depends on the time that it takes: watches, and writes of the inventory
        counts.append(len([one for one in api.requests if not one.watch and "/configmaps/" not in one.path]))
    assert counts[0] == counts[1]


@pytest.mark.parametrize("count", [1, 5])
def test_a_crd_that_is_not_of_the_package_is_asked_once_whether_a_status_is_to_come(api: FakeApi, count: int) -> None:
    api.put(crontab_crd())
    api.requests.clear()
    Instance(api.url).reconcile([crontab(f"tab-{number}") for number in range(count)])
    assert len(api.requests.select("GET", "customresourcedefinitions/crontabs")) == 1


def is_established(**annotations: str) -> Object:
    """A CRD of the cluster that has these rules for its objects."""
    crd = crontab_crd(**CONDITIONS)
    crd["metadata"]["annotations"] = {f"k8s-cr-driver/{name.replace('_', '-')}": rule for name, rule in annotations.items()}
    return crd


def answer(api: FakeApi, live: Object, **conditions: str) -> None:
    """A controller that reports these conditions of each generation."""
    generation, seen = live["metadata"]["generation"], live.get("status", {}).get("observedGeneration")
    if seen != generation and "deletionTimestamp" not in live["metadata"]:
        found = [{"type": name, "status": value} for name, value in conditions.items()]
        written = {"observedGeneration": generation, "conditions": found}
        api.set_status("CronTab", live["metadata"]["namespace"], live["metadata"]["name"], written)


@pytest.mark.parametrize("is_new", [True, False])
def test_rule_of_a_crd_on_the_cluster_decides_also_where_the_status_says_ready(api: FakeApi, is_new: bool) -> None:
    api.put(is_established(ready_when="condition=Odd"))
    blue = Instance(api.url)
    if not is_new:
        api.react("CronTab", lambda live: answer(api, live, Ready="True", Odd="True"))
        blue.reconcile([crontab("one")])
        blue.heard.clear()
        api.cluster.reactions.clear()
    api.react("CronTab", lambda live: answer(api, live, Ready="True"))
    run = blue.start([crontab("one", schedule="0 * * * *")])
    blue.wait_until_reported("one", "Waiting", "condition=Odd is not met")
    assert not run.done()
    api.cluster.reactions.clear()
    answer(api, {**api.get("CronTab", "default", "one"), "status": {}}, Odd="True")
    run.result(10)


def test_rule_of_a_crd_on_the_cluster_decides_also_where_the_status_says_that_it_waits(api: FakeApi) -> None:
    api.put(is_established(ready_when="condition=Odd"))
    api.react("CronTab", lambda live: answer(api, live, Ready="False", Odd="True"))
    blue = Instance(api.url)
    blue.reconcile([crontab("one")])
    blue.reconcile([crontab("one", schedule="0 * * * *")])


@pytest.mark.parametrize("readable", [True, False])
def test_a_status_that_says_ready_settles_where_no_crd_has_a_rule(api: FakeApi, readable: bool) -> None:
    api.put(is_established())
    if not readable:
        api.knobs.denied.add(("get", "apiextensions.k8s.io", "customresourcedefinitions", "*"))
    api.react("CronTab", lambda live: answer(api, live, Ready="True"))
    Instance(api.url).reconcile([crontab("one"), crontab("two")])
    assert len(api.requests.select("GET", "customresourcedefinitions/crontabs")) == 1


def test_a_crd_is_not_read_for_an_object_whose_own_rule_decides_before(api: FakeApi) -> None:
    api.put(is_established(ready_when="condition=Odd"))
    api.react("CronTab", lambda live: answer(api, live, Ready="True"))
    ruled = crontab("one")
    ruled["metadata"]["annotations"] = {"k8s-cr-driver/ready-when": "condition=Ready"}
    Instance(api.url).reconcile([ruled])
    assert not api.requests.select("GET", "customresourcedefinitions/crontabs")


def test_a_crd_that_was_not_found_once_is_read_again(api: FakeApi) -> None:
    """A load balancer without an API server responds 404 to every path. The kind has no status, so it is ready once stored."""
    api.put(crontab_crd())
    api.fail(faults.page_not_found(), method="GET", path="customresourcedefinitions/crontabs")
    Instance(api.url).reconcile([crontab("one")])
    assert api.faults_pending == 0


TEXT = {"type": "string"}


@pytest.mark.parametrize("seconds", [0, 0.5], ids=["is read", "is being read"])
def test_running_settles_nothing_before_the_crd_says_whether_the_kind_runs_to_an_end(api: FakeApi, seconds: float) -> None:
    api.put(crontab_crd(phase=TEXT, finishedAt=TEXT))
    api.react("CronTab", lambda live: run_once(api, live))
    api.fail(faults.held(seconds), method="GET", path="customresourcedefinitions/crontabs")
    blue = Instance(api.url)
    run = blue.start([crontab("one")])
    wait_for(api, lambda: run.done() or any("its work is not done yet" in message for _, _, message in blue.heard))
    assert not run.done()
    api.set_status("CronTab", "default", "one", {"phase": "Succeeded", "finishedAt": "2026-01-01T00:00:00Z"})
    run.result(10)


@pytest.mark.parametrize("readable", [True, False])
def test_running_settles_where_no_crd_speaks_of_an_end(api: FakeApi, readable: bool) -> None:
    api.put(crontab_crd(phase=TEXT))
    if not readable:
        api.knobs.denied.add(("get", "apiextensions.k8s.io", "customresourcedefinitions", "*"))
    api.react("CronTab", lambda live: run_once(api, live))
    Instance(api.url).reconcile([crontab("one")])


def run_once(api: FakeApi, live: Object) -> None:
    if "status" not in live and "deletionTimestamp" not in live["metadata"]:
        api.set_status("CronTab", live["metadata"]["namespace"], live["metadata"]["name"], {"phase": "Running"})


def test_a_status_that_has_not_changed_since_our_change_within_the_same_second_is_older(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.fake_api.apply.now", lambda: "2026-01-01T00:00:00Z")
    crd = crontab_crd(phase=TEXT, note=TEXT)
    blue = Instance(api.url)
    api.react("CronTab", lambda live: run_once(api, live))
    blue.reconcile([crd, crontab("one")])
    change_times(monkeypatch, silence=60)
    blue.heard.clear()
    run = blue.start([crd, crontab("one", schedule="0 * * * *")])
    blue.wait_until_reported("one", "Waiting")
    assert not run.done()
    api.set_status("CronTab", "default", "one", {"phase": "Running", "note": "of the new schedule"})
    run.result(10)


def test_a_status_that_has_changed_since_our_change_and_is_as_before_again_is_current(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.fake_api.apply.now", lambda: "2026-01-01T00:00:00Z")
    crd = crontab_crd(phase=TEXT)
    blue = Instance(api.url)
    api.react("CronTab", lambda live: run_once(api, live))
    blue.reconcile([crd, crontab("one")])
    change_times(monkeypatch, silence=60)
    blue.heard.clear()
    run = blue.start([crd, crontab("one", schedule="0 * * * *")])
    blue.wait_until_reported("one", "Waiting", "as it was when the spec was changed")
    api.set_status("CronTab", "default", "one", {"phase": "Starting"})
    blue.wait_until_reported("one", "Waiting", "Starting")
    api.set_status("CronTab", "default", "one", {"phase": "Running"})
    run.result(10)


@pytest.mark.usefixtures("failed_soon")
@pytest.mark.parametrize("said", [{"phase": "Failed"}, {"phase": "Pending"}, {"phase": "Error", "message": "x"}])
def test_an_old_status_that_says_not_ready_is_believed(api: FakeApi, said: Object) -> None:
    """Nobody writes it any more, so it counts as current; that does not make the object ready."""
    api.put(crontab_crd(phase=TEXT, message=TEXT))
    blue = Instance(api.url)
    run = blue.start([crontab("one")])
    blue.wait_until_reported("one", "Waiting")
    api.set_status("CronTab", "default", "one", said)
    blue.end()
    with pytest.raises(NotReady):
        run.result(10)
    with pytest.raises(NotReady, match=r"phase is (Failed|Pending|Error)"):
        Instance(api.url, seconds=3).reconcile([crontab("one", schedule="0 * * * *")])


@pytest.mark.parametrize("observed", [{"observedGeneration": 1}, {}], ids=["1.34", "1.27"])
def test_a_new_image_of_a_bare_pod_is_waited_for(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, observed: dict[str, int]
) -> None:

    def pod(image: str) -> Object:
        return obj("v1", "Pod", "one", "default", spec={"containers": [{"name": "c", "image": image}]})

    def running(image: str) -> Object:
        container = {"name": "c", "image": image, "ready": True, "state": {"running": {}}}
        conditions = [{"type": "Ready", "status": "True"}]
        return {"phase": "Running", **observed, "conditions": conditions, "containerStatuses": [container]}

    blue = Instance(api.url)
    change_times(monkeypatch, silence=60)
    run = blue.start([pod("i:1")])
    blue.wait_until_reported("one", "Waiting")
    api.set_status("Pod", "default", "one", running("i:1"))
    run.result(10)
    blue.heard.clear()
    run = blue.start([pod("i:2")])
    blue.wait_until_reported("one", "Waiting")
    if observed:
        observed["observedGeneration"] = 2
    api.set_status("Pod", "default", "one", running("i:2"))
    run.result(10)


def test_an_apply_that_changes_nothing_leaves_the_status_current(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fake_api.apply.now", lambda: "2026-01-01T00:00:00Z")
    crd = crontab_crd(phase=TEXT)
    blue = Instance(api.url)
    api.react("CronTab", lambda live: run_once(api, live))
    blue.reconcile([crd, crontab("one")])
    blue.reconcile([crd, crontab("one", schedule="0 * * * *")])
    change_times(monkeypatch, silence=60)
    blue.heard.clear()
    blue.reconcile([crd, crontab("one", schedule="0 * * * *")])
    assert [state for key, state, _ in blue.heard if key.name == "one"] == ["Ready"]


def test_the_report_names_what_is_in_trouble_before_what_takes_its_time(api: FakeApi) -> None:
    blue = Instance(api.url)
    run = blue.start([CRD, crontab("a-slow"), crontab("broken"), crontab("slow")])
    for name in ("a-slow", "broken", "slow"):
        blue.wait_until_reported(name, "Waiting")
    api.set_status("CronTab", "default", "a-slow", status("False", "Starting"))
    api.set_status("CronTab", "default", "broken", status("False", "ImagePullFailed"))
    blue.wait_until_reported("broken", "Waiting", "ImagePullFailed")
    blue.end()
    with pytest.raises(NotReady) as raised:
        run.result(10)
    assert [report.key.name for report in raised.value.reports] == ["broken", "a-slow", "slow"]


def test_without_the_permission_to_read_the_crd_the_timeout_names_the_remedy(api: FakeApi) -> None:
    api.put(crontab_crd())
    api.knobs.denied.add(("get", "apiextensions.k8s.io", "customresourcedefinitions", "*"))
    with pytest.raises(NotReady, match="ready-when: stored"):
        Instance(api.url, seconds=1.5).reconcile([crontab("one")])


def of_any_status() -> Object:
    """A CRD whose objects may have any status."""
    crd = crontab_crd(**CONDITIONS)
    properties = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    properties["status"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return crd


def ended_waiting(api: FakeApi, blue: Instance, crd: Object, said: Object, words: str) -> Future[dict[ObjectKey, Object]]:
    """A run whose object has said that; it was ended when it had reported these words of it."""
    run = blue.start([crd, crontab("one")])
    blue.wait_until_reported("one", "Waiting")
    api.set_status("CronTab", "default", "one", said)
    blue.wait_until_reported("one", "Waiting", words)
    blue.end()
    return run


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ({"cluster": {"status": "FROBBED", "onlineInstances": 1}}, "jsonpath={.status.cluster.status}=FROBBED"),
        ({"lifecycle": "SERVING"}, "jsonpath={.status.lifecycle}=SERVING"),
        (
            {"shards": [{"state": "up"}] * 2, "leader": "a"},
            "\"cel: size(status.shards) > 0 && status.shards.all(one, one.state == 'up')\"",
        ),
    ],
)
def test_the_error_at_the_deadline_has_the_line_that_the_status_meets(api: FakeApi, said: Object, line: str) -> None:
    crd, blue = of_any_status(), Instance(api.url)
    run = ended_waiting(api, blue, crd, said, line)
    with pytest.raises(NotReady, match=re.escape(f"k8s-cr-driver/ready-when: {line} [since")):
        run.result(10)
    ruled = crontab("one")
    ruled["metadata"]["annotations"] = yaml.safe_load(f"k8s-cr-driver/ready-when: {line}")
    blue.reconcile([crd, ruled])


@pytest.mark.parametrize(
    ("said", "words", "line"),
    [
        ({"phase": "Stopped"}, "Stopped", "jsonpath={.status.phase}=Stopped"),
        ({"phase": "Standby", "pods": "1/3"}, "pods is 1 of 3", "jsonpath={.status.phase}=Standby"),
        ({"phase": "Stopped", "error": "boom"}, "boom", ""),
        ({"phase": "Provisioning"}, "Provisioning", ""),
    ],
)
def test_the_error_at_the_deadline_has_a_line_also_where_the_status_says_that_it_waits(
    api: FakeApi, said: Object, words: str, line: str
) -> None:
    run = ended_waiting(api, Instance(api.url), of_any_status(), said, words)
    with pytest.raises(NotReady) as raised:
        run.result(10)
    found = re.findall("if it is ready as it is, annotate it with k8s-cr-driver/ready-when: (.+?) ", str(raised.value))
    assert found == [line] * bool(line)


def test_a_status_without_observed_generation_counts_after_a_while(api: FakeApi) -> None:
    crd = crontab_crd(conditions=CONDITIONS["conditions"])
    blue = Instance(api.url)
    silent = status()
    del silent["observedGeneration"]
    run = blue.start([crd, crontab("one")])
    blue.wait_until_reported("one", "Waiting")
    api.set_status("CronTab", "default", "one", silent)
    run.result(10)
    live = api.get("CronTab", "default", "one")
    past = [{**entry, "time": "2020-01-01T00:00:00Z"} for entry in live["metadata"]["managedFields"]]
    with api.cluster.writing():
        kind = api.cluster.by_kind("CronTab")
        api.cluster.store.put(kind.resource, {**live, "metadata": {**live["metadata"], "managedFields": past}})
    blue.heard.clear()
    blue.reconcile([crd, crontab("one", schedule="0 * * * *")])
    assert [state for key, state, _ in blue.heard if key.name == "one"][-2:] == ["Waiting", "Ready"]


def test_a_half_open_stream_delays_but_does_not_hide_that_an_object_is_ready(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "IDLE_LIMIT", 1.0)
    blue = Instance(api.url)
    run = blue.start([CRD, crontab("one")])
    blue.wait_until_reported("one", "Waiting")
    wait_for(api, lambda: api.break_streams(faults.half_open(), "CronTab") == 1)
    api.set_status("CronTab", "default", "one", status())
    run.result(10)


def test_a_stop_ends_the_search_for_causes_and_all_objects_are_reported(api: FakeApi) -> None:
    blue = Instance(api.url, seconds=2)

    def stop(request: Request) -> bool:
        if request.path.endswith(("/pods", "/replicasets")):
            blue.stop.set()
        return False

    api.fail(faults.unavailable(), when=stop)
    with pytest.raises(NotReady) as late:
        blue.reconcile([deployment(f"web{number}", f"web{number}") for number in range(9)])
    assert len(late.value.reports) == 9
    assert len(api.requests.select("GET", when=lambda one: one.path.endswith(("/pods", "/replicasets")))) == 1


def test_the_search_for_causes_has_a_limit(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_log, "SEARCH_SECONDS", 0)
    with pytest.raises(NotReady) as late:
        Instance(api.url, seconds=1.5).reconcile([deployment()])
    assert len(late.value.reports) == 1
    assert api.requests.select("GET", "/pods") == []


def test_what_an_object_waits_for_is_reported_as_it_was_when_it_was_seen() -> None:
    """The loop takes from it what has become ready, while another thread reports."""
    needed = ObjectKey("", "ConfigMap", "default", "b")
    resource = Resource(GroupKind("", "ConfigMap"), "v1", "configmaps", True, frozenset())
    node = Desired(resource_for(config_map("a")), resource, {needed})
    seen = Seen.of(node)
    node.needs.discard(needed)
    assert "waits for ConfigMap default/b" in seen.report(SentValues([])).message


BOOLEAN = {"type": "boolean"}
BY_DEFAULT = {**BOOLEAN, "default": False}


@pytest.mark.parametrize(
    ("one", "fields", "policy"),
    [
        (job("a", "one"), {}, ""),
        (crontab("a"), {"suspend": BOOLEAN}, ""),
        (crontab("a"), {"suspend": BY_DEFAULT}, ""),
        (crontab("a"), {"runPolicy": {"type": "object", "properties": {"suspend": BY_DEFAULT}, "default": {}}}, "runPolicy"),
    ],
    ids=["Job", "custom resource", "TrainJob of Kubeflow", "PyTorchJob of Kubeflow"],
)
def test_what_a_webhook_has_put_into_a_queue_is_waited_for(api: FakeApi, one: Object, fields: Object, policy: str) -> None:
    kind = one["kind"]
    api.put(crontab_crd_with(**fields))

    def suspend(live: Object, value: bool) -> None:
        (live["spec"][policy] if policy else live["spec"])["suspend"] = value

    def hold(live: Object) -> None:
        """As the API server records what admission changes: no manager but the applier's."""
        if live["metadata"]["generation"] == 1:
            manager = live["metadata"]["managedFields"][0]["manager"]
            api.edit(kind, "default", "a", lambda stored: suspend(stored, True), manager=manager)
            api.set_status(kind, "default", "a", {"conditions": [{"type": "Suspended", "status": "True"}]})

    api.react(kind, hold)
    blue = Instance(api.url)
    run = blue.start([one])
    where = f"spec.{policy}.suspend" if policy else "spec.suspend"
    blue.wait_until_reported("a", "Waiting", f"{where} is true, by a webhook")
    assert not run.done()
    api.edit(kind, "default", "a", lambda stored: suspend(stored, False), manager="kueue")
    api.set_status(kind, "default", "a", {"conditions": [{"type": "Complete", "status": "True"}]})
    run.result(10)


@pytest.mark.parametrize("asks", [True, False])
def test_what_its_package_or_a_user_suspends_is_at_rest(api: FakeApi, asks: bool) -> None:
    held = job("a", "one")

    def suspend(live: Object) -> None:
        if not live["spec"].get("suspend"):
            api.edit("Job", "default", "a", lambda stored: stored["spec"].update(suspend=True), manager="kubectl-patch")

    if asks:
        held["spec"]["suspend"] = True
    else:
        api.react("Job", suspend)
    Instance(api.url).reconcile([held])
    assert api.names("Job") == ["a"]


@pytest.mark.parametrize("may_read", [True, False])
def test_rest_that_is_a_default_of_a_crd_on_the_cluster_is_on_purpose(api: FakeApi, may_read: bool) -> None:
    api.put(crontab_crd_with(enabled={"type": "boolean", "default": False}))
    if not may_read:
        denied = faults.status(403, "Forbidden", "no")
        api.fail(denied, method="GET", path="customresourcedefinitions/crontabs", times=10)
    Instance(api.url).reconcile([crontab("a")])
    assert api.get("CronTab", "default", "a")["spec"]["enabled"] is False


def test_a_default_of_the_whole_spec_is_on_purpose(api: FakeApi) -> None:
    api.put(crontab_crd_with({"default": {"enabled": False}}, enabled={"type": "boolean"}))
    Instance(api.url).reconcile([obj("stable.example.com/v1", "CronTab", "a")])
    assert api.get("CronTab", "default", "a")["spec"]["enabled"] is False


def test_who_writes_an_atomic_spec_has_suspended_the_object(api: FakeApi) -> None:
    """The entry of its manager names the spec alone, and no field of it."""
    api.put(crontab_crd_with({"x-kubernetes-map-type": "atomic"}, suspend={"type": "boolean"}))

    def suspend(live: Object) -> None:
        if not live["spec"].get("suspend"):
            api.edit("CronTab", "default", "a", lambda stored: stored["spec"].update(suspend=True), manager="kubectl-patch")

    api.react("CronTab", suspend)
    Instance(api.url).reconcile([crontab("a")])
    assert api.get("CronTab", "default", "a")["spec"]["suspend"] is True
