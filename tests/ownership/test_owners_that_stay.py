# SPDX-License-Identifier: Apache-2.0
"""Owners that turn out to stay, or to go, when their deletion was asked for, and what stays under them."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from k8s_cr_driver.engine import releases
from k8s_cr_driver.engine.replace import Replacement
from k8s_cr_driver.kube import backoff
from k8s_cr_driver.objects.dependencies import DEPENDS_ON
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.ownership.labels import INSTANCE_LABEL, KEEP
from tests.fake_api import FakeApi, controllers, faults
from tests.fake_api.recording import Request
from tests.instance import BLUE, GREEN, Instance, config_map, controlled_by, crontab, crontab_crd, deployment, obj, wait_for
from tests.ownership.claims import (
    HELD,
    after_a_failed_change,
    assert_outlives,
    is_going,
    is_owned,
    is_the_same,
    never,
    own,
    replaceable,
    volume,
)

pytestmark = pytest.mark.usefixtures("soon")
CRD_NAME = "crontabs.stable.example.com"


def depend(api: FakeApi, kind: str, name: str, *owners: Object) -> Object:
    references = [{**controlled_by(owner), "controller": False} for owner in owners]
    return api.edit(kind, "default", name, lambda live: live["metadata"].update(ownerReferences=references))


@pytest.mark.parametrize("between", ["", "of a user"])
def test_a_claim_outlives_a_deleted_owner_whose_own_owner_turns_out_to_stay(api: FakeApi, between: str) -> None:
    """The CRD is released: others have objects of its kind. The owner of the claim is deleted nevertheless."""
    blue, owner = Instance(api.url), config_map("owner")
    owner["metadata"]["finalizers"] = HELD
    blue.reconcile([crontab_crd(), owner, volume("kept")])
    above = api.get("CustomResourceDefinition", None, CRD_NAME)
    if between:
        api.put(config_map("between"))
        above = depend(api, "ConfigMap", "between", above)
    live = depend(api, "ConfigMap", "owner", above)
    api.put(crontab("theirs"))
    uid = own(api, live)
    run = blue.start([])
    wait_for(api, lambda: is_going(api, "ConfigMap", "owner"))
    blue.wait_until_reported(CRD_NAME, "left")
    assert_outlives(api, uid, run, live, ("ConfigMap", "owner"))


def test_a_claim_of_what_an_operator_has_made_for_a_deleted_owner_whose_own_owner_turns_out_to_stay_outlives_it(
    api: FakeApi
) -> None:
    blue, owner = Instance(api.url), config_map("owner")
    owner["metadata"]["finalizers"] = HELD
    blue.reconcile([crontab_crd(), owner, volume("kept")])
    live = depend(api, "ConfigMap", "owner", api.get("CustomResourceDefinition", None, CRD_NAME))
    made = api.put(controllers.owned(live, "v1", "ConfigMap", "made"))
    api.put(crontab("theirs"))
    uid = own(api, made)
    run = blue.start([])
    wait_for(api, lambda: is_going(api, "ConfigMap", "owner"))
    blue.wait_until_reported(CRD_NAME, "left")
    assert_outlives(api, uid, run, made, ("ConfigMap", "owner"))


@pytest.mark.parametrize("whose", ["ours", "cleared"])
def test_an_object_that_others_take_over_while_it_waits_for_its_deletion_stays(api: FakeApi, whose: str) -> None:
    """Cleared: somebody has emptied its `managedFields`, so that it is a member by its label and the inventory alone."""
    blue, first = Instance(api.url), config_map("first")
    first["metadata"] |= {"finalizers": HELD, "annotations": {DEPENDS_ON: "/namespaces/default/ConfigMap/a"}}
    blue.reconcile([config_map("a"), first])
    if whose == "cleared":
        api.edit("ConfigMap", "default", "a", lambda live: live["metadata"].update(managedFields=[{}]))
    uid = api.get("ConfigMap", "default", "a")["metadata"]["uid"]
    run = blue.start([])
    wait_for(api, lambda: is_going(api, "ConfigMap", "first"))
    taken = {"labels": {INSTANCE_LABEL: GREEN}, "managedFields": [{}]}
    api.edit("ConfigMap", "default", "a", lambda live: live["metadata"].update(taken))
    blue.wait_until_reported("a", "deleted")
    api.release("ConfigMap", "default", "first", HELD)
    run.result(10)
    assert api.get("ConfigMap", "default", "a")["metadata"]["uid"] == uid


def test_what_is_left_to_the_collector_is_deleted_though_others_have_taken_its_owner_over(api: FakeApi) -> None:
    blue, first = Instance(api.url), config_map("first")
    first["metadata"] |= {"finalizers": HELD, "annotations": {DEPENDS_ON: "/namespaces/default/ConfigMap/a"}}
    blue.reconcile([config_map("a"), config_map("owned"), first])
    depended = controlled_by(api.get("ConfigMap", "default", "a"))
    api.edit("ConfigMap", "default", "owned", lambda live: live["metadata"].update(ownerReferences=[depended]))
    run = blue.start([])
    wait_for(api, lambda: is_going(api, "ConfigMap", "first"))
    taken = {"labels": {INSTANCE_LABEL: GREEN}, "managedFields": [{}]}
    api.edit("ConfigMap", "default", "a", lambda live: live["metadata"].update(taken))
    blue.wait_until_reported("a", "deleted")
    api.release("ConfigMap", "default", "first", HELD)
    run.result(15)
    assert api.find("ConfigMap", "default", "owned") is None


def test_a_claim_outlives_an_owner_of_a_failed_change_that_is_gone_before_the_deletions_begin(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, collect: Callable[[], None]
) -> None:
    """The operator owns it and takes its finalizer off in one pause between two releases; the set is not ready yet."""
    (blue, tab, uid), web = after_a_failed_change(api), deployment()
    web["metadata"]["namespace"] = "default"
    monkeypatch.setattr(releases, "AGAIN", 60)
    run = blue.start([crontab_crd(), web, volume()])
    wait_for(api, lambda: api.find("Deployment", "default", "web") is not None)
    wait_for(api, lambda: not is_owned(api))
    own(api, tab)
    api.release("CronTab", "default", "a", HELD)
    try:
        wait_for(api, lambda: not is_owned(api))
        collect()
        assert is_the_same(api, uid)
    finally:
        blue.stop.set()
        run.exception(10)


def test_a_kept_claim_that_is_owned_again_right_before_its_owner_is_gone_is_not_abandoned_at_the_first_error(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, collect: Callable[[], None]
) -> None:
    blue = Instance(api.url)
    blue.reconcile([replaceable(), volume("kept")])
    owner = api.get("ConfigMap", "default", "owner")
    uid = own(api, owner)
    monkeypatch.setattr(releases, "AGAIN", 60)
    blue.abandon = True
    run = blue.start([])
    wait_for(api, lambda: is_going(api, "ConfigMap", "owner"))
    own(api, owner)
    api.fail(faults.unavailable(), method="GET", path="/persistentvolumeclaims/volume$")
    api.release("ConfigMap", "default", "owner", HELD)
    run.result(10)
    assert not is_owned(api)
    collect()
    assert is_the_same(api, uid)


def test_an_owner_with_two_takers_of_which_one_stays_is_not_taken_for_one_that_goes(api: FakeApi) -> None:
    """The CRD is released, and with it stays what operators have made for both."""
    blue, slow, first = Instance(api.url), config_map("slow"), config_map("first")
    slow["metadata"]["finalizers"] = HELD
    first["metadata"] |= {"finalizers": HELD, "annotations": {DEPENDS_ON: "/namespaces/default/ConfigMap/slow"}}
    blue.reconcile([crontab_crd(), first, slow, volume("kept")])
    api.put(config_map("made"))
    takers = api.get("CustomResourceDefinition", None, CRD_NAME), api.get("ConfigMap", "default", "slow")
    made = depend(api, "ConfigMap", "made", *takers)
    api.put(crontab("theirs"))
    own(api, made)
    run = blue.start([])
    blue.wait_until_reported(CRD_NAME, "left")
    own(api, made)
    api.release("ConfigMap", "default", "first", HELD)
    wait_for(api, lambda: is_going(api, "ConfigMap", "slow"))
    never(api, lambda: not is_owned(api))
    api.release("ConfigMap", "default", "slow", HELD)
    run.result(10)
    assert is_owned(api)


@pytest.mark.parametrize("verb", ["change", "replacement"])
def test_the_error_says_which_object_is_not_released(
    api: FakeApi, verb: str, caplog: pytest.LogCaptureFixture
) -> None:
    blue = Instance(api.url)
    blue.reconcile([replaceable(), volume()])
    owner = api.get("ConfigMap", "default", "owner")
    own(api, owner)
    if verb == "change":
        run = blue.start([volume()])
    else:
        run = blue.start([{**replaceable(), "data": {"a": "2"}}, volume()], prune=False)
    wait_for(api, lambda: is_going(api, "ConfigMap", "owner") and not is_owned(api))
    api.fail(faults.webhook_down(), method="GET", path="/persistentvolumeclaims/volume$", times=10**6)
    api.release("ConfigMap", "default", "owner", HELD)
    wait_for(api, lambda: "volume is not released from its owner yet" in caplog.text)
    blue.end(2)  # it also sees that the owner is gone
    error = str(run.exception(10))
    assert re.search(r"not released after \d+ s", error)
    assert "PersistentVolumeClaim default/volume" in error and "failed calling webhook" in error


@pytest.mark.parametrize("managed", [True, False])
def test_a_kept_copy_of_others_is_not_released_from_its_owner(api: FakeApi, managed: bool) -> None:
    blue = Instance(api.url)
    blue.reconcile([replaceable(), config_map("b")])
    owner = api.get("ConfigMap", "default", "owner")
    copy = config_map("copy")
    copy["metadata"] |= {"labels": {INSTANCE_LABEL: BLUE}, "annotations": {KEEP: "true"}}
    copy["metadata"]["ownerReferences"] = [controlled_by(owner)]
    api.put(copy, manager="user")
    run = blue.start([{**replaceable(), "data": {"a": "2"}}, config_map("b")], prune=managed)
    wait_for(api, lambda: is_going(api, "ConfigMap", "owner"))
    try:
        never(api, lambda: not api.get("ConfigMap", "default", "copy")["metadata"].get("ownerReferences"))
    finally:
        api.release("ConfigMap", "default", "owner", HELD)
        run.result(10)


def test_a_claim_outlives_an_owner_that_goes_though_it_was_changed_again(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its deletion has begun, and its answer is lost. A policy does not call the change immutable any more."""
    blue = Instance(api.url)
    owner = replaceable()
    del owner["immutable"]
    blue.reconcile([owner, volume()])
    live = api.get("ConfigMap", "default", "owner")
    uid = own(api, live)

    def is_refused(_: Request) -> bool:
        found = api.find("ConfigMap", "default", "owner")
        return found is not None and "deletionTimestamp" not in found["metadata"]

    refusal = faults.denied("data: field is immutable", 422, "Invalid")
    api.fail(refusal, method="PATCH", path="/configmaps/owner", times=10**6, when=is_refused)
    api.fail(faults.reset_after(), method="DELETE", path="/configmaps/owner$")
    run = blue.start([{**owner, "data": {"a": "2"}}, volume()], prune=False)
    wait_for(api, lambda: is_going(api, "ConfigMap", "owner"))
    wait_for(api, lambda: api.get("ConfigMap", "default", "owner")["data"] == {"a": "2"})
    blue.wait_until_reported("owner", "Waiting")
    assert_outlives(api, uid, run, live, ("ConfigMap", "owner"))


