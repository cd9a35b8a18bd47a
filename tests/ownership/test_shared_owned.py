# SPDX-License-Identifier: Apache-2.0
"""Namespaces and CRDs that objects of the instance own: what they hold does not go with such an owner."""

from __future__ import annotations

import pytest

from k8s_cr_driver.objects.keys import Object
from tests.fake_api import FakeApi
from tests.instance import Instance, claim, controlled_by, crontab, crontab_crd, kept, obj, wait_for
from tests.ownership.claims import HELD

ROLE = obj("rbac.authorization.k8s.io/v1", "ClusterRole", "owner", rules=[])
NAMESPACE = "Namespace", None, "inner"
CRD = "CustomResourceDefinition", None, "crontabs.stable.example.com"


def own_by_role(api: FakeApi, place: tuple[str, None, str]) -> None:
    """As an operator of tenants owns their Namespaces."""
    reference = controlled_by(api.get("ClusterRole", None, "owner"))
    api.edit(*place, lambda live: live["metadata"].update(ownerReferences=[reference]))


def inner(whose: str) -> Object:
    found = claim("volume")
    found["metadata"] |= {"namespace": "inner", "annotations": {"k8s-cr-driver/ready-when": "stored"}}
    return kept(found) if whose == "kept" else found


@pytest.mark.parametrize("whose", ["kept", "a guest's", "desired"])
def test_what_stays_in_a_namespace_outlives_the_owner_of_the_namespace(api: FakeApi, whose: str) -> None:
    blue, inside = Instance(api.url), inner(whose)
    blue.reconcile([ROLE, obj("v1", "Namespace", "inner"), *([] if whose == "a guest's" else [inside])])
    if whose == "a guest's":
        api.put(inside, manager="user")
    uid = api.get("PersistentVolumeClaim", "inner", "volume")["metadata"]["uid"]
    own_by_role(api, NAMESPACE)
    blue.reconcile([inside] if whose == "desired" else [])
    assert api.find("ClusterRole", None, "owner") is None
    assert api.get("PersistentVolumeClaim", "inner", "volume")["metadata"]["uid"] == uid


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
    uid = api.get("PersistentVolumeClaim", "inner", "volume")["metadata"]["uid"]
    run = blue.start([])
    wait_for(api, lambda: "deletionTimestamp" in api.get("ClusterRole", None, "owner")["metadata"])
    for _ in range(2):
        own_by_role(api, NAMESPACE)
        wait_for(api, lambda: not api.get(*NAMESPACE)["metadata"].get("ownerReferences"))
    api.release("ClusterRole", None, "owner", HELD)
    run.result(10)
    assert api.get("PersistentVolumeClaim", "inner", "volume")["metadata"]["uid"] == uid


def test_a_namespace_that_an_object_of_the_instance_owns_is_deleted(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([ROLE, obj("v1", "Namespace", "inner"), inner("")])
    own_by_role(api, NAMESPACE)
    blue.terminate()
    assert api.find(*NAMESPACE) is None
