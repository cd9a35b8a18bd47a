# SPDX-License-Identifier: Apache-2.0
"""Looks at the owners of what stays: which objects they read, when they end, and how often they are repeated."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from k8s_cr_driver.engine import releases, staying
from k8s_cr_driver.engine.garbage import owner_uids
from k8s_cr_driver.engine.loop import Loop
from k8s_cr_driver.kube import backoff
from k8s_cr_driver.objects.keys import Object
from tests.fake_api import FakeApi, faults
from tests.fake_api.recording import Request
from tests.instance import Instance, config_map, controlled_by, kept, obj, wait_for
from tests.ownership.claims import (
    HELD,
    assert_outlives,
    is_going,
    is_owned,
    is_the_same,
    own,
    replaceable,
    volume,
)

pytestmark = pytest.mark.usefixtures("soon")


def test_a_run_does_not_wait_for_an_object_of_the_cluster_that_a_deleted_namespaced_one_owned(api: FakeApi) -> None:
    """No such owner can be read, so that nothing says that it no longer exists."""
    blue, role = Instance(api.url), obj("rbac.authorization.k8s.io/v1", "ClusterRole", "role", rules=[])
    blue.reconcile([config_map("owner"), role])
    reference = controlled_by(api.get("ConfigMap", "default", "owner"))
    api.edit("ClusterRole", None, "role", lambda live: live["metadata"].update(ownerReferences=[reference]))
    blue.reconcile([role])
    assert api.find("ConfigMap", "default", "owner") is None


@pytest.mark.parametrize("is_made_again", [False, True])
def test_a_terminate_does_not_wait_for_a_kept_claim_that_others_delete(api: FakeApi, *, is_made_again: bool) -> None:
    blue = Instance(api.url)
    blue.reconcile([replaceable(), volume("kept")])
    own(api, api.get("ConfigMap", "default", "owner"))
    run = blue.start([])
    blue.wait_until_reported("volume", "left")
    wait_for(api, lambda: is_going(api, "ConfigMap", "owner"))
    api.delete("PersistentVolumeClaim", "default", "volume")
    if is_made_again:
        api.put(volume())
    api.release("ConfigMap", "default", "owner", HELD)
    run.result(10)


def test_a_kept_claim_that_cannot_be_read_for_a_moment_is_not_abandoned_because_many_others_end_in_it(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, collect: Callable[[], None]
) -> None:
    """Each of them that is gone has the claim looked at again."""
    blue, names = Instance(api.url, seconds=60), [f"other-{number}" for number in range(7)]
    others = [config_map(name) for name in names]
    for other in others:
        other["metadata"]["finalizers"] = HELD
    blue.reconcile([replaceable(), volume("kept"), *others])
    owner = api.get("ConfigMap", "default", "owner")
    uid = own(api, owner)
    monkeypatch.setattr(releases, "AGAIN", 60)
    blue.abandon = True
    run = blue.start([])
    wait_for(api, lambda: all(is_going(api, "ConfigMap", name) for name in ["owner", *names]))
    own(api, owner)
    monkeypatch.setattr(backoff, "FIRST", backoff.LAST)
    tries = threading.Semaphore(0)

    def is_tried(_: Request) -> bool:
        tries.release()
        return True

    api.fail(faults.unavailable(), method="GET", path="/persistentvolumeclaims/volume$", when=is_tried, times=1000)
    for name in ["owner", *names[1:]]:
        api.release("ConfigMap", "default", name, HELD)
        assert tries.acquire(timeout=10)
    api.clear_faults()
    api.release("ConfigMap", "default", names[0], HELD)
    run.result(10)
    assert not is_owned(api)
    collect()
    assert is_the_same(api, uid)


def test_many_objects_of_an_owner_that_stays_delay_no_look(api: FakeApi) -> None:
    """The owner is read once in each look, as the Application of a tool that shows them in a tree."""
    blue, names = Instance(api.url), [f"some-{number}" for number in range(300)]
    some = [config_map(name) for name in names]
    blue.reconcile([replaceable(), volume("kept"), *some])
    reference = controlled_by(api.put(config_map("application"), manager="user"))
    for name in names:
        api.edit("ConfigMap", "default", name, lambda live: live["metadata"].update(ownerReferences=[reference]))
    owner = api.get("ConfigMap", "default", "owner")
    uid = own(api, owner)
    run = blue.start(some)
    blue.wait_until_reported("volume", "left")
    wait_for(api, lambda: is_going(api, "ConfigMap", "owner"))
    assert_outlives(api, uid, run, owner, ("ConfigMap", "owner"))


def test_a_look_ends_with_the_operation(api: FakeApi) -> None:
    """There may be thousands of objects, each of which costs two requests."""
    blue, names = Instance(api.url), [f"many-{number}" for number in range(20)]
    blue.reconcile([replaceable(), *(kept(config_map(name)) for name in names)])
    reference = controlled_by(api.get("ConfigMap", "default", "owner"))
    for name in names:
        api.edit("ConfigMap", "default", name, lambda live: live["metadata"].update(ownerReferences=[reference]))
    run = blue.start([])
    for name in names:
        blue.wait_until_reported(name, "left")
    wait_for(api, lambda: is_going(api, "ConfigMap", "owner"))

    def stops(_: Request) -> bool:
        blue.stop.set()
        api.requests.clear()
        return True

    api.fail(faults.unavailable(), method="GET", path="/configmaps/many-", when=stops)
    assert run.exception(10) is not None
    assert len(api.requests.select("GET", "/configmaps/many-")) < 5


@pytest.mark.parametrize("name", ["a/b", "a?b", "a%b", ".", ".."])
def test_an_owner_with_a_name_that_no_path_can_have_ends_no_run(api: FakeApi, name: str) -> None:
    """The API server asks of the name of an owner only that it is not empty."""
    blue = Instance(api.url)
    blue.reconcile([config_map("b"), volume()])
    reference = {**controlled_by(api.put(config_map("owner"), manager="user")), "name": name}
    place = "PersistentVolumeClaim", "default", "volume"
    api.edit(*place, lambda live: live["metadata"].update(ownerReferences=[reference]))
    blue.reconcile([volume()])
    assert api.find("ConfigMap", "default", "b") is None


def test_many_events_have_the_owners_compared_once(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each comparison takes as long as there are objects, and each list has as many events."""
    names, compared = [f"some-{number}" for number in range(100)], list[Object]()
    owner, root = replaceable(), config_map("root")
    blue = Instance(api.url)
    blue.reconcile([owner, root, *map(config_map, names)])
    reference = controlled_by(api.get("ConfigMap", "default", "root"))
    for name in names:
        api.edit("ConfigMap", "default", name, lambda live: live["metadata"].update(ownerReferences=[reference]))
    api.delete("ConfigMap", "default", "owner")

    def counted(live: Object) -> list[str]:
        compared.append(live)
        return owner_uids(live)

    monkeypatch.setattr(staying, "owner_uids", counted)
    run = blue.start([root, *map(config_map, names)])
    blue.wait_until_reported("owner", "deleting")
    assert len(compared) < 20 * len(names)
    api.release("ConfigMap", "default", "owner", HELD)
    run.result(10)


