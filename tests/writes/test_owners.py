# SPDX-License-Identifier: Apache-2.0
"""Objects that stay outlive owners that go, whoever set the reference, and however late the garbage collector is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from k8s_cr_driver.engine.delete.replacer import Replacement
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.objects.marks import INSTANCE_LABEL
from tests.fake_api import FakeApi, controllers, faults
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
)
from tests.writes.claims import is_the_same, volume
from tests.writes.claims import own as own_claim
from tests.writes.holders import CRD, NAMESPACE, ROLE, inner, own_by_role, uid_of_volume

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


@pytest.mark.parametrize("is_controller", [True, False])
def test_a_desired_object_outlives_an_owner_that_is_pruned(
    api: FakeApi, collect: Callable[[], None], is_controller: bool
) -> None:
    blue = Instance(api.url)
    blue.reconcile([config_map("owner"), config_map("a")])
    uid = own(api, "a", "owner", is_controller=is_controller)
    blue.reconcile([config_map("a")])
    collect()
    assert survives(api, uid)


def test_no_owner_of_others_is_read(api: FakeApi) -> None:
    """Whoever may write an object can name thousands of owners."""
    blue = Instance(api.url)
    blue.reconcile([config_map("a"), kept(config_map("b")), config_map("goes")])
    for name in ("a", "b"):
        depend(api, "ConfigMap", name, controlled_by(api.put(obj("v1", "Secret", f"of-{name}", "default"))))
    api.requests.clear()
    blue.reconcile([config_map("a")])
    assert not api.requests.select("GET", "/secrets/")
    assert api.get("ConfigMap", "default", "a")["metadata"]["ownerReferences"]


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


def test_an_object_of_the_cluster_that_a_namespaced_one_owns_is_deleted(api: FakeApi, collect: Callable[[], None]) -> None:
    """The garbage collector finds no such owner, and never deletes the object."""
    blue = Instance(api.url)
    blue.reconcile([config_map("owner"), obj("rbac.authorization.k8s.io/v1", "ClusterRole", "a", rules=[])])
    owner = controlled_by(api.get("ConfigMap", "default", "owner"))
    api.edit("ClusterRole", None, "a", lambda live: live["metadata"].update(ownerReferences=[owner]))
    blue.terminate()
    assert not api.find("ClusterRole", None, "a")


def test_a_claim_outlives_a_pod_that_owns_it_and_that_a_heal_replaces(api: FakeApi) -> None:
    """The heal has the Deployment in its set, and not the claim: nothing would create that again."""
    controllers.run_workloads(api)
    blue, web = Instance(api.url), deployment()
    web["metadata"]["namespace"] = "default"
    blue.reconcile([web, volume()])
    [pod] = api.objects("Pod", "default")
    uid = own_claim(api, pod)
    blue.reconcile([web], prune=False, replacement=Replacement([("app=web", [pod])]))
    assert pod["metadata"]["uid"] not in [one["metadata"]["uid"] for one in api.objects("Pod", "default")]
    assert is_the_same(api, uid)


@pytest.mark.parametrize("answer", [None, 414, 431, 400])
def test_an_owner_with_a_name_that_is_too_long_for_a_path_ends_no_run(api: FakeApi, answer: int | None) -> None:
    """The API server asks of the name of an owner only that it is not empty. It accepts 1 MiB of headers, a proxy less."""
    blue = Instance(api.url)
    blue.reconcile([config_map("b"), volume()])
    reference = {**controlled_by(api.put(config_map("owner"), manager="user")), "name": 100_000 * "a"}
    depend(api, "PersistentVolumeClaim", "volume", reference)
    if answer:
        api.fail(faults.status(answer), method="GET", path="/configmaps/aaaaa", times=10**6)
    blue.reconcile([volume()])
    assert api.find("ConfigMap", "default", "b") is None


def test_many_owners_of_one_object_are_not_all_read_again_for_each_that_is_deleted(api: FakeApi) -> None:
    """As of a ConfigMap that all custom resources of an operator share."""
    blue, owners = Instance(api.url, seconds=60), [config_map(f"owner-{number}") for number in range(40)]
    blue.reconcile([*owners, config_map("shared")])
    lives = [api.get("ConfigMap", "default", one["metadata"]["name"]) for one in owners]
    references = [{**controlled_by(live), "controller": False} for live in lives]
    depend(api, "ConfigMap", "shared", *references)
    api.requests.clear()
    blue.reconcile([config_map("shared")])
    assert len(api.requests.select("GET", "/configmaps/owner-")) < 5 * len(owners)


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
