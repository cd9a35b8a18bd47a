# SPDX-License-Identifier: Apache-2.0
"""
What a package of a tenant may contain, even if the account of the VIM may create more.

An allowlist of kinds outside of namespaces and of namespaces: the others give permissions, or reach other tenants, the nodes or
the API server itself. Within the namespaces of a tenant some kinds and fields do that, too; those of Pods, claims and Services
are in `pod_security`. The operator lists what tenants may have beside this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from k8s_cr_driver.objects.fields import entries, field, mapping, texts
from k8s_cr_driver.objects.keys import CRD, NAMESPACE, GroupKind, Object, ObjectKey, annotations_of, key_of, kind_of, labels
from k8s_cr_driver.vnf import pod_security
from k8s_cr_driver.vnf.policy import matches

OF_CLUSTER = "kube-"
"""Begins the names of the cluster's own namespaces."""
_RBAC = "rbac.authorization.k8s.io"
_DENIED: Mapping[str, str] = {
    "Endpoints": "leads traffic of a Service to any address",
    "EndpointSlice.discovery.k8s.io": "leads traffic of a Service to any address",
    "ServiceImport.multicluster.x-k8s.io": "leads traffic of a Service to any address",
    "CSIStorageCapacity.storage.k8s.io": "is what the scheduler knows of all storage",
    "NetworkAttachmentDefinition.k8s.cni.cncf.io": "configures network plugins, which run on the node",
    "ControllerRevision.apps": "is a template of Pods that only controllers write",
    "Binding": "chooses the node of a Pod",
}
"""Kinds of a namespace that tenants may not have, and why."""
_TEXTS = frozenset({GroupKind("", "ConfigMap"), GroupKind("", "Secret"), CRD})
"""Kinds of which only the metadata are judged, whatever the names of their fields are: texts, the schema of another kind."""
_POD_SECURITY = "pod-security.kubernetes.io/"
LEVELS = ("baseline", "restricted")
"""Of Pod Security, the stricter one last."""
_OF_NAMESPACES = ("app.kubernetes.io", _POD_SECURITY.rstrip("/"), "k8s-cr-driver")
"""
Prefixes of labels and annotations that a Namespace of a tenant may have.

Admission plugins and webhooks obey others. Labels without a prefix are in selectors, of NetworkPolicies as of webhooks.
"""
_SWITCHES = "may switch off, or change, what judges or reaches its contents"
_GRANTING = frozenset({"*", "bind", "escalate", "impersonate"})
"""Verbs of a role by which its subject gets more than the role says (Kubernetes, RBAC good practices)."""
_OF_KUBERNETES = (".k8s.io", ".x-k8s.io", ".kubernetes.io")
"""Ends of the API groups of the project and its subprojects, whose controllers all have in common."""
_ACCOUNT = "system:serviceaccount:"
"""Begins the name of one ServiceAccount as a user."""
_READING = frozenset({"get", "list", "watch"})
_UNGIVEN = frozenset(
    {
        *("*", "roles", "rolebindings", "serviceaccounts/token"),
        *("namespaces", "resourcequotas", "limitranges", "networkpolicies"),
        *("endpoints", "endpointslices", "serviceimports", "services/status", "ingresses/status", "pods/status"),
        *("bindings", "pods/binding", "network-attachment-definitions", "csistoragecapacities", "controllerrevisions"),
    }
)
"""
Resources that a role of a tenant may only read, with their subresources; "*" has all of them.

They give permissions, or limit what the Pods of the namespace may do, or lead traffic, or are of a denied kind. A role in a
namespace holds for that Namespace, too (Kubernetes, RBAC good practices).
"""


@dataclass(frozen=True)
class Rules:
    """What one tenant may have; the fields but `may_use` are options of [k8s_cr]."""

    tenant_kinds: Sequence[str] = ()
    """Patterns of further kinds, also outside of namespaces."""
    tenant_cluster_roles: Sequence[str] = ()
    """Patterns of ClusterRoles that RoleBindings may name."""
    tenant_external_names: Sequence[str] = ()
    """Patterns of hosts that are not public, and that Services may stand for, or URLs in annotations have."""
    tenant_namespace_labels: Sequence[str] = ()
    """Patterns of further labels of Namespaces."""
    allow_service_addresses: bool = False
    tenant_pod_security: str = LEVELS[0]
    """What the label `pod-security.kubernetes.io/enforce` of a Namespace says at least."""
    may_use: Callable[[str], str] = lambda _: ""
    """Why the tenant may not have objects in the namespace of that name; "" if it may."""


def violation(objects: Sequence[Object], rules: Rules) -> str:
    """The first object with what a tenant must not have, and that; "" if there is none. Asks once for each namespace."""
    places = {place: rules.may_use(place) for place in sorted({_place(key_of(obj)) for obj in objects} - {""})}
    roles = {key_of(obj) for obj in objects if kind_of(obj) == GroupKind(_RBAC, "Role")}
    for obj in objects:
        if found := next(_found(obj, rules, places, roles), ""):
            return f"{key_of(obj)}: {found}"
    return ""


def _place(key: ObjectKey) -> str:
    return key.name if key.group_kind == NAMESPACE else key.namespace


