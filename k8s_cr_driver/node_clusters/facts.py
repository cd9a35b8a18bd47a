# SPDX-License-Identifier: Apache-2.0
"""What is on the servers and in the cluster now. Each look is one command: one on each server, one on a master."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from k8s_cr_driver.node_clusters.inventory import Node
from k8s_cr_driver.node_clusters.kubeadm import configuration, etcd
from k8s_cr_driver.node_clusters.kubeadm.balancing import UNITS
from k8s_cr_driver.objects.decoding import decoded
from k8s_cr_driver.objects.fields import entries, mapping, text, texts
from k8s_cr_driver.ssh.command import Command, script
from k8s_cr_driver.ssh.units import FOLDER, UNFINISHED

INSTALLED, APPLIED = f"{FOLDER}/installed", f"{FOLDER}/applied"
"""The digests of the installation that was done, and of the manifests that the cluster has got from this master."""
KUBECONFIG = "/etc/kubernetes/admin.conf"

_SERVER = UNFINISHED + """\
address=$1 vip=$2 installed=$3 applied=$4 folder=$5 init=$6 join=$7; shift 7
state() { systemctl is-active "$1" 2>/dev/null || true; }
echo "interface=$(ip -o -4 address show | awk -v a="$address" '{split($4, p, "/"); if (p[1] == a) print $2}' | head -n 1)"
echo "holds=$(ip -o -4 address show | awk -v a="$vip" '{split($4, p, "/"); if (p[1] == a) print "yes"}' | head -n 1)"
echo "joined=$([ -e /etc/kubernetes/kubelet.conf ] && echo yes)"
echo "control=$([ -e /etc/kubernetes/manifests/kube-apiserver.yaml ] && echo yes)"
echo "installed=$(cat "$installed" 2>/dev/null)"
echo "applied=$(cat "$applied" 2>/dev/null)"
for path in "$@"; do
  if [ -f "$path" ]; then echo "file=$(sha256sum "$path")"; fi
done
for unit in "$init" "$join"; do
  if unfinished "$folder" "$unit"; then echo "unfinished=yes"; fi
done
for unit in haproxy keepalived; do echo "unit=$unit $(state "$unit")"; done
"""
_NODES = """\
export KUBECONFIG=$1 address=$2; shift 2
nodes=$(kubectl --request-timeout=20s --server="https://$address:6443" get nodes --output=json)
printf '%s\\n' "$nodes" | tr -d '\\n'; echo
"""
_CLUSTER = etcd.CALL + _NODES + """\
members 20 list '{}'; echo
for address in "$@"; do
  case $(etcd 3 "https://$address:2379/health" 2>/dev/null) in *'"health":"true"'*) echo "$address" ;; esac
done
"""


@dataclass(frozen=True)
class Server:
    """One server."""

    interface: str = ""
    holds_vip: bool = False
    is_joined: bool = False
    is_control_plane: bool = False
    installed: str = ""
    applied: str = ""
    digests: Mapping[str, str] = field(default_factory=dict)
    active: frozenset[str] = frozenset()
    """Those of its services that run."""


@dataclass(frozen=True)
class Member:
    """A member of etcd; a master that is joining may not have its name yet."""

    id: str
    name: str
    address: str
    is_healthy: bool


@dataclass(frozen=True)
class Cluster:
    """What a master says of the cluster."""

    ready: Mapping[str, bool] = field(default_factory=dict)
    """The cluster's nodes by name: are they Ready?"""
    masters: frozenset[str] = frozenset()
    """Those of them that are control planes."""
    members: tuple[Member, ...] = ()


@dataclass(frozen=True)
class Facts:
    """Of all servers that respond, by node, and of the cluster, if there is one."""

    servers: Mapping[str, Server]
    cluster: Cluster | None = None

    def of(self, node: Node) -> Server:
        """Empty for a server that does not respond."""
        return self.servers.get(node.name, Server())


def of_server(node: Node, vip: str) -> Command:
    steps = (FOLDER, configuration.INITIALIZE, configuration.JOIN)
    return script("the look at the server", _SERVER, node.address, vip, INSTALLED, APPLIED, *steps, *UNITS)


def read_server(output: str) -> Server:
    """Of what `of_server` prints. A server on which kubeadm has not ended well is in no cluster yet."""
    pairs = [line.partition("=")[::2] for line in output.splitlines()]
    single = dict(pairs)
    is_finished = "unfinished" not in single
    files = (value.split(maxsplit=1) for key, value in pairs if key == "file")
    units = (value.split() for key, value in pairs if key == "unit")
    return Server(
        interface=single.get("interface", ""),
        holds_vip=single.get("holds") == "yes",
        is_joined=is_finished and single.get("joined") == "yes",
        is_control_plane=is_finished and single.get("control") == "yes",
        installed=single.get("installed", ""),
        applied=single.get("applied", ""),
        digests={one[1]: one[0] for one in files if len(one) == 2},
        active=frozenset(one[0] for one in units if one[1:] == ["active"]),
    )


def of_cluster(by: Node, masters: Iterable[Node]) -> Command:
    """Asks the API server and the etcd member of the master `by`, and the health of all."""
    addresses = (one.address for one in masters if one.is_there)
    return script("the look at the cluster", _CLUSTER, KUBECONFIG, by.address, *addresses, within=90)


def read_cluster(output: str) -> Cluster:
    """Of what `of_cluster` prints. ValueError for anything else."""
    nodes, members, *healthy = output.splitlines()
    found = tuple(_member(one, healthy) for one in entries(decoded(members.encode()), "members"))
    return dataclasses.replace(read_nodes(nodes), members=found)


def of_nodes(by: Node) -> Command:
    """Asks the API server of the master `by` alone: not each way to make a cluster has etcd at the same place."""
    return script("the look at the cluster", _NODES, KUBECONFIG, by.address, within=60)


def read_nodes(output: str) -> Cluster:
    """Of what `of_nodes` prints. ValueError for anything else."""
    names = {text(one, "metadata", "name"): one for one in entries(decoded(output.encode()), "items")}
    return Cluster(
        {name: _is_ready(one) for name, one in names.items()},
        frozenset(name for name, one in names.items() if _CONTROL_PLANE in mapping(one, "metadata", "labels")),
    )


_CONTROL_PLANE = "node-role.kubernetes.io/control-plane"


def _is_ready(node: Mapping[str, object]) -> bool:
    found = entries(node, "status", "conditions")
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in found)


def _member(listed: Mapping[str, object], healthy: Iterable[str]) -> Member:
    address = next(iter(texts(listed, "peerURLs")), "").rpartition(":")[0].rpartition("/")[2]
    return Member(text(listed, "ID"), text(listed, "name"), address, address in set(healthy))
