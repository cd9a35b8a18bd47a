# SPDX-License-Identifier: Apache-2.0
"""What has run to its end is run again by nobody, and what has not is: whatever dies, gets lost, or is deleted meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from k8s_cr_driver.engine.report.not_ready import NotReady
from k8s_cr_driver.engine.run.operation import Operation
from k8s_cr_driver.errors import DriverError
from k8s_cr_driver.journal.inventory import Inventory
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.objects.dependencies import DEPENDS_ON
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.resources.builtin import Pod
from k8s_cr_driver.vnf.additional_params import Options
from k8s_cr_driver.vnf.session import Session
from tests.fake_api import FakeApi, faults
from tests.fake_api.recording import Request
from tests.instance import BLUE, CONDITIONS, Instance, annotated, config_map, crontab, crontab_crd, job, obj, status, wait_for
from tests.times import change_times
from tests.writes.test_replacement import COMPLETE, image_of, uid_of

INVENTORY = f"configmaps/k8s-cr-driver-{BLUE}"


def complete(api: FakeApi, name: str = "one") -> None:
    api.set_status("Job", "default", name, COMPLETE)


def runs_at_once(api: FakeApi, *images: str) -> Callable[[Object], None]:
    """A controller whose Jobs of these images end as soon as they are created."""

    def run(live: Object) -> None:
        if image_of(live) in images and not live.get("status"):
            complete(api)

    return run


def kill(api: FakeApi, when: Callable[[], bool]) -> None:
    """No write of a worker arrives any more, once that is so."""
    api.fail(faults.reset_before(), when=lambda request: request.method != "GET" and when(), times=9999)


def ends(api: FakeApi) -> set[str]:
    with Connection(Instance(api.url).endpoint) as connection:
        found = Inventory(connection, "default", BLUE).read()
    assert found is not None
    return {key.name for key, _ in found.finished}


def test_the_end_of_a_newer_job_is_kept_though_it_comes_before_the_response(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_times(monkeypatch, first_backoff=1)
    api.react("Job", runs_at_once(api, "i:1", "i:2"))
    blue = Instance(api.url)
    blue.reconcile([job("one", "i:1")])
    api.delete("Job", "default", "one")  # its time to live is over
    api.fail(faults.reset_after(), method="PATCH", path="/jobs/one")
    blue.reconcile([job("one", "i:2")])
    api.delete("Job", "default", "one")
    blue.reconcile([job("one", "i:2"), config_map("a")])
    assert not api.names("Job")


def test_an_end_during_a_write_of_the_inventory_is_recorded_soon(api: FakeApi) -> None:
    api.put(crontab_crd(**CONDITIONS))
    blue = Instance(api.url)
    run = blue.start([job("one", "i:1"), job("two", "i:1"), crontab("slow")])
    blue.wait_until_reported("one", "Waiting")
    blue.wait_until_reported("two", "Waiting")
    begun, end = threading.Event(), threading.Event()
    api.fail(faults.held(end=end), method="PATCH", path=INVENTORY, when=lambda _: begun.set() is None)
    complete(api, "one")
    assert begun.wait(10)
    complete(api, "two")
    blue.wait_until_reported("two", "Ready")
    end.set()
    until = time.monotonic() + 30
    while ends(api) != {"one", "two"} and time.monotonic() < until:
        time.sleep(0.1)
    assert not run.done() and ends(api) == {"one", "two"}
    api.set_status("CronTab", "default", "slow", status())
    run.result(10)


def test_a_newer_job_is_not_the_finished_one_though_its_worker_dies_at_once(api: FakeApi) -> None:
    api.react("Job", runs_at_once(api, "i:1"))
    blue = Instance(api.url)
    blue.reconcile([job("one", "i:1"), config_map("a")])
    blue.seconds = 3
    api.delete("Job", "default", "one")
    kill(api, lambda: api.find("Job", "default", "one") is not None)
    with pytest.raises(DriverError):
        blue.reconcile([job("one", "i:2"), config_map("a")])
    api.clear_faults()
    assert image_of(api.get("Job", "default", "one")) == "i:2"
    Instance(api.url, yields=True).reconcile([job("one", "i:1"), config_map("a")])
    assert image_of(api.get("Job", "default", "one")) == "i:1"


def test_a_newer_job_is_not_the_finished_one_though_the_response_to_it_is_lost(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_times(monkeypatch, first_backoff=60)
    api.react("Job", runs_at_once(api, "i:1"))
    Instance(api.url).reconcile([job("one", "i:1"), config_map("a")])
    api.delete("Job", "default", "one")
    api.fail(faults.reset_after(), method="PATCH", path="/jobs/one")
    blue = Instance(api.url)
    run = blue.start([job("one", "i:2"), config_map("a", a="2")])
    wait_for(api, lambda: api.find("Job", "default", "one") is not None)
    blue.end()
    with pytest.raises(NotReady):
        run.result(10)
    complete(api)
    Instance(api.url, yields=True).reconcile([job("one", "i:1"), config_map("a")])
    assert image_of(api.get("Job", "default", "one")) == "i:1"


def test_a_heal_that_dies_after_the_deletion_of_a_finished_object_can_be_retried(api: FakeApi) -> None:
    """It was to run again; its recorded end says that it need not."""
    api.put(crontab_crd(**CONDITIONS, completionTime={"type": "string"}))
    made, ended = crontab("one"), {**status("True", "Ended", type="Succeeded"), "completionTime": "2026-01-01T00:00:00Z"}

    def run(live: Object) -> None:
        if not live.get("status"):
            api.set_status("CronTab", "default", "one", ended)

    api.react("CronTab", run)
    Instance(api.url).reconcile([made])
    before = uid_of(api, made)
    kill(api, lambda: api.find("CronTab", "default", "one") is None)
    for is_retry in (False, True):
        operation = Operation("test", BLUE, 60 if is_retry else 3)
        with Session(Endpoint(api.url), Options(), operation, inventory_namespace="default") as opened:
            wanted = opened.place([made], {})
            chosen = opened.replacement({"vdu": wanted[0]}, {"vdu": {"one"}}, wanted, everything=False, recreate=True)
            if is_retry:
                opened.reconcile(wanted, prune=None, replacement=chosen)
            else:
                with pytest.raises(DriverError):
                    opened.reconcile(wanted, prune=None, replacement=chosen)
                assert not api.names("CronTab")
                api.clear_faults()
    assert uid_of(api, made) != before


RUNNING = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
SUCCEEDED = {"phase": "Succeeded", "conditions": [{"type": "Ready", "status": "False", "reason": "PodCompleted"}]}


def pod(restart: str, image: str = "i") -> Object:
    spec = {"containers": [{"name": "c", "image": image}], "restartPolicy": restart}
    return obj("v1", "Pod", "one", "default", spec=spec)


def run_pods(api: FakeApi) -> None:
    def start(live: Object) -> None:
        is_going = "deletionTimestamp" in live["metadata"]
        if live.get("status", {}).get("phase") not in ("Running", "Succeeded") and not is_going:
            api.set_status("Pod", "default", "one", RUNNING)

    api.react("Pod", start)


def hold(live: Object) -> None:
    """Its grace period has not passed."""
    live["metadata"]["finalizers"] = ["test/kubelet"]


@pytest.mark.parametrize("restart", ["Always", "OnFailure"])
def test_a_pod_whose_containers_end_because_it_is_deleted_is_created_again(api: FakeApi, restart: str) -> None:
    """The kubelet writes the phase Succeeded then, if they end with 0."""
    api.put(crontab_crd(**CONDITIONS))
    run_pods(api)
    blue = Instance(api.url)
    run = blue.start([pod(restart), crontab("slow")])
    blue.wait_until_reported("one", "Ready")
    wait_for(api, lambda: api.find("CronTab", "default", "slow") is not None)
    before = uid_of(api, pod(restart))
    api.edit("Pod", "default", "one", hold)
    api.delete("Pod", "default", "one")
    api.set_status("Pod", "default", "one", SUCCEEDED)
    blue.wait_until_reported("one", "Waiting")
    api.release("Pod", "default", "one")
    wait_for(api, lambda: api.find("Pod", "default", "one") is not None)
    api.set_status("CronTab", "default", "slow", status())
    run.result(10)
    assert uid_of(api, pod(restart)) != before


def test_an_end_that_was_recorded_of_a_pod_that_runs_for_ever_is_not_believed(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier versions took the phase Succeeded of a Pod that is deleted for its end."""
    run_pods(api)
    with monkeypatch.context() as earlier:
        earlier.setattr(Pod, "runs_to_end", lambda _: True)
        blue = Instance(api.url)
        run = blue.start([pod("Always")])
        blue.wait_until_reported("one", "Ready")
        run.result(10)
        api.set_status("Pod", "default", "one", SUCCEEDED)
        blue.reconcile([pod("Always")])
    assert ends(api) == {"one"}
    api.delete("Pod", "default", "one")
    Instance(api.url).reconcile([pod("Always")], prune=False)
    assert api.names("Pod", "default") == ["one"]


