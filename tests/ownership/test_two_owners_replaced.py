# SPDX-License-Identifier: Apache-2.0
"""A Namespace of others whose owners are all created again in one change."""

from __future__ import annotations

import threading

from tests.fake_api import FakeApi, faults
from tests.fake_api.recording import Request
from tests.instance import Instance, controlled_by, obj
from tests.ownership.test_owned_namespaces import uid_of_volume
from tests.ownership.test_requests_of_replacements import binding
from tests.ownership.test_shared_owned import NAMESPACE, inner


def test_a_claim_in_a_namespace_of_an_operator_outlives_two_owners_that_are_created_again_at_the_same_time(
    api: FakeApi,
) -> None:
    """Neither keeps the Namespace for the other one."""
    blue, inside, both = Instance(api.url), inner("desired"), threading.Event()
    api.put(obj("v1", "Namespace", "inner"), manager="operator")
    blue.reconcile([binding(1, "view"), binding(2, "view"), inside])
    uid = uid_of_volume(api)
    owners = [{**controlled_by(api.get("ClusterRoleBinding", None, name)), "controller": False} for name in ("b1", "b2")]
    api.edit(*NAMESPACE, lambda live: live["metadata"].update(ownerReferences=owners))
    api.requests.clear()

    def are_both_asked(_: Request) -> bool:
        """Neither is deleted before the owners of the Namespace were read for both."""
        if len({one.path for one in api.requests.select("DELETE", "/clusterrolebindings/b")}) == 2:
            both.set()
        return True

    api.fail(faults.Held(60, both), method="DELETE", path="/clusterrolebindings/b[12]$", when=are_both_asked, times=2)
    blue.reconcile([binding(1, "edit"), binding(2, "edit"), inside], prune=False)
    assert uid_of_volume(api) == uid
