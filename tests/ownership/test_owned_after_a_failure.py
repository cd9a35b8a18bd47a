# SPDX-License-Identifier: Apache-2.0
"""Kept and adopted objects that a failed operation has released, and that their operator owns again before the retry."""

from __future__ import annotations

import pytest

from k8s_cr_driver.errors import DriverError
from tests.fake_api import FakeApi, faults
from tests.instance import Instance, obj
from tests.ownership.claims import is_the_same, own, volume
from tests.ownership.holders import NAMESPACE, ROLE, inner, own_by_role, uid_of_volume


def fail_to_terminate(api: FakeApi, blue: Instance) -> None:
    api.fail(faults.denied("not now"), method="DELETE", path="/clusterroles/owner$", times=10**6)
    blue.seconds = 3
    with pytest.raises(DriverError, match="not now"):
        blue.terminate()
    api.clear_faults()
    blue.seconds = 10


@pytest.mark.parametrize("whose", ["kept", "adopted"])
def test_a_claim_that_is_owned_again_after_a_failed_terminate_outlives_the_next_one(api: FakeApi, whose: str) -> None:
    blue = Instance(api.url, adopt=True, force=True)
    if whose == "adopted":
        api.put(volume(), manager="user")
    blue.reconcile([ROLE, volume(whose)])
    owner = api.get("ClusterRole", None, "owner")
    uid = own(api, owner)
    fail_to_terminate(api, blue)
    own(api, owner)
    blue.terminate()
    assert api.find("ClusterRole", None, "owner") is None
    assert is_the_same(api, uid)


def test_a_kept_claim_in_a_namespace_that_is_owned_again_after_a_failed_terminate_outlives_the_next_one(api: FakeApi) -> None:
    blue = Instance(api.url)
    api.put(obj("v1", "Namespace", "inner"), manager="operator")
    blue.reconcile([ROLE, inner("kept")])
    uid = uid_of_volume(api)
    own_by_role(api, NAMESPACE)
    fail_to_terminate(api, blue)
    own_by_role(api, NAMESPACE)
    blue.terminate()
    assert api.find("ClusterRole", None, "owner") is None
    assert uid_of_volume(api) == uid
