# SPDX-License-Identifier: Apache-2.0
"""
What a package of a tenant must not contain, even if the account of the VIM may create it.

These objects give permissions, or reach other tenants, the nodes or the API server itself. Pods are found by their fields,
wherever they are in an object: a controller makes Pods of templates of any kind. Others judge Pods that nobody has
written into a manifest: Pod Security admission.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from k8s_cr_driver.objects.fields import field, mapping, texts
from k8s_cr_driver.objects.keys import CRD, NAMESPACE, GroupKind, Object, key_of, kind_of, labels
from k8s_cr_driver.vnf.policy import Policy

_OBJECTS = Policy(
    denied_kinds=(
        "*.admissionregistration.k8s.io",
        "*.apiregistration.k8s.io",
        "ClusterRole.rbac.authorization.k8s.io",
        "ClusterRoleBinding.rbac.authorization.k8s.io",
    ),
    denied_namespaces=("kube-*",),
)
_VOLUME = GroupKind("", "PersistentVolume")
_HOST = ("hostNetwork", "hostPID", "hostIPC")
_CAPABILITIES = frozenset({"ALL", "BPF", "DAC_READ_SEARCH", "SYS_ADMIN", "SYS_BOOT", "SYS_MODULE", "SYS_RAWIO", "SYS_TIME"})
"""Those of a container (capabilities(7)) that reach its node, or what is in it, as a privileged one does."""
_POD_SECURITY = "pod-security.kubernetes.io/enforce"
"""The label by which a Namespace decides about its Pods (Pod Security admission)."""


def violation(objects: Iterable[Object]) -> str:
    """The first object with what a tenant must not have, and that; "" if there is none."""
    for obj in objects:
        if found := next(_found(obj), ""):
            return f"{key_of(obj)}: {found}"
    return ""


def _found(obj: Object) -> Iterator[str]:
    rule = _OBJECTS.rule_against(key_of(obj))
    if rule:
        yield "its namespace is one of the cluster" if rule == "denied_namespaces" else "its kind controls the whole cluster"
    if kind_of(obj).kind == "RoleBinding" and field(obj, "roleRef", "name") == "cluster-admin":
        yield "roleRef: gives all permissions"
    if kind_of(obj) == _VOLUME and field(obj, "spec", "local"):
        yield "spec.local: is a folder or disk of the node"
    if kind_of(obj) == NAMESPACE and labels(obj).get(_POD_SECURITY) == "privileged":
        yield f"metadata.labels.{_POD_SECURITY}: lets Pods reach their nodes"
    if kind_of(obj) != CRD:  # its schema has fields of these names
        yield from _of_pods(obj, "")


def _of_pods(value: Any, path: str) -> Iterator[str]:
    """Fields by which a Pod reaches its node, or a Service the traffic of others, anywhere within a value."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _of_pods(item, f"{path}[{index}]")
    elif isinstance(value, dict):
        yield from (f"{path}.{name}: is a namespace of the node" for name in _HOST if value.get(name) is True)
        if mapping(value, "hostPath").get("path"):
            yield f"{path}.hostPath: is a folder of the node"
        yield from _of_context(mapping(value, "securityContext"), f"{path}.securityContext")
        if value.get("hostPort"):
            yield f"{path}.hostPort: is a port of the node"
        if value.get("externalIPs"):  # CVE-2020-8554: traffic of others to these addresses goes to the Service
            yield f"{path}.externalIPs: leads traffic of others to this Service"
        for name, item in value.items():
            yield from _of_pods(item, f"{path}.{name}" if path else str(name))


def _of_context(context: dict[str, Any], path: str) -> Iterator[str]:
    """What the security context of a Pod or of a container permits on the node."""
    for name in ("privileged", "windowsOptions.hostProcess"):
        if field(context, *name.split(".")) is True:
            yield f"{path}.{name}: has all permissions on the node"
    if context.get("procMount") == "Unmasked":
        yield f"{path}.procMount: shows and changes what the kernel has for the node"
    for name in texts(context, "capabilities", "add"):
        if name.upper().removeprefix("CAP_") in _CAPABILITIES:
            yield f"{path}.capabilities.add: {name} reaches the node"
