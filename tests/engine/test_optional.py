# SPDX-License-Identifier: Apache-2.0
"""An optional object is applied and reported, and never waited for longer than the others."""

from __future__ import annotations

import logging

import pytest

from k8s_cr_driver.engine.not_ready import NotReady
from tests.fake_api import FakeApi
from tests.instance import CONDITIONS, Instance, config_map, crontab, crontab_crd, status

DEFINITION = crontab_crd(**CONDITIONS)


def optional(name: str) -> dict[str, object]:
    tab = crontab(name)
    tab["metadata"]["annotations"] = {"k8s-cr-driver/optional": "true"}
    return tab


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if "optional object" in one.getMessage()]


def test_operation_ends_without_an_optional_object_that_is_not_ready(
    api: FakeApi, caplog: pytest.LogCaptureFixture
) -> None:
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
    after = config_map("after")
    after["metadata"]["annotations"] = {
        "config.kubernetes.io/depends-on": "stable.example.com/namespaces/default/CronTab/may"
    }
    blue = Instance(api.url)
    run = blue.start([DEFINITION, optional("may"), after])
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
