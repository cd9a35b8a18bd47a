# SPDX-License-Identifier: Apache-2.0
"""Looks at what is not settled, and at all that stays, while operators write without pause."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from k8s_cr_driver.engine import releases
from k8s_cr_driver.objects.keys import Object
from tests.fake_api import FakeApi, controllers
from tests.instance import Instance, config_map, controlled_by, wait_for
from tests.ownership.claims import HELD, is_going, is_owned, is_the_same, own, replaceable, volume, write_during_looks


def test_a_kept_claim_is_looked_at_though_a_desired_object_has_a_new_owner_during_each_look(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, collect: Callable[[], None]
) -> None:
    """No watch selects the claim any more, so only a look at all that stays finds its owner."""
    monkeypatch.setattr(releases, "AGAIN", 0.1)
    blue, is_over = Instance(api.url, seconds=30), threading.Event()
    other = config_map("other")
    other["metadata"]["finalizers"] = HELD
    blue.reconcile([replaceable(), other, config_map("busy"), volume("kept")])

    def new_owner(_: Any) -> Object | None:
        if is_over.is_set():
            return None
        one = controlled_by(api.put(config_map(f"theirs-{len(versions)}"), manager="user"))
        return api.edit("ConfigMap", "default", "busy", lambda live: live["metadata"].update(ownerReferences=[one]))

    versions = write_during_looks(api, monkeypatch, new_owner)
    run = blue.start([config_map("busy")])
    blue.wait_until_reported("volume", "left")
    wait_for(api, lambda: is_going(api, "ConfigMap", "owner") and len(versions) > 2)
    uid = own(api, api.put(controllers.owned(api.get("ConfigMap", "default", "owner"), "v1", "ConfigMap", "made")))
    with api.cluster.store.changed:
        api.cluster.store.changed.wait_for(lambda: not is_owned(api), 20)
    api.release("ConfigMap", "default", "owner", HELD)
    blue.wait_until_reported("owner", "deleted")
    collect()
    is_over.set()
    api.release("ConfigMap", "default", "other", HELD)
    run.result(10)
    assert is_the_same(api, uid)
