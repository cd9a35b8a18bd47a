"""
May we? Asked before the first write, so that a right that lacks costs nothing but a message.

One SelfSubjectRulesReview a namespace tells what RBAC allows. Authorizers that cannot list their rules say so
(`incomplete`), and there are accounts that may not ask; then the writes themselves will tell.
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
"""Namespaces that are asked about; in practice one role serves all of a package's."""

_FIELDS = ("verbs", "apiGroups", "resources")
_RULES = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
_ACCESS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


def check(connection: Connection, objects: Iterable[tuple[ObjectKey, Resource]]) -> None:
    """Forbidden, naming every verb and resource that lacks."""
    by_namespace: dict[str, set[Resource]] = {}
    for key, resource in objects:
        by_namespace.setdefault(key.namespace, set()).add(resource)
    everywhere = by_namespace.pop("", set())
    if not by_namespace and not everywhere:
        return
    lacking: set[str] = set()
    for namespace in sorted(by_namespace)[:NAMESPACES] or ["default"]:
        rules = _rules(connection, namespace)
        if rules is not None:
            for resource in by_namespace.get(namespace, set()) | everywhere:
                lacking |= {f"{verb} {_name(resource)}" for verb in _lacking(rules, resource)}
    if lacking:
        raise Forbidden(
            "The cluster's RBAC does not allow what the package needs: " + ", ".join(sorted(lacking)) + ". "
            "Grant it to the account of the VIM's credentials; nothing was written."
        )


def may(connection: Connection, verb: str, resource: Resource, namespace: str) -> bool:
    """Whether one request would be allowed; `namespace` is "" for all of them and for what is in none."""
    asked = {"verb": verb, "group": resource.group_kind.group, "resource": resource.plural, "namespace": namespace}
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": asked},
    }
    with understood(f"POST {_ACCESS}"):
        return (connection.request("POST", _ACCESS, body=body).get("status") or {}).get("allowed") is True


def _rules(connection: Connection, namespace: str) -> list[Object] | None:
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": namespace},
    }
    try:
        with understood(f"POST {_RULES}"):
            status = connection.request("POST", _RULES, body=body).get("status") or {}
            rules = [{field: list(rule.get(field) or []) for field in _FIELDS} for rule in status.get("resourceRules") or []]
    except ApiError as error:
        if error.status in (403, 404):
            return None
        raise
    return None if status.get("incomplete") else rules


def _lacking(rules: Iterable[Object], resource: Resource) -> list[str]:
    return [
        verb
        for verb in NEEDED
        if verb in resource.verbs and not any(_allows(rule, verb, resource) for rule in rules)
    ]


def _allows(rule: Object, verb: str, resource: Resource) -> bool:
    """Rules for named objects count as allowing: which names they mean, the writes will tell."""

    def has(field: str, value: str) -> bool:
        return value in rule[field] or "*" in rule[field]

    return has("verbs", verb) and has("apiGroups", resource.group_kind.group) and has("resources", resource.plural)


def _name(resource: Resource) -> str:
    return f"{resource.plural}.{resource.group_kind.group}" if resource.group_kind.group else resource.plural
