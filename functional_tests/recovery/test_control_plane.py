# SPDX-License-Identifier: Apache-2.0
"""An API server or an etcd that goes away in the middle of an operation is waited for."""

import pytest

from ..cluster import Cluster
from ..objects import Place
from ..packages import Package
from ..testbed.kubernetes import Kubernetes
from ..vnf import Vnf
from .turbine import Turbine

pytestmark = pytest.mark.alone("kubernetes")

PLACE = Place("control-plane")
TURBINE = Turbine(PLACE)
PACKAGE = Package({"turbine.yaml": TURBINE.manifests})


@pytest.mark.parametrize("incident", ["API server killed", "etcd killed", "certificate renewed"])
def test_a_control_plane_that_restarts_is_waited_for(
    vnf: Vnf, turbine: Turbine, waiting: str, cluster: Cluster, kubernetes: Kubernetes, incident: str
):
    before = turbine.live(cluster)
    if incident == "certificate renewed":
        old = kubernetes.certificate()
        kubernetes.renew_certificate()
        assert kubernetes.certificate() != old
    else:
        kubernetes.restart("etcd" if "etcd" in incident else "kube-apiserver")
    turbine.make_ready(cluster)
    kubernetes.await_controllers()
    vnf.wait(waiting)
    after = turbine.live(cluster)
    assert before and after and after["metadata"]["uid"] == before["metadata"]["uid"]
    assert cluster.of(vnf.id) == turbine.objects
