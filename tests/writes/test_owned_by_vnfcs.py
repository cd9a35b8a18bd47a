# SPDX-License-Identifier: Apache-2.0
"""Objects of the instance that a VNFC owns, which a heal replaces."""

from __future__ import annotations

from k8s_cr_driver.engine.delete.replacer import Replacement
from tests.fake_api import FakeApi, controllers
from tests.instance import Instance, deployment
from tests.writes.claims import is_the_same, own, volume


def test_a_claim_outlives_a_pod_that_owns_it_and_that_a_heal_replaces(api: FakeApi) -> None:
    """The heal has the Deployment in its set, and not the claim: nothing would create that again."""
    controllers.run_workloads(api)
    blue, web = Instance(api.url), deployment()
    web["metadata"]["namespace"] = "default"
    blue.reconcile([web, volume()])
    [pod] = api.objects("Pod", "default")
    uid = own(api, pod)
    blue.reconcile([web], prune=False, replacement=Replacement([("app=web", [pod])]))
    assert pod["metadata"]["uid"] not in [one["metadata"]["uid"] for one in api.objects("Pod", "default")]
    assert is_the_same(api, uid)
