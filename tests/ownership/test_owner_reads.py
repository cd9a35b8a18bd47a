# SPDX-License-Identifier: Apache-2.0
"""Which owners looks read, and how many in a second."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable

import pytest

from k8s_cr_driver.engine import releases
from k8s_cr_driver.objects.keys import Object
from tests.fake_api import FakeApi, controllers, faults
from tests.instance import Instance, config_map, controlled_by, wait_for
from tests.ownership.claims import HELD, is_going, is_owned, is_the_same, never, own, replaceable, volume


def _own(references: list[Object], live: Object) -> None:
    live["metadata"]["ownerReferences"] = references


def test_many_objects_with_an_owner_each_are_looked_at_in_turn(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """The owners stay, but no watch says so: each look reads them all."""
    monkeypatch.setattr(releases, "AGAIN", 0.01)
    blue, parts = Instance(api.url), [config_map(f"part-{number}") for number in range(20)]
    blue.reconcile([replaceable(), *parts])
    for number in range(20):
        references = [controlled_by(api.put(config_map(f"theirs-{number}"), manager="user"))]
        owned = functools.partial(_own, references)
        api.edit("ConfigMap", "default", f"part-{number}", owned)
    run = blue.start(parts)
    wait_for(api, lambda: is_going(api, "ConfigMap", "owner"))
    api.requests.clear()
    with api.cluster.store.changed:
        assert not api.cluster.store.changed.wait_for(lambda: len(api.requests.select("GET", "/configmaps/theirs-")) > 100, 2)
    api.release("ConfigMap", "default", "owner", HELD)
    run.result(10)


def test_the_owners_of_all_are_not_read_again_for_each_new_one(api: FakeApi) -> None:
    blue, parts = Instance(api.url, seconds=60), [config_map(f"part-{number}") for number in range(40)]
    blue.reconcile([replaceable(), *parts])
    run = blue.start(parts)
    wait_for(api, lambda: is_going(api, "ConfigMap", "owner"))
    api.requests.clear()
    going = api.get("ConfigMap", "default", "owner")

    def is_released(name: str) -> bool:
        return not api.get("ConfigMap", "default", name)["metadata"].get("ownerReferences")

    for part in parts:
        name = part["metadata"]["name"]
        made = controlled_by(api.put(controllers.owned(going, "v1", "ConfigMap", f"their-{name}")))
        api.edit("ConfigMap", "default", name, lambda live, made=made: live["metadata"].update(ownerReferences=[made]))
        wait_for(api, functools.partial(is_released, name))
    reads = len(api.requests.select("GET", "/configmaps/their-"))
    api.release("ConfigMap", "default", "owner", HELD)
    run.result(30)
    assert reads < 10 * len(parts)  # all of them each time are 820, and a look that is due meanwhile reads all, too


@pytest.mark.parametrize("answer", [None, 414, 431, 400])
def test_an_owner_with_a_name_that_is_too_long_for_a_path_ends_no_run(api: FakeApi, answer: int | None) -> None:
    """The API server asks of the name of an owner only that it is not empty. It accepts 1 MiB of headers, a proxy less."""
    blue = Instance(api.url)
    blue.reconcile([config_map("b"), volume()])
    reference = {**controlled_by(api.put(config_map("owner"), manager="user")), "name": 100_000 * "a"}
    place = "PersistentVolumeClaim", "default", "volume"
    api.edit(*place, lambda live: live["metadata"].update(ownerReferences=[reference]))
    if answer:
        api.fail(faults.status(answer), method="GET", path="/configmaps/aaaaa", times=10**6)
    blue.reconcile([volume()])
    assert api.find("ConfigMap", "default", "b") is None


def test_a_claim_that_is_owned_again_and_again_is_released_in_turn_though_looks_at_all_are_rare(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with hundreds of other objects, which are read for many seconds."""
    monkeypatch.setattr(releases, "AGAIN", 0.5)
    monkeypatch.setattr(releases, "READS_PER_SECOND", 0.01)
    blue = Instance(api.url)
    blue.reconcile([replaceable(), volume()])
    owner = api.get("ConfigMap", "default", "owner")
    run = blue.start([volume()])
    wait_for(api, lambda: is_going(api, "ConfigMap", "owner"))
    own(api, owner)
    wait_for(api, lambda: not is_owned(api))
    never(api, lambda: is_owned(api))
    began = time.monotonic()
    for _ in range(4):
        own(api, owner)
        wait_for(api, lambda: not is_owned(api))
    seconds = time.monotonic() - began
    api.release("ConfigMap", "default", "owner", HELD)
    run.result(10)
    assert seconds >= 1.5


def test_many_owners_of_one_object_are_not_all_read_again_for_each_that_is_deleted(api: FakeApi) -> None:
    """As of a ConfigMap that all custom resources of an operator share."""
    blue, owners = Instance(api.url, seconds=60), [config_map(f"owner-{number}") for number in range(40)]
    blue.reconcile([*owners, config_map("shared")])
    lives = [api.get("ConfigMap", "default", one["metadata"]["name"]) for one in owners]
    references = [{**controlled_by(live), "controller": False} for live in lives]
    api.edit("ConfigMap", "default", "shared", functools.partial(_own, references))
    api.requests.clear()
    blue.reconcile([config_map("shared")])
    assert len(api.requests.select("GET", "/configmaps/owner-")) < 5 * len(owners)


def test_a_claim_that_a_gone_owner_owns_again_right_after_a_look_is_released_soon_though_looks_at_all_are_rare(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cache of the operator is late. The run waits for another object."""
    monkeypatch.setattr(releases, "AGAIN", 1.5)
    monkeypatch.setattr(releases, "READS_PER_SECOND", 0.01)
    blue, slow = Instance(api.url, seconds=30), config_map("slow")
    slow["metadata"]["finalizers"] = HELD
    blue.reconcile([replaceable(), slow, volume()])
    owner = api.get("ConfigMap", "default", "owner")
    own(api, owner)
    run = blue.start([volume()])
    wait_for(api, lambda: is_going(api, "ConfigMap", "owner") and is_going(api, "ConfigMap", "slow"))
    for _ in range(2):
        never(api, lambda: is_owned(api))  # no timer is left
    own(api, owner)
    wait_for(api, lambda: not is_owned(api))
    later: list[Callable[[], None]] = []
    api.cluster.later = later.append
    api.release("ConfigMap", "default", "owner", HELD)
    never(api, lambda: is_owned(api))
    uid = own(api, owner)
    try:
        wait_for(api, lambda: not is_owned(api))
    finally:
        api.release("ConfigMap", "default", "slow", HELD)
        run.result(10)
    assert is_the_same(api, uid)