def test_a_changed_image_of_a_pod_that_has_ended_is_not_waited_for(api: FakeApi) -> None:
    """The kubelet looks at no Pod again that has ended."""
    ended = {"phase": "Succeeded", "observedGeneration": 1, "conditions": []}

    def run(live: Object) -> None:
        if live.get("status", {}).get("phase") != "Succeeded":
            api.set_status("Pod", "default", "one", ended)

    api.react("Pod", run)
    Instance(api.url).reconcile([pod("Never")])
    Instance(api.url).reconcile([pod("Never", "i:2")])


def test_a_rollback_creates_the_pod_again_whose_deletion_a_change_has_begun(api: FakeApi) -> None:
    run_pods(api)
    newer = pod("Always")
    newer["spec"]["containers"][0]["ports"] = [{"containerPort": 99}]
    blue = Instance(api.url)
    blue.reconcile([pod("Always")])
    api.edit("Pod", "default", "one", hold)
    run = blue.start([newer])
    wait_for(api, lambda: "deletionTimestamp" in api.get("Pod", "default", "one")["metadata"])
    blue.end()
    with pytest.raises(NotReady):
        run.result(10)
    rollback = Instance(api.url, yields=True)
    run = rollback.start([pod("Always")])
    rollback.wait_until_reported("one", "Waiting", "is being deleted")
    api.set_status("Pod", "default", "one", SUCCEEDED)
    api.release("Pod", "default", "one")
    run.result(10)
    assert api.names("Pod", "default") == ["one"]


