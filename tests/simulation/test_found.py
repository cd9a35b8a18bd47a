# SPDX-License-Identifier: Apache-2.0
"""What lives have found, each as the shortest story in which it happens, on the fake API server."""

from __future__ import annotations

from tests.fake_api import FakeApi, controllers, faults
from tests.fake_api.recording import Request
from tests.instance import Instance
from tests.ownership.test_orphans import claim, stateful_set


def test_a_claim_made_after_claims_were_listed_goes_with_the_instance(api: FakeApi) -> None:
    """Its controller makes the claims of a StatefulSet one by one, until the StatefulSet itself is deleted."""

    def deletes_stateful_set(request: Request) -> bool:
        if request.method == "DELETE" and "statefulsets" in request.path:
            api.put(claim("data-db-1", app="db"))
        return False

    controllers.run_workloads(api)
    instance = Instance(api.url)
    instance.reconcile([stateful_set("db")])
    api.fail(faults.internal(), when=deletes_stateful_set)
    instance.terminate()
    assert api.names("PersistentVolumeClaim", "default") == []
