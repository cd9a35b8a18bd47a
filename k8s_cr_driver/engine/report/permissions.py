# SPDX-License-Identifier: Apache-2.0
"""
Pre-flight RBAC check: missing permissions are reported before anything is written.

One SelfSubjectRulesReview for each namespace returns what RBAC allows. Some authorizers cannot list their rules
(`incomplete`), and some accounts may not create reviews; then the first write reports a missing permission.
"""

from __future__ import annotations

from collections.abc import Iterable

from k8s_cr_driver.errors import ApiError, Forbidden
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.kube.responses import understood
from k8s_cr_driver.objects.keys import Object, ObjectKey

NEEDED = ("create", "patch", "get", "list", "watch", "delete")
NAMESPACES = 2
"""Namespaces that are reviewed; in practice one role serves all namespaces of a package."""

_FIELDS = ("verbs", "apiGroups", "resources")


def check(connection: Connection, objects: Iterable[tuple[ObjectKey, Resource]], inventory: Resource) -> bool:
    """
    Raises Forbidden with every verb and resource that is missing.

    Returns whether the rules are known to allow all that is needed of the kind of the inventory, too.
    """
    by_namespace: dict[str, set[Resource]] = {}
    for key, resource in objects:
        by_namespace.setdefault(key.namespace, set()).add(resource)
    everywhere = by_namespace.pop("", set())
    if not by_namespace and not everywhere:
        return False
    missing: set[str] = set()
    may_read = True
    for namespace in sorted(by_namespace)[:NAMESPACES] or ["default"]:
        rules = _rules(connection, namespace)
        may_read &= rules is not None and not _missing_verbs(rules, inventory)
        if rules is not None:
            for resource in by_namespace.get(namespace, set()) | everywhere:
                missing |= {f"{verb} {_name(resource)}" for verb in _missing_verbs(rules, resource)}
    if missing:
        raise Forbidden(
            "The cluster's RBAC does not allow what the package needs: " + ", ".join(sorted(missing)) + ". "
            "Grant it to the account of the VIM's credentials; nothing was written."
        )
    return may_read


def may(connection: Connection, verb: str, resource: Resource, namespace: str) -> bool:
    """Whether one request would be allowed; `namespace` is "" for all of them and for what is in none."""
    asked = {"verb": verb, "group": resource.group_kind.group, "resource": resource.plural, "namespace": namespace}
    with understood("SelfSubjectAccessReview"):
        return _reviewed(connection, "SelfSubjectAccessReview", {"resourceAttributes": asked}).get("allowed") is True


def _reviewed(connection: Connection, kind: str, spec: Object) -> Object:
    """The status of a review."""
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}
    return connection.request("POST", f"/apis/authorization.k8s.io/v1/{kind.lower()}s", body=body).get("status") or {}


def _rules(connection: Connection, namespace: str) -> list[Object] | None:
    try:
        with understood("SelfSubjectRulesReview"):
            status = _reviewed(connection, "SelfSubjectRulesReview", {"namespace": namespace})
            rules = [{field: list(rule.get(field) or []) for field in _FIELDS} for rule in status.get("resourceRules") or []]
    except ApiError as error:
        if error.status in (403, 404):
            return None
        raise
    return None if status.get("incomplete") else rules


def _missing_verbs(rules: Iterable[Object], resource: Resource) -> list[str]:
    asked = (verb for verb in NEEDED if verb in resource.verbs)
    return [verb for verb in asked if not any(_allows(rule, verb, resource) for rule in rules)]


def _allows(rule: Object, verb: str, resource: Resource) -> bool:
    """Rules with resourceNames count as allowing: the writes report objects that they leave out."""

    def has(field: str, value: str) -> bool:
        return value in rule[field] or "*" in rule[field]

    return has("verbs", verb) and has("apiGroups", resource.group_kind.group) and has("resources", resource.plural)


def _name(resource: Resource) -> str:
    return f"{resource.plural}.{resource.group_kind.group}" if resource.group_kind.group else resource.plural
