# SPDX-License-Identifier: Apache-2.0
"""A Kubernetes API server for tests: real sockets, in-memory objects, the behaviour that a driver depends on.

    with FakeApi() as api:
        api.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
        api.fail(faults.too_many(), method="PATCH")

It follows Kubernetes 1.36; what it leaves out (most defaults, admission, most validation) no test should rely on.
"""

from tests.fake_api import controllers, faults
from tests.fake_api.api import FakeApi
from tests.fake_api.cluster import Knobs

__all__ = ["FakeApi", "Knobs", "controllers", "faults"]
