# SPDX-License-Identifier: Apache-2.0
"""An object that stays, and that several owners own again, which go one after the other."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from k8s_cr_driver.engine import releases
from k8s_cr_driver.objects.keys import Object
from tests.fake_api import FakeApi
from tests.instance import Instance, config_map, controlled_by, wait_for
from tests.ownership.claims import HELD, VOLUME, is_going, is_the_same, volume

LAST = "/namespaces/default/ConfigMap/last"


def test_a_claim_is_not_left_to_an_owner_that_is_gone_when_it_is_released_from_the_next_one(
    api: FakeApi, collect: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The garbage collector is late, and so is the next look: the claim would have no owner but one that is gone."""
    looked, stays, seen = releases.Releases._looked, releases.Releases.stays, threading.Event()

    def noted(found: releases.Releases, live: Object) -> None:
        stays(found, live)
        if len(live["metadata"].get("ownerReferences", ())) == 2:
            seen.set()

    def late(found: releases.Releases, look: Any) -> Any:
        wait_for(api, lambda: api.find("ConfigMap", "default", "last") is None)
        collect()
        return looked(found, look)

    monkeypatch.setattr(releases, "AGAIN", 20)
    monkeypatch.setattr(releases.Releases, "_looked", late)
    monkeypatch.setattr(releases.Releases, "stays", noted)
    first, last, blue = config_map("first"), config_map("last"), Instance(api.url)
    first["metadata"] |= {"finalizers": HELD, "annotations": {"config.kubernetes.io/depends-on": LAST}}
    blue.reconcile([first, last, volume()])
    owners = [{**controlled_by(api.get("ConfigMap", "default", one)), "controller": False} for one in ("first", "last")]
    run = blue.start([volume()])
    wait_for(api, lambda: is_going(api, "ConfigMap", "first"))
    live = api.edit(*VOLUME, lambda one: one["metadata"].update(ownerReferences=owners))
    assert seen.wait(10)
    api.release("ConfigMap", "default", "first", HELD)
    run.result(60)
    assert is_the_same(api, live["metadata"]["uid"])
