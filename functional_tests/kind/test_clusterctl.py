# SPDX-License-Identifier: Apache-2.0
"""The driver does not care who has installed Cluster API, nor on whose Kubernetes, and it follows a cluster that is moved."""

from collections.abc import Iterator

import pytest

from ..client import Client
from ..cluster_api.clusters import PLAIN, parameters
from ..testbed.kind.cluster import Kind
from ..vim import connection_info
from ..vnf import Vnf
from .conftest import Management

PACKAGE = PLAIN
MOVE = "clusterctl.cluster.x-k8s.io/move"
"""Of an object that clusterctl moves with the clusters of its namespace."""


@pytest.fixture
def gray(tacker: Client, management: Management, package: str) -> Iterator[Vnf]:
    gray = Vnf.create(tacker, connection_info(management.first.kubeconfig), package)
    yield gray
    gray.remove()


def machines(kind: Kind) -> set[str]:
    return set(kind.kubectl("get", "machines.cluster.x-k8s.io", "--output=name").split())


def test_an_instance_goes_on_where_clusterctl_has_moved_its_cluster(gray: Vnf, tacker: Client, management: Management):
    first, second, clusterctl = management
    gray.instantiate(*PACKAGE.files, wait_timeout=240, parameters=parameters("gray"))
    before = machines(first)
    assert len(before) == 2

    first.kubectl("label", "configmap", f"k8s-cr-driver-{gray.id}", f"{MOVE}=")
    clusterctl.run(first.kubeconfig, "move", f"--to-kubeconfig={second.kubeconfig}", "--namespace=default")
    assert machines(first) == set() and machines(second) == before
    # The simulated machines live in the memory of the provider, which goes on serving them at the former address;
    # what the second cluster has connected to there shows no new Node.
    first.kubectl("scale", "deployment", "capd-controller-manager", "--namespace=capd-system", "--replicas=0")
    tacker.wait(tacker.modify(gray.id, vimConnectionInfo={"vim1": connection_info(second.kubeconfig)}))

    operation = gray.begin_scale("SCALE_OUT", "Workers")
    assert "use additionalParams moved: true" in gray.failure(operation)["detail"]
    gray.give_up(operation)
    gray.wait(gray.begin_scale("SCALE_OUT", "Workers", moved=True))
    assert before < machines(second) and len(machines(second)) == 3
    gray.heal(gray.vnfcs("Workers")[0]["id"])
    assert len(gray.vnfcs("Workers")) == 2 and len(machines(second)) == 3
    gray.terminate()
    assert machines(second) == set()
    for cluster in (first, second):
        assert gray.id not in cluster.kubectl("get", "configmaps", "--all-namespaces", "--output=name")
