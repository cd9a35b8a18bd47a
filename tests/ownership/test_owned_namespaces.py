# SPDX-License-Identifier: Apache-2.0
"""Namespaces and CRDs that an operator has made for an object of the instance, and that hold objects of the package."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from k8s_cr_driver.engine import releases
from k8s_cr_driver.errors import DriverError
from tests.fake_api import FakeApi, faults
from tests.instance import Instance, config_map, crontab, crontab_crd, kept, obj, wait_for
from tests.ownership.claims import HELD, is_the_same, own, volume
from tests.ownership.holders import (
    CRD,
    NAMESPACE,
    ROLE,
    assert_released_again,
    binding,
    inner,
    own_by,
    own_by_role,
    uid_of_volume,
)

FINALIZED = {**ROLE, "metadata": {"name": "owner", "finalizers": HELD}}


@pytest.mark.parametrize("whose", ["kept", "desired"])
def test_a_claim_in_a_namespace_of_an_operator_outlives_the_owner_of_that(api: FakeApi, whose: str) -> None:
    blue, inside = Instance(api.url), inner(whose)
    api.put(obj("v1", "Namespace", "inner"), manager="operator")
    blue.reconcile([ROLE, inside])
    uid = uid_of_volume(api)
    own_by_role(api, NAMESPACE)
    blue.reconcile([inside] if whose == "desired" else [])
    assert api.find("ClusterRole", None, "owner") is None
    assert uid_of_volume(api) == uid


@pytest.mark.parametrize("whose", ["kept", "desired"])
def test_a_custom_resource_outlives_the_owner_of_an_operators_crd(api: FakeApi, whose: str) -> None:
    api.put(crontab_crd(), manager="operator")
    blue, tab = Instance(api.url), crontab("a")
    tab = kept(tab) if whose == "kept" else tab
    blue.reconcile([ROLE, tab])
    uid = api.get("CronTab", "default", "a")["metadata"]["uid"]
    own_by_role(api, CRD)
    blue.reconcile([tab] if whose == "desired" else [])
    assert api.find("ClusterRole", None, "owner") is None
    assert api.get("CronTab", "default", "a")["metadata"]["uid"] == uid


@pytest.mark.usefixtures("soon")
def test_a_claim_in_a_namespace_that_an_operator_owns_again_while_the_owner_is_finalized_outlives_it(api: FakeApi) -> None:
    blue, inside = Instance(api.url), inner("desired")
    api.put(obj("v1", "Namespace", "inner"), manager="operator")
    blue.reconcile([FINALIZED, inside])
    uid = uid_of_volume(api)
    own_by_role(api, NAMESPACE)
    run = blue.start([inside])
    wait_for(api, lambda: "deletionTimestamp" in api.get("ClusterRole", None, "owner")["metadata"])
    assert_released_again(api, api.get("ClusterRole", None, "owner"))
    api.release("ClusterRole", None, "owner", HELD)
    run.result(60)
    assert uid_of_volume(api) == uid


@pytest.mark.parametrize("inventory", ["there", "lost"])
def test_a_claim_in_a_namespace_of_an_operator_outlives_an_owner_that_is_created_again(api: FakeApi, inventory: str) -> None:
    """A roleRef cannot be changed."""
    blue, inside = Instance(api.url), inner("desired")
    api.put(obj("v1", "Namespace", "inner"), manager="operator")
    blue.reconcile([binding("view"), inside])
    uid = uid_of_volume(api)
    own_by(api, NAMESPACE, api.get("ClusterRoleBinding", None, "owner"))
    if inventory == "lost":
        blue.record()
        api.delete("ConfigMap", "default", f"k8s-cr-driver-{blue.id}")
    blue.reconcile([binding("edit"), inside])
    assert uid_of_volume(api) == uid


def test_a_namespace_of_an_operator_goes_with_its_owner_if_nothing_of_the_instance_stays_in_it(api: FakeApi) -> None:
    blue = Instance(api.url)
    api.put(obj("v1", "Namespace", "inner"), manager="operator")
    blue.reconcile([ROLE, inner("")])
    own_by_role(api, NAMESPACE)
    blue.terminate()
    assert api.find(*NAMESPACE) is None


@pytest.mark.parametrize("fault", [faults.internal(), faults.unavailable()])
def test_a_namespace_of_an_operator_that_cannot_be_read_keeps_none_from_being_abandoned(
    api: FakeApi, fault: faults.Answer
) -> None:
    """Neither the other objects, nor a Namespace that can be read."""
    blue, other = Instance(api.url), inner("kept")
    other["metadata"]["namespace"] = "outer"
    for name in ("inner", "outer"):
        api.put(obj("v1", "Namespace", name), manager="operator")
    blue.reconcile([ROLE, config_map("b"), inner("kept"), other])
    own_by_role(api, ("Namespace", None, "outer"))
    api.fail(fault, method="GET", path="/namespaces/inner$", times=10**6)
    blue.abandon, blue.seconds = True, 8
    blue.terminate()
    assert api.find("ConfigMap", "default", "b") is None
    assert api.find("ClusterRole", None, "owner") is None
    assert api.find("PersistentVolumeClaim", "outer", "volume") is not None


def test_a_namespace_that_is_deleted_already_ends_no_last_look_at_a_kept_claim(
    api: FakeApi, collect: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A finalizer of what is in it holds it, longer than the owner exists, which owns the claim again at its end."""
    monkeypatch.setattr(releases, "AGAIN", 20)
    blue, inside = Instance(api.url), inner("kept")
    inside["metadata"] |= {"name": "inside", "finalizers": HELD}
    api.put(obj("v1", "Namespace", "inner"), manager="operator")
    blue.reconcile([FINALIZED, inside, volume("kept")])
    own_by_role(api, NAMESPACE)
    api.delete(*NAMESPACE)
    run = blue.start([])
    blue.wait_until_reported("volume", "left")
    wait_for(api, lambda: "deletionTimestamp" in api.get("ClusterRole", None, "owner")["metadata"])
    with api.cluster.writing():
        uid = own(api, api.get("ClusterRole", None, "owner"))
        api.release("ClusterRole", None, "owner", HELD)
    run.result(60)
    collect()
    assert is_the_same(api, uid)


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("verb", ["change", "replacement"])
def test_a_claim_in_a_namespace_that_an_operator_owns_only_while_the_owner_is_finalized_outlives_it(
    api: FakeApi, verb: str
) -> None:
    """As after a run that has released it, and that has not ended in time."""
    blue, inside = Instance(api.url), inner("desired")
    first, second = binding("view"), binding("edit")
    for one in (first, second):
        one["metadata"]["finalizers"] = HELD
    api.put(obj("v1", "Namespace", "inner"), manager="operator")
    blue.reconcile([first, inside])
    uid, owner = uid_of_volume(api), api.get("ClusterRoleBinding", None, "owner")
    run = blue.start([inside] if verb == "change" else [second, inside])
    wait_for(api, lambda: "deletionTimestamp" in api.get("ClusterRoleBinding", None, "owner")["metadata"])
    assert_released_again(api, owner)
    api.release("ClusterRoleBinding", None, "owner", HELD)
    run.result(60)
    assert uid_of_volume(api) == uid


