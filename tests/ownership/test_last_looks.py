# SPDX-License-Identifier: Apache-2.0
"""The last looks of a run at the owners of what stays, while the garbage collector is late."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from k8s_cr_driver.engine import releases
from k8s_cr_driver.kube import backoff, watch
from k8s_cr_driver.objects.dependencies import DEPENDS_ON
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.ownership import guests
from k8s_cr_driver.ownership.labels import KEEP
from tests.fake_api import FakeApi, controllers, faults
from tests.fake_api.recording import Request
from tests.instance import Instance, claim, config_map, deployment, obj, wait_for
from tests.ownership.claims import (
    HELD,
    VOLUME,
    assert_outlives,
    assert_released,
    is_going,
    is_owned,
    is_the_same,
    never,
    own,
    replaceable,
    volume,
    write_during_looks,
)

pytestmark = pytest.mark.usefixtures("soon")


@pytest.mark.parametrize("verb", ["change", "replacement"])
def test_a_desired_claim_outlives_what_was_made_for_an_owner_and_owned_it_again_right_before_that_was_gone(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, collect: Callable[[], None], verb: str
) -> None:
    """The owner was the last that was deleted."""
    blue = Instance(api.url)
    blue.reconcile([replaceable(), volume()])
    made = api.put(controllers.owned(api.get("ConfigMap", "default", "owner"), "v1", "ConfigMap", "made"))
    uid = own(api, made)
    if verb == "change":
        run = blue.start([volume()])
    else:
        run = blue.start([{**replaceable(), "data": {"a": "2"}}, volume()], prune=False)
    wait_for(api, lambda: is_going(api, "ConfigMap", "owner"))
    assert_released(api, made)
    monkeypatch.setattr(releases, "AGAIN", 60)
    never(api, lambda: is_owned(api))
    own(api, made)
    api.release("ConfigMap", "default", "owner", HELD)
    run.result(10)
    assert not is_owned(api)
    collect()
    assert is_the_same(api, uid)


def test_a_kept_claim_is_looked_at_when_the_last_object_that_was_to_be_deleted_turns_out_to_stay(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, collect: Callable[[], None]
) -> None:
    """A Namespace: others have a claim in it. The owner is gone meanwhile."""
    blue, theirs = Instance(api.url), claim("theirs")
    theirs["metadata"]["namespace"] = "inner"
    blue.reconcile([replaceable(), volume("kept"), obj("v1", "Namespace", "inner")])
    api.put(theirs, manager="user")
    owner = api.get("ConfigMap", "default", "owner")
    monkeypatch.setattr(releases, "AGAIN", 60)
    monkeypatch.setattr(guests, "PATIENCE", 60)
    api.fail(faults.unavailable(), method="GET", path="/namespaces/inner/persistentvolumeclaims", times=10**6)
    run = blue.start([])
    blue.wait_until_reported("volume", "left")
    blue.wait_until_reported("inner", "deleting")
    wait_for(api, lambda: is_going(api, "ConfigMap", "owner"))
    uid = own(api, owner)
    api.release("ConfigMap", "default", "owner", HELD)
    blue.wait_until_reported("owner", "deleted")
    api.clear_faults()
    run.result(10)
    assert not is_owned(api)
    collect()
    assert is_the_same(api, uid)


def test_a_desired_claim_outlives_an_owner_that_owns_it_again_though_it_is_gone(
    api: FakeApi, collect: Callable[[], None]
) -> None:
    """The cache of the operator is late, or the watch of the claim."""
    blue, web = Instance(api.url), deployment()
    web["metadata"]["namespace"] = "default"
    blue.reconcile([replaceable(), volume()])
    owner = api.get("ConfigMap", "default", "owner")
    uid = own(api, owner)
    blue.heard.clear()
    run = blue.start([{**replaceable(), "data": {"a": "2"}}, volume(), web], prune=False)
    wait_for(api, lambda: is_going(api, "ConfigMap", "owner"))
    api.release("ConfigMap", "default", "owner", HELD)
    blue.wait_until_reported("owner", "Ready")
    own(api, owner)
    wait_for(api, lambda: not is_owned(api))
    collect()
    assert is_the_same(api, uid)
    blue.stop.set()
    run.exception(10)


def test_a_desired_claim_outlives_what_was_made_for_an_owner_and_owns_it_though_the_owner_is_gone(
    api: FakeApi, collect: Callable[[], None]
) -> None:
    """The cache of the operator is late, or the watch of the claim."""
    blue, web = Instance(api.url), deployment()
    web["metadata"]["namespace"] = "default"
    blue.reconcile([replaceable(), volume()])
    made = api.put(controllers.owned(api.get("ConfigMap", "default", "owner"), "v1", "ConfigMap", "made"))
    blue.heard.clear()
    run = blue.start([{**replaceable(), "data": {"a": "2"}}, volume(), web], prune=False)
    wait_for(api, lambda: is_going(api, "ConfigMap", "owner"))
    api.release("ConfigMap", "default", "owner", HELD)
    blue.wait_until_reported("owner", "Ready")
    uid = own(api, made)
    wait_for(api, lambda: not is_owned(api))
    collect()
    assert is_the_same(api, uid)
    blue.stop.set()
    run.exception(10)


def test_a_desired_claim_that_a_gone_owner_owns_again_during_the_last_look_outlives_it(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, collect: Callable[[], None]
) -> None:
    """The look has released it before, and ends after the watch has reported it."""
    blue = Instance(api.url)
    blue.reconcile([replaceable(), volume()])
    owner = api.get("ConfigMap", "default", "owner")
    uid = own(api, owner)

    def owned_again(look: Any) -> Object | None:
        if not look.owners.missing or versions:
            return None
        own(api, owner)
        return api.get(*VOLUME)

    versions = write_during_looks(api, monkeypatch, owned_again)
    run = blue.start([{**replaceable(), "data": {"a": "2"}}, volume()], prune=False)
    wait_for(api, lambda: is_going(api, "ConfigMap", "owner"))
    api.release("ConfigMap", "default", "owner", HELD)
    run.result(10)
    assert versions and not is_owned(api)
    collect()
    assert is_the_same(api, uid)


def test_a_claim_without_label_that_is_to_be_kept_since_the_deletions_have_begun_outlives_its_owner(api: FakeApi) -> None:
    blue, first = Instance(api.url), config_map("first")
    first["metadata"] |= {"finalizers": HELD, "annotations": {DEPENDS_ON: "/namespaces/default/PersistentVolumeClaim/volume"}}
    blue.reconcile([replaceable(), volume(), first])
    owner, uid = api.get("ConfigMap", "default", "owner"), api.get(*VOLUME)["metadata"]["uid"]
    run = blue.start([])
    wait_for(api, lambda: is_going(api, "ConfigMap", "owner") and is_going(api, "ConfigMap", "first"))
    api.requests.clear()
    api.edit(*VOLUME, lambda live: live["metadata"].update(labels={}))
    wait_for(api, lambda: bool(api.requests.select("GET", "/persistentvolumeclaims/volume")))
    api.edit(*VOLUME, lambda live: live["metadata"]["annotations"].update({KEEP: "true"}))
    api.release("ConfigMap", "default", "first", HELD)
    blue.wait_until_reported("volume", "left")
    assert_outlives(api, uid, run, owner, ("ConfigMap", "owner"))


def test_a_run_ends_though_others_write_a_claim_during_each_look(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a controller does that has a time in the status, while a look at many other objects takes as long."""
    blue = Instance(api.url)
    blue.reconcile([replaceable(), volume()])
    own(api, api.get("ConfigMap", "default", "owner"))

    def beat(_: Any) -> Object:
        return api.edit(*VOLUME, lambda live: live["metadata"]["annotations"].update(beat=str(len(versions))))

    versions = write_during_looks(api, monkeypatch, beat)
    run = blue.start([{**replaceable(), "data": {"a": "2"}}, volume()], prune=False)
    wait_for(api, lambda: is_going(api, "ConfigMap", "owner"))
    api.release("ConfigMap", "default", "owner", HELD)
    run.result(10)
    assert versions and not is_owned(api)


