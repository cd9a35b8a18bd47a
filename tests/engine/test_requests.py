# SPDX-License-Identifier: Apache-2.0
"""How many requests a run costs: one for each object, one or two for each stream, a few for the rest, none for waiting."""

from __future__ import annotations

import sys

import pytest

from k8s_cr_driver.engine.report import progress_log
from k8s_cr_driver.kube import backoff, watch
from k8s_cr_driver.objects.keys import Object
from tests.fake_api import FakeApi, controllers, faults
from tests.instance import CONDITIONS, GREEN, Instance, config_map, crontab, crontab_crd, deployment, obj, status, wait_for
from tests.times import change_times

PACKAGE = [
    crontab_crd(),
    obj("v1", "Namespace", "blue"),
    *(crontab(f"tab-{number}", "blue") for number in range(30)),
    *(config_map(f"map-{number}", "blue") for number in range(30)),
    *(obj("v1", "Secret", f"secret-{number}", "default", data={"a": "Yg=="}) for number in range(5)),
]
KINDS = 5
"""Kinds of the package, each with a stream; the inventory has one more."""
STRAYS = 3 * 2
"""Kinds that are not shared, in each namespace of the package."""


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is requested only because time has passed does not count: a run here lasts as long as the machine is busy."""
    monkeypatch.setattr(watch, "IDLE_LIMIT", 300)
    change_times(monkeypatch, first_backoff=backoff.LAST, trusted=300)


@pytest.mark.parametrize("initial_events, per_stream", [(True, 1), (False, 2)])
def test_a_run_costs_one_request_an_object_and_one_or_two_a_stream(
    api: FakeApi, initial_events: bool, per_stream: int
) -> None:
    api.knobs.send_initial_events = initial_events
    blue = Instance(api.url)
    for objects, strays in ((len(PACKAGE), 0), (0, STRAYS)):  # a new instance, and the same set again
        api.requests.clear()
        blue.reconcile(PACKAGE)
        assert len(api.requests) <= objects + per_stream * (KINDS + 1) + 7 + strays, str(api.requests)
        assert len(api.requests.select("PATCH")) <= objects + 2
        blue.record()


def test_only_what_differs_is_asked_and_written(api: FakeApi) -> None:
    before = [crontab_crd(), *(crontab(f"tab-{number}") for number in range(300))]
    after = [*before[:-3], *(crontab(f"tab-{number}", schedule="1 * * * *") for number in range(297, 300))]
    Instance(api.url).reconcile(before)
    api.requests.clear()
    Instance(api.url).reconcile(after, asks=True)
    assert len(api.requests) <= 2 * 3 + 2 + 10, str(api.requests)
    names = [request.path.rpartition("/")[2] for request in api.requests.select("PATCH", "/crontabs/")]
    assert sorted(names) == sorted(2 * ["tab-297", "tab-298", "tab-299"])


def test_an_unchanged_set_changes_nothing(api: FakeApi) -> None:
    Instance(api.url).reconcile(PACKAGE)
    before = {kind: api.objects(kind) for kind in ("CronTab", "Secret", "Namespace", "CustomResourceDefinition")}
    Instance(api.url).reconcile(PACKAGE)
    assert {kind: api.objects(kind) for kind in before} == before


def test_the_work_of_a_run_does_not_grow_with_the_square_of_its_objects(api: FakeApi) -> None:
    """Counted in calls of Python functions by the thread that owns the run: these are nearly the same on any machine."""
    _, few, many = (calls_of(api, [config_map(f"map-{count}-{number}") for number in range(count)]) for count in (1, 50, 400))
    assert many < 8 * few


def calls_of(api: FakeApi, package: list[Object]) -> int:
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        Instance(api.url, f"of-{len(package)}").reconcile(package)
    finally:
        sys.setprofile(None)
    return calls


def test_nothing_is_requested_while_a_run_waits(api: FakeApi) -> None:
    blue = Instance(api.url)
    run = blue.start([crontab_crd(**CONDITIONS), crontab("one"), crontab("two")])
    for name in ("one", "two"):
        blue.wait_until_reported(name, "Waiting")
    api.wait_for_streams(3)
    api.requests.clear()
    for seconds in range(20):
        api.set_status("CronTab", "default", "one", status("False", message=f"for {seconds} s"))
    with blue._reported:
        assert blue._reported.wait_for(lambda: any("for 19 s" in message for *_, message in blue.heard), 10)
    assert len(api.requests) == 0, str(api.requests)
    for name in ("one", "two"):
        api.set_status("CronTab", "default", name, status())
    run.result(10)


def test_a_line_about_a_wait_looks_below_the_worst_objects_only(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Of thousands that are not ready it names one."""
    monkeypatch.setattr(progress_log, "LOOKED_AT", 5)
    monkeypatch.setattr(progress_log, "FIRST_LINE", 1.0)
    caplog.set_level("INFO", progress_log.__name__)
    api.fail(faults.unavailable(), method="PATCH", path="deployments/web-9", times=1000)
    blue = Instance(api.url)
    run = blue.start([deployment(f"web-{number}", f"web-{number}") for number in range(30)])
    wait_for(api, lambda: "waiting for 30 objects, the first cause: Deployment.apps default/web-9: " in caplog.text)
    assert len(api.requests.select("GET", "/pods", watch=False)) <= 5 * caplog.text.count("the first cause")
    blue.end()
    assert "30 of 30 objects" in str(run.exception(30))


