# SPDX-License-Identifier: Apache-2.0
"""A CRD that the API server has stopped deleting is taken up again; one that still has objects is left to it."""

from __future__ import annotations

import pytest

from k8s_cr_driver.engine.delete import departures
from tests.fake_api import FakeApi
from tests.instance import Instance, crontab, crontab_crd, state, wait_for

CRD = "crontabs.stable.example.com"


def test_a_crd_whose_deletion_stalls_is_taken_up_again(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(departures, "NUDGE_EVERY", 0.05)
    blue = Instance(api.url)
    blue.reconcile([crontab_crd(), crontab("one")])
    api.cluster.knobs.stalled_crds.add(CRD)
    blue.terminate()
    assert state(api) == {}


def test_a_crd_that_has_objects_is_not_changed_while_it_is_deleted(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(departures, "NUDGE_EVERY", 0.05)
    blue = Instance(api.url, delete_guests=True)
    blue.reconcile([crontab_crd()])
    held = crontab("theirs")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    api.put(held)
    run = blue.start([])
    wait_for(api, lambda: len([one for one in api.requests.select("GET", "/crontabs") if not one.watch]) > 2)
    assert not [one for one in api.requests.select("PATCH", CRD) if "look-again" in str(one.body)]
    api.release("CronTab", "default", "theirs")
    run.result(10)
    assert state(api) == {}
