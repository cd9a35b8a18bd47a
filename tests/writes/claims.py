# SPDX-License-Identifier: Apache-2.0
"""A claim that stays, and owners that operators, users and runs give it and take from it."""

from __future__ import annotations

from collections.abc import Callable

from k8s_cr_driver.objects.keys import Object
from tests.fake_api import FakeApi
from tests.instance import claim, config_map, controlled_by, kept

HELD = ["example.com/hold"]
VOLUME = "PersistentVolumeClaim", "default", "volume"


def volume(whose: str = "desired") -> Object:
    found = claim("volume")
    found["metadata"]["annotations"] = {"k8s-cr-driver/ready-when": "stored"}
    return kept(found) if whose == "kept" else found


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


def is_going(api: FakeApi, kind: str, name: str) -> bool:
    return "deletionTimestamp" in api.get(kind, "default", name)["metadata"]


def is_the_same(api: FakeApi, uid: str) -> bool:
    live = api.get(*VOLUME)["metadata"]
    return live["uid"] == uid and "deletionTimestamp" not in live


def never(api: FakeApi, condition: Callable[[], bool]) -> None:
    """Not within a second."""
    with api.cluster.store.changed:
        assert not api.cluster.store.changed.wait_for(condition, 1)
