# SPDX-License-Identifier: Apache-2.0
"""Objects that stay outlive owners that go, though operators own them again until these no longer exist."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from k8s_cr_driver.engine import recreate, releases
from k8s_cr_driver.engine.replace import Replacement
from k8s_cr_driver.kube import backoff
from k8s_cr_driver.objects.dependencies import DEPENDS_ON
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.ownership.labels import INSTANCE_LABEL, KEEP, is_managed
from k8s_cr_driver.ownership.owners import Takers, release_from_owners
from tests.fake_api import FakeApi, controllers, faults
from tests.fake_api.recording import Request
from tests.instance import Instance, config_map, created_again, crontab, crontab_crd, deployment, wait_for
from tests.ownership.claims import (
    HELD,
    after_a_failed_change,
    assert_outlives,
    assert_released,
    held_crontab,
    is_going,
    is_owned,
    is_the_same,
    never,
    own,
    replaceable,
    volume,
)

pytestmark = pytest.mark.usefixtures("soon")
WHOSE = pytest.mark.parametrize("whose", ["desired", "kept"])
TAB = "stable.example.com/namespaces/default/CronTab/a"


def healed(blue: Instance, live: Object) -> dict[str, Any]:
    """How a heal creates the object again."""
    return {"prune": False, "replacement": Replacement([(f"{INSTANCE_LABEL}={blue.id}", [live])])}


def made_for(api: FakeApi, owner: Object, **metadata: Any) -> Object:
    """What an operator makes for an object of the instance."""
    made = controllers.owned(owner, "v1", "ConfigMap", "made")
    made["metadata"] |= metadata
    return api.put(made)


@WHOSE
@pytest.mark.parametrize("verb", ["change", "replacement"])
def test_a_claim_outlives_an_owner_the_answer_to_whose_deletion_is_lost(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, verb: str, whose: str
) -> None:
    """The run waits for its next try."""
    blue = Instance(api.url)
    blue.reconcile([replaceable(), volume(whose)])
    owner = api.get("ConfigMap", "default", "owner")
    uid = own(api, owner)

    def is_last_try(_: Request) -> bool:
        for name in ("FIRST", "LAST"):
            monkeypatch.setattr(backoff, name, 60.0)
        return True

    api.fail(faults.reset_after(), method="DELETE", path="/configmaps/owner$", when=is_last_try)
    others = [volume(whose)] if whose == "desired" else [config_map("b")]
    run = blue.start(others if verb == "change" else [{**replaceable(), "data": {"a": "2"}}, *others])
    wait_for(api, lambda: is_going(api, "ConfigMap", "owner"))
    assert_released(api, owner)
    api.release("ConfigMap", "default", "owner", HELD)
    assert is_the_same(api, uid)
    blue.stop.set()
    run.exception(10)


@WHOSE
def test_a_claim_outlives_an_owner_that_a_user_has_deleted_before_it_is_its_turn(api: FakeApi, whose: str) -> None:
    blue, user = Instance(api.url), config_map("user")
    user["metadata"] |= {"finalizers": HELD, "annotations": {DEPENDS_ON: TAB}}
    blue.reconcile([crontab_crd(), held_crontab(), volume(whose), user])
    tab = api.get("CronTab", "default", "a")
    uid = own(api, tab)
    api.delete("CronTab", "default", "a")
    run = blue.start([crontab_crd(), *([volume()] if whose == "desired" else [])])
    wait_for(api, lambda: is_going(api, "ConfigMap", "user"))
    wait_for(api, lambda: not is_owned(api))
    assert_outlives(api, uid, run, tab, ("CronTab", "a"), ("ConfigMap", "user"))


@WHOSE
@pytest.mark.parametrize("verb", ["heal", "replacement"])
def test_a_claim_of_what_an_operator_has_made_for_an_owner_that_is_created_again_outlives_both(
    api: FakeApi, verb: str, whose: str
) -> None:
    blue = Instance(api.url)
    blue.reconcile([replaceable(), volume(whose)])
    owner = api.get("ConfigMap", "default", "owner")
    made = made_for(api, owner)
    uid = own(api, made)
    if verb == "heal":
        run = blue.start([replaceable(), volume(whose)], **healed(blue, owner))
    else:
        run = blue.start([{**replaceable(), "data": {"a": "2"}}, volume(whose)])
    wait_for(api, lambda: is_going(api, "ConfigMap", "owner"))
    assert_outlives(api, uid, run, made, ("ConfigMap", "owner"))


@WHOSE
def test_a_claim_of_what_an_operator_has_made_for_an_owner_that_waits_outlives_both(api: FakeApi, whose: str) -> None:
    """The owner has no finalizer, so that it goes with its deletion."""
    blue, user = Instance(api.url), config_map("user")
    user["metadata"] |= {"finalizers": HELD, "annotations": {DEPENDS_ON: TAB}}
    blue.reconcile([crontab_crd(), crontab("a"), volume(whose), user])
    made = made_for(api, api.get("CronTab", "default", "a"))
    uid = own(api, made)
    run = blue.start([crontab_crd(), *([volume()] if whose == "desired" else [])])
    wait_for(api, lambda: is_going(api, "ConfigMap", "user"))
    wait_for(api, lambda: not is_owned(api))
    own(api, made)
    api.release("ConfigMap", "default", "user", HELD)
    run.result(10)
    assert is_the_same(api, uid)


@pytest.mark.parametrize("is_owned_before", [True, False])
def test_a_claim_outlives_a_desired_owner_that_others_have_deleted(api: FakeApi, is_owned_before: bool) -> None:
    """As a change that has failed, before a rollback whose set has the owner again."""
    blue = Instance(api.url)
    blue.reconcile([replaceable(), volume()])
    owner = api.get("ConfigMap", "default", "owner")
    uid = api.get("PersistentVolumeClaim", "default", "volume")["metadata"]["uid"]
    if is_owned_before:
        own(api, owner)
    api.delete("ConfigMap", "default", "owner")
    run = blue.start([replaceable(), volume()])
    if is_owned_before:
        wait_for(api, lambda: not is_owned(api))
    else:
        blue.wait_until_reported("owner", "Waiting")
    assert_outlives(api, uid, run, owner, ("ConfigMap", "owner"))
    assert api.get("ConfigMap", "default", "owner")["metadata"]["uid"] != owner["metadata"]["uid"]


@WHOSE
def test_a_claim_of_what_an_operator_has_made_for_a_desired_owner_that_others_have_deleted_outlives_both(
    api: FakeApi, whose: str
) -> None:
    """As a change that has failed, before a rollback whose set has the owner again."""
    blue = Instance(api.url)
    blue.reconcile([replaceable(), volume(whose)])
    made = made_for(api, api.get("ConfigMap", "default", "owner"))
    uid = own(api, made)
    api.delete("ConfigMap", "default", "owner")
    run = blue.start([replaceable(), volume(whose)])
    wait_for(api, lambda: not is_owned(api))
    assert_outlives(api, uid, run, made, ("ConfigMap", "owner"))


@WHOSE
def test_a_claim_of_what_an_operator_has_made_for_an_owner_that_a_failed_change_has_deleted_outlives_both(
    api: FakeApi, whose: str
) -> None:
    """The set is not ready yet, so that the deletions have not begun."""
    blue, web = Instance(api.url), deployment()
    web["metadata"]["namespace"] = "default"
    blue.reconcile([crontab_crd(), held_crontab(), volume(whose)])
    made = made_for(api, api.get("CronTab", "default", "a"))
    uid = own(api, made)
    api.delete("CronTab", "default", "a")
    run = blue.start([crontab_crd(), web, *([volume()] if whose == "desired" else [])])
    wait_for(api, lambda: api.find("Deployment", "default", "web") is not None)
    assert_released(api, made)
    api.release("CronTab", "default", "a", HELD)
    assert is_the_same(api, uid)
    blue.stop.set()
    run.exception(10)


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_kept_claim_that_an_operator_owns_only_once_it_is_released_outlives_its_owner(
    api: FakeApi, *, is_replaced: bool
) -> None:
    """No watch selects it any more. One that somebody has made in its place since is theirs."""
    blue = Instance(api.url)
    blue.reconcile([crontab_crd(), held_crontab(), volume("kept")])
    tab = api.get("CronTab", "default", "a")
    run = blue.start([])
    blue.wait_until_reported("volume", "left")
    wait_for(api, lambda: is_going(api, "CronTab", "a"))
    if is_replaced:
        api.delete("PersistentVolumeClaim", "default", "volume")
        api.put(volume())
    uid = own(api, tab)
    if is_replaced:
        never(api, lambda: not is_owned(api))
    else:
        assert_released(api, tab)
    api.release("CronTab", "default", "a", HELD)
    run.result(10)
    assert is_replaced or is_the_same(api, uid)


def test_a_kept_claim_that_somebody_deletes_is_not_waited_for(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([crontab_crd(), held_crontab(), volume("kept")])
    tab = api.get("CronTab", "default", "a")
    run = blue.start([])
    blue.wait_until_reported("volume", "left")
    wait_for(api, lambda: is_going(api, "CronTab", "a"))
    own(api, tab)
    wait_for(api, lambda: not is_owned(api))
    api.delete("PersistentVolumeClaim", "default", "volume")
    api.release("CronTab", "default", "a", HELD)
    run.result(10)


def test_a_claim_that_is_annotated_to_be_kept_while_its_owner_is_finalized_outlives_it(api: FakeApi) -> None:
    """No watch reports it once it is released: it has lost its label."""
    blue = Instance(api.url)
    blue.reconcile([crontab_crd(), held_crontab(), volume()])
    tab = api.get("CronTab", "default", "a")
    uid = own(api, tab)
    run = blue.start([crontab_crd()])
    wait_for(api, lambda: is_going(api, "CronTab", "a"))
    api.edit("PersistentVolumeClaim", "default", "volume", lambda live: live["metadata"].update(annotations={KEEP: "true"}))
    blue.wait_until_reported("volume", "left")
    assert_outlives(api, uid, run, tab, ("CronTab", "a"))


def test_a_claim_of_what_an_operator_has_made_for_an_owner_outlives_both_though_it_is_annotated_to_be_kept_late(
    api: FakeApi
) -> None:
    """It waits for its deletion, while its owner is finalized."""
    volume_key = "/namespaces/default/PersistentVolumeClaim/volume"
    blue, first = Instance(api.url), config_map("first")
    first["metadata"] |= {"finalizers": HELD, "annotations": {DEPENDS_ON: volume_key}}
    blue.reconcile([crontab_crd(), held_crontab(), volume(), first])
    made = made_for(api, api.get("CronTab", "default", "a"))
    uid = own(api, made)
    run = blue.start([crontab_crd()])
    wait_for(api, lambda: is_going(api, "CronTab", "a") and is_going(api, "ConfigMap", "first"))
    place = "PersistentVolumeClaim", "default", "volume"
    api.edit(*place, lambda live: live["metadata"].update(annotations={KEEP: "true"}))
    wait_for(api, lambda: not is_owned(api))
    api.release("ConfigMap", "default", "first", HELD)
    blue.wait_until_reported("volume", "left")
    assert_outlives(api, uid, run, made, ("CronTab", "a"))


@WHOSE
@pytest.mark.parametrize("who", ["the run", "a user"])
def test_a_claim_of_what_is_finalized_longer_than_the_owner_for_which_it_was_made_outlives_it(
    api: FakeApi, who: str, whose: str
) -> None:
    """The run waits for another object. Who has deleted the owner?"""
    blue, slow = Instance(api.url), config_map("slow")
    slow["metadata"]["finalizers"] = HELD
    blue.reconcile([crontab_crd(), crontab("a"), volume(whose), slow])
    made = made_for(api, api.get("CronTab", "default", "a"), finalizers=HELD)
    uid = own(api, made)
    if who == "a user":
        api.delete("CronTab", "default", "a")
    run = blue.start([crontab_crd(), *([volume()] if whose == "desired" else [])])
    for name in ("made", "slow"):
        wait_for(api, lambda name=name: is_going(api, "ConfigMap", name))
    wait_for(api, lambda: not is_owned(api))
    assert_outlives(api, uid, run, made, ("ConfigMap", "made"), ("ConfigMap", "slow"))


def test_a_kept_claim_that_a_replaced_object_owns_only_while_it_is_finalized_outlives_it(api: FakeApi) -> None:
    """It is not in the set."""
    blue = Instance(api.url)
    blue.reconcile([replaceable(), volume("kept")])
    owner = api.get("ConfigMap", "default", "owner")
    run = blue.start([{**replaceable(), "data": {"a": "2"}}])
    wait_for(api, lambda: is_going(api, "ConfigMap", "owner"))
    uid = api.get("PersistentVolumeClaim", "default", "volume")["metadata"]["uid"]
    assert_outlives(api, uid, run, owner, ("ConfigMap", "owner"))


@WHOSE
def test_a_claim_that_a_healed_object_owns_only_while_it_is_finalized_outlives_it(api: FakeApi, whose: str) -> None:
    blue = Instance(api.url)
    blue.reconcile([replaceable(), volume(whose)])
    owner = api.get("ConfigMap", "default", "owner")
    uid = api.get("PersistentVolumeClaim", "default", "volume")["metadata"]["uid"]
    run = blue.start([replaceable(), volume(whose)], **healed(blue, owner))
    wait_for(api, lambda: is_going(api, "ConfigMap", "owner"))
    assert_outlives(api, uid, run, owner, ("ConfigMap", "owner"))


def test_a_desired_claim_outlives_an_owner_that_a_failed_change_has_deleted(api: FakeApi) -> None:
    """The set is not ready yet, so that the deletions have not begun."""
    (blue, tab, uid), web = after_a_failed_change(api), deployment()
    web["metadata"]["namespace"] = "default"
    run = blue.start([crontab_crd(), web, volume()])
    wait_for(api, lambda: api.find("Deployment", "default", "web") is not None)
    assert_released(api, tab)
    api.release("CronTab", "default", "a", HELD)
    assert is_the_same(api, uid)
    blue.stop.set()
    run.exception(10)


def test_a_claim_outlives_an_owner_that_loses_its_label_while_it_is_finalized(api: FakeApi) -> None:
    """Its watch says the same then as if it were gone. The set is not ready yet."""
    (blue, tab, uid), web = after_a_failed_change(api), deployment()
    web["metadata"]["namespace"] = "default"
    run = blue.start([crontab_crd(), web, volume()])
    wait_for(api, lambda: api.find("Deployment", "default", "web") is not None)
    wait_for(api, lambda: not is_owned(api))
    api.edit("CronTab", "default", "a", lambda live: live["metadata"].update(labels={}))
    assert_released(api, tab)
    api.release("CronTab", "default", "a", HELD)
    assert is_the_same(api, uid)
    blue.stop.set()
    run.exception(10)


@pytest.mark.parametrize("verb", ["terminate", "heal", "replacement"])
def test_a_claim_that_is_owned_again_right_before_its_owner_is_gone_outlives_it_also_if_the_collector_is_late(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, collect: Callable[[], None], verb: str
) -> None:
    """The operator owns it and takes its finalizer off in one pause between two releases."""
    whose = "kept" if verb == "terminate" else "desired"
    blue = Instance(api.url)
    blue.reconcile([replaceable(), volume(whose)])
    owner = api.get("ConfigMap", "default", "owner")
    uid = own(api, owner)
    monkeypatch.setattr(releases, "AGAIN", 60)
    if verb == "terminate":
        run = blue.start([])
    elif verb == "heal":
        run = blue.start([replaceable(), volume()], **healed(blue, owner))
    else:
        run = blue.start([{**replaceable(), "data": {"a": "2"}}, volume()], prune=False)
    wait_for(api, lambda: is_going(api, "ConfigMap", "owner"))
    own(api, owner)
    api.release("ConfigMap", "default", "owner", HELD)
    run.result(10)
    assert not is_owned(api)
    collect()
    assert is_the_same(api, uid)


def test_a_claim_that_others_have_created_again_since_it_was_listed_outlives_an_owner(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, collect: Callable[[], None]
) -> None:
    """The watch has reported it before the run notes what the list says."""
    blue = Instance(api.url)
    blue.reconcile([replaceable(), volume()])
    other, owner = api.put(config_map("other")), api.get("ConfigMap", "default", "owner")
    own(api, other)
    is_listed, is_noted = threading.Event(), threading.Event()
    stays, owned = releases.Releases.stays, list[str]()

    def late(*about: Any) -> dict[str, Takers]:
        found = release_from_owners(*about)
        is_listed.set()
        assert is_noted.wait(10)
        return found

    def noted(found: releases.Releases, live: Object) -> None:
        stays(found, live)
        if len(owned) == 2 and live["metadata"]["resourceVersion"] == owned[1]:
            is_noted.set()

    monkeypatch.setattr(releases, "AGAIN", 60)
    monkeypatch.setattr(recreate, "release_from_owners", late)
    monkeypatch.setattr(releases.Releases, "stays", noted)
    run = blue.start([{**replaceable(), "data": {"a": "2"}}, volume()], prune=False)
    assert is_listed.wait(10)
    created_again(api, "PersistentVolumeClaim", "default", "volume")
    wait_for(api, lambda: is_managed(api.get("PersistentVolumeClaim", "default", "volume"), blue.id))
    for _ in range(2):
        wait_for(api, lambda: not is_owned(api))
        with api.cluster.writing():
            uid = own(api, owner)
            owned.append(api.get("PersistentVolumeClaim", "default", "volume")["metadata"]["resourceVersion"])
    assert is_noted.wait(10)
    wait_for(api, lambda: is_going(api, "ConfigMap", "owner"))
    api.release("ConfigMap", "default", "owner", HELD)
    run.result(10)
    collect()
    assert is_the_same(api, uid)
