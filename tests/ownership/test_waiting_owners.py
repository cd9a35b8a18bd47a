# SPDX-License-Identifier: Apache-2.0
"""Owners that wait for their turn to be deleted: what an operator makes for them meanwhile goes with them, too."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from k8s_cr_driver.objects.dependencies import DEPENDS_ON
from tests.fake_api import FakeApi, controllers, faults
from tests.fake_api.recording import Request
from tests.instance import Instance, config_map, wait_for
from tests.ownership.claims import HELD, is_going, is_owned, is_the_same, own, volume

pytestmark = pytest.mark.usefixtures("soon")


@pytest.mark.parametrize("whose", ["desired", "kept"])
def test_a_claim_outlives_what_was_made_for_an_owner_that_waits_for_its_turn(
    api: FakeApi, collect: Callable[[], None], whose: str
) -> None:
    blue, first = Instance(api.url), config_map("first")
    first["metadata"] |= {"finalizers": HELD, "annotations": {DEPENDS_ON: "/namespaces/default/ConfigMap/owner"}}
    blue.reconcile([config_map("owner"), first, volume(whose)])
    run = blue.start([volume()] if whose == "desired" else [])
    wait_for(api, lambda: is_going(api, "ConfigMap", "first"))
    if whose == "kept":
        blue.wait_until_reported("volume", "left")
    is_read = threading.Event()

    def again(_: Request) -> bool:
        """Only notes that a second look reads it."""
        if len(api.requests.select("GET", "/configmaps/made")) > 1:
            is_read.set()
        return False

    api.fail(faults.unavailable(), method="GET", path="/configmaps/made", when=again)
    uid = own(api, api.put(controllers.owned(api.get("ConfigMap", "default", "owner"), "v1", "ConfigMap", "made")))
    assert is_read.wait(30)
    api.release("ConfigMap", "default", "first", HELD)
    run.result(10)
    assert not is_owned(api)
    collect()
    assert is_the_same(api, uid)
