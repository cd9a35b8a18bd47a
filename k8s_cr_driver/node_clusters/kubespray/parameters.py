# SPDX-License-Identifier: Apache-2.0
"""The sections `ansible` and `external_lb_param`, with the names of the specification."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from k8s_cr_driver.node_clusters import balancers, checks
from k8s_cr_driver.node_clusters.node_ports import MOST
from k8s_cr_driver.node_clusters.parameters import SETTINGS, Parameters, Way, over
from k8s_cr_driver.node_clusters.parameters import read as read_common
from k8s_cr_driver.node_clusters.storage import parameters as storage
from k8s_cr_driver.objects.fields import mapping, text, texts, type_name
from k8s_cr_driver.ssh import host_keys

ANSIBLE, BALANCER = "ansible", balancers.SECTION
API_PORT = 8383
"""Where the load balancer has the API."""
OURS = {
    "kube_version": "kubernetes_version",
    "kube_pods_subnet": "master_node.pod_cidr",
    "kube_service_addresses": "master_node.cluster_cidr",
    "http_proxy": "proxy",
    "https_proxy": "proxy",
    "no_proxy": "proxy",
    "loadbalancer_apiserver": "external_lb_param",
    "loadbalancer_apiserver_localhost": "external_lb_param",
    "supplementary_addresses_in_ssl_keys": "external_lb_param",
}
"""Settings of kubespray that follow from a parameter."""
# Without spaces, `%` and `{`, which OpenSSH and Ansible would interpret in a path.
_FOLDER = re.compile(r"/[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+){0,31}")
_SETTING = re.compile(r"[a-z_][a-z0-9_]{0,99}")


@dataclass(frozen=True)
class Ansible:
    """The server that has Ansible and kubespray, and how its user logs in."""

    address: str
    username: str
    password: str = field(repr=False)
    ssh_key: str
    """The name of a private key of the operator; that of the nodes by default."""
    host_keys: tuple[str, ...]
    root: str
    """The folder of kubespray."""
    inventories: str
    """The folder in which each instance has one."""
    program: str
    """ansible-playbook."""
    node_key: str
    """The private key on the Ansible server that opens the nodes; "" for those that its user has by default."""
    has_older_groups: bool
    """Whether the groups have the names of kubespray before 2.17, such as kube-node."""
    skip_tags: tuple[str, ...]
    """Tags of kubespray's tasks that are left out."""
    settings: Mapping[str, Any] = field(repr=False)
    """Variables of kubespray."""


@dataclass(frozen=True)
class Balancer:
    """The server of the instance that is the external load balancer."""

    ssh_cp_name: str
    nic_cp_name: str
    """The port at which the nodes reach it; that of `ssh_cp_name` by default."""
    username: str
    password: str = field(repr=False)
    script_path: str
    node_ports: tuple[int, ...]
    """NodePorts of Services that it exposes on the same port."""


@dataclass(frozen=True)
class Kubespray:
    """What a request, and those before it, say of a cluster that kubespray makes."""

    common: Parameters
    ansible: Ansible
    balancer: Balancer | None


def read(given: Any, kept: Mapping[str, Any], instance: str) -> Kubespray:
    """The parameters of a request, over those kept of earlier ones. Raises InvalidRequest with all mistakes."""
    common = read_common(given, kept, instance, WAY)
    merged = over(kept, given)
    return Kubespray(common, _ansible(mapping(merged, ANSIBLE), common.ssh_key), _balancer(merged))


def _ansible(given: Mapping[str, Any], ssh_key: str) -> Ansible:
    return Ansible(
        address=text(given, "ip_address"),
        username=text(given, "username"),
        password=text(given, "password"),
        ssh_key=text(given, "ssh_key") or ssh_key,
        host_keys=tuple(map(host_keys.public_key, texts(given, "host_keys"))),
        root=text(given, "kubespray_root_path").rstrip("/"),
        inventories=text(given, "transferring_inventory_path").rstrip("/"),
        program=text(given, "ansible_playbook") or "ansible-playbook",
        node_key=text(given, "node_key_path"),
        has_older_groups=given.get("older_groups", False),
        skip_tags=tuple(texts(given, "skip_tags")),
        settings=dict(mapping(given, SETTINGS)),
    )


