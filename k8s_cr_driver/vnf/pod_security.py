# SPDX-License-Identifier: Apache-2.0
"""
By which fields Pods, claims and Services reach what is not their tenant's, wherever they stand in an object.

A controller makes these of templates of any kind, so fields are known by their names alone. The rules are those of the profile
"baseline" of the Pod Security Standards (https://kubernetes.io/docs/concepts/security/pod-security-standards/), and some that
the standard leaves to other admission plugins. Others judge Pods that nobody has written into a manifest: Pod Security
admission.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from k8s_cr_driver.objects.fields import mapping, shown, walk
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.vnf import other_namespaces

_CAPABILITIES = frozenset(
    {
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP"),
        *("SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    }
)
_SYSCTLS = frozenset(
    {
        "kernel.shm_rmid_forced",
        *(f"net.ipv4.ip_{name}" for name in ("local_port_range", "unprivileged_port_start", "local_reserved_ports")),
        *(f"net.ipv4.tcp_{name}" for name in ("syncookies", "fin_timeout", "keepalive_time", "keepalive_intvl")),
        *("net.ipv4.tcp_keepalive_probes", "net.ipv4.ping_group_range"),
    }
)
_SELINUX_TYPES = ("", "container_t", "container_init_t", "container_kvm_t", "container_engine_t")
_PROFILES = (None, "", "RuntimeDefault", "Localhost")
_SNIPPETS = ("-snippet", "-snippets")
_NETWORKS = "k8s.v1.cni.cncf.io/networks"
_ADDRESS_ENDINGS = (
    *("loadbalancerips", "floatingips", "/ips", "-ips", "addresses", "ip-address", "ip_address", "ipaddrs", "eip-allocations"),
    *("load-balancer-ip", "load-balancer-ipv4", "load-balancer-ipv6", "load-balancer-id", "load-balancer-address", "pip-name"),
    *("address-pool", "from-pool", "ipv4pools", "ipv6pools", "service-group", "allow-shared-ip", "sharing-key"),
    "static-ip-name",
)
"""Of annotations by which controllers choose the address of a Service, or that of another one."""
_CHOOSES_VOLUME = "chooses a volume, which may be that of others"
_UNCHOSEN = (None, "", "None")
"""Of a Service's clusterIP: the cluster chooses it, or there is none."""
_ANNOTATIONS = "annotations"
_ENDINGS = ("annotations", "Annotations")
"""Of fields whose annotations a controller writes to what it makes, such as podAnnotations."""


class Home(NamedTuple):
    """Where an object is, and what the operator allows there."""

    namespace: str
    addresses: bool = False
    """Whether those of Services may be chosen."""
    external_names: Sequence[str] = ()
    """Patterns of hosts that a Service may stand for, and that URLs in annotations may have."""


Rule = Callable[[Any, Home], Iterator[str]]
"""Of a field's value: what is wrong, each with the rest of the path, if there is one."""


def violations(manifest: Object, home: Home) -> Iterator[str]:
    """Texts `PATH: REASON` for a manifest."""
    for path, value in walk(manifest):
        if isinstance(value, dict) and value.get("selector") and _is_claim(value):
            yield f"{shown(path)}.selector: {_CHOOSES_VOLUME}"
        name = str(path[-1]) if path else ""
        for rules in (_RULES, {} if home.addresses else _ADDRESSES):
            if rule := rules.get(_ANNOTATIONS if name.endswith(_ENDINGS) else name):
                yield from (f"{shown(path)}{found}" for found in rule(value, home))


def _is_on(value: Any) -> bool:
    return value is True or (isinstance(value, str) and value.lower() == "true")


def _flag(reason: str) -> Rule:
    return lambda value, _: iter([f": {reason}"] if _is_on(value) else [])


def _given(reason: str) -> Rule:
    """Whether the field has any value at all."""
    return lambda value, _: iter([f": {reason}"] if value else [])


def _number(reason: str) -> Rule:
    """A port: a field of this name with something else is of another meaning."""
    return lambda value, _: iter([f": {reason}"] if _is_number(value) else [])


def _is_number(value: Any) -> bool:
    """Whether it is a number other than zero, or the text of one."""
    if isinstance(value, str):
        return value.isdecimal() and bool(value.strip("0"))
    return isinstance(value, (int, float)) and not isinstance(value, bool) and bool(value)


def _profile(reason: str) -> Rule:
    def rule(value: Any, _: Home) -> Iterator[str]:
        if isinstance(value, dict) and value.get("type") not in _PROFILES:
            yield f".type: {reason}"

    return rule


def _proc_mount(value: Any, _: Home) -> Iterator[str]:
    if value not in (None, "", "Default"):
        yield ": shows and changes what the kernel has for the node"


def _capabilities(value: Any, _: Home) -> Iterator[str]:
    added = value.get("add") if isinstance(value, dict) else None
    for name in added if isinstance(added, list) else ():
        if str(name).upper().removeprefix("CAP_") not in _CAPABILITIES:
            yield f".add: {name} is none of the profile baseline"


def _selinux(value: Any, _: Home) -> Iterator[str]:
    if isinstance(value, dict):
        if (value.get("type") or "") not in _SELINUX_TYPES:
            yield ".type: is none of the profile baseline"
        yield from (f".{name}: is none of the profile baseline" for name in ("user", "role") if value.get(name))


