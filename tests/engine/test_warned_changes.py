# SPDX-License-Identifier: Apache-2.0
"""A change that its controller answers by Warning events only: the status of before is not taken as current."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest

from k8s_cr_driver.engine.report.events import is_over
from k8s_cr_driver.engine.report.not_ready import NotReady
from k8s_cr_driver.objects.keys import Object
from tests.fake_api import FakeApi
from tests.instance import CONDITIONS, Instance, config_map, crontab_crd, obj
from tests.times import REAL, change_times

CONDITION = {"status": "True", "lastTransitionTime": "2023-06-19T01:10:14Z"}
STATUS = {
    "currentRevision": "cloud-7b5c2a",
    "conditions": [
        {**CONDITION, "type": "Healthy", "reason": "HealthyPackageRevision"},
        {**CONDITION, "type": "Installed", "reason": "ActivePackageRevision"},
    ],
}
UNPACK = "InstallPackageRevision: cannot unpack package: MANIFEST_UNKNOWN"


def addon_crd() -> Object:
    """Of controllers that do not write observedGeneration."""
    crd = crontab_crd(currentRevision={"type": "string"}, conditions=CONDITIONS["conditions"])
    crd["metadata"]["name"] = "addons.pkg.example.org"
    names = {"kind": "Addon", "plural": "addons"}
    crd["spec"] |= {"group": "pkg.example.org", "scope": "Cluster", "names": names}
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"] = {"package": {"type": "string"}}
    return crd


def addon(version: str) -> Object:
    return obj("pkg.example.org/v1", "Addon", "cloud", spec={"package": f"registry.example.org/addon:{version}"})


@pytest.fixture
def blue(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> Instance:
    """With an Addon of v1 that its controller has reported as ready."""
    change_times(monkeypatch, silence=0.5)
    blue = Instance(api.url)
    run = blue.start([addon_crd(), addon("v1")])
    blue.wait_until_reported("cloud", "Waiting")
    api.set_status("Addon", None, "cloud", STATUS)
    run.result(10)
    blue.heard.clear()
    return blue


def change(api: FakeApi, blue: Instance) -> Future[Any]:
    """To v2, which is written, and whose status is older than that."""
    run = blue.start([addon_crd(), addon("v2")])
    blue.wait_until_reported("cloud", "Waiting", "the status is as it was when the spec was changed")
    return run


def warn(api: FakeApi, **changes: Any) -> None:
    event = api.event(api.get("Addon", None, "cloud"), *UNPACK.split(": ", 1))
    api.put({**event, **changes})


def events(api: FakeApi) -> list[Any]:
    return api.requests.select("GET", "/events")


def test_a_warning_since_the_change_holds_the_operation_and_is_its_first_line(api: FakeApi, blue: Instance) -> None:
    run = change(api, blue)
    warn(api)
    blue.wait_until_reported("cloud", "Waiting", UNPACK)
    blue.end(0.1)
    with pytest.raises(NotReady) as raised:
        run.result(10)
    first = str(raised.value).splitlines()[1]
    assert first.startswith(f"Addon.pkg.example.org cloud: Waiting (StatusOlderThanSpec): {UNPACK}; the status is as it was")


def test_a_status_that_is_written_at_last_ends_it(api: FakeApi, blue: Instance) -> None:
    run = change(api, blue)
    warn(api)
    blue.wait_until_reported("cloud", "Waiting", UNPACK)
    api.set_status("Addon", None, "cloud", {**STATUS, "currentRevision": "cloud-0d31f4"})
    run.result(10)


@pytest.mark.parametrize(
    "changes",
    [
        {"lastTimestamp": "2020-01-01T00:00:00Z"},
        {"type": "Normal"},
        {"involvedObject": {"kind": "Addon", "name": "other", "uid": "another"}},
    ],
    ids=["older", "normal", "of another object"],
)
def test_silence_is_still_taken_for_consent(api: FakeApi, blue: Instance, changes: dict[str, Any]) -> None:
    run = change(api, blue)
    warn(api, **changes)
    run.result(10)


def test_a_later_normal_event_takes_a_warning_back(api: FakeApi, blue: Instance) -> None:
    run = change(api, blue)
    warn(api)
    blue.wait_until_reported("cloud", "Waiting", UNPACK)
    later = {"lastTimestamp": "2199-01-01T00:00:00Z"}
    api.put({**api.event(api.get("Addon", None, "cloud"), "Installed", "it is unpacked", "Normal"), **later})
    run.result(10)


def test_a_warning_that_is_not_repeated_is_over(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, blue: Instance
) -> None:
    """As of a controller whose first write after the change was a conflict, or of a policy that only audits."""
    change_times(monkeypatch, warned=1.0)
    run = change(api, blue)
    warn(api)
    run.result(20)


@pytest.mark.parametrize(
    ("age", "waited", "over"),
    [(1, 2, False), (299, 300, False), (300, 301, True), (300, 400, True), (300, 401, False), (500, 1000, False)],
)
def test_a_warning_is_over_when_the_next_attempt_would_have_repeated_it(age: float, waited: float, over: bool) -> None:
    assert is_over(age, waited, REAL.warned) == over


def test_an_account_that_may_not_read_events_waits_no_longer(api: FakeApi, blue: Instance) -> None:
    api.knobs.denied.add(("list", "", "events", "*"))
    run = change(api, blue)
    warn(api)
    run.result(10)


def test_nothing_is_requested_while_no_status_waits_for_its_age(api: FakeApi, blue: Instance) -> None:
    api.requests.clear()
    blue.reconcile([addon_crd(), addon("v1"), config_map("a")])
    api.react("Addon", lambda live: installed(api, live))
    blue.reconcile([addon_crd(), addon("v2"), config_map("a", b="2")])
    assert events(api) == []


def installed(api: FakeApi, live: Object) -> None:
    revision = f"cloud-{live['metadata']['generation']}"
    if live["status"]["currentRevision"] != revision:
        api.set_status("Addon", None, "cloud", {**STATUS, "currentRevision": revision})


def test_each_wait_for_an_age_reads_the_events_once(api: FakeApi, blue: Instance) -> None:
    api.requests.clear()
    blue.reconcile([addon_crd(), addon("v2")])
    assert len(events(api)) == 1


def test_a_warning_about_what_is_below_counts_too(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """A controller that sums up a Deployment writes the same status, while a Pod of the new template cannot start."""
    crd = crontab_crd(selector={"type": "string"}, size={"type": "integer"}, phase={"type": "string"})
    [version] = crd["spec"]["versions"]
    version["subresources"]["scale"] = {
        "specReplicasPath": ".spec.size",
        "statusReplicasPath": ".status.size",
        "labelSelectorPath": ".status.selector",
    }
    properties = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    properties |= {"size": {"type": "integer"}, "image": {"type": "string"}}
    blue, said = Instance(api.url), {"selector": "app=web", "size": 1, "phase": "Running"}
    change_times(monkeypatch, silence=0.5)

    def tab(image: str) -> Object:
        return obj("stable.example.com/v1", "CronTab", "tab", "default", spec={"size": 1, "image": image})

    run = blue.start([crd, tab("i:1")])
    blue.wait_until_reported("tab", "Waiting")
    api.set_status("CronTab", "default", "tab", said)
    run.result(10)
    blue.heard.clear()
    run = blue.start([crd, tab("i:2")])
    blue.wait_until_reported("tab", "Waiting", "the status is as it was")
    owner = api.get("CronTab", "default", "tab")
    pod = obj("v1", "Pod", "web-1", "default", spec={"containers": [{"name": "c", "image": "i:2"}]})
    name = {part: owner["metadata"][part] for part in ("name", "uid")}
    pod["metadata"] |= {
        "labels": {"app": "web"},
        "ownerReferences": [{"apiVersion": owner["apiVersion"], "kind": "CronTab", **name, "controller": True}],
    }
    live = api.put({**pod, "status": {"phase": "Pending"}})
    api.event(live, "Failed", "Failed to pull image i:2")
    blue.wait_until_reported("tab", "Waiting", "Pod default/web-1: Failed: Failed to pull image i:2")
    blue.end(0.1)
    with pytest.raises(NotReady, match="Failed to pull image"):
        run.result(10)