def _found(obj: Object, rules: Rules, places: Mapping[str, str], roles: Iterable[ObjectKey]) -> Iterator[str]:
    key, kind = key_of(obj), kind_of(obj)
    if reason := places.get(_place(key), ""):
        yield f"its namespace {reason}"
    if not matches(str(kind), rules.tenant_kinds):
        if not key.namespace and kind not in (NAMESPACE, CRD):
            yield "its kind is one of the whole cluster"
        if reason := _DENIED.get(str(kind), ""):
            yield f"its kind {reason}"
    yield from _BY_KIND.get(str(kind), _nothing)(obj, rules)
    if str(kind) == f"RoleBinding.{_RBAC}":
        yield from _of_binding(obj, rules, roles)
    home = pod_security.Home(key.namespace, rules.allow_service_addresses, rules.tenant_external_names)
    yield from pod_security.violations({"metadata": obj["metadata"]} if kind in _TEXTS else obj, home)


def _nothing(obj: Object, rules: Rules) -> Iterator[str]:
    return iter(())


def _of_namespace(obj: Object, rules: Rules) -> Iterator[str]:
    enforced = labels(obj).get(f"{_POD_SECURITY}enforce")
    if enforced not in LEVELS[LEVELS.index(rules.tenant_pod_security) :]:
        yield f"metadata.labels: set {_POD_SECURITY}enforce: {rules.tenant_pod_security}, which judges its Pods"
    if labels(obj).get(f"{_POD_SECURITY}enforce-version", "latest") != "latest":
        yield f"metadata.labels.{_POD_SECURITY}enforce-version: is not latest"
    for name in map(str, labels(obj)):
        if _prefix(name) not in _OF_NAMESPACES and not matches(name, rules.tenant_namespace_labels):
            yield f"metadata.labels.{name}: {_SWITCHES}, and is none that the operator lists in tenant_namespace_labels"
    for name in map(str, annotations_of(obj)):
        if _prefix(name) not in ("", *_OF_NAMESPACES):
            yield f"metadata.annotations.{name}: {_SWITCHES}"


def _prefix(name: str) -> str:
    return name.rpartition("/")[0]


def _of_crd(obj: Object, rules: Rules) -> Iterator[str]:
    if field(obj, "spec", "conversion", "strategy") == "Webhook" or field(obj, "spec", "conversion", "webhook"):
        yield "spec.conversion: its webhook reads and changes the objects of all"
    group = str(field(obj, "spec", "group")).lower()
    if "." not in group or f".{group}".endswith(_OF_KUBERNETES):
        yield "spec.group: is one of Kubernetes"


def _of_role(obj: Object, rules: Rules) -> Iterator[str]:
    for index, rule in enumerate(entries(obj, "rules")):
        verbs, resources = set(texts(rule, "verbs")), set(texts(rule, "resources"))
        if granting := sorted(verbs & _GRANTING):
            yield f"rules[{index}].verbs: {granting[0]} gives more than the role says"
        if "*" in texts(rule, "apiGroups"):
            yield f"rules[{index}].apiGroups: * gives more than the account of a tenant has"
        given = sorted(one for one in resources if not _UNGIVEN.isdisjoint((one, one.partition("/")[0])))
        if given and not verbs <= _READING:
            yield f"rules[{index}].resources: {given[0]} gives more than the account of a tenant has"


def _of_binding(obj: Object, rules: Rules, roles: Iterable[ObjectKey]) -> Iterator[str]:
    kind, name = field(obj, "roleRef", "kind"), str(field(obj, "roleRef", "name"))
    if kind == "Role":
        if key_of(obj)._replace(kind="Role", name=name) not in roles:
            yield f"roleRef: the Role {name} is none of the package"
    elif not matches(name, rules.tenant_cluster_roles):
        yield f"roleRef: the {kind} {name} is none that the operator lists in tenant_cluster_roles"


def _of_subjects(obj: Object, rules: Rules) -> Iterator[str]:
    own = f"system:serviceaccounts:{key_of(obj).namespace}"
    for index, subject in enumerate(entries(obj, "subjects")):
        kind, name = field(subject, "kind"), str(field(subject, "name"))
        if name.startswith("system:") and kind != "ServiceAccount" and name != own and not name.startswith(_ACCOUNT):
            yield f"subjects[{index}].name: {name} are the users of all, or the cluster itself"


def _of_claim(obj: Object, rules: Rules) -> Iterator[str]:
    if field(obj, "spec", "selector"):
        yield "spec.selector: chooses a volume, which may be that of others"


def _of_volume(obj: Object, rules: Rules) -> Iterator[str]:
    if mapping(obj, "spec", "local"):
        yield "spec.local: is a folder or disk of the node"


_BY_KIND: dict[str, Callable[[Object, Rules], Iterator[Any]]] = {
    "Namespace": _of_namespace,
    "CustomResourceDefinition.apiextensions.k8s.io": _of_crd,
    f"Role.{_RBAC}": _of_role,
    f"RoleBinding.{_RBAC}": _of_subjects,
    f"ClusterRoleBinding.{_RBAC}": _of_subjects,
    "PersistentVolumeClaim": _of_claim,
    "PersistentVolume": _of_volume,
}
