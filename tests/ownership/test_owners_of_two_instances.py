# SPDX-License-Identifier: Apache-2.0
"""A Namespace of others whose owners two instances delete at the same time."""

from __future__ import annotations

import threading

from tests.fake_api import FakeApi, faults
from tests.fake_api.recording import Request
from tests.instance import GREEN, Instance, config_map, controlled_by, obj
from tests.ownership.test_owned_namespaces import uid_of_volume
from tests.ownership.test_requests_of_replacements import binding
from tests.ownership.test_shared_owned import NAMESPACE, inner


def test_a_claim_in_a_namespace_of_an_operator_outlives_two_owners_that_two_instances_delete(api: FakeApi) -> None:
    """Neither owner keeps the Namespace for the other instance."""
    blue, green, both = Instance(api.url), Instance(api.url, GREEN), threading.Event()
    api.put(obj("v1", "Namespace", "inner"), manager="operator")
    blue.reconcile([binding(1, "view"), inner("desired")])
    green.reconcile([binding(2, "view"), config_map("b", "inner")])
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
    runs = [blue.start([inner("desired")]), green.start([config_map("b", "inner")])]
    for run in runs:
        run.result(120)
    assert uid_of_volume(api) == uid
