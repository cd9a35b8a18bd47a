# SPDX-License-Identifier: Apache-2.0
"""An optional object is applied and reported, and never waited for longer than the others."""

from __future__ import annotations

import logging

import pytest

from k8s_cr_driver.engine.report.not_ready import NotReady
from k8s_cr_driver.errors import Refused
from k8s_cr_driver.objects.keys import Object
from tests.fake_api import FakeApi, faults
from tests.instance import CONDITIONS, Instance, annotated, config_map, crontab, crontab_crd, job, status

DEFINITION = crontab_crd(**CONDITIONS)


def optional(name: str) -> dict[str, object]:
    return annotated(crontab(name), {"k8s-cr-driver/optional": "true"})


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if "optional object" in one.getMessage()]


def test_operation_ends_without_an_optional_object_that_is_not_ready(api: FakeApi, caplog: pytest.LogCaptureFixture) -> None:
    blue = Instance(api.url)
    with caplog.at_level(logging.WARNING):
        live = blue.reconcile([DEFINITION, optional("may"), config_map("a")])
    assert {key.name for key in live} >= {"may", "a"}
    [warning] = warnings(caplog)
    assert "CronTab.stable.example.com default/may: Waiting (NoStatus)" in warning


def test_optional_object_that_is_ready_is_no_warning(api: FakeApi, caplog: pytest.LogCaptureFixture) -> None:
    blue = Instance(api.url)
    blue.reconcile([DEFINITION, optional("may")])
    api.set_status("CronTab", "default", "may", status("True"))
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        blue.reconcile([DEFINITION, optional("may")])
    assert not warnings(caplog)


def test_others_are_waited_for_and_an_error_names_both(api: FakeApi) -> None:
    blue = Instance(api.url)
    run = blue.start([DEFINITION, optional("may"), crontab("must")])
    for name in ("may", "must"):
        blue.wait_until_reported(name, "Waiting")
    api.set_status("CronTab", "default", "may", status("False", "Stalled"))
    blue.wait_until_reported("may", "Failed")
    blue.end()
    with pytest.raises(NotReady) as raised:
        run.result(10)
    assert {report.key.name for report in raised.value.reports} == {"may", "must"}


def test_object_that_depends_on_an_optional_one_waits_for_it(api: FakeApi) -> None:
    blue = Instance(api.url)
    run = blue.start([DEFINITION, optional("may"), after("after", "may")])
    blue.wait_until_reported("may", "Waiting")
    assert not api.find("ConfigMap", "default", "after")
    api.set_status("CronTab", "default", "may", status("True"))
    run.result(10)


def test_former_objects_are_deleted_though_an_optional_one_is_not_ready(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([DEFINITION, config_map("former")])
    live = blue.reconcile([DEFINITION, optional("may")])
    assert {key.name for key in live} == {"may", "crontabs.stable.example.com"}
    assert not api.find("ConfigMap", "default", "former")


INVALID = faults.status(422, "Invalid", 'spec.cronSpec: Invalid value: "x": weekday unknown')


def after(name: str, first: str) -> Object:
    """An object that waits for a CronTab."""
    found = config_map(name)
    found["metadata"]["annotations"] = {
        "config.kubernetes.io/depends-on": f"stable.example.com/namespaces/default/CronTab/{first}"
    }
    return found


def test_refused_write_of_an_optional_object_ends_no_operation(api: FakeApi, caplog: pytest.LogCaptureFixture) -> None:
    api.fail(INVALID, path=r"/crontabs(/|$)", when=lambda one: one.method != "GET", times=9999)
    blue = Instance(api.url)
    with caplog.at_level(logging.WARNING):
        blue.reconcile([DEFINITION, optional("may"), config_map("a")])
    assert not api.find("CronTab", "default", "may")
    assert api.find("ConfigMap", "default", "a")
    [warning] = warnings(caplog)
    assert "CronTab.stable.example.com default/may: Waiting (NotApplied)" in warning
    assert "weekday unknown" in warning
    api.clear_faults()
    blue.reconcile([DEFINITION, optional("may"), config_map("a")])
    assert api.find("CronTab", "default", "may")


def test_refused_change_of_an_optional_object_leaves_it_as_it_is(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([DEFINITION, optional("may")])
    changed = optional("may")
    changed["spec"] = {"cronSpec": "1 * * * *"}
    api.fail(INVALID, path=r"/crontabs(/|$)", when=lambda one: one.method != "GET", times=9999)
    blue.reconcile([DEFINITION, changed, config_map("a")])
    assert api.get("CronTab", "default", "may")["spec"] == crontab("may")["spec"]
    api.clear_faults()
    blue.terminate()
    assert not api.find("CustomResourceDefinition", "", "crontabs.stable.example.com")


@pytest.mark.parametrize("between", [False, True])
def test_refused_write_of_what_others_wait_for_ends_the_operation(api: FakeApi, between: bool) -> None:
    last = optional("last")
    last["metadata"]["annotations"] |= after("x", "may")["metadata"]["annotations"]
    api.fail(INVALID, path=r"/crontabs(/|$)", when=lambda one: one.method != "GET", times=9999)
    waiting = [last, after("after", "last")] if between else [after("after", "may")]
    with pytest.raises(Refused, match="weekday unknown"):
        Instance(api.url).reconcile([DEFINITION, optional("may"), *waiting])


def test_optional_objects_that_wait_for_a_refused_one_end_no_operation(api: FakeApi) -> None:
    last = optional("last")
    last["metadata"]["annotations"] |= after("x", "may")["metadata"]["annotations"]
    api.fail(INVALID, path=r"/crontabs(/|$)", when=lambda one: one.method != "GET", times=9999)
    Instance(api.url).reconcile([DEFINITION, optional("may"), last])
    assert not api.objects("CronTab")


def test_optional_object_that_is_replaced_is_there_again_at_the_end(api: FakeApi) -> None:
    optional_job = {"k8s-cr-driver/optional": "true"}
    blue = Instance(api.url)
    blue.reconcile([job("may", "i:1", **optional_job)])
    before = api.get("Job", "default", "may")["metadata"]["uid"]
    blue.reconcile([job("may", "i:2", **optional_job)])
    now = api.get("Job", "default", "may")
    assert now["metadata"]["uid"] != before
    assert now["spec"]["template"]["spec"]["containers"][0]["image"] == "i:2"
