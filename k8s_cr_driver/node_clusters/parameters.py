# SPDX-License-Identifier: Apache-2.0
"""The parameters of a cluster: `k8s_cluster_installation_param` in additionalParams, with the names of the specifications.

All are checked before anything is done, and all mistakes are reported at once. Those of an earlier request are kept in the
instance without secrets; a later request repeats its passwords, or the instance has an SSH key of the operator's folder.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.node_clusters import balancers, checks
from k8s_cr_driver.node_clusters.balancers import Balancers
from k8s_cr_driver.node_clusters.groups import Group
from k8s_cr_driver.node_clusters.storage import parameters as storage
from k8s_cr_driver.objects.fields import mapping, similar, text, type_name
from k8s_cr_driver.redaction import lines
from k8s_cr_driver.ssh import host_keys

PARAMETER = "k8s_cluster_installation_param"
API_PORT, API_SERVER_PORT = 16443, 6443
"""Where HAProxy listens on a master, and where its API server does."""
NOT_KEPT = ("password", "ssh_password", "force")
"""What a later request repeats, or does without."""
VIM_TYPE = "ETSINFV.KUBERNETES.V_1"
PROXY = "proxy"
_NETWORKS = {"pod_cidr": "192.168.0.0/16", "cluster_cidr": "10.96.0.0/12"}
"""The defaults of the specifications."""
_PORTS = (22, 8404, 2379, 2380, 2381, API_SERVER_PORT, *range(10248, 10251), 10256, 10257, 10259)
"""Of SSH and of HAProxy's own state; then those of etcd and Kubernetes on a master."""
_CREDENTIALS = re.compile(r"^([a-z][a-z0-9+.-]*://)?(.*)@", re.IGNORECASE)
"""In the URL of a proxy, which may have no scheme, and a password with any character."""
_OF_URL = re.compile(r"^([a-z][a-z0-9+.-]*://)([^/\s]*)@", re.IGNORECASE)
SETTINGS = "settings"
_SECRET = re.compile("passw|(secret|token|private_key|secret_key)$", re.IGNORECASE)
"""In the name of one of `settings`, which are variables of Ansible, whose value is a text."""


@dataclass(frozen=True)
class Parameters:
    """What a request, and those before it, say of a cluster."""

    masters: Group
    workers: Group
    cluster_cp_name: str
    """The resource of the top template that is the port of the virtual IP, or the port of the only master."""
    cluster_fip_name: str
    """The floating IP that leads to it, "" for none."""
    script_path: str
    """In the package: installs what a node needs; "" for images that have it."""
    vim_name: str
    ssh_key: str
    """The name of a private key that the operator has for the project."""
    ssh_host_keys: tuple[str, ...]
    """Public keys of the servers, as their user data gives them; without any key the consoles are read."""
    ssh_host_authorities: tuple[str, ...]
    """Public keys of authorities that have signed the keys of the servers."""
    vim_cloud: str
    """The name of a cloud in whose Tacker the operator lets the cluster become a VIM; "" for none."""
    kubernetes_version: str
    pod_cidr: str
    cluster_cidr: str
    manifests: tuple[str, ...]
    """Files of the package that the new cluster gets, such as a network plugin."""
    api_port: int
    drain_timeout: int
    proxy: Mapping[str, str] = field(repr=False)
    storage: storage.Storage
    balancers: Balancers | None
    """Where they are no masters."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that no error may have, although a script of the package is given them."""
        credentials = [found[2] for value in self.proxy.values() if (found := _CREDENTIALS.match(value))]
        passwords = [one.partition(":")[2] for one in credentials]
        of_balancers = (self.balancers.group.password,) if self.balancers else ()
        return (self.masters.password, self.workers.password, *of_balancers, *credentials, *passwords)


@dataclass(frozen=True)
class Way:
    """What one way to make a cluster asks for, beside what all ask for."""

    required: tuple[str, ...] = ("cluster_cp_name",)
    """Of `master_node`."""
    sections: tuple[str, ...] = ()
    problems: Callable[[Mapping[str, Any]], Iterator[str]] = lambda _: iter(())
    """What is wrong with these sections."""
    balancers: Callable[[Mapping[str, Any]], Balancers | None] = lambda _: None
    api_port: int = API_PORT
    """Where its load balancer listens."""


KUBEADM = Way(sections=(balancers.SECTION,), problems=balancers.problems, balancers=balancers.read)


