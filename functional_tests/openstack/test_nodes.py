# SPDX-License-Identifier: Apache-2.0
"""A server of the cloud becomes a Kubernetes node by the kubeadm of its user data, as those of Cluster API do."""

from __future__ import annotations

import openstack

from ..testbed.openstack import kubernetes_node
from ..testbed.release import NEWEST
from .conftest import MakeServer, eventually
from .servers import attempt, console_with

USER_DATA = """\
#cloud-config
write_files:
- path: /run/kubeadm/kubeadm.yaml
  content: |
    apiVersion: kubeadm.k8s.io/v1beta4
    kind: InitConfiguration
    nodeRegistration: {criSocket: unix:///run/containerd/containerd.sock}
    ---
    apiVersion: kubeadm.k8s.io/v1beta4
    kind: ClusterConfiguration
    kubernetesVersion: VERSION
    networking: {podSubnet: 10.200.0.0/16}
runcmd:
- [kubeadm, init, --config=/run/kubeadm/kubeadm.yaml]
"""


def test_a_server_becomes_a_control_plane_node(tenant: openstack.connection.Connection, make_server: MakeServer):
    server = make_server(
        "control-plane",
        user_data=USER_DATA.replace("VERSION", NEWEST.version),
        image_id=tenant.image.find_image(kubernetes_node.name(NEWEST)).id,
        flavor_id=tenant.compute.find_flavor("node").id,
    )
    initialized = "Your Kubernetes control-plane has initialized successfully"
    eventually(lambda: console_with(tenant, server.id, initialized), "kubeadm has initialized the control plane", 300)
    nodes = ("kubectl", "--kubeconfig=/etc/kubernetes/admin.conf", "get", "nodes", "--output=name")
    assert eventually(lambda: attempt(server.id, *nodes), "the API server lists the node") == "node/control-plane\n"
