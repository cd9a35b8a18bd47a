# SPDX-License-Identifier: Apache-2.0
"""The control plane of the test bed can be restarted."""

import pytest

from functional_tests.testbed.kubernetes import Kubernetes

pytestmark = pytest.mark.alone("kubernetes")


def test_the_api_server_comes_back_with_what_it_held(kubernetes: Kubernetes):
    query = ("get", "namespace", "default", "--output=jsonpath={.metadata.uid}")
    before = kubernetes.kubectl(*query)
    kubernetes.restart("kube-apiserver")
    assert kubernetes.kubectl(*query) == before
    kubernetes.await_controllers()