def read(given: Any, kept: Mapping[str, Any], instance: str, way: Way = KUBEADM) -> Parameters:
    """The parameters of a request, over those kept of earlier ones. Raises InvalidRequest with all mistakes."""
    if not isinstance(given, Mapping):
        raise InvalidRequest(f"additionalParams.{PARAMETER}: must be a mapping, not {type_name(given)}")
    merged = over(kept, given)
    found = list(_problems(merged, way)) if merged else [": is missing; it says of which servers the cluster is"]
    if not kept and not found:
        found = [*_networks(merged), *_ports(merged, way)]
    if kept and merged.get("vim_name") != kept.get("vim_name"):
        found.append(".vim_name: stays what it was at the instantiate: the VIM of the former name would be left")
    if found:
        raise InvalidRequest(lines(f"additionalParams.{PARAMETER}{problem}" for problem in found))
    masters = mapping(merged, "master_node")
    return Parameters(
        masters=_group(masters),
        workers=_group(mapping(merged, "worker_node")),
        cluster_cp_name=text(masters, "cluster_cp_name"),
        cluster_fip_name=text(masters, "cluster_fip_name"),
        script_path=text(merged, "script_path"),
        vim_name=text(merged, "vim_name") or f"kubernetes_vim_{instance}",
        ssh_key=text(merged, "ssh_key"),
        ssh_host_keys=tuple(map(host_keys.public_key, merged.get("ssh_host_keys", ()))),
        ssh_host_authorities=tuple(map(host_keys.public_key, merged.get("ssh_host_authorities", ()))),
        vim_cloud=text(merged, "vim_cloud"),
        kubernetes_version=text(merged, "kubernetes_version"),
        pod_cidr=str(_network(masters, "pod_cidr")),
        cluster_cidr=str(_network(masters, "cluster_cidr")),
        manifests=tuple(merged.get("manifests", ())),
        api_port=merged.get("api_port", way.api_port),
        drain_timeout=merged.get("drain_timeout", 300),
        proxy={key: value for key, value in mapping(merged, PROXY).items() if value},
        storage=storage.read(merged),
        balancers=way.balancers(merged),
    )


def without_secrets(merged: Mapping[str, Any]) -> dict[str, Any]:
    kept = {
        key: without_secrets(value) if isinstance(value, Mapping) else value
        for key, value in merged.items()
        if key not in NOT_KEPT
    }
    if isinstance(proxy := kept.get(PROXY), Mapping):
        kept[PROXY] = {key: _CREDENTIALS.sub(r"\1", value) if isinstance(value, str) else value for key, value in proxy.items()}
    if SETTINGS in kept:
        kept[SETTINGS] = _harmless(kept[SETTINGS])
    return kept


def _harmless(value: Any) -> Any:
    """Without what the names of its parts call secret, and without credentials in URLs."""
    if isinstance(value, Mapping):
        return {key: _harmless(part) for key, part in value.items() if not _is_secret(key, part)}
    if isinstance(value, list):
        return [_harmless(part) for part in value]
    return _OF_URL.sub(r"\1", value) if isinstance(value, str) else value


def secrets_of(value: Any) -> Iterator[str]:
    """What `_harmless` leaves out of it."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from [part] if _is_secret(key, part) else secrets_of(part)
    elif isinstance(value, list):
        for part in value:
            yield from secrets_of(part)
    elif isinstance(value, str) and (found := _OF_URL.match(value)):
        yield from (found[2], found[2].partition(":")[2])


def _is_secret(name: Any, value: Any) -> bool:
    return isinstance(value, str) and _SECRET.search(str(name)) is not None


def over(kept: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Those of a request over those kept of earlier ones: it may repeat a part of a section."""
    merged = dict(kept)
    for key, value in given.items():
        both = isinstance(value, Mapping) and isinstance(kept.get(key), Mapping)
        merged[key] = {**kept[key], **value} if both else value
    return merged


