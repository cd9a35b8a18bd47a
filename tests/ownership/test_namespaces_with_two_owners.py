# SPDX-License-Identifier: Apache-2.0
"""Namespaces of others with two owners, of which one stays, or both go at the same time."""

from __future__ import annotations

import threading

import pytest

from k8s_cr_driver.errors import DriverError
from tests.fake_api import FakeApi, faults
from tests.fake_api.recording import Request
from tests.instance import GREEN, Instance, config_map, obj
from tests.ownership.holders import NAMESPACE, ROLE, binding, inner, own_by, uid_of_volume


@pytest.mark.parametrize("fault", [faults.denied("a Namespace of a tenant keeps its owner"), None])
def test_a_namespace_that_may_not_be_patched_and_that_another_owner_keeps_fails_no_change(
    api: FakeApi, fault: faults.Answer | None
) -> None:
    """A webhook denies it, or the account has no right."""
    blue = Instance(api.url)
    theirs = api.put({**ROLE, "metadata": {"name": "theirs"}}, manager="user")
    api.put(obj("v1", "Namespace", "inner"), manager="operator")
    blue.reconcile([ROLE, inner("desired")])
    own_by(api, NAMESPACE, theirs, api.get("ClusterRole", None, "owner"))
    if fault:
        api.fail(fault, method="PATCH", path="/namespaces/inner$", times=10**6)
    else:
        api.knobs.denied |= {("patch", "", "namespaces", "*"), ("patch", "", "namespaces", "")}
    blue.seconds = 4
    blue.reconcile([inner("desired")])
    assert api.find("ClusterRole", None, "owner") is None


def own_by_both(api: FakeApi) -> None:
    """Two bindings own the Namespace, and neither is deleted before the owners of the Namespace were read for both."""
    own_by(api, NAMESPACE, *(api.get("ClusterRoleBinding", None, name) for name in ("b1", "b2")))
    api.requests.clear()
    both = threading.Event()

    def are_both_asked(_: Request) -> bool:
        if len({one.path for one in api.requests.select("DELETE", "/clusterrolebindings/b")}) == 2:
            both.set()
        return True

    held = faults.held(60, both)
    api.fail(held, method="DELETE", path="/clusterrolebindings/b[12]$", when=are_both_asked, times=2)


def test_a_claim_outlives_two_owners_of_its_namespace_that_two_instances_delete(api: FakeApi) -> None:
    """Neither owner keeps the Namespace for the other instance."""
    blue, green = Instance(api.url), Instance(api.url, GREEN)
    api.put(obj("v1", "Namespace", "inner"), manager="operator")
    blue.reconcile([binding("view", "b1"), inner("desired")])
    green.reconcile([binding("view", "b2"), config_map("b", "inner")])
    uid = uid_of_volume(api)
    own_by_both(api)
    runs = [blue.start([inner("desired")]), green.start([config_map("b", "inner")])]
    for run in runs:
        run.result(120)
    assert uid_of_volume(api) == uid


def test_a_claim_outlives_two_owners_of_its_namespace_that_are_created_again_at_the_same_time(api: FakeApi) -> None:
    """Neither keeps the Namespace for the other one."""
    blue, inside = Instance(api.url), inner("desired")
    api.put(obj("v1", "Namespace", "inner"), manager="operator")
    blue.reconcile([binding("view", "b1"), binding("view", "b2"), inside])
    uid = uid_of_volume(api)
    own_by_both(api)
    blue.reconcile([binding("edit", "b1"), binding("edit", "b2"), inside], prune=False)
    assert uid_of_volume(api) == uid


def test_a_claim_outlives_two_owners_of_a_namespace_that_may_not_be_patched_and_that_are_created_again(api: FakeApi) -> None:
    """Neither keeps the Namespace for the other one: the run fails, and nothing is lost."""
    blue, inside = Instance(api.url), inner("desired")
    api.put(obj("v1", "Namespace", "inner"), manager="operator")
    blue.reconcile([binding("view", "b1"), binding("view", "b2"), inside])
    uid = uid_of_volume(api)
    own_by_both(api)
    api.knobs.denied |= {("patch", "", "namespaces", "*"), ("patch", "", "namespaces", "")}
    blue.seconds = 4
    with pytest.raises(DriverError):
        blue.reconcile([binding("edit", "b1"), binding("edit", "b2"), inside], prune=False)
    assert uid_of_volume(api) == uid