def test_an_object_that_cannot_be_released_is_not_tried_more_often_because_others_end(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look that failed had one more follow, for ever."""
    blue, names = Instance(api.url), [f"other-{number}" for number in range(7)]
    others = [config_map(name) for name in names]
    for other in others:
        other["metadata"]["finalizers"] = HELD
    blue.reconcile([replaceable(), volume("kept"), *others])
    owner = api.get("ConfigMap", "default", "owner")
    own(api, owner)
    tries, timers, after = threading.Semaphore(0), list[float](), Loop.after

    def is_tried(_: Request) -> bool:
        tries.release()
        return True

    def counted(loop: Loop, seconds: float, action: Callable[[], None]) -> None:
        if seconds == backoff.LAST:
            timers.append(seconds)
        after(loop, seconds, action)

    monkeypatch.setattr(releases, "AGAIN", 60)
    run = blue.start([])
    wait_for(api, lambda: all(is_going(api, "ConfigMap", name) for name in ["owner", *names]))
    own(api, owner)
    monkeypatch.setattr(backoff, "FIRST", backoff.LAST)
    monkeypatch.setattr(Loop, "after", counted)
    api.fail(faults.unavailable(), method="GET", path="/persistentvolumeclaims/volume$", when=is_tried, times=1000)
    for name in ["owner", *names[1:]]:
        api.release("ConfigMap", "default", name, HELD)
        assert tries.acquire(timeout=10)
    api.clear_faults()
    api.release("ConfigMap", "default", names[0], HELD)
    run.result(10)
    assert len(timers) == 1


def test_a_kept_claim_that_is_owned_for_the_first_time_right_before_its_owner_is_gone_outlives_it(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, collect: Callable[[], None]
) -> None:
    """No watch reports it any more, the last look at it was before, and the collector is late."""
    blue = Instance(api.url)
    blue.reconcile([replaceable(), volume("kept")])
    owner = api.get("ConfigMap", "default", "owner")
    monkeypatch.setattr(releases, "AGAIN", 60)
    run = blue.start([])
    blue.wait_until_reported("volume", "left")
    wait_for(api, lambda: is_going(api, "ConfigMap", "owner"))
    uid = own(api, owner)
    api.release("ConfigMap", "default", "owner", HELD)
    run.result(10)
    assert not is_owned(api)
    collect()
    assert is_the_same(api, uid)