def merged(given: Any, kept: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters as they are kept for later requests."""
    return without_secrets(over(kept, given if isinstance(given, Mapping) else {}))


def _group(given: Mapping[str, Any]) -> Group:
    ssh = text(given, "ssh_cp_name")
    return Group(
        text(given, "vdu_id"),
        text(given, "aspect_id"),
        ssh,
        text(given, "nic_cp_name") or ssh,
        text(given, "username"),
        text(given, "password"),
    )


def _network(masters: Mapping[str, Any], key: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    """Of an address in a network, as 192.168.3.0/16, the network."""
    return ipaddress.ip_network(masters.get(key, _NETWORKS[key]), strict=False)


def _networks(merged: Mapping[str, Any]) -> Iterator[str]:
    """A cluster that has such ones becomes Ready, and Pods do not reach Services."""
    pods, services = (_network(mapping(merged, "master_node"), key) for key in _NETWORKS)
    where = f".master_node.cluster_cidr: {services}, the network of Services,"
    if pods.version != services.version:
        yield f"{where} and pod_cidr {pods} must be both of IPv4, or both of IPv6"
    elif pods.overlaps(services):
        yield f"{where} overlaps pod_cidr {pods}; choose networks without a common address"


def _ports(merged: Mapping[str, Any], way: Way) -> Iterator[str]:
    """HAProxy cannot listen where another program of the server does."""
    masters = mapping(merged, "master_node")
    is_apart = way is not KUBEADM or balancers.SECTION in merged
    has_own = text(masters, "cluster_cp_name") in (masters.get("ssh_cp_name"), masters.get("nic_cp_name"))
    port = merged.get("api_port", way.api_port)
    if not has_own and port in (_PORTS[:2] if is_apart else _PORTS):
        yield f".api_port: {port} is taken by another program where HAProxy listens; choose another one, such as {way.api_port}"


_GROUP: Mapping[str, Any] = {
    "aspect_id": checks.is_name,
    "vdu_id": checks.is_name,
    "ssh_cp_name": checks.is_name,
    "nic_cp_name": checks.is_name,
    "username": checks.is_user,
    "password": checks.is_text,
}
_PROXY: Mapping[str, Any] = dict.fromkeys(("http_proxy", "https_proxy", "no_proxy", "k8s_node_cidr"), checks.is_text)
_TABLES: Mapping[str, Mapping[str, Any]] = {
    "": {
        "script_path": checks.is_path,
        "vim_name": checks.is_name,
        "ssh_key": checks.is_name,
        "ssh_host_keys": checks.are_keys,
        "ssh_host_authorities": checks.are_keys,
        "vim_cloud": checks.is_name_or_none,
        "kubernetes_version": checks.is_version,
        "manifests": checks.are_paths,
        "api_port": checks.between(1, 65535),
        "drain_timeout": checks.between(1, 3600),
    },
    "master_node": {
        **_GROUP,
        "pod_cidr": checks.is_network,
        "cluster_cidr": checks.is_network,
        "cluster_cp_name": checks.is_name,
        "cluster_fip_name": checks.is_name,
    },
    "worker_node": _GROUP,
    PROXY: _PROXY,
}
_REQUIRED = ("ssh_cp_name", "username")


def vim_name_problem(name: str, body: Mapping[str, Any]) -> str:
    """Why the cluster cannot be the VIM `name` in the vimConnectionInfo of an instance or a request, "" if it can."""
    kind = text(body, "vimConnectionInfo", name, "vimType")
    if kind in ("", VIM_TYPE):
        return ""
    return f"vim_name: {name} is the VIM of type {kind} in vimConnectionInfo; choose another name"


def _problems(merged: Mapping[str, Any], way: Way) -> Iterator[str]:
    """Each begins with the path below the parameter."""
    required = {"master_node": (*_REQUIRED, *way.required), "worker_node": _REQUIRED}
    sections = {name for name in (*_TABLES, *storage.SECTIONS, *way.sections) if name}
    for key in sorted(merged.keys() - _TABLES[""].keys() - sections):
        hint = similar(str(key), [*_TABLES[""], *sections])
        yield f".{key}: is not a parameter" + (f"; is it {hint}?" if hint else "")
    for section, table in _TABLES.items():
        given = merged if not section else merged.get(section, {})
        if not isinstance(given, Mapping):
            yield f".{section}: must be a mapping, not {type_name(given)}"
            continue
        where = f".{section}" if section else ""
        yield from checks.fields(where, table, given, required.get(section, ()), may_have_others=not section)
        if section in required and not given.get("vdu_id") and not given.get("aspect_id"):
            yield f"{where}.vdu_id: is missing; it is the VDU of these servers"
    for key in ("vdu_id", "aspect_id"):
        if (name := text(merged, "worker_node", key)) and name == text(merged, "master_node", key):
            yield f".worker_node.{key}: is that of master_node; the workers are servers of a VDU of their own"
    yield from storage.problems(merged)
    yield from way.problems(merged)