def test_what_waits_for_a_job_that_is_done_and_gone_waits_for_what_that_has_waited_for(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in the run that has made all of them: a webhook of the last may look at the first."""
    first, last = crontab("first"), config_map("last", x="1")
    between = job("one", "i:1", **{DEPENDS_ON: "stable.example.com/namespaces/default/CronTab/first"})
    last = annotated(last, {DEPENDS_ON: "batch/namespaces/default/Job/one"})
    api.react("Job", runs_at_once(api, "i:1"))
    blue = Instance(api.url)
    run = blue.start([crontab_crd(**CONDITIONS), first, between, last])
    blue.wait_until_reported("first", "Waiting")
    api.set_status("CronTab", "default", "first", status())
    run.result(10)
    api.delete("Job", "default", "one")
    early: list[bool] = []

    def is_early(_: Request) -> bool:
        early.append(not ready)
        return False

    ready: list[bool] = []
    api.fail(faults.denied("no"), method="PATCH", path="configmaps/last$", when=is_early)
    change_times(monkeypatch, first_backoff=0.5)
    api.fail(faults.unavailable(), method="PATCH", path="crontabs/first$")  # so that the last would be sent before it
    blue.heard.clear()
    changed = crontab("first", schedule="0 5 * * *")
    run = blue.start([crontab_crd(**CONDITIONS), changed, between, {**last, "data": {"x": "2"}}])
    blue.wait_until_reported("first", "Waiting")
    ready.append(True)
    api.set_status("CronTab", "default", "first", status(generation=2))
    run.result(10)
    assert early == [False]
    assert not api.find("Job", "default", "one")
