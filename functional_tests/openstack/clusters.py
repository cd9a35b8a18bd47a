# SPDX-License-Identifier: Apache-2.0
"""Workload clusters on the cloud: the parameters of their sample, their nodes, and what a cluster has in the cloud."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openstack
import yaml

import sample_packages

from ..testbed.kubernetes import ADDRESS, Kubernetes
from ..testbed.openstack import kubernetes_node, offer
from ..testbed.release import NEWEST, Release
from ..vnf import Vnf

MANAGEMENT = "cluster_api_management"
SAMPLE, OF_CLASS = "cluster_api_workload_openstack", "cluster_api_workload_openstack_topology"
CLOUD_PROVIDER = "cloud_provider_openstack"
"""The package for Services that are load balancers of the cloud."""
SECRET = "cloud"
# Seconds, for an operation: a machine takes a minute to become a node, and they replace each other one at a time.
PATIENCE = 900


def release(of: Release) -> dict[str, str]:
    """The parameters of a version of Kubernetes."""
    return {"KUBERNETES_VERSION": of.version, "IMAGE": kubernetes_node.name(of)}


def parameters(name: str, **given: Any) -> dict[str, Any]:
    """Of a cluster behind a load balancer with one worker, unless given otherwise."""
    return {
        "CLUSTER_NAME": name,
        "WORKERS": 1,
        "CLOUD_SECRET": SECRET,
        "CLOUD": offer.TENANT,
        "CONTROL_PLANE_FLAVOR": "node",
        "WORKER_FLAVOR": "node",
        "EXTERNAL_NETWORK": offer.EXTERNAL,
        "NAME_SERVER": ADDRESS,
        "LOAD_BALANCER_PROVIDER": "haproxy",
        **release(NEWEST),
        **given,
    }


def declared(sample: str) -> dict[str, Any]:
    """The parameters of a sample, as its VNFD has them."""
    vnfd = yaml.safe_load((Path(sample_packages.__file__).parent / sample / f"Definitions/{sample}.yaml").read_text())
    return dict(vnfd["data_types"][f"sample.{sample}.Parameters"]["properties"])


def belongings(tenant: openstack.connection.Connection) -> dict[str, list[str]]:
    """What the tenant has in the cloud, by kind; nothing that it had from the beginning."""
    network = tenant.network
    found = {
        "servers": tenant.compute.servers(),
        "ports": network.ports(),
        "networks": (one for one in network.networks() if one.name != offer.EXTERNAL),
        "routers": network.routers(),
        "floating IPs": network.ips(),
        "security groups": (one for one in network.security_groups() if one.name != "default"),
        "volumes": tenant.block_storage.volumes(),
        "load balancers": tenant.load_balancer.load_balancers(),
    }
    return {kind: names for kind, objects in found.items() if (names := [one.name or one.id for one in objects])}


def nodes(kubernetes: Kubernetes, kubeconfig: Path) -> dict[str, str]:
    """Name -> version of the Ready nodes, as the workload cluster lists them."""
    columns = "custom-columns=:metadata.name,:status.nodeInfo.kubeletVersion,:status.conditions[?(@.type=='Ready')].status"
    listed = kubernetes.kubectl(f"--kubeconfig={kubeconfig}", "get", "nodes", "--no-headers", f"--output={columns}")
    rows = [line.split() for line in listed.splitlines()]
    return {name: version for name, version, ready in rows if ready == "True"}


def reported(vnf: Vnf) -> dict[str, str]:
    """The same as Tacker has it."""
    vnfcs = [*vnf.vnfcs("ControlPlane"), *vnf.vnfcs("Workers")]
    return {vnfc["metadata"]["node"]: vnfc["metadata"]["version"] for vnfc in vnfcs}
