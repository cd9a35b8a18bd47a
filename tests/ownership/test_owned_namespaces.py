# SPDX-License-Identifier: Apache-2.0
"""Namespaces and CRDs that an operator has made for an object of the instance, and that hold objects of the package."""

from __future__ import annotations

import pytest

from k8s_cr_driver.objects.keys import Object
from tests.fake_api import FakeApi
from tests.instance import Instance, controlled_by, crontab, crontab_crd, kept, obj, wait_for
from tests.ownership.claims import HELD
from tests.ownership.test_shared_owned import CRD, NAMESPACE, ROLE, inner, own_by_role

FINALIZED = {**ROLE, "metadata": {"name": "owner", "finalizers": HELD}}
BINDING = {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}}


def uid_of_volume(api: FakeApi) -> object:
    return api.get("PersistentVolumeClaim", "inner", "volume")["metadata"]["uid"]


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
    for _ in range(2):
        own_by_role(api, NAMESPACE)
        wait_for(api, lambda: not api.get(*NAMESPACE)["metadata"].get("ownerReferences"))
    api.release("ClusterRole", None, "owner", HELD)
    run.result(10)
    assert uid_of_volume(api) == uid


def test_a_claim_in_a_namespace_of_an_operator_outlives_an_owner_that_is_created_again(api: FakeApi) -> None:
    """A roleRef cannot be changed."""
    binding = obj("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "owner", **BINDING)
    binding["metadata"]["annotations"] = {"k8s-cr-driver/replace": "true"}
    other: Object = {**binding, "roleRef": {**BINDING["roleRef"], "name": "edit"}}
    blue, inside = Instance(api.url), inner("desired")
    api.put(obj("v1", "Namespace", "inner"), manager="operator")
    blue.reconcile([binding, inside])
    uid = uid_of_volume(api)
    reference = controlled_by(api.get("ClusterRoleBinding", None, "owner"))
    api.edit(*NAMESPACE, lambda live: live["metadata"].update(ownerReferences=[reference]))
    blue.reconcile([other, inside])
    assert uid_of_volume(api) == uid


def test_a_namespace_of_an_operator_goes_with_its_owner_if_nothing_of_the_instance_stays_in_it(api: FakeApi) -> None:
    blue = Instance(api.url)
    api.put(obj("v1", "Namespace", "inner"), manager="operator")
    blue.reconcile([ROLE, inner("")])
    own_by_role(api, NAMESPACE)
    blue.terminate()
    assert api.find(*NAMESPACE) is None