def test_what_is_released_from_an_owner_that_no_longer_exists_is_not_read_again_and_again(api: FakeApi) -> None:
    blue, slow = Instance(api.url), config_map("slow")
    slow["metadata"]["finalizers"] = HELD
    blue.reconcile([volume(), slow])
    api.put(config_map("gone"))
    uid = own(api, api.get("ConfigMap", "default", "gone"))
    later: list[Callable[[], None]] = []
    api.cluster.later = later.append
    api.delete("ConfigMap", "default", "gone")
    run = blue.start([volume()])
    wait_for(api, lambda: is_going(api, "ConfigMap", "slow"))
    api.requests.clear()
    never(api, lambda: len(api.requests.select("GET", "/persistentvolumeclaims/volume")) > 3)
    api.release("ConfigMap", "default", "slow", HELD)
    run.result(10)
    assert is_the_same(api, uid)


@pytest.mark.parametrize("how", ["to another controller", "to nobody"])
def test_a_pod_that_its_controller_has_lost_before_its_deletion_is_tried_again_stays(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """A user has changed its labels, to look into it, or it is another workload's now. The first deletion has failed."""
    owner, other = api.put(config_map("owner")), api.put(config_map("other"))
    made = obj("v1", "Pod", "chosen", "default", spec={"containers": [{"name": "c", "image": "i"}]})
    made["metadata"] |= {"labels": {"app": "web"}, "ownerReferences": [controlled_by(owner)]}
    chosen = api.put(made)
    references = [controlled_by(other)] if how == "to another controller" else []
    taken = {"labels": {"app": "other"}, "ownerReferences": references}

    def lost(_: Request) -> bool:
        api.edit("Pod", "default", "chosen", lambda live: live["metadata"].update(taken))
        return True

    monkeypatch.setattr(backoff, "FIRST", 1.0)
    api.fail(faults.unavailable(), method="DELETE", path="pods/chosen$", when=lost)
    Instance(api.url).reconcile([config_map("a")], replacement=Replacement([("app=web", [chosen])]))
    assert api.names("Pod") == ["chosen"]


def test_a_kept_claim_stays_with_an_owner_that_others_have_taken_over(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first deletion has failed, so that it stays."""
    blue = Instance(api.url)
    blue.reconcile([config_map("owner"), volume("kept")])
    owner = api.get("ConfigMap", "default", "owner")
    own(api, owner)
    taken = {"labels": {INSTANCE_LABEL: GREEN}, "managedFields": [{}]}

    def taken_over(_: Request) -> bool:
        own(api, owner)
        api.edit("ConfigMap", "default", "owner", lambda live: live["metadata"].update(taken))
        return True

    monkeypatch.setattr(backoff, "FIRST", 2.0)
    monkeypatch.setattr(releases, "AGAIN", 60)
    api.fail(faults.unavailable(), method="DELETE", path="/configmaps/owner$", when=taken_over)
    blue.reconcile([])
    assert api.find("ConfigMap", "default", "owner") is not None
    assert is_owned(api)


def test_what_is_released_from_what_an_operator_has_made_is_not_read_again_and_again_once_that_is_gone(
    api: FakeApi
) -> None:
    """The run waits for another object."""
    blue, slow = Instance(api.url), config_map("slow")
    slow["metadata"]["finalizers"] = HELD
    blue.reconcile([crontab_crd(), crontab("a"), volume(), slow])
    made = api.put(controllers.owned(api.get("CronTab", "default", "a"), "v1", "ConfigMap", "made"))
    uid = own(api, made)
    run = blue.start([crontab_crd(), volume()])
    wait_for(api, lambda: api.find("ConfigMap", "default", "made") is None)
    api.requests.clear()
    never(api, lambda: len(api.requests.select("GET", "/persistentvolumeclaims/volume")) > 3)
    api.release("ConfigMap", "default", "slow", HELD)
    run.result(10)
    assert is_the_same(api, uid)