def _sysctls(value: Any, _: Home) -> Iterator[str]:
    for one in value if isinstance(value, list) else ():
        if isinstance(one, dict) and str(one.get("name")) not in _SYSCTLS:
            yield f": {one.get('name')} is none of the profile baseline"


def _handler(value: Any, _: Home) -> Iterator[str]:
    if isinstance(value, dict) and value.get("host"):
        yield ".host: sends requests of the node to another host"


def _priority(value: Any, _: Home) -> Iterator[str]:
    if isinstance(value, str) and value.startswith("system-"):
        yield ": displaces Pods of others"


def _external_name(value: Any, home: Home) -> Iterator[str]:
    if reason := other_namespaces.external_name(str(value or ""), home.namespace, home.external_names):
        yield f": {reason}"


def _is_claim(value: dict[str, Any]) -> bool:
    """Whether it is the spec of a PersistentVolumeClaim, which has one of these fields at least."""
    return "accessModes" in value or "storage" in mapping(value, "resources", "requests")


def _reference(value: Any, home: Home) -> Iterator[str]:
    if isinstance(value, dict) and value.get("namespace") not in (None, "", home.namespace):
        yield ".namespace: is another one than its own"


def _cluster_ip(value: Any, _: Home) -> Iterator[str]:
    if any(one not in _UNCHOSEN for one in (value if isinstance(value, list) else [value])):
        yield ": chooses an address"


def _annotations(value: Any, home: Home) -> Iterator[str]:
    for name, given in mapping(value).items():
        if reason := _of_annotation(str(name), str(given), home):
            yield f".{name}: {reason}"


def _of_annotation(name: str, value: str, home: Home) -> str:
    prefix, _, rest = name.partition("/")
    if prefix == "container.apparmor.security.beta.kubernetes.io":
        return "" if value in ("", "runtime/default") or value.startswith("localhost/") else "is none of the profile baseline"
    if "seccomp.security.alpha.kubernetes.io" in prefix:
        return "is none of the profile baseline" if value == "unconfined" else ""
    if rest == "is-default-class" and value.lower() == "true":
        return "makes the class that of everybody"
    if rest.endswith(_SNIPPETS):
        return "configures a controller that others use"
    if name == _NETWORKS and (others := _namespaces_of(value) - {"", home.namespace}):
        return f"attaches a network of the namespace {min(others)}"
    return other_namespaces.annotation(name, value, home.namespace, home.external_names)


def _namespaces_of(value: str) -> set[str]:
    """Of networks in either form of Multus: `NAMESPACE/NAME@INTERFACE,...`, or JSON."""
    try:
        networks = json.loads(value)
    except (ValueError, RecursionError):
        return {one.strip().rpartition("/")[0] for one in value.split(",")}
    networks = networks if isinstance(networks, list) else [networks]
    return {str(one.get("namespace") or "") for one in networks if isinstance(one, Mapping)}


def _addresses(value: Any, _: Home) -> Iterator[str]:
    for name in mapping(value):
        if str(name).lower().endswith(_ADDRESS_ENDINGS):
            yield f".{name}: chooses an address"


_RULES: dict[str, Rule] = {
    "hostNetwork": _flag("is a namespace of the node"),
    "hostPID": _flag("is a namespace of the node"),
    "hostIPC": _flag("is a namespace of the node"),
    "hostProcess": _flag("has all permissions on the node"),
    "privileged": _flag("has all permissions on the node"),
    "adminAccess": _flag("reaches devices of others"),
    "hostPath": _given("is a folder of the node"),
    "hostDisk": _given("is a file of the node"),
    "gitRepo": _given("runs a program on the node"),
    "flexVolume": _given("runs a program on the node"),
    "hostPort": _number("is a port of the node"),
    "procMount": _proc_mount,
    "capabilities": _capabilities,
    "seccompProfile": _profile("is none of the profile baseline"),
    "appArmorProfile": _profile("is none of the profile baseline"),
    "seLinuxOptions": _selinux,
    "sysctls": _sysctls,
    "httpGet": _handler,
    "tcpSocket": _handler,
    "priorityClassName": _priority,
    "externalName": _external_name,
    "volumeName": _given(_CHOOSES_VOLUME),
    "dataSource": _reference,
    "dataSourceRef": _reference,
    "volumeSnapshotContentName": _given("chooses a snapshot, which may be that of others"),
    "volumeGroupSnapshotContentName": _given("chooses a snapshot, which may be that of others"),
    _ANNOTATIONS: _annotations,
}
_ADDRESSES: dict[str, Rule] = {
    "externalIPs": _given("leads traffic of others to this Service"),  # CVE-2020-8554
    "loadBalancerIP": _given("chooses an address"),
    "nodePort": _number("chooses a port of all nodes"),
    "healthCheckNodePort": _number("chooses a port of all nodes"),
    "clusterIP": _cluster_ip,
    "clusterIPs": _cluster_ip,
    "loadBalancerClass": _given("chooses a load balancer, which may be that of others"),
    _ANNOTATIONS: _addresses,
}
