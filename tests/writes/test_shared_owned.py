# SPDX-License-Identifier: Apache-2.0
"""Namespaces and CRDs that objects of the instance own: what they hold does not go with such an owner."""

from __future__ import annotations

import pytest

from tests.fake_api import FakeApi, faults
from tests.instance import Instance, config_map, crontab, crontab_crd, kept, obj
from tests.writes.holders import CRD, NAMESPACE, ROLE, inner, own_by_role, uid_of_volume


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
