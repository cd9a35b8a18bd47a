# SPDX-License-Identifier: Apache-2.0
"""Objects that stay outlive owners that go, whoever set the reference, and however late the garbage collector is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from k8s_cr_driver.engine.delete.replacer import Replacement
from k8s_cr_driver.errors import TransportError
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.discovery import discover
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.objects.dependencies import DEPENDS_ON
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.objects.marks import INSTANCE_LABEL, KEEP
from k8s_cr_driver.writes.owners import Owners
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
    wait_for,
)

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
