# SPDX-License-Identifier: Apache-2.0
"""What tests look at in a cluster with several masters, and what they do to it."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from builds import commands

from ..testbed.nodes import Node
from ..testbed.openstack import network as switch
from ..testbed.openstack import security
from .site import MASTERS, Server, Site, name_of

PORT = 16443
# Seconds for a connection.
WITHIN = 5.0
WHOLE_WITHIN = 300.0
"""Seconds, however busy the host is."""


def is_reached(address: str) -> bool:
    try:
        socket.create_connection((address, PORT), timeout=WITHIN).close()
    except OSError:
        return False
    return True


@contextmanager
def secured(node: Node, pairs: list[str]) -> Iterator[None]:
    """A security group permits everything meanwhile; the port may send from its own address and these."""
    permitted = [{"direction": one, "ethertype": "IPv4", "protocol": None} for one in ("ingress", "egress")]
    unnamed = {"remote_group_id": None, "remote_ip_prefix": None, "port_range_min": None, "port_range_max": None}
    port = {
        "port_security_enabled": True,
        "security_groups": ["all"],
        "fixed_ips": [{"ip_address": node.address}],
        "allowed_address_pairs": [{"ip_address": one} for one in pairs],
    }
    group = {"security_group_rules": [{**one, **unnamed} for one in permitted]}
    namespace = f"k8scr-{node.name}"
    switch.load(namespace, security.TABLE, security.rules([port], {"all": group}, {}))
    try:
        yield
    finally:
        commands.run(["ip", "netns", "exec", namespace, "nft", "delete", "table", *security.TABLE.split()])


def members(site: Site, by: Server | None = None) -> set[str]:
    """The names of etcd's members."""
    pki = "/etc/kubernetes/pki/etcd"
    certificate = ["--cacert", f"{pki}/ca.crt", "--cert", f"{pki}/healthcheck-client.crt", "--key"]
    key = f"{pki}/healthcheck-client.key"
    url = "https://127.0.0.1:2379/v3/cluster/member/list"
    machine = site.nodes[(by or site.of(MASTERS)[0]).id].machine
    listed = machine.run("curl", "--silent", "--fail", *certificate, key, "--request", "POST", "--data", "{}", url)
    return {one["name"] for one in json.loads(listed)["members"]}


def keep_a_pod_on(site: Site, server: Server) -> None:
    """A Pod of a Deployment runs there, and none of it may be evicted."""
    labels = {"app": "kept"}
    container = {"name": "web", "image": "nginx", "imagePullPolicy": "IfNotPresent"}
    spec = {"nodeSelector": {"kubernetes.io/hostname": site_label(site, server)}, "containers": [container]}
    template = {"metadata": {"labels": labels}, "spec": {**spec, "terminationGracePeriodSeconds": 1}}
    objects = [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "kept"},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
        },
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "kept"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}},
        },
    ]
    site.apply(*objects)
    site.kubectl("rollout", "status", "deployment/kept", "--timeout=300s")


def site_label(site: Site, server: Server) -> str:
    """What the kubelet says of its host."""
    node = json.loads(site.kubectl("get", "node", name_of(server), "--output=json"))
    return str(node["metadata"]["labels"]["kubernetes.io/hostname"])


def holder(site: Site) -> Server:
    [one] = site.holders()
    return one


def haproxy(site: Site, server: Server) -> str:
    """The configuration of HAProxy on a server."""
    return site.nodes[server.id].machine.run("cat", "/etc/haproxy/haproxy.cfg")


def uids(site: Site) -> dict[str, str]:
    """Of the Nodes, which are others if a server has joined again."""
    other = next(one for one in site.of(MASTERS) if one != holder(site))
    listed = json.loads(site.kubectl("get", "nodes", "--output=json", by=other))["items"]
    return {one["metadata"]["name"]: one["metadata"]["uid"] for one in listed}


def is_whole(site: Site) -> bool:
    """All nodes are Ready, each API server responds, and one master has the virtual IP."""
    try:
        ready = [site.kubectl("get", "--raw=/readyz", by=one) for one in site.of(MASTERS)]
        return ready == ["ok"] * len(ready) and site.ready() == site.names() and len(site.holders()) == 1
    except RuntimeError:
        return False


def run(line: str, node: Node) -> None:
    node.machine.run("sh", "-c", line)


def runs(node: Node, unit: str) -> bool:
    """False also while the machine boots."""
    try:
        shown = node.machine.run("systemctl", "show", "--property=ActiveState", "--value", f"{unit}.service")
    except RuntimeError:
        return False
    return shown.strip() == "active"
