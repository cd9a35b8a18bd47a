# SPDX-License-Identifier: Apache-2.0
"""A change of package: what the new set still needs is never pruned, and all of it is ready at the end."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from k8s_cr_driver.engine.apply.applier import Applier
from k8s_cr_driver.engine.report.not_ready import NotReady
from k8s_cr_driver.engine.run.nodes import Desired
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.objects.keys import Object
from tests.fake_api import FakeApi, faults
from tests.instance import CONDITIONS, GREEN, Instance, config_map, crontab, crontab_crd, job, obj, state, status, wait_for
from tests.times import change_times
from tests.writes.test_replacement import COMPLETE

SHARED = {
    "Namespace": (obj("v1", "Namespace", "home"), config_map("a", "home")),
    "CustomResourceDefinition": (crontab_crd(), crontab("one")),
}


@pytest.mark.parametrize("kind", SHARED)
def test_a_dropped_namespace_or_crd_of_desired_objects_stays_and_terminate_finds_them(api: FakeApi, kind: str) -> None:
    shared, member = SHARED[kind]
    blue = Instance(api.url)
    blue.reconcile([shared, member])
    uid = api.get(member["kind"], member["metadata"]["namespace"], member["metadata"]["name"])["metadata"]["uid"]
    blue.reconcile([member])
    live = api.get(member["kind"], member["metadata"]["namespace"], member["metadata"]["name"])
    assert live["metadata"]["uid"] == uid
    assert not [label for label in labels_of(api, shared) if "k8s-cr-driver" in label]
    blue.terminate()
    assert [key.kind for key in state(api)] == [kind]


def test_a_dropped_namespace_that_another_instance_brings_is_released(api: FakeApi) -> None:
    shared, member = SHARED["Namespace"]
    blue, green = Instance(api.url), Instance(api.url, GREEN)
    blue.reconcile([shared, member])
    green.reconcile([shared])
    blue.reconcile([member])
    assert labels_of(api, shared) == {f"used-by.k8s-cr-driver/{GREEN}": ""}
    green.terminate()
    assert api.names("ConfigMap", "home") == ["a"]


def test_prune_waits_until_a_desired_object_is_ready_again(api: FakeApi) -> None:
    crd, one = crontab_crd(**CONDITIONS), crontab("one")
    api.put(crd)
    api.put({**one, "status": status()})
    blue = Instance(api.url, adopt=True)
    blue.reconcile([one, config_map("b")])
    api.edit("ConfigMap", "default", "b", lambda live: live["metadata"].update(finalizers=["example.com/hold"]))
    run = blue.start([one])
    blue.wait_until_reported("b", "deleting")
    api.set_status("CronTab", "default", "one", status("False"))
    blue.wait_until_reported("one", "Waiting")
    api.release("ConfigMap", "default", "b")
    with pytest.raises(TimeoutError):
        run.result(0.5)
    api.set_status("CronTab", "default", "one", status())
    run.result(10)


def labels_of(api: FakeApi, manifest: Object) -> dict[str, str]:
    return dict(api.get(manifest["kind"], None, manifest["metadata"]["name"])["metadata"].get("labels") or {})


def test_a_finished_job_that_vanishes_is_settled(api: FakeApi) -> None:
    blue = Instance(api.url)
    api.put(crontab_crd(**CONDITIONS))
    run = blue.start([job("a", "one"), crontab("one")])
    blue.wait_until_reported("a", "Waiting")
    api.set_status("Job", "default", "a", COMPLETE)
    blue.wait_until_reported("a", "Ready")
    api.delete("Job", "default", "a")
    blue.wait_until_reported("one", "Waiting")
    api.set_status("CronTab", "default", "one", status())
    run.result(10)
    assert len(api.requests.select("PATCH", "jobs/a")) == 1


def test_a_finished_job_that_its_time_to_live_has_removed_runs_again_only_if_it_has_changed(api: FakeApi) -> None:
    def finish(live: Object) -> None:
        if not live.get("status", {}).get("succeeded"):
            api.set_status("Job", "default", "a", COMPLETE)

    api.react("Job", finish)
    blue = Instance(api.url)
    blue.reconcile([job("a", "one")])
    api.delete("Job", "default", "a")
    blue.reconcile([job("a", "one")], prune=False)
    assert api.names("Job") == []
    blue.reconcile([job("a", "two")], prune=False)
    assert api.names("Job") == ["a"]


def test_a_rollback_does_not_run_a_finished_job_again_that_the_failed_change_has_pruned(api: FakeApi) -> None:
    blue, before = Instance(api.url), [job("a", "one"), config_map("b")]
    run = blue.start(before)
    blue.wait_until_reported("a", "Waiting")
    api.set_status("Job", "default", "a", COMPLETE)
    run.result(10)
    api.edit("ConfigMap", "default", "b", lambda live: live["metadata"].update(finalizers=["example.com/hold"]))
    with pytest.raises(NotReady, match="ConfigMap default/b"):
        Instance(api.url, seconds=2).reconcile([config_map("c")])
    assert api.names("Job") == []
    api.release("ConfigMap", "default", "b")
    Instance(api.url).reconcile(before)
    assert api.names("Job") == []
    assert api.names("ConfigMap")[0] == "b"


def test_an_object_that_has_failed_at_its_end_and_vanishes_runs_again(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """The watch reports the failure before the response to the creation, and its time to live removes it."""
    change_times(monkeypatch, first_backoff=1)
    api.put(crontab_crd(**CONDITIONS, completionTime={"type": "string"}))
    api.fail(faults.reset_after(), method="PATCH", path="crontabs/one")
    run = Instance(api.url).start([crontab("one")])
    wait_for(api, lambda: api.find("CronTab", "default", "one") is not None)
    api.set_status("CronTab", "default", "one", ended("False"))
    api.delete("CronTab", "default", "one")
    wait_for(api, lambda: api.find("CronTab", "default", "one") is not None)
    api.set_status("CronTab", "default", "one", ended("True"))
    run.result(10)
    assert api.names("CronTab") == ["one"]


def ended(state: str) -> Object:
    return {**status(state, "Ended", type="Succeeded"), "completionTime": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize("verb", ["create", "apply"])
def test_an_object_that_is_deleted_before_the_response_to_its_write_is_created_again(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    blue = Instance(api.url)
    if verb == "apply":
        blue.reconcile([config_map("a")])
    write, gone, deleted, reported = getattr(Client, verb), Applier._gone, threading.Event(), threading.Event()

    def slow(client: Client, resource: Resource, manifest: Object, *args: Any, **options: Any) -> Object:
        written: Object = write(client, resource, manifest, *args, **options)
        if not deleted.is_set():
            deleted.set()
            api.delete("ConfigMap", "default", "a")
            assert reported.wait(10)
        return written

    def noted(applier: Applier, node: Desired) -> None:
        gone(applier, node)
        reported.set()

    monkeypatch.setattr(Client, verb, slow)
    monkeypatch.setattr(Applier, "_gone", noted)
    blue.reconcile([config_map("a", a="2")])
    assert api.find("ConfigMap", "default", "a") is not None