def _balancer(merged: Mapping[str, Any]) -> Balancer | None:
    given = mapping(merged, BALANCER)
    if not given:
        return None
    ssh = text(given, "ssh_cp_name")
    return Balancer(
        ssh,
        text(given, "nic_cp_name") or ssh,
        text(given, "ssh_username"),
        text(given, "ssh_password"),
        text(given, "script_path"),
        tuple(given.get("node_ports", ())),
    )


def _is_folder(value: Any) -> str:
    is_right = isinstance(value, str) and _FOLDER.fullmatch(value.rstrip("/")) and ".." not in value.split("/")
    return "" if is_right else "must be an absolute path of letters, digits, and the characters . _ - /"


def _is_boolean(value: Any) -> str:
    return "" if isinstance(value, bool) else f"must be true or false, not {type_name(value)}"


def _are_tags(value: Any) -> str:
    is_right = isinstance(value, list) and not any(map(checks.is_name, value))
    return "" if is_right else "must be a list of tags"


def _are_settings(value: Any) -> str:
    if not isinstance(value, Mapping):
        return f"must be a mapping of variables of kubespray, not {type_name(value)}"
    wrong = [str(name) for name in value if not _SETTING.fullmatch(str(name)) or str(name).startswith("ansible_")]
    if wrong:
        return f"{', '.join(sorted(wrong))}: is no variable of kubespray"
    if ours := sorted(value.keys() & OURS.keys()):
        return "; ".join(f"{name} follows from {OURS[name]}" for name in ours)
    return ""


def _are_ports(value: Any) -> str:
    is_right = isinstance(value, list) and len(value) <= MOST and all(
        type(one) is int and 1 <= one <= 65535 for one in value
    )
    return "" if is_right else f"must be a list of up to {MOST} NodePorts"


_TABLES: Mapping[str, checks.Table] = {
    ANSIBLE: {
        "ip_address": checks.is_address,
        "username": checks.is_user,
        "password": checks.is_text,
        "ssh_key": checks.is_name,
        "host_keys": checks.are_keys,
        "kubespray_root_path": _is_folder,
        "transferring_inventory_path": _is_folder,
        "ansible_playbook": _is_folder,
        "node_key_path": _is_folder,
        "older_groups": _is_boolean,
        "skip_tags": _are_tags,
        SETTINGS: _are_settings,
    },
    BALANCER: {
        "ssh_cp_name": checks.is_name,
        "nic_cp_name": checks.is_name,
        "ssh_username": checks.is_user,
        "ssh_password": checks.is_text,
        "script_path": checks.is_path,
        "node_ports": _are_ports,
    },
}
_REQUIRED = {
    ANSIBLE: ("ip_address", "username", "kubespray_root_path", "transferring_inventory_path"),
    BALANCER: ("ssh_cp_name", "ssh_username"),
}


def _problems(merged: Mapping[str, Any]) -> Iterator[str]:
    if merged.get("script_path") and storage.SERVER not in merged:
        yield f".script_path: must be empty: kubespray installs the nodes; the load balancer's is {BALANCER}.script_path"
    if BALANCER not in merged and "api_port" in merged:
        yield f".api_port: is that of the load balancer; {BALANCER} is missing"
    if ANSIBLE not in merged:
        yield f".{ANSIBLE}: is missing; it is the server that has kubespray"
    for section, table in _TABLES.items():
        given = merged.get(section, {})
        if not isinstance(given, Mapping):
            yield f".{section}: must be a mapping, not {type_name(given)}"
        elif section in merged:
            yield from checks.fields(f".{section}", table, given, _REQUIRED[section])
    listed = mapping(merged, BALANCER).get("node_ports")
    if isinstance(listed, list) and merged.get("api_port", API_PORT) in listed:
        yield f".{BALANCER}.node_ports: the load balancer has the API at {merged.get('api_port', API_PORT)}"


WAY = Way((), (ANSIBLE, BALANCER), _problems, api_port=API_PORT)
