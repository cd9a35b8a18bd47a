# SPDX-License-Identifier: Apache-2.0
"""A Namespace of others that would stay, because another owner of it stays."""

from __future__ import annotations

import pytest

from tests.fake_api import FakeApi, faults
from tests.instance import Instance, controlled_by, obj
from tests.ownership.test_shared_owned import NAMESPACE, ROLE, inner


@pytest.mark.parametrize("fault", [faults.denied("a Namespace of a tenant keeps its owner"), None])
def test_a_namespace_that_may_not_be_patched_and_that_another_owner_keeps_fails_no_change(
    api: FakeApi, fault: faults.Answer | None
) -> None:
    """A webhook denies it, or the account has no right."""
    blue = Instance(api.url)
    theirs = api.put({**ROLE, "metadata": {"name": "theirs"}}, manager="user")
    api.put(obj("v1", "Namespace", "inner"), manager="operator")
    blue.reconcile([ROLE, inner("desired")])
    owners = [{**controlled_by(one), "controller": False} for one in (theirs, api.get("ClusterRole", None, "owner"))]
    api.edit(*NAMESPACE, lambda live: live["metadata"].update(ownerReferences=owners))
    if fault:
        api.fail(fault, method="PATCH", path="/namespaces/inner$", times=10**6)
    else:
        api.knobs.denied |= {("patch", "", "namespaces", "*"), ("patch", "", "namespaces", "")}
    blue.seconds = 4
    blue.reconcile([inner("desired")])
    assert api.find("ClusterRole", None, "owner") is None
