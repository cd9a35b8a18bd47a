# SPDX-License-Identifier: Apache-2.0
"""
The smallest roles of an account that operates one package: the reverse of the check before the first write.

Kubernetes lets nobody grant more than he has. So the roles of the package are part of the account's own, and it may bind roles
that the package does not bring, by their names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from k8s_cr_driver.engine.report.permissions import NEEDED
from k8s_cr_driver.objects.api_groups import is_builtin
from k8s_cr_driver.objects.backends import role_of
from k8s_cr_driver.objects.crds import crds_of
from k8s_cr_driver.objects.fields import entries, field
from k8s_cr_driver.objects.keys import CRD, NAMESPACE, GroupKind, Object, ObjectKey, key_of, kind_of
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.registry import resource_for
from k8s_cr_driver.writes.guests import WORKLOADS

_RBAC = "rbac.authorization.k8s.io"
_ROLES = {GroupKind(_RBAC, "Role"), GroupKind(_RBAC, "ClusterRole")}
_BINDINGS = {GroupKind(_RBAC, "RoleBinding"), GroupKind(_RBAC, "ClusterRoleBinding")}
_EVERYWHERE = ""
"""In place of a namespace: the rules of a ClusterRole."""
CONFIG_MAPS, CLAIMS, EVENTS = GroupKind("", "ConfigMap"), GroupKind("", "PersistentVolumeClaim"), GroupKind("", "Event")
_AUTOSCALERS = GroupKind("autoscaling", "HorizontalPodAutoscaler")
_ORDER = (*NEEDED, "bind", "escalate")

Plural = Callable[[GroupKind], str]
"""A kind -> the name of its resource in URLs and rules."""


class Account(NamedTuple):
    namespace: str
    name: str


def of(objects: Sequence[Object], plural: Plural, inventory_namespace: str, account: Account) -> list[Object]:
    """The ServiceAccount, a Role for each namespace, a ClusterRole, and their bindings; `objects` have their namespaces."""
    wanted: dict[str, dict[GroupKind, set[str]]] = defaultdict(lambda: defaultdict(set))
    brought = {key_of(obj).name for obj in objects if kind_of(obj) == NAMESPACE}  # no Role can be there before
    for namespace, kind, verbs in _needed(objects, inventory_namespace):
        wanted[_EVERYWHERE if namespace in brought else namespace][kind] |= set(verbs)
    more = _granted(objects, brought)
    made = [_bare("v1", "ServiceAccount", account.name, account.namespace, automountServiceAccountToken=False)]
    for namespace in sorted({*wanted, *more}):
        found = [*_rules(wanted[namespace], plural), *more.get(namespace, ())]
        made += _role(account, namespace, found)
    return made


def _needed(objects: Sequence[Object], inventory_namespace: str) -> Iterator[tuple[str, GroupKind, Iterable[str]]]:
    crds = crds_of(objects)
    resources = [resource_for(obj, crds.get(kind_of(obj))) for obj in objects]
    yield inventory_namespace, CONFIG_MAPS, NEEDED
    for one in resources:
        yield one.key.namespace, one.key.group_kind, NEEDED
        if one.key.namespace:
            yield one.key.namespace, EVENTS, ("list",)
        yield from _of_vnfcs(one)
    kinds = {one.key.group_kind for one in resources}
    if kinds & {NAMESPACE, CRD}:  # what others have there keeps them
        for kind in (CONFIG_MAPS, CRD, *crds, *((CLAIMS, *WORKLOADS) if NAMESPACE in kinds else ())):
            yield _EVERYWHERE, kind, ("list",)
    if any(kind not in crds and not is_builtin(kind) for kind in kinds):
        yield _EVERYWHERE, CRD, ("get", "list")


def _of_vnfcs(whole: CustomResource) -> Iterator[tuple[str, GroupKind, Iterable[str]]]:
    for one in (whole, *whole.parts()):
        namespace = one.key.namespace
        if children := one.children():
            yield namespace, children.kind, ("list", "watch", "get", "patch", "delete")
            for kind in children.through:
                yield namespace, kind, ("list", "watch", "get")
        if one.replicas():
            yield namespace, _AUTOSCALERS, ("list",)
        if orphans := one.orphans():
            yield namespace, orphans.kind, ("list", "watch", "get", "patch", "delete")


def _rules(wanted: dict[GroupKind, set[str]], plural: Plural) -> list[Object]:
    """One rule for each group and set of verbs."""
    several: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
    for kind, verbs in sorted(wanted.items()):
        several[kind.group, tuple(sorted(verbs, key=_ORDER.index))].append(plural(kind))
    return [
        {"apiGroups": [group], "resources": sorted(resources), "verbs": list(verbs)}
        for (group, verbs), resources in several.items()
    ]


def _granted(objects: Sequence[Object], brought: Collection[str]) -> dict[str, list[Object]]:
    """By namespace the rules that the account needs because it writes roles and bindings."""
    found: dict[str, list[Object]] = defaultdict(list)
    own = {key_of(obj) for obj in objects if kind_of(obj) in _ROLES}
    for obj in objects:
        key = key_of(obj)
        rules = found[_EVERYWHERE if key.namespace in brought else key.namespace]
        if key.group_kind in _ROLES:
            rules += [rule for rule in entries(obj, "rules") if rule not in rules]
            if field(obj, "aggregationRule"):
                found[_EVERYWHERE].append(_of_role("clusterroles", key, "escalate"))
        elif key.group_kind in _BINDINGS and (role := role_of(obj)) not in own:
            rule = _of_role("roles" if role.kind == "Role" else "clusterroles", role, "bind")
            if rule not in rules:
                rules.append(rule)
    return {namespace: rules for namespace, rules in found.items() if rules}


def _of_role(resource: str, role: ObjectKey, verb: str) -> Object:
    return {"apiGroups": [_RBAC], "resources": [resource], "resourceNames": [role.name], "verbs": [verb]}


def _role(account: Account, namespace: str, rules: Sequence[Object]) -> list[Object]:
    kind = "Role" if namespace else "ClusterRole"
    subject = {"kind": "ServiceAccount", "name": account.name, "namespace": account.namespace}
    reference = {"apiGroup": _RBAC, "kind": kind, "name": account.name}
    return [
        _bare(f"{_RBAC}/v1", kind, account.name, namespace, rules=list(rules)),
        _bare(f"{_RBAC}/v1", f"{kind}Binding", account.name, namespace, roleRef=reference, subjects=[subject]),
    ]


def token_secret(account: Account) -> Object:
    """A Secret into which the cluster writes a token of the account that does not expire."""
    made = _bare("v1", "Secret", account.name, account.namespace, type="kubernetes.io/service-account-token")
    made["metadata"]["annotations"] = {"kubernetes.io/service-account.name": account.name}
    return made


def _bare(api_version: str, kind: str, name: str, namespace: str, **rest: Any) -> Object:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}
