# SPDX-License-Identifier: Apache-2.0
"""A claim that stays, and owners that operators, users and runs give it and take from it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from k8s_cr_driver.engine import releases
from k8s_cr_driver.objects.keys import Object
from tests.fake_api import FakeApi
from tests.instance import Instance, claim, config_map, controlled_by, crontab, crontab_crd, kept, wait_for

HELD = ["example.com/hold"]
VOLUME = "PersistentVolumeClaim", "default", "volume"


def volume(whose: str = "desired") -> Object:
    found = claim("volume")
    found["metadata"]["annotations"] = {"k8s-cr-driver/ready-when": "stored"}
    return kept(found) if whose == "kept" else found


def held_crontab() -> Object:
    tab = crontab("a")
    tab["metadata"]["finalizers"] = HELD
    return tab


def replaceable() -> Object:
    """An object that is replaced when its data changes."""
    owner = {**config_map("owner", a="1"), "immutable": True}
    owner["metadata"] |= {"annotations": {"k8s-cr-driver/replace": "true"}, "finalizers": HELD}
    return owner


def own(api: FakeApi, owner: Object) -> str:
    """As an operator does it in each reconciliation; returns the uid of the claim."""
    reference = controlled_by(owner)
    made = api.edit(*VOLUME, lambda live: live["metadata"].update(ownerReferences=[reference]))
    return str(made["metadata"]["uid"])


def is_owned(api: FakeApi) -> bool:
    return bool(api.get(*VOLUME)["metadata"].get("ownerReferences"))


def is_going(api: FakeApi, kind: str, name: str) -> bool:
    return "deletionTimestamp" in api.get(kind, "default", name)["metadata"]


def is_the_same(api: FakeApi, uid: str) -> bool:
    live = api.get(*VOLUME)["metadata"]
    return live["uid"] == uid and "deletionTimestamp" not in live


def never(api: FakeApi, condition: Callable[[], bool]) -> None:
    """Not within a second."""
    with api.cluster.store.changed:
        assert not api.cluster.store.changed.wait_for(condition, 1)


def write_during_looks(api: FakeApi, monkeypatch: pytest.MonkeyPatch, write: Callable[[Any], Object | None]) -> list[str]:
    """
    Each look calls `write` with what it looks at, once it has read all, and ends when the watch has reported what that returns.

    Returns the list of their versions, to which each look adds; `write` returns None if it writes nothing.
    """
    versions, is_noted = list[str](), threading.Event()
    looked, stays = releases.Releases._looked, releases.Releases.stays

    def busy(found: releases.Releases, look: Any) -> Any:
        seen = looked(found, look)
        is_noted.clear()
        with api.cluster.writing():
            made = write(look)
            if made is None:
                return seen
            versions.append(made["metadata"]["resourceVersion"])
        assert is_noted.wait(10)
        return seen

    def noted(found: releases.Releases, live: Object) -> None:
        stays(found, live)
        if live["metadata"]["resourceVersion"] in versions:
            is_noted.set()

    monkeypatch.setattr(releases.Releases, "_looked", busy)
    monkeypatch.setattr(releases.Releases, "stays", noted)
    return versions


def assert_released(api: FakeApi, owner: Object) -> None:
    """The claim is released each time the owner owns it again."""
    for _ in range(3):
        own(api, owner)
        wait_for(api, lambda: not is_owned(api))


def assert_outlives(api: FakeApi, uid: str, run: Future[Any], owner: Object, *held: tuple[str, str]) -> None:
    """The claim is released from its owner until the objects `held` (kind, name) are finalized."""
    assert_released(api, owner)
    for kind, name in held:
        api.release(kind, "default", name, HELD)
    run.result(10)
    assert is_the_same(api, uid)


def after_a_failed_change(api: FakeApi) -> tuple[Instance, Object, str]:
    """The instance, an owner whose deletion has begun and that a finalizer holds, and the uid of its claim."""
    blue = Instance(api.url)
    blue.reconcile([crontab_crd(), held_crontab(), volume()])
    tab = api.get("CronTab", "default", "a")
    uid = own(api, tab)
    api.delete("CronTab", "default", "a")
    return blue, tab, uid
