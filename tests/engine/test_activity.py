# SPDX-License-Identifier: Apache-2.0
"""An operation, or an object, with a no-activity timeout ends early if nothing has moved for that long."""

from __future__ import annotations

import datetime
import itertools
import time
from concurrent.futures import Future

import pytest

from k8s_cr_driver.engine.report import activity
from k8s_cr_driver.engine.report.not_ready import NotReady
from k8s_cr_driver.objects import rule_texts
from k8s_cr_driver.objects.keys import Object
from tests.fake_api import FakeApi, faults
from tests.fake_api.controllers import owned
from tests.fake_api.recording import Request
from tests.instance import CONDITIONS, Instance, config_map, crontab, crontab_crd, deployment, status, wait_for

DEFINITION = crontab_crd(**CONDITIONS)
LIMIT = 0.6


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activity, "SHORTEST", 0.05)
    monkeypatch.setattr(activity, "AGAIN", 0.1)
    monkeypatch.setattr(rule_texts, "LEAST", 0.1)


def limited(name: str) -> Object:
    tab = crontab(name)
    tab["metadata"]["annotations"] = {"k8s-cr-driver/no-activity-timeout": str(LIMIT)}
    return tab


def instance(api: FakeApi, seconds: float | None = LIMIT) -> Instance:
    blue = Instance(api.url)
    blue.no_activity = seconds
    return blue


def looks(api: FakeApi) -> int:
    """How often Events were read."""
    return len([one for one in api.requests.select("GET") if one.path.endswith("/events")])


def goes_on(api: FakeApi, blue: Instance, run: Future[dict[object, Object]], times: int = 2) -> None:
    """The run lasts until its deadline, after so many looks more."""
    before = looks(api)
    wait_for(api, lambda: looks(api) >= before + times or run.done())
    assert not run.done(), run.exception()
    blue.end()
    with pytest.raises(NotReady, match="not ready after"):
        run.result(10)


def at(seconds: float) -> str:
    return (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_operation_ends_when_nothing_moves_and_names_what_stood_still(api: FakeApi) -> None:
    with pytest.raises(NotReady) as raised:
        instance(api).reconcile([DEFINITION, crontab("one"), crontab("two"), config_map("a")])
    assert {report.key.name for report in raised.value.reports} == {"one", "two"}
    assert raised.value.headline == "2 of 4 objects not ready, and nothing has moved for 1 s (no-activity-timeout):"
    assert looks(api) == 2  # one of each object, for the error


def test_operation_that_is_in_order_costs_the_same(api: FakeApi) -> None:
    sent = []
    for limit in (None, None, None, 60):  # discovery is known in the end
        api.requests.clear()
        instance(api, limit).reconcile([DEFINITION, config_map("a"), config_map("b")])
        sent.append(sorted((one.method, one.path) for one in api.requests))
    assert sent[-1] == sent[-2]


def test_without_a_limit_it_lasts_until_the_deadline(api: FakeApi) -> None:
    blue = instance(api, None)
    run = blue.start([DEFINITION, crontab("one")])
    blue.wait_until_reported("one", "Waiting")
    blue.end(3 * LIMIT)
    with pytest.raises(NotReady, match="not ready after"):
        run.result(10)


def test_one_object_that_stands_still_ends_the_operation_though_others_may_wait(api: FakeApi) -> None:
    with pytest.raises(NotReady, match=r"default/tab has not moved for 1 s \(no-activity-timeout\)") as raised:
        instance(api, None).reconcile([DEFINITION, limited("tab"), crontab("other")])
    assert {report.key.name for report in raised.value.reports} == {"tab", "other"}


def test_object_that_is_ready_or_not_applied_yet_is_not_judged(api: FakeApi) -> None:
    after = limited("after")
    after["metadata"]["annotations"]["config.kubernetes.io/depends-on"] = (
        "stable.example.com/namespaces/default/CronTab/first"
    )
    blue = instance(api, None)
    run = blue.start([DEFINITION, crontab("first"), limited("tab"), after])
    blue.wait_until_reported("tab", "Waiting")
    api.set_status("CronTab", "default", "tab", status())
    blue.wait_until_reported("tab", "Ready")
    blue.end(3 * LIMIT)
    with pytest.raises(NotReady, match="not ready after"):
        run.result(10)


def test_status_that_moves_goes_on_and_costs_nothing(api: FakeApi) -> None:
    limit = 2  # a machine that stands still for a second is no object that does
    blue = instance(api, limit)
    run = blue.start([DEFINITION, crontab("one")])
    blue.wait_until_reported("one", "Waiting")
    until = time.monotonic() + 3 * limit
    for step in itertools.takewhile(lambda _: time.monotonic() < until, itertools.count()):
        api.set_status("CronTab", "default", "one", status("False", message=f"step {step}."))
        blue.wait_until_reported("one", "Waiting", f"step {step}.")
    assert looks(api) == 0
    goes_on(api, blue, run, times=0)


def test_events_that_come_go_on(api: FakeApi) -> None:
    def tell(_: Request) -> bool:
        event = api.event(api.get("CronTab", "default", "one"), "Step", "one more", type_="Normal")
        api.put({**event, "lastTimestamp": at(1)})
        return False

    api.fail(faults.hang(), method="GET", path="/events$", when=tell)
    blue = instance(api)
    goes_on(api, blue, blue.start([DEFINITION, crontab("one")]))


def test_event_that_is_old_is_no_movement(api: FakeApi) -> None:
    def tell(live: Object) -> None:
        if not api.objects("Event"):
            api.put({**api.event(live, "Step", "long ago"), "lastTimestamp": at(-300)})

    api.react("CronTab", tell)
    with pytest.raises(NotReady, match="nothing has moved") as raised:
        instance(api).reconcile([DEFINITION, crontab("one")])
    assert raised.value.reports[0].events == ("Step: long ago",)


def test_objects_that_are_being_made_below_are_waited_for(api: FakeApi) -> None:
    def make(live: Object) -> None:
        if not api.objects("Pod"):
            pod = owned(live, "v1", "Pod", "web-1", spec={"containers": [{"name": "c", "image": "c"}]})
            pod["metadata"]["labels"] = {"app": "web"}
            api.put({**pod, "status": {"phase": "Pending"}})

    api.react("Deployment", make)
    blue = instance(api)
    goes_on(api, blue, blue.start([deployment()]))


def test_nothing_is_judged_by_what_cannot_be_read_for_a_time(api: FakeApi) -> None:
    api.fail(faults.unavailable(), method="GET", path="/events$", times=9999)
    blue = instance(api)
    goes_on(api, blue, blue.start([DEFINITION, crontab("one")]))


def test_grace_period_of_a_deletion_is_no_standstill(api: FakeApi) -> None:
    api.knobs.grace_period = 300
    held = config_map("held")
    held["metadata"]["finalizers"] = ["example.com/held"]
    blue = instance(api)
    blue.reconcile([held])
    run = blue.start([])
    wait_for(api, lambda: "deletionTimestamp" in api.get("ConfigMap", "default", "held")["metadata"])
    blue.end(3 * LIMIT)
    with pytest.raises(NotReady, match="not deleted after"):
        run.result(10)


def test_deletion_that_stands_still_ends_the_operation(api: FakeApi) -> None:
    held = config_map("held")
    held["metadata"]["finalizers"] = ["example.com/held"]
    blue = instance(api)
    blue.reconcile([held])
    with pytest.raises(NotReady, match=r"not deleted, and nothing has moved for 1 s"):
        blue.terminate()