@pytest.mark.usefixtures("soon")
def test_a_claim_in_a_namespace_that_an_operator_owns_outlives_an_owner_whose_finalizer_ends_in_the_rollback(
    api: FakeApi
) -> None:
    """The change was to replace the owner, which is deleted, and has not ended in time. The rollback creates it again."""
    blue, inside = Instance(api.url), inner("desired")
    former, new = binding("view"), binding("edit")
    for one in (former, new):
        one["metadata"]["finalizers"] = HELD
    api.put(obj("v1", "Namespace", "inner"), manager="operator")
    blue.reconcile([former, inside])
    uid, owner = uid_of_volume(api), api.get("ClusterRoleBinding", None, "owner")
    own_by(api, NAMESPACE, owner)
    change = blue.start([new, inside])
    wait_for(api, lambda: "deletionTimestamp" in api.get("ClusterRoleBinding", None, "owner")["metadata"])
    blue.end()
    with pytest.raises(DriverError):
        change.result(60)
    own_by(api, NAMESPACE, owner)
    rollback = blue.start([former, inside])
    assert_released_again(api, owner)
    api.release("ClusterRoleBinding", None, "owner", HELD)
    rollback.result(60)
    assert uid_of_volume(api) == uid


@pytest.mark.usefixtures("soon")
def test_a_run_waits_until_it_has_read_the_namespace_of_an_operator_whose_owner_is_finalized(
    api: FakeApi, collect: Callable[[], None]
) -> None:
    """The Namespace cannot be read until the owner is created again, and the collector is late, too."""
    blue, inside, owner = Instance(api.url), inner("desired"), binding("view")
    owner["metadata"]["finalizers"] = HELD
    api.put(obj("v1", "Namespace", "inner"), manager="operator")
    blue.reconcile([owner, inside])
    uid, former = uid_of_volume(api), api.get("ClusterRoleBinding", None, "owner")
    own_by(api, NAMESPACE, former)
    api.delete("ClusterRoleBinding", None, "owner")
    api.fail(faults.unavailable(), method="GET", path="/namespaces/inner$", times=10**6)
    api.requests.clear()
    blue.heard.clear()
    run = blue.start([owner, inside], prune=False)
    wait_for(api, lambda: bool(api.requests.select("GET", "/namespaces/inner")))
    api.release("ClusterRoleBinding", None, "owner", HELD)
    blue.wait_until_reported("owner", "Ready")
    api.clear_faults()
    run.result(60)
    collect()
    assert uid_of_volume(api) == uid
