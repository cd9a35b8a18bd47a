# SPDX-License-Identifier: Apache-2.0
"""Custom resources that stay, while a change of package no longer serves the version in which they were found."""

from __future__ import annotations

import pytest

from tests.fake_api import FakeApi
from tests.instance import Instance, controlled_by, crontab, crontab_crd, kept, wait_for
from tests.ownership.claims import HELD, is_going, replaceable

pytestmark = pytest.mark.usefixtures("soon")


@pytest.mark.parametrize("whose", ["desired", "kept"])
def test_what_stays_outlives_an_owner_though_its_version_is_no_longer_served(api: FakeApi, whose: str) -> None:
    blue, before, after, tab = Instance(api.url), crontab_crd(), crontab_crd(), crontab("a")
    [first] = before["spec"]["versions"]
    before["spec"]["versions"] = [first, {**first, "name": "v2", "storage": False}]
    after["spec"]["versions"] = [first, {**first, "name": "v2", "served": False, "storage": False}]
    blue.reconcile([before, replaceable(), kept(tab) if whose == "kept" else tab])
    live = api.get("CronTab", "default", "a")
    reference = controlled_by(api.get("ConfigMap", "default", "owner"))
    run = blue.start([after, *([tab] if whose == "desired" else [])])
    wait_for(api, lambda: is_going(api, "ConfigMap", "owner"))
    if whose == "kept":
        blue.wait_until_reported("a", "left")
    api.edit("CronTab", "default", "a", lambda one: one["metadata"].update(ownerReferences=[reference]))
    wait_for(api, lambda: not api.get("CronTab", "default", "a")["metadata"].get("ownerReferences"))
    api.release("ConfigMap", "default", "owner", HELD)
    run.result(10)
    assert api.get("CronTab", "default", "a")["metadata"]["uid"] == live["metadata"]["uid"]
