# SPDX-License-Identifier: Apache-2.0
"""A Pod of a former revision that is broken does not hold up the rollout of its StatefulSet for ever."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_cr_driver.engine.apply import forced_rollback
from k8s_cr_driver.engine.report.not_ready import NotReady
from k8s_cr_driver.objects.keys import Object
from tests.fake_api import FakeApi, faults
from tests.fake_api.controllers import owned
from tests.instance import Instance, stateful_set, wait_for

READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
WAITING = {"reason": "ImagePullBackOff", "message": "no such image"}
BROKEN = {"phase": "Pending", "containerStatuses": [{"name": "c", "state": {"waiting": WAITING}}]}
UNSCHEDULABLE = {
    "phase": "Pending",
    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "Insufficient cpu"}],
}
STARTING = {"phase": "Pending", "containerStatuses": [{"name": "c", "state": {"waiting": {"reason": "ContainerCreating"}}}]}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forced_rollback, "PATIENCE", 0.2)


def roll_out(api: FakeApi, second: Object, revision: str, *, comes_back: bool = False) -> None:
    """
    A controller of two Pods that start in order, the second of which is of that revision when the rollout begins.

    `comes_back`: it is of that revision also when it is created again.
    """
    def create(live: Object, name: str, status: Object, of: str) -> None:
        api.put({**owned(live, "v1", "Pod", name), "status": status}, manager="kube-controller-manager")
        labels = {"app": "db", "controller-revision-hash": of}
        api.edit("Pod", "default", name, lambda pod: pod["metadata"].update(labels=labels))

    def act(live: Object) -> None:
        if "deletionTimestamp" in live["metadata"]:
            return
        generation = live["metadata"]["generation"]
        names, revisions = api.names("Pod", "default"), {"currentRevision": "good", "updateRevision": "good"}
        if not names and not live.get("status"):
            create(live, "db-0", READY, "good")
            create(live, "db-1", second, revision)
            names = ["db-0", "db-1"]
        elif not live.get("status") and "db-1" not in names:
            return  # it is about to create the second
        elif comes_back and live.get("status") and names == ["db-0"]:
            create(live, "db-1", second, revision)
            names = ["db-0", "db-1"]
        ready = 2 if "db-1" not in names else 1
        counts = {"replicas": 2, "readyReplicas": ready, "availableReplicas": ready}
        status = {"observedGeneration": generation, **counts, **revisions}
        if live.get("status") != status:
            api.set_status("StatefulSet", "default", "db", status)

    api.react("StatefulSet", act)
    api.react("Pod", lambda pod: act(api.get("StatefulSet", "default", "db")))


def stays(api: FakeApi, **spec: Any) -> None:
    """No run deletes a Pod within two seconds after there are both."""
    blue = Instance(api.url)
    run = blue.start([stateful_set("db", replicas=2, **spec)])
    wait_for(api, lambda: api.names("Pod", "default") == ["db-0", "db-1"])
    blue.end(2)
    with pytest.raises(NotReady):
        run.result(60)
    assert api.names("Pod", "default") == ["db-0", "db-1"]


@pytest.mark.parametrize("second", [BROKEN, UNSCHEDULABLE], ids=["image", "no node"])
def test_it_is_deleted(api: FakeApi, second: Object) -> None:
    roll_out(api, second, "broken")
    Instance(api.url).reconcile([stateful_set("db", replicas=2)])
    assert api.names("Pod", "default") == ["db-0"]


@pytest.mark.parametrize(
    "second, revision, spec",
    [
        (BROKEN, "good", {}),
        (STARTING, "broken", {}),
        (BROKEN, "broken", {"podManagementPolicy": "Parallel"}),
        (BROKEN, "broken", {"updateStrategy": {"type": "OnDelete"}}),
        (BROKEN, "broken", {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}}),
    ],
    ids=["of the latest revision", "starting", "parallel", "on delete", "partition"],
)
def test_it_stays(api: FakeApi, second: Object, revision: str, spec: Object) -> None:
    roll_out(api, second, revision)
    stays(api, **spec)


RECOVERING = {
    "phase": "Running",
    "containerStatuses": [{"name": "c", "state": {"running": {}}, "lastState": {"terminated": {"exitCode": 137}}}],
    "conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}],
}


def test_a_pod_that_runs_again_is_waited_for(api: FakeApi) -> None:
    roll_out(api, RECOVERING, "broken")
    stays(api)


def test_a_pod_that_a_user_keeps_stays(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forced_rollback, "PATIENCE", 1.5)
    roll_out(api, BROKEN, "broken")
    blue = Instance(api.url)
    run = blue.start([stateful_set("db", replicas=2)])
    wait_for(api, lambda: "db-1" in api.names("Pod", "default"))
    keep = {"k8s-cr-driver/keep": "true"}
    api.edit("Pod", "default", "db-1", lambda live: live["metadata"].update(annotations=keep))
    blue.end(3)
    with pytest.raises(NotReady):
        run.result(60)
    assert api.names("Pod", "default") == ["db-0", "db-1"]


def test_a_conflict_ends_no_watch(api: FakeApi) -> None:
    """The status of a Pod that crashes changes all the time."""
    roll_out(api, BROKEN, "broken")
    api.fail(faults.conflict("db-1", "pods"), method="DELETE", path="/pods/db-1", times=3)
    Instance(api.url).reconcile([stateful_set("db", replicas=2)])
    assert api.names("Pod", "default") == ["db-0"]


def test_an_account_that_may_delete_no_pods_gets_the_report(api: FakeApi) -> None:
    roll_out(api, BROKEN, "broken")
    api.fail(faults.status(403, "Forbidden", "no"), method="DELETE", path="/pods/db-1", times=99)
    with pytest.raises(NotReady, match="ImagePullBackOff"):
        Instance(api.url, seconds=4).reconcile([stateful_set("db", replicas=2)])
    assert len(api.requests.select("DELETE", "/pods/db-1")) == 1


def test_a_pod_that_comes_back_as_it_was_is_deleted_once(api: FakeApi) -> None:
    """The controller makes it again of the revision that it calls current."""
    roll_out(api, BROKEN, "broken", comes_back=True)
    with pytest.raises(NotReady):
        Instance(api.url, seconds=3).reconcile([stateful_set("db", replicas=2)])
    assert len(api.requests.select("DELETE", "/pods/db-1")) == 1


def test_it_is_deleted_while_a_short_time_is_left_for_its_successor(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forced_rollback, "PATIENCE", 30.0)
    roll_out(api, BROKEN, "broken")
    Instance(api.url, seconds=12).reconcile([stateful_set("db", replicas=2)])


def test_no_pod_of_a_stateful_set_of_others_is_deleted(api: FakeApi) -> None:
    """A rollback leaves alone what others have created in place of an adopted one."""
    done = {"observedGeneration": 1, "replicas": 0, "currentRevision": "a", "updateRevision": "a"}
    api.put({**stateful_set("db", replicas=0), "status": done}, manager="kubectl")
    Instance(api.url, adopt=True).reconcile([stateful_set("db", replicas=0)])
    api.delete("StatefulSet", "default", "db")
    roll_out(api, BROKEN, "former")
    api.put(stateful_set("db", replicas=2), manager="kubectl")
    Instance(api.url, yields=True).reconcile([stateful_set("db", replicas=0)])
    assert api.names("Pod", "default") == ["db-0", "db-1"]
