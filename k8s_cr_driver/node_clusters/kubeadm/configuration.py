# SPDX-License-Identifier: Apache-2.0
"""What kubeadm, and the package's script, are given. The API is v1beta4, that of kubeadm 1.31 and later."""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Mapping
from typing import Any

import yaml

from k8s_cr_driver.node_clusters.inventory import Endpoint, Node
from k8s_cr_driver.node_clusters.kubeadm.balancing import API_SERVER_PORT
from k8s_cr_driver.node_clusters.parameters import Parameters

VERSION = "kubeadm.k8s.io/v1beta4"


KUBELET = "/etc/kubernetes/kubelet.conf"
"""There on a node that is in a cluster, or was about to be."""
INITIALIZE, JOIN = "k8s-cr-init", "k8s-cr-join"
"""The units of kubeadm."""
_FRESH = """\
if [ -e /etc/kubernetes/kubelet.conf ] || [ -e /etc/kubernetes/manifests/kube-apiserver.yaml ]; then
  kubeadm reset --force </dev/null
fi
exec kubeadm "$@"
"""


def fresh(*arguments: str) -> tuple[str, ...]:
    """What runs kubeadm with these arguments, on a server on which an earlier one may have been cut in the middle."""
    return "sh", "-euc", _FRESH, "sh", *arguments


def digest(*texts: str) -> str:
    """Of what was done with these texts; "" without any."""
    joined = "\0".join(texts)
    return hashlib.sha256(joined.encode()).hexdigest() if any(texts) else ""


def for_script(node: Node, endpoint: Endpoint, parameters: Parameters) -> Mapping[str, Any]:
    """The JSON that the package's script reads on standard input: the contract with the author of a package."""
    return {
        "role": node.role.value,
        "name": node.name,
        "address": node.address,
        "kubernetes_version": parameters.kubernetes_version,
        "pod_cidr": parameters.pod_cidr,
        "service_cidr": parameters.cluster_cidr,
        "haproxy": {"address": endpoint.address, "port": endpoint.port},
        "proxy": proxy(node, endpoint, parameters),
    }


def proxy(node: Node, endpoint: Endpoint, parameters: Parameters) -> Mapping[str, str]:
    """With what must not go through the proxy; {} without one."""
    given = parameters.proxy
    if not given.get("http_proxy") and not given.get("https_proxy"):
        return {}
    own = given.get("k8s_node_cidr") or str(ipaddress.ip_network(f"{node.address}/24", strict=False))
    direct = ("localhost", "127.0.0.1", endpoint.address, own, parameters.pod_cidr, parameters.cluster_cidr)
    named = [one.strip() for one in given.get("no_proxy", "").split(",") if one.strip()]
    return {
        "http_proxy": given.get("http_proxy", ""),
        "https_proxy": given.get("https_proxy", ""),
        "no_proxy": ",".join(dict.fromkeys((*named, *direct))),
    }


def initial(node: Node, endpoint: Endpoint, parameters: Parameters, version: str) -> str:
    """The configuration of `kubeadm init`: the control plane is at the virtual IP, never at one master."""
    first = {
        "apiVersion": VERSION,
        "kind": "InitConfiguration",
        "nodeRegistration": _registration(node),
        "localAPIEndpoint": _local(node),
    }
    cluster = {
        "apiVersion": VERSION,
        "kind": "ClusterConfiguration",
        "kubernetesVersion": f"v{version.removeprefix('v')}",
        "controlPlaneEndpoint": f"{endpoint.address}:{endpoint.port}",
        "apiServer": {"certSANs": sorted({endpoint.address, endpoint.public})},
        "networking": {"podSubnet": parameters.pod_cidr, "serviceSubnet": parameters.cluster_cidr},
    }
    return yaml.safe_dump_all([first, cluster])


def joining(node: Node, endpoint: Endpoint, token: str, digest_of_ca: str, certificate_key: str) -> str:
    """The configuration of `kubeadm join`, which has secrets."""
    discovery = {"apiServerEndpoint": f"{endpoint.address}:{endpoint.port}", "token": token, "caCertHashes": [digest_of_ca]}
    control_plane = {"localAPIEndpoint": _local(node), "certificateKey": certificate_key}
    return yaml.safe_dump(
        {
            "apiVersion": VERSION,
            "kind": "JoinConfiguration",
            "discovery": {"bootstrapToken": discovery},
            "nodeRegistration": _registration(node),
            **({"controlPlane": control_plane} if node.is_master else {}),
        }
    )


def _local(node: Node) -> Mapping[str, Any]:
    return {"advertiseAddress": node.address, "bindPort": API_SERVER_PORT}


def _registration(node: Node) -> Mapping[str, Any]:
    return {"name": node.name, "kubeletExtraArgs": [{"name": "node-ip", "value": node.address}]}