def test_the_connections_of_a_run_are_bounded(api: FakeApi) -> None:
    opened = api.connections_opened
    Instance(api.url).reconcile(PACKAGE)
    assert api.connections_opened - opened <= KINDS + 1 + 8 + 1


def placed(manifest: Object, namespace: str) -> Object:
    return {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}}


SMALL = [obj("v1", "Namespace", "blue"), crontab_crd(), crontab("tab", "blue"), placed(deployment(), "blue")]


def crd_of(number: int, group: str = "example.com") -> Object:
    crd, names = crontab_crd(), {"plural": f"kind{number}s", "singular": f"kind{number}", "kind": f"Kind{number}"}
    crd["metadata"]["name"] = f"kind{number}s.{group}"
    crd["spec"] |= {"group": group, "names": names}
    return crd


MANY = [
    *(obj("v1", "Namespace", f"space-{number}") for number in range(30)),
    *map(crd_of, range(30)),
    *(obj("example.com/v1", f"Kind{number % 30}", f"one-{number}", f"space-{number % 30}") for number in range(90)),
    *(config_map(f"map-{number}", f"space-{number}") for number in range(30)),
]


def test_the_first_instance_of_five_kinds_costs_14_requests(api: FakeApi) -> None:
    """Five writes and five watches, discovery, the permissions, and two writes of the inventory."""
    controllers.run_workloads(api)
    Instance(api.url, GREEN).reconcile([config_map("other")])  # the cluster is known
    api.requests.clear()
    Instance(api.url).reconcile([*SMALL, config_map("map", "blue")])
    assert len(api.requests) == 14, str(api.requests)


def test_each_crd_costs_its_write_and_one_watch(api: FakeApi) -> None:
    Instance(api.url).reconcile(MANY)
    assert len(api.requests) <= len(MANY) + 33 + 10, str(api.requests)


def test_a_change_of_five_kinds_costs_12_requests_and_their_terminate_26(api: FakeApi) -> None:
    """
    Change: discovery, permissions, the inventory read, claimed and reduced, five watches, one deletion.

    Terminate: discovery, the inventory read, claimed and deleted, four watches, four deletions, a read of the Deployment whose
    deletion lingers, and a look into the Namespace and the CRD: ten lists, one write and one list of inventories. Two of each
    if the CRD can go before a watch has reported the end of the Deployment.
    """
    controllers.run_workloads(api)
    blue = Instance(api.url)
    blue.reconcile([*SMALL, config_map("map", "blue")])
    blue.record()
    api.requests.clear()
    blue.reconcile(SMALL)
    assert len(api.requests) == 12, str(api.requests)
    blue.record()
    api.requests.clear()
    blue.terminate()
    assert len(api.requests) in (26, 28), str(api.requests)


@pytest.mark.parametrize("others", [0, 500])
def test_a_terminate_does_not_grow_with_the_kinds_of_the_cluster(api: FakeApi, others: int) -> None:
    blue = Instance(api.url)
    blue.reconcile(MANY)
    for number in range(others):
        api.put(crd_of(number, "others.example.com"))
    api.requests.clear()
    blue.terminate()

    assert len(api.requests) <= 400, str(api.requests)
