# SPDX-License-Identifier: Apache-2.0
"""Objects that stay outlive owners that go, whoever set the reference, and however late the garbage collector is."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from k8s_cr_driver.engine import releases
from k8s_cr_driver.engine.releases import Releases
from k8s_cr_driver.engine.replace import Replacement
from k8s_cr_driver.errors import TransportError
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.discovery import discover
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.objects.dependencies import DEPENDS_ON
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.ownership.labels import INSTANCE_LABEL, KEEP
from k8s_cr_driver.ownership.owners import Owners
from tests.fake_api import FakeApi, controllers, faults
from tests.fake_api.recording import Request
from tests.instance import (
    Instance,
    config_map,
    controlled_by,
    crontab,
    crontab_crd,
    deployment,
    job,
    kept,
    obj,
    replaced,
    wait_for,
)
from tests.ownership.claims import HELD, assert_outlives, is_going, is_owned, volume

REPLACE = {"k8s-cr-driver/replace": "true"}


def own(api: FakeApi, name: str, *owners: str, is_controller: bool = True) -> str:
    """Makes the ConfigMap a dependent of the others; returns its uid."""
    references = [{**controlled_by(api.get("ConfigMap", "default", one)), "controller": is_controller} for one in owners]
    return depend(api, "ConfigMap", name, *references)


def depend(api: FakeApi, kind: str, name: str, *references: Object) -> str:
    made = api.edit(kind, "default", name, lambda live: live["metadata"].update(ownerReferences=list(references)))
    return str(made["metadata"]["uid"])


def survives(api: FakeApi, uid: str) -> bool:
    live = api.get("ConfigMap", "default", "a")["metadata"]
    return (live["uid"], live.get("ownerReferences") or []) == (uid, [])


@pytest.mark.parametrize("interrupted", [False, True], ids=["pruned", "pruned by an interrupted run"])
@pytest.mark.parametrize("is_controller", [True, False])
def test_a_desired_object_outlives_an_owner_that_is_pruned(
    api: FakeApi, collect: Callable[[], None], is_controller: bool, interrupted: bool
) -> None:
    blue = Instance(api.url)
    blue.reconcile([config_map("owner"), config_map("a")])
    uid = own(api, "a", "owner", is_controller=is_controller)
    if interrupted:
        api.delete("ConfigMap", "default", "owner")
    blue.reconcile([config_map("a")])
    collect()
    assert survives(api, uid)


def test_a_desired_object_that_becomes_a_dependent_while_its_owner_is_pruned_survives(
    api: FakeApi, collect: Callable[[], None]
) -> None:
    blue = Instance(api.url)
    blue.reconcile([config_map("owner"), config_map("a")])
    uids: list[str] = []

    def happens(request: Request) -> bool:
        uids.extend([own(api, "a", "owner")] if not uids else [])
        return False

    api.fail(faults.internal(), method="DELETE", path="configmaps/owner$", when=happens, times=10**6)
    blue.reconcile([config_map("a")])
    collect()
    assert survives(api, uids[0])


def owned_again(api: FakeApi) -> str:
    """As an operator does it in each reconciliation."""
    reference = controlled_by(api.get("CronTab", "default", "a"))
    return depend(api, "PersistentVolumeClaim", "volume", reference)


@pytest.mark.parametrize("whose", ["desired", "kept"])
def test_a_claim_that_is_owned_again_while_its_owner_waits_outlives_it(api: FakeApi, whose: str) -> None:
    blue, user, precious = Instance(api.url), config_map("user"), volume()
    precious = kept(precious) if whose == "kept" else precious
    user["metadata"] |= {"finalizers": HELD, "annotations": {DEPENDS_ON: "stable.example.com/namespaces/default/CronTab/a"}}
    blue.reconcile([crontab_crd(), crontab("a"), precious, user])
    uid = owned_again(api)
    run = blue.start([crontab_crd(), precious] if whose == "desired" else [crontab_crd()])
    wait_for(api, lambda: is_going(api, "ConfigMap", "user"))
    wait_for(api, lambda: not api.get("PersistentVolumeClaim", "default", "volume")["metadata"].get("ownerReferences"))
    owned_again(api)
    api.release("ConfigMap", "default", "user", HELD)
    run.result(10)
    assert api.get("PersistentVolumeClaim", "default", "volume")["metadata"]["uid"] == uid


def assert_outlives_deleted(api: FakeApi, uid: str, run: Future[Any], owner: tuple[str, str], reference: Object) -> None:
    """The claim, which `reference` owns again while the `owner` (kind, name) is finalized, is released, and stays the same."""
    wait_for(api, lambda: is_going(api, *owner))
    assert_outlives(api, uid, run, reference, owner)


@pytest.mark.parametrize("verb", ["change", "heal", "replacement"])
@pytest.mark.parametrize("whose", ["desired", "kept"])
@pytest.mark.usefixtures("soon")
def test_a_claim_that_is_owned_again_while_its_owner_is_finalized_outlives_it(api: FakeApi, verb: str, whose: str) -> None:
    blue, owner = Instance(api.url), {**config_map("owner", a="1"), "immutable": True}
    owner["metadata"]["annotations"] = REPLACE
    precious = kept(volume()) if whose == "kept" else volume()
    blue.reconcile([owner, precious])
    live = api.edit("ConfigMap", "default", "owner", lambda one: one["metadata"].update(finalizers=HELD))
    uid = depend(api, "PersistentVolumeClaim", "volume", controlled_by(live))
    if verb == "change":
        run = blue.start([precious] if whose == "desired" else [config_map("b")])
    elif verb == "heal":
        replacement = Replacement([(f"{INSTANCE_LABEL}={blue.id}", [live])])
        run = blue.start([owner, precious], prune=False, replacement=replacement)
    else:
        run = blue.start([{**owner, "data": {"a": "2"}}, precious])
    assert_outlives_deleted(api, uid, run, ("ConfigMap", "owner"), live)


@pytest.mark.parametrize("whose", ["desired", "kept"])
@pytest.mark.usefixtures("soon")
def test_a_claim_of_what_an_operator_has_made_for_an_owner_that_is_finalized_outlives_both(api: FakeApi, whose: str) -> None:
    blue, tab = Instance(api.url), crontab("a")
    tab["metadata"]["finalizers"] = HELD
    precious = kept(volume()) if whose == "kept" else volume()
    blue.reconcile([crontab_crd(), tab, precious])
    made = api.put(controllers.owned(api.get("CronTab", "default", "a"), "v1", "ConfigMap", "made"))
    uid = depend(api, "PersistentVolumeClaim", "volume", controlled_by(made))
    run = blue.start([crontab_crd(), precious] if whose == "desired" else [crontab_crd()])
    assert_outlives_deleted(api, uid, run, ("CronTab", "a"), made)


@pytest.mark.usefixtures("soon")
def test_a_kept_claim_outlives_an_owner_that_loses_its_label_as_it_is_deleted(api: FakeApi) -> None:
    blue, tab = Instance(api.url), crontab("a")
    tab["metadata"]["finalizers"] = HELD
    blue.reconcile([crontab_crd(), tab, kept(volume())])
    uid = owned_again(api)
    live = api.get("CronTab", "default", "a")

    def unlabel(one: Object) -> None:
        if "deletionTimestamp" in one["metadata"] and one["metadata"].get("labels"):
            api.edit("CronTab", "default", "a", lambda it: it["metadata"].update(labels={}))

    api.react("CronTab", unlabel)
    api.fail(faults.held(0.5), method="DELETE", path="/crontabs/a$")
    run = blue.start([crontab_crd()])
    assert_outlives_deleted(api, uid, run, ("CronTab", "a"), live)


@pytest.mark.usefixtures("soon")
def test_a_desired_claim_that_a_replaced_object_owns_only_while_it_is_finalized_outlives_it(api: FakeApi) -> None:
    blue, owner = Instance(api.url), {**config_map("owner", a="1"), "immutable": True}
    owner["metadata"]["annotations"] = REPLACE
    blue.reconcile([owner, volume()])
    live = api.edit("ConfigMap", "default", "owner", lambda one: one["metadata"].update(finalizers=HELD))
    run = blue.start([{**owner, "data": {"a": "2"}}, volume()])
    wait_for(api, lambda: is_going(api, "ConfigMap", "owner"))
    uid = depend(api, "PersistentVolumeClaim", "volume", controlled_by(live))
    wait_for(api, lambda: not is_owned(api))
    api.release("ConfigMap", "default", "owner", HELD)
    run.result(10)
    assert api.get("PersistentVolumeClaim", "default", "volume")["metadata"]["uid"] == uid


@pytest.mark.usefixtures("soon")
def test_a_desired_claim_that_a_replaced_object_owns_before_its_deletion_is_answered_outlives_it(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    blue, owner = Instance(api.url), {**config_map("owner", a="1"), "immutable": True}
    owner["metadata"] |= {"annotations": REPLACE, "finalizers": HELD}
    blue.reconcile([owner, volume()])
    stays, is_reported = Releases.stays, threading.Event()

    def reported(noted: Releases, live: Object) -> None:
        stays(noted, live)
        if live["metadata"].get("ownerReferences"):
            is_reported.set()

    def own_until_reported(live: Object) -> None:
        if "deletionTimestamp" in live["metadata"] and not is_reported.is_set():
            depend(api, "PersistentVolumeClaim", "volume", controlled_by(live))
            assert is_reported.wait(10)

    monkeypatch.setattr(Releases, "stays", reported)
    uid = api.get("PersistentVolumeClaim", "default", "volume")["metadata"]["uid"]
    api.react("ConfigMap", own_until_reported)
    run = blue.start([{**owner, "data": {"a": "2"}}, volume()])
    wait_for(api, lambda: is_reported.is_set() and not is_owned(api))
    api.release("ConfigMap", "default", "owner", HELD)
    run.result(10)
    assert api.get("PersistentVolumeClaim", "default", "volume")["metadata"]["uid"] == uid


def test_many_objects_of_an_owner_that_is_finalized_are_released_in_turn(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(releases, "AGAIN", 0.01)
    monkeypatch.setattr(releases, "READS_PER_SECOND", 20)
    blue, tab, parts = Instance(api.url), crontab("a"), [config_map(f"part-{number}") for number in range(20)]
    tab["metadata"]["finalizers"] = HELD
    blue.reconcile([crontab_crd(), tab, *parts])
    owner = controlled_by(api.get("CronTab", "default", "a"))
    for part in parts:
        depend(api, "ConfigMap", part["metadata"]["name"], owner)
    run = blue.start([crontab_crd(), *parts])
    wait_for(api, lambda: is_going(api, "CronTab", "a"))
    api.requests.clear()
    with api.cluster.store.changed:
        assert not api.cluster.store.changed.wait_for(lambda: len(api.requests.select("GET", "/configmaps/part-")) > 100, 2)
    api.release("CronTab", "default", "a", HELD)
    run.result(10)


def test_an_operator_that_owns_again_at_each_event_is_not_answered_without_pause(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(releases, "AGAIN", 0.5)
    blue, tab = Instance(api.url), crontab("a")
    tab["metadata"]["finalizers"] = HELD
    blue.reconcile([crontab_crd(), tab, volume()])
    owned_again(api)
    owned: list[Object] = []

    def reconcile(live: Object) -> None:
        owner = api.find("CronTab", "default", "a")
        if owner and "deletionTimestamp" in owner["metadata"] and not live["metadata"].get("ownerReferences"):
            owned.append(live)
            if len(owned) < 20:
                owned_again(api)

    api.react("PersistentVolumeClaim", reconcile)
    run = blue.start([crontab_crd(), volume()])
    wait_for(api, lambda: is_going(api, "CronTab", "a"))
    owned_again(api)
    with api.cluster.store.changed:
        assert not api.cluster.store.changed.wait_for(lambda: len(owned) > 3, 1)
    api.release("CronTab", "default", "a", HELD)
    run.result(10)
    assert owned


def test_a_claim_that_is_owned_again_while_a_heal_waits_outlives_its_owner(api: FakeApi) -> None:
    blue, first = Instance(api.url), crontab("b")
    first["metadata"] |= {"finalizers": HELD, "annotations": {DEPENDS_ON: "stable.example.com/namespaces/default/CronTab/a"}}
    desired = [crontab_crd(), crontab("a"), first, volume()]
    blue.reconcile(desired)
    uid = owned_again(api)
    lives = [api.get("CronTab", "default", name) for name in "ab"]
    run = blue.start(desired, prune=False, replacement=Replacement([(f"{INSTANCE_LABEL}={blue.id}", lives)]))
    wait_for(api, lambda: is_going(api, "CronTab", "b"))
    owned_again(api)
    api.release("CronTab", "default", "b", HELD)
    run.result(10)
    assert api.get("PersistentVolumeClaim", "default", "volume")["metadata"]["uid"] == uid


@pytest.mark.parametrize("whose", ["desired", "kept", "adopted"])
@pytest.mark.parametrize("between", ["of a user", "of the instance"])
def test_an_object_outlives_the_owner_of_its_owner(api: FakeApi, whose: str, between: str) -> None:
    blue, precious = Instance(api.url, adopt=True), config_map("a")
    if whose == "adopted":
        api.put(precious)
    precious = kept(precious) if whose == "kept" else precious
    if between == "of a user":
        api.put(config_map("between"))
    members = [precious, config_map("owner"), *([config_map("between")] if between != "of a user" else [])]
    blue.reconcile(members)
    own(api, "between", "owner")
    uid = own(api, "a", "between")
    blue.reconcile([precious] if whose == "desired" else [])
    assert survives(api, uid)


def test_a_kept_pod_outlives_the_deployment_whose_replica_set_has_adopted_it(api: FakeApi) -> None:
    controllers.run_workloads(api)
    pod = kept(obj("v1", "Pod", "a", "default", spec={"containers": [{"name": "c", "image": "c:1"}]}))
    blue, web = Instance(api.url), deployment()
    web["metadata"]["namespace"] = "default"
    blue.reconcile([web, pod])
    [replica_set] = api.objects("ReplicaSet", "default")
    reference = {**controlled_by(replica_set), "blockOwnerDeletion": True}
    uid = depend(api, "Pod", "a", reference)
    blue.terminate()
    assert [one["metadata"]["uid"] for one in api.objects("Pod", "default")] == [uid]


@pytest.mark.parametrize("other", ["of a user", "of the instance", "of a kind that is not served"])
def test_references_to_owners_that_stay_are_not_touched(api: FakeApi, other: str) -> None:
    blue, stays = Instance(api.url), config_map("stays")
    if other == "of a user":
        api.put(stays)
    desired = [config_map("a"), *([stays] if other == "of the instance" else [])]
    blue.reconcile([*desired, config_map("goes")])
    if other == "of a kind that is not served":
        owner = {"apiVersion": "example.com/v1", "kind": "Thing", "name": "stays", "uid": "0000"}
        depend(api, "ConfigMap", "a", owner)
    else:
        own(api, "a", "stays")
    before = api.get("ConfigMap", "default", "a")
    blue.reconcile(desired)
    assert api.get("ConfigMap", "default", "a")["metadata"]["ownerReferences"] == before["metadata"]["ownerReferences"]


def test_a_reference_to_an_owner_in_a_version_that_a_change_no_longer_serves_is_not_touched(api: FakeApi) -> None:
    blue, before, after = Instance(api.url), crontab_crd(), crontab_crd()
    [first] = before["spec"]["versions"]
    before["spec"]["versions"] = [first, {**first, "name": "v2", "storage": False}]
    after["spec"]["versions"] = [{**first, "served": False, "storage": False}, {**first, "name": "v2"}]
    blue.reconcile([before, config_map("a"), config_map("goes")])
    theirs = controlled_by(api.put(crontab("theirs"), manager="user"))
    depend(api, "ConfigMap", "a", theirs)
    blue.reconcile([after, config_map("a")])
    assert api.get("ConfigMap", "default", "a")["metadata"]["ownerReferences"] == [theirs]


@pytest.mark.parametrize("whose", ["desired", "kept"])
def test_an_object_outlives_an_owner_that_is_replaced(api: FakeApi, whose: str) -> None:
    controllers.run_workloads(api)
    blue, precious = Instance(api.url), config_map("a") if whose == "desired" else kept(config_map("a"))
    blue.reconcile([job("owner", "c:1"), precious])
    uid = depend(api, "ConfigMap", "a", controlled_by(api.get("Job", "default", "owner")))
    blue.reconcile([job("owner", "c:2"), *([precious] if whose == "desired" else [])])
    assert survives(api, uid)


def test_an_owner_that_may_not_be_read_counts_as_one_that_stays(api: FakeApi, caplog: pytest.LogCaptureFixture) -> None:
    blue = Instance(api.url)
    blue.reconcile([config_map("a")])
    secret = api.put(obj("v1", "Secret", "theirs", "default"))
    depend(api, "ConfigMap", "a", controlled_by(secret))
    api.knobs.denied.add(("get", "", "secrets", "*"))
    blue.reconcile([config_map("a")])
    assert api.get("ConfigMap", "default", "a")["metadata"]["ownerReferences"]
    assert "has an owner that the driver may not read" in caplog.text


@pytest.mark.parametrize("is_desired", [True, False])
@pytest.mark.parametrize("may_list_all", [True, False])
def test_an_object_outlives_an_owner_that_a_heal_creates_again(api: FakeApi, is_desired: bool, may_list_all: bool) -> None:
    blue = Instance(api.url)
    blue.reconcile([config_map("owner"), config_map("a")])
    uid = own(api, "a", "owner")
    if not may_list_all:
        api.knobs.denied |= {("list", "", "configmaps", ""), ("watch", "", "configmaps", "")}
    desired = [config_map("owner"), *([config_map("a")] if is_desired else [])]
    selector = f"{INSTANCE_LABEL}={blue.id}"
    replacement = Replacement([(selector, [api.get("ConfigMap", "default", "owner")])])
    blue.reconcile(desired, prune=False, replacement=replacement)
    assert survives(api, uid)


@pytest.mark.parametrize("abandon", [True, False])
def test_an_owner_that_cannot_be_read_at_first_is_read_again(api: FakeApi, abandon: bool) -> None:
    blue, precious = Instance(api.url), kept(config_map("a"))
    api.put(config_map("between"))
    blue.reconcile([precious, config_map("owner")])
    own(api, "between", "owner")
    uid = own(api, "a", "between")
    api.fail(faults.unavailable(), method="GET", path="configmaps/between$", times=2)
    blue.abandon = abandon
    blue.terminate()
    assert api.faults_pending == 0
    assert survives(api, uid)


def test_an_owner_that_is_never_readable_keeps_no_object_from_being_abandoned(
    api: FakeApi, caplog: pytest.LogCaptureFixture
) -> None:
    blue = Instance(api.url, seconds=3)
    theirs = api.put(obj("v1", "Secret", "theirs", "default"))
    blue.reconcile([kept(config_map("a")), config_map("b")])
    depend(api, "ConfigMap", "a", controlled_by(theirs))
    api.fail(faults.internal(), method="GET", path="secrets/theirs$", times=10**6)
    blue.abandon = True
    blue.terminate()
    assert api.names("ConfigMap", "default") == ["a"]
    assert "the owners of ConfigMap default/a are abandoned" in caplog.text


def test_owners_in_a_cycle_stay(api: FakeApi) -> None:
    blue = Instance(api.url)
    api.put(config_map("one"))
    api.put(config_map("two"))
    blue.reconcile([config_map("a")])
    own(api, "one", "two")
    own(api, "two", "one")
    own(api, "a", "one")
    blue.reconcile([config_map("a")])
    assert api.get("ConfigMap", "default", "a")["metadata"]["ownerReferences"]


def test_an_object_that_was_left_to_an_owner_is_deleted_when_the_owner_turns_out_to_stay(api: FakeApi) -> None:
    """The CRD is released: others have objects of its kind."""
    blue = Instance(api.url)
    blue.reconcile([crontab_crd(), config_map("a")])
    crd = api.get("CustomResourceDefinition", None, "crontabs.stable.example.com")
    api.edit("ConfigMap", "default", "a", lambda live: live["metadata"].update(ownerReferences=[controlled_by(crd)]))
    api.put(crontab("theirs"))
    blue.terminate()
    assert api.find("ConfigMap", "default", "a") is None
    assert api.names("CronTab") == ["theirs"]


@pytest.mark.parametrize("whose", ["kept", "adopted"])
def test_what_a_change_has_released_outlives_its_owner_in_a_later_operation(api: FakeApi, whose: str) -> None:
    """The terminate does not know it any more."""
    blue = Instance(api.url, adopt=True)
    if whose == "adopted":
        api.put(config_map("a"), manager="user")
    blue.reconcile([config_map("owner"), kept(config_map("a")) if whose == "kept" else config_map("a")])
    uid = own(api, "a", "owner")
    blue.reconcile([config_map("owner")])
    blue.terminate()
    assert survives(api, uid)


@pytest.mark.parametrize("whose", ["kept", "adopted"])
def test_what_a_change_has_released_outlives_the_owner_of_its_owner_in_a_later_operation(api: FakeApi, whose: str) -> None:
    """An operator has made the one between for an object of the instance."""
    blue = Instance(api.url, adopt=True)
    if whose == "adopted":
        api.put(config_map("a"), manager="user")
    blue.reconcile([config_map("owner"), kept(config_map("a")) if whose == "kept" else config_map("a")])
    api.put(controllers.owned(api.get("ConfigMap", "default", "owner"), "v1", "ConfigMap", "made"))
    uid = own(api, "a", "made")
    blue.reconcile([config_map("owner")])
    blue.terminate()
    assert survives(api, uid)


@pytest.mark.parametrize("whose", ["kept", "plain", "adopted", "cleared"])
def test_an_object_outlives_one_that_a_run_without_prune_replaces(api: FakeApi, whose: str) -> None:
    """Such a run watches the kinds of its set alone. Cleared: somebody has emptied `managedFields`."""
    controllers.run_workloads(api)
    blue = Instance(api.url, adopt=True)
    if whose == "adopted":
        api.put(config_map("a"), manager="user")
    blue.reconcile([job("j", "i:1", **REPLACE), kept(config_map("a")) if whose == "kept" else config_map("a")])
    uid = depend(api, "ConfigMap", "a", controlled_by(api.get("Job", "default", "j")))
    if whose == "cleared":
        api.edit("ConfigMap", "default", "a", lambda live: live["metadata"].update(managedFields=[{}]))
    blue.reconcile([job("j", "i:2", **REPLACE)], prune=False)
    assert survives(api, uid)


@pytest.mark.parametrize("verb", ["change", "terminate"])
def test_a_namespaced_owner_of_an_object_of_the_cluster_is_nobody(api: FakeApi, verb: str) -> None:
    """It was read at a path that does not exist, until the deadline."""
    role = obj("rbac.authorization.k8s.io/v1", "ClusterRole", "role", rules=[])
    blue = Instance(api.url)
    blue.reconcile([kept(role), config_map("b")])
    reference = controlled_by(api.put(config_map("owner"), manager="user"))
    api.edit("ClusterRole", None, "role", lambda live: live["metadata"].update(ownerReferences=[reference]))
    blue.reconcile([kept(role)] if verb == "change" else [])
    assert api.find("ClusterRole", None, "role") is not None


def test_an_object_without_label_outlives_an_owner_that_a_heal_creates_again(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([config_map("owner"), config_map("a")])
    uid = own(api, "a", "owner")
    replaced(api, "ConfigMap", "default", "a")
    replacement = Replacement([(f"{INSTANCE_LABEL}={blue.id}", [api.get("ConfigMap", "default", "owner")])])
    blue.reconcile([config_map("owner")], prune=False, replacement=replacement)
    assert survives(api, uid)


def test_what_is_annotated_to_be_kept_after_the_deletions_have_begun_outlives_its_owner(
    api: FakeApi, collect: Callable[[], None]
) -> None:
    """The owner waits for another object, which a finalizer holds."""
    blue = Instance(api.url)
    first = config_map("first")
    first["metadata"]["finalizers"] = ["example.com/hold"]
    first["metadata"]["annotations"] = {DEPENDS_ON: "/namespaces/default/ConfigMap/owner"}
    blue.reconcile([config_map("owner"), first, config_map("a")])
    uid = own(api, "a", "owner")
    run = blue.start([])
    wait_for(api, lambda: "deletionTimestamp" in api.get("ConfigMap", "default", "first")["metadata"])
    api.edit("ConfigMap", "default", "a", lambda live: live["metadata"].update(annotations={KEEP: "true"}))
    blue.wait_until_reported("a", "left")
    api.release("ConfigMap", "default", "first")
    run.result(10)
    collect()
    assert survives(api, uid)


def test_an_object_of_the_cluster_that_a_namespaced_one_owns_is_deleted(api: FakeApi, collect: Callable[[], None]) -> None:
    """The garbage collector finds no such owner, and never deletes the object."""
    blue = Instance(api.url)
    blue.reconcile([config_map("owner"), obj("rbac.authorization.k8s.io/v1", "ClusterRole", "a", rules=[])])
    owner = controlled_by(api.get("ConfigMap", "default", "owner"))
    api.edit("ClusterRole", None, "a", lambda live: live["metadata"].update(ownerReferences=[owner]))
    blue.terminate()
    assert not api.find("ClusterRole", None, "a")


def test_no_owner_is_read_after_the_end_of_the_operation(api: FakeApi) -> None:
    """An object of 1.5 MiB may name 10,000 that nobody has created."""
    api.put(config_map("a"))
    owners = [{"apiVersion": "v1", "kind": "ConfigMap", "name": f"none-{one}", "uid": str(one)} for one in range(9)]
    depend(api, "ConfigMap", "a", *owners)

    def reads() -> int:
        return len(api.requests.select("GET", "/configmaps/none-"))

    with Connection(Endpoint(api.url), is_stopped=lambda: reads() >= 3) as connection:
        found = Owners(Client(connection, discover(connection)), {}, ())
        with pytest.raises(TransportError, match="ConfigMap default/a: not all of its owners are read: the operation"):
            found.going(api.get("ConfigMap", "default", "a"))
    assert reads() == 3
