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

from k8s_cr_driver.objects.fields import field, mapping
from k8s_cr_driver.objects.keys import CRD, Object, key_of, kind_of
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
_HOST = ("hostNetwork", "hostPID", "hostIPC")


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
        if field(value, "securityContext", "privileged") is True:
            yield f"{path}.securityContext.privileged: has all permissions on the node"
        if value.get("hostPort"):
            yield f"{path}.hostPort: is a port of the node"
        if value.get("externalIPs"):  # CVE-2020-8554: traffic of others to these addresses goes to the Service
            yield f"{path}.externalIPs: leads traffic of others to this Service"
        for name, item in value.items():
            yield from _of_pods(item, f"{path}.{name}" if path else str(name))