def test_a_desired_claim_is_looked_at_again_when_the_look_at_its_new_owner_fails_as_the_last_object_ends(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, collect: Callable[[], None]
) -> None:
    """An operator has made the new owner for the last object that is deleted."""
    blue = Instance(api.url)
    blue.reconcile([replaceable(), volume()])
    owner = api.get("ConfigMap", "default", "owner")
    run = blue.start([volume()])
    wait_for(api, lambda: is_going(api, "ConfigMap", "owner"))
    monkeypatch.setattr(releases, "AGAIN", 60)
    monkeypatch.setattr(backoff, "FIRST", 1.0)
    never(api, lambda: is_owned(api))
    made = api.put(controllers.owned(owner, "v1", "ConfigMap", "made"))

    def ends(_: Request) -> bool:
        api.release("ConfigMap", "default", "owner", HELD)
        return True

    api.fail(faults.unavailable(), method="GET", path="/configmaps/made$", when=ends)
    uid = own(api, made)
    run.result(10)
    assert not is_owned(api)
    collect()
    assert is_the_same(api, uid)


def test_a_change_waits_for_what_the_watch_says_of_a_claim_that_a_look_has_not_found(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An operator owns it at the moment in which the owner is deleted, and the collector is faster than the watch."""
    monkeypatch.setattr(watch, "IDLE_LIMIT", 0.5)
    blue = Instance(api.url)
    blue.reconcile([config_map("owner"), volume()])
    owner = api.get("ConfigMap", "default", "owner")
    uid, is_created_again, reads = own(api, owner), threading.Event(), list[Request]()

    def owns(_: Request) -> bool:
        own(api, owner)
        return False

    def is_of_second_look(request: Request) -> bool:
        if api.find("ConfigMap", "default", "owner") is None:
            reads.append(request)
        return len(reads) > 1

    api.fail(faults.half_open(2), path="/persistentvolumeclaims$", when=lambda request: "watch" in request.query)
    api.fail(faults.internal(), method="DELETE", path="/configmaps/owner$", when=owns)
    held = faults.held(end=is_created_again)
    api.fail(held, method="GET", path="/persistentvolumeclaims/volume$", when=is_of_second_look, times=1000)
    run = blue.start([volume()])
    wait_for(api, lambda: api.find("ConfigMap", "default", "owner") is None)
    wait_for(api, lambda: (api.find(*VOLUME) or {"metadata": {"uid": uid}})["metadata"]["uid"] != uid)
    is_created_again.set()
    run.result(60)
    assert api.find(*VOLUME)
