# SPDX-License-Identifier: Apache-2.0
"""Namespaces and CRDs that objects of the instance own: what they hold does not go with such an owner."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from k8s_cr_driver.kube import watch
from tests.fake_api import FakeApi, controllers, faults
from tests.instance import Instance, config_map, controlled_by, crontab, crontab_crd, deployment, kept, obj, wait_for
from tests.ownership.claims import HELD
from tests.ownership.holders import CRD, NAMESPACE, ROLE, assert_released_again, inner, own_by, own_by_role, uid_of_volume


@pytest.mark.parametrize("whose", ["kept", "a guest's", "desired"])
def test_what_stays_in_a_namespace_outlives_the_owner_of_the_namespace(api: FakeApi, whose: str) -> None:
    blue, inside = Instance(api.url), inner(whose)
    blue.reconcile([ROLE, obj("v1", "Namespace", "inner"), *([] if whose == "a guest's" else [inside])])
    if whose == "a guest's":
        api.put(inside, manager="user")
    uid = uid_of_volume(api)
    own_by_role(api, NAMESPACE)
    blue.reconcile([inside] if whose == "desired" else [])
    assert api.find("ClusterRole", None, "owner") is None
    assert uid_of_volume(api) == uid


@pytest.mark.parametrize("whose", ["kept", "a guest's"])
def test_what_stays_of_a_kind_outlives_the_owner_of_its_crd(api: FakeApi, whose: str) -> None:
    blue, tab = Instance(api.url), crontab("a")
    blue.reconcile([ROLE, crontab_crd(), *([kept(tab)] if whose == "kept" else [])])
    if whose == "a guest's":
        api.put(tab, manager="user")
    uid = api.get("CronTab", "default", "a")["metadata"]["uid"]
    own_by_role(api, CRD)
    blue.terminate()
    assert api.find("ClusterRole", None, "owner") is None
    assert api.get("CronTab", "default", "a")["metadata"]["uid"] == uid


@pytest.mark.usefixtures("soon")
def test_a_kept_object_in_a_namespace_that_is_owned_again_while_its_owner_is_finalized_outlives_it(api: FakeApi) -> None:
    blue, inside = Instance(api.url), inner("kept")
    blue.reconcile([{**ROLE, "metadata": {"name": "owner", "finalizers": HELD}}, obj("v1", "Namespace", "inner"), inside])
    uid = uid_of_volume(api)
    run = blue.start([])
    wait_for(api, lambda: "deletionTimestamp" in api.get("ClusterRole", None, "owner")["metadata"])
    assert_released_again(api, api.get("ClusterRole", None, "owner"))
    api.release("ClusterRole", None, "owner", HELD)
    run.result(10)
    assert uid_of_volume(api) == uid


def test_a_namespace_that_an_object_of_the_instance_owns_is_deleted(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([ROLE, obj("v1", "Namespace", "inner"), inner("")])
    own_by_role(api, NAMESPACE)
    blue.terminate()
    assert api.find(*NAMESPACE) is None


DENIED = faults.denied("a Namespace of a tenant keeps its owner")


@pytest.mark.parametrize("fault", [DENIED, faults.internal()])
def test_a_namespace_that_cannot_be_released_keeps_none_from_being_abandoned(api: FakeApi, fault: faults.Answer) -> None:
    blue = Instance(api.url)
    blue.reconcile([ROLE, obj("v1", "Namespace", "inner"), config_map("b")])
    own_by_role(api, NAMESPACE)
    api.fail(fault, method="PATCH", path="/namespaces/inner$", times=10**6)
    blue.abandon, blue.seconds = True, 12
    blue.terminate()
    assert api.find("ConfigMap", "default", "b") is None
    assert api.find("ClusterRole", None, "owner") is None
    assert api.find(*NAMESPACE) is None


@pytest.mark.usefixtures("soon")
def test_a_namespace_that_is_gone_is_not_released_any_more(api: FakeApi) -> None:
    """Another owner of it cannot be read any more, as when its API has gone, too."""
    blue = Instance(api.url)
    blue.reconcile([{**ROLE, "metadata": {"name": "owner", "finalizers": HELD}}, obj("v1", "Namespace", "inner")])
    theirs = api.put({**ROLE, "metadata": {"name": "theirs"}}, manager="user")
    own_by(api, NAMESPACE, theirs, api.get("ClusterRole", None, "owner"))
    run = blue.start([])
    blue.wait_until_reported("inner", "deleted")
    api.fail(faults.unavailable(), method="GET", path="/clusterroles/theirs$", times=10**6)
    wait_for(api, lambda: "deletionTimestamp" in api.get("ClusterRole", None, "owner")["metadata"])
    api.release("ClusterRole", None, "owner", HELD)
    run.result(10)


@pytest.mark.parametrize("whose", ["kept", "a guest's"])
def test_what_stays_outlives_an_owner_of_which_the_watch_is_late(
    api: FakeApi, whose: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kept claim has the owner, or the Namespace of a claim of others."""
    monkeypatch.setattr(watch, "IDLE_LIMIT", 0.5)
    blue, web, inside = Instance(api.url), deployment(), inner(whose)
    web["metadata"]["namespace"] = "default"
    blue.reconcile([ROLE, obj("v1", "Namespace", "inner"), *([inside] if whose == "kept" else [])])
    if whose == "a guest's":
        api.put(inside, manager="user")
    place = ("PersistentVolumeClaim", "inner", "volume") if whose == "kept" else NAMESPACE
    uid = uid_of_volume(api)
    plural = "persistentvolumeclaims" if whose == "kept" else "namespaces"
    api.fail(faults.half_open(after=2), path=f"/{plural}$")  # one object, and the end of the list
    run = blue.start([web])
    wait_for(api, lambda: api.find("Deployment", "default", "web") is not None)
    reference = controlled_by(api.get("ClusterRole", None, "owner"))
    api.edit(*place, lambda live: live["metadata"].update(ownerReferences=[reference]))
    controllers.run_workloads(api)
    api.edit("Deployment", "default", "web", lambda live: live["metadata"].update(annotations={"a": "b"}))
    run.result(10)
    assert api.find("ClusterRole", None, "owner") is None
    assert uid_of_volume(api) == uid


@pytest.mark.parametrize("place", [NAMESPACE, CRD])
def test_a_released_object_that_is_owned_again_keeps_what_it_is_in(
    api: FakeApi, collect: Callable[[], None], place: tuple[str, None, str]
) -> None:
    """Its operator lets it go as the owner ends, before the garbage collector comes."""
    blue, tab = Instance(api.url), kept(crontab("a"))
    owner, inside = (ROLE, inner("kept")) if place == NAMESPACE else (config_map("owner"), tab)
    claimed, tabbed = ("PersistentVolumeClaim", "inner", "volume"), ("CronTab", "default", "a")
    whose = claimed if place == NAMESPACE else tabbed
    around = [owner, obj("v1", "Namespace", "inner") if place == NAMESPACE else crontab_crd()]
    blue.reconcile([*around, inside])
    blue.reconcile(around)
    reference = controlled_by(api.get(owner["kind"], owner["metadata"].get("namespace"), "owner"))
    live = api.edit(*whose, lambda one: one["metadata"].update(ownerReferences=[reference]))
    blue.terminate()
    api.edit(*whose, lambda one: one["metadata"].update(ownerReferences=[]))
    collect()
    assert api.get(*whose)["metadata"]["uid"] == live["metadata"]["uid"]
