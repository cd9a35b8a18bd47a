# SPDX-License-Identifier: Apache-2.0
"""A CRD that the API server refuses, because another one has its names, has no objects: nothing keeps it."""

from __future__ import annotations

import pytest

from k8s_cr_driver.engine.report.not_ready import NotReady
from k8s_cr_driver.errors import DriverError
from k8s_cr_driver.objects.keys import GroupKind, Object
from k8s_cr_driver.objects.marks import used_by
from tests.fake_api import FakeApi, faults
from tests.instance import BLUE, GREEN, Instance, crontab, crontab_crd, crontab_crd_of, kept, state, wait_for

pytestmark = pytest.mark.usefixtures("failed_soon")

CRD, FIRST, SECOND = "CustomResourceDefinition", "crontabs.stable.example.com", "tabs.stable.example.com"
V1 = [crontab_crd(), crontab("one")]


def refused(api: FakeApi, id: str, *objects: Object) -> None:
    """Has an operation fail because of the second CRD."""
    with pytest.raises(NotReady, match="ListKindConflict"):
        Instance(api.url, id).reconcile([crontab_crd_of("tabs"), *objects])


def test_a_rollback_deletes_the_crd_that_was_refused_because_of_that_of_the_former_package(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile(V1)
    before = state(api)
    refused(api, BLUE, crontab("one"))
    blue.reconcile(V1)
    assert state(api) == before
    blue.terminate()
    assert state(api) == {}


def test_a_rollback_deletes_the_crd_that_was_refused_because_of_that_of_another_instance(api: FakeApi) -> None:
    blue, green = Instance(api.url), Instance(api.url, GREEN)
    green.reconcile(V1)
    before = state(api)
    refused(api, BLUE, crontab("two"))
    blue.terminate()
    assert state(api) == before
    green.terminate()
    assert state(api) == {}


def test_a_kept_object_keeps_its_own_crd_and_not_a_refused_one(api: FakeApi) -> None:
    blue, ours = Instance(api.url), kept(crontab("one"))
    blue.reconcile([crontab_crd(), ours])
    refused(api, BLUE, ours)
    blue.terminate()
    assert (api.names(CRD), api.names("CronTab", "default")) == ([FIRST], ["one"])


def test_the_kind_of_a_refused_crd_stays_in_the_inventory_with_the_objects_of_the_other_one(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile(V1)
    refused(api, BLUE, crontab("one"))
    api.fail(faults.status(403, "Forbidden", "no"), method="DELETE", path=SECOND)
    with pytest.raises(DriverError, match="403"):
        blue.reconcile(V1)
    blue.record()
    assert GroupKind("stable.example.com", "CronTab") in blue.remembered.kinds


def test_a_terminate_deletes_objects_before_the_crd_that_serves_them_if_another_one_is_refused(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile(V1)
    refused(api, BLUE, crontab("one"))
    api.edit("CronTab", "default", "one", lambda live: live["metadata"].update(finalizers=["example.com/hold"]))
    run = blue.start([])
    wait_for(api, lambda: SECOND not in api.names(CRD))
    with pytest.raises(TimeoutError):
        run.result(0.5)
    assert not api.requests.select("DELETE", FIRST)
    api.release("CronTab", "default", "one")
    run.result(10)
    assert state(api) == {}


ACCEPTED = {"conditions": [{"type": "NamesAccepted", "status": "True"}]}


@pytest.mark.parametrize("status", [{}, ACCEPTED], ids=["new", "accepted"])
def test_a_crd_that_is_about_to_be_served_stays_for_who_has_claimed_its_kind(api: FakeApi, status: Object) -> None:
    blue = Instance(api.url)
    blue.reconcile([crontab_crd()])
    Instance(api.url, GREEN).reconcile(V1)
    api.delete("CronTab", "default", "one")
    api.edit(CRD, None, FIRST, lambda live: live["metadata"]["labels"].pop(used_by(GREEN)))
    api.set_status(CRD, None, FIRST, status)
    blue.terminate()
    assert api.names(CRD) == [FIRST]
