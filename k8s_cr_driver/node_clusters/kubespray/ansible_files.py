# SPDX-License-Identifier: Apache-2.0
"""The folder of an instance on the Ansible server: inventory, settings, host keys, facts and a configuration of its own.

The configuration of kubespray itself trusts every host key, and keeps the facts of all clusters in /tmp by the names of hosts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import yaml

from k8s_cr_driver.node_clusters.inventory import Endpoint, Inventory, Node
from k8s_cr_driver.node_clusters.kubeadm import configuration
from k8s_cr_driver.node_clusters.kubespray.parameters import Ansible, Kubespray
from k8s_cr_driver.ssh.files import File
from k8s_cr_driver.ssh.host import Host

INVENTORY, SETTINGS, KNOWN_HOSTS, CONFIGURATION = "hosts.yaml", "group_vars/all/k8s-cr.yml", "known_hosts", "ansible.cfg"
SECRETS = "secrets.yml"
"""Passwords of the nodes; it is there only as long as a playbook runs."""
FACTS, RUN = "facts", "run"
MODE = "0600"
_GROUPS = ("kube_control_plane", "kube_node", "k8s_cluster", "calico_rr")
_OLDER = ("kube_control_plane", "kube-node", "k8s-cluster", "calico-rr")
_VARIABLES = {True: "k8s_cr_password_of_masters", False: "k8s_cr_password_of_workers"}
_CONFIGURATION = """\
[defaults]
inventory = {folder}/hosts.yaml
roles_path = {root}/roles
library = {root}/library
host_key_checking = True
gathering = smart
fact_caching = jsonfile
fact_caching_connection = {folder}/facts
fact_caching_timeout = 86400
force_valid_group_names = ignore
inventory_ignore_extensions = ~, .orig, .bak, .ini, .cfg, .retry, .pyc, .pyo, .creds, .gpg
interpreter_python = auto_silent
retry_files_enabled = False
timeout = 60
stdout_callback = ansible.posix.jsonl
[ssh_connection]
pipelining = True
control_path = %(directory)s/%%C-{digest}
ssh_args = {options}
"""
_OPTIONS = {
    "ControlMaster": "auto",
    "ControlPersist": "60s",
    "StrictHostKeyChecking": "yes",
    "UserKnownHostsFile": "{folder}/known_hosts",
    "GlobalKnownHostsFile": "/dev/null",
    "UpdateHostKeys": "no",
}


def folder(ansible: Ansible, instance: str) -> str:
    """Of one instance."""
    return f"{ansible.inventories}/k8s-cr-{instance}"


def files(kubespray: Kubespray, instance: str, inventory: Inventory, reach: Mapping[str, Host]) -> tuple[File, ...]:
    """All of them. reach: name of a node -> how it is reached. None has a secret, but for the credentials of a proxy."""
    where = folder(kubespray.ansible, instance)
    contents = {
        INVENTORY: hosts(kubespray, inventory),
        SETTINGS: settings(kubespray, inventory),
        KNOWN_HOSTS: "".join(line for node in inventory.nodes if node.is_there for line in _known(reach[node.name])),
        CONFIGURATION: _configuration(kubespray.ansible, where),
    }
    return tuple(File(f"{where}/{name}", content, mode=MODE) for name, content in contents.items())


def _known(host: Host) -> Iterator[str]:
    """Lines of sshd(8), SSH_KNOWN_HOSTS FILE FORMAT."""
    yield from (f"{host.address} {key}\n" for key in host.trusted)
    yield from (f"@cert-authority {host.address} {key}\n" for key in host.authorities)


def hosts(kubespray: Kubespray, inventory: Inventory) -> str:
    """The inventory. The name of each member of etcd is that of its place among the masters."""
    ansible = kubespray.ansible
    control_plane, workers, cluster, reflectors = _OLDER if ansible.has_older_groups else _GROUPS
    members = {node.name: f"etcd{number}" for number, node in enumerate(inventory.masters, 1)}
    masters = _empty(inventory.masters)
    children = {
        control_plane: {"hosts": masters},
        "etcd": {"hosts": dict(masters)},
        workers: {"hosts": _empty(node for node in inventory.nodes if not node.is_master)},
        reflectors: {"hosts": {}},
        cluster: {"children": {control_plane: {}, workers: {}, reflectors: {}}},
    }
    found = {node.name: _host(kubespray, node, members) for node in inventory.nodes}
    return yaml.safe_dump({"all": {"hosts": found, "children": children}}, sort_keys=False)


def _empty(nodes: Iterable[Node]) -> dict[str, dict[str, Any]]:
    return {node.name: {} for node in nodes}


def _host(kubespray: Kubespray, node: Node, members: Mapping[str, str]) -> dict[str, str]:
    group = kubespray.common.masters if node.is_master else kubespray.common.workers
    variables = {"ansible_host": node.ssh, "ip": node.address, "access_ip": node.address, "ansible_user": group.username}
    if kubespray.ansible.node_key:
        variables["ansible_ssh_private_key_file"] = kubespray.ansible.node_key
    if group.password:
        variables["ansible_password"] = "{{ " + _VARIABLES[node.is_master] + " }}"
    if node.name in members:
        variables["etcd_member_name"] = members[node.name]
    return variables


def secrets(kubespray: Kubespray) -> str:
    """The passwords of the nodes, which Ansible must not take for templates; "" without any."""
    groups = {True: kubespray.common.masters, False: kubespray.common.workers}
    given = {_VARIABLES[is_master]: group.password for is_master, group in groups.items() if group.password}
    return "".join(f"{name}: !unsafe {json.dumps(password)}\n" for name, password in given.items())


def settings(kubespray: Kubespray, inventory: Inventory) -> str:
    """Variables of kubespray: the request's, and those that follow from its other parameters."""
    common, endpoint = kubespray.common, inventory.endpoint
    own: dict[str, Any] = {
        "kube_pods_subnet": common.pod_cidr,
        "kube_service_addresses": common.cluster_cidr,
        "supplementary_addresses_in_ssl_keys": _names(endpoint, inventory.masters),
    }
    if common.kubernetes_version:
        own["kube_version"] = common.kubernetes_version.removeprefix("v")
    if kubespray.balancer:
        own["loadbalancer_apiserver"] = {"address": endpoint.address, "port": endpoint.port}
        own["loadbalancer_apiserver_localhost"] = False
    own |= configuration.proxy(inventory.masters[0], endpoint, common)
    return yaml.safe_dump({**kubespray.ansible.settings, **own})


def _names(endpoint: Endpoint, masters: Sequence[Node]) -> list[str]:
    """The addresses that the certificate of the API servers is for."""
    return sorted({endpoint.address, endpoint.public, *(node.ssh for node in masters)})


def _configuration(ansible: Ansible, where: str) -> str:
    """`%C` is a digest of user, address and port: other instances may have a server at the same address, so ours follows."""
    options = " ".join(f"-o {name}={value.format(folder=where)}" for name, value in _OPTIONS.items())
    digest = hashlib.sha256(where.encode()).hexdigest()[:8]
    return _CONFIGURATION.format(folder=where, root=ansible.root, options=options, digest=digest)
