# SPDX-License-Identifier: Apache-2.0
"""Which workloads serve a kind: the pods behind webhooks, conversions and API services, and controllers by their RBAC.

The API server calls webhooks and conversions before it stores an object, and controllers remove finalizers. No field names
these relations. They are derived from the webhook configurations, CustomResourceDefinitions, API services, Services,
workloads and RBAC of one set of objects. What an object outside of the set serves is running already.
"""

from __future__ import annotations

import functools
import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

from k8s_cr_driver import logs
from k8s_cr_driver.objects.api_groups import is_builtin
from k8s_cr_driver.objects.crds import defined_by
from k8s_cr_driver.objects.fields import entries, field, mapping, pod_spec, texts
from k8s_cr_driver.objects.keys import CRD, GroupKind, Object, ObjectKey, key_of, kind_of, labels
from k8s_cr_driver.objects.references import ACCOUNT, DEFAULT_ACCOUNT

_ADMISSION = "admissionregistration.k8s.io"
_RBAC = "rbac.authorization.k8s.io"
_WEBHOOKS = {GroupKind(_ADMISSION, "ValidatingWebhookConfiguration"), GroupKind(_ADMISSION, "MutatingWebhookConfiguration")}
_API_SERVICE = GroupKind("apiregistration.k8s.io", "APIService")
_BINDINGS = {GroupKind(_RBAC, "RoleBinding"), GroupKind(_RBAC, "ClusterRoleBinding")}
_ROLES = {GroupKind(_RBAC, "Role"), GroupKind(_RBAC, "ClusterRole")}
_CHANGING = {"update", "patch", "*"}
_EVERYTHING = frozenset({"*"})

MOST = 3_000_000
"""Pairs of objects that are compared, or guessed to wait for each other: they cost a second and 200 MiB a million."""

LOG = logs.logger(__name__)


class Budget:
    """A package of N workloads and M custom resources may have N times M guesses; what exceeds `most` is not guessed."""

    def __init__(self, what: str, most: int | None = None) -> None:
        self._what, self._most = what, MOST if most is None else most
        self._left = self._most

    def allows(self, pairs: int) -> bool:
        if 0 <= self._left < pairs:
            LOG.warning("%s: the set has more than %d pairs; beyond these no object waits for another", self._what, self._most)
        self._left -= pairs
        return self._left >= 0


class Controller(NamedTuple):
    """A workload that may change objects of `groups`, "*" for any, by `permissions`: its account, roles and bindings."""

    key: ObjectKey
    groups: frozenset[str]
    permissions: frozenset[ObjectKey]

    def acts_on(self, group: str) -> bool:
        return group in self.groups or "*" in self.groups


def role_of(binding: Object) -> ObjectKey:
    """The role that a RoleBinding or ClusterRoleBinding grants."""
    kind = str(field(binding, "roleRef", "kind"))
    namespace = key_of(binding).namespace if kind == "Role" else ""
    return ObjectKey(_RBAC, kind, namespace, str(field(binding, "roleRef", "name")))


def servers(objects: Sequence[Object], backends: Backends) -> dict[ObjectKey, set[ObjectKey]]:
    """
    Which custom resource is served by which webhook configurations, API services, Services and workloads of the set.

    Objects of built-in kinds, and rules for every group ("*"), are left out: they match also what the webhook's own
    server needs to start, and to wait for it would be to wait for ever. A write that meets a webhook whose server is
    not up fails with an error that passes.
    """
    budget = Budget("What serves a kind")
    custom: dict[GroupKind, list[ObjectKey]] = defaultdict(list)
    for obj in objects:
        if not is_builtin(kind_of(obj)):
            custom[kind_of(obj)].append(key_of(obj))
    served: dict[GroupKind, set[ObjectKey]] = defaultdict(set)
    for kind, needed in _served(objects, backends, _plurals(custom, objects)) if custom else ():
        if budget.allows(len(needed)):
            served[kind] |= needed
    found = ((key, needed) for kind, needed in served.items() for key in custom.get(kind, ()))
    return {key: needed - {key} for key, needed in found if budget.allows(len(needed))}


def _served(
    objects: Sequence[Object], backends: Backends, plurals: Mapping[str, Mapping[GroupKind, str]]
) -> Iterator[tuple[GroupKind, set[ObjectKey]]]:
    """Kinds, with what serves them: a kind may come several times."""
    budget = Budget("Rules of webhooks")
    for obj in objects:
        caller = key_of(obj)
        if caller.group_kind in _WEBHOOKS:
            for kind, needed in _webhook_kinds(obj, backends, plurals, budget):
                yield kind, needed | {caller}
        elif caller.group_kind == CRD:
            yield defined_by(obj), backends.called_by(obj)
        elif caller.group_kind == _API_SERVICE and (needed := backends.called_by(obj)):
            for kind in plurals.get(str(field(obj, "spec", "group")), ()):
                yield kind, needed | {caller}


def stops_config_maps(configuration: Object) -> bool:
    """Whether a webhook that does not respond stops the writes of ConfigMaps, of which each inventory is one.

    One that selects objects or namespaces, or has conditions, is taken for one that does not.
    """
    return any(
        webhook.get("failurePolicy", "Fail") == "Fail"
        and not any(webhook.get(name) for name in ("namespaceSelector", "objectSelector", "matchConditions"))
        and any(
            {"", "*"} & set(texts(rule, "apiGroups")) and {"configmaps", "*", "*/*"} & set(texts(rule, "resources"))
            for rule in entries(webhook, "rules")
        )
        for webhook in entries(configuration, "webhooks")
    )


def callers(objects: Sequence[Object], backends: Backends) -> dict[ObjectKey, set[ObjectKey]]:
    """Which webhook configuration, CustomResourceDefinition or API service has requests sent to what of the set."""
    return {key_of(obj): needed for obj in objects if (needed := backends.called_by(obj))}


class Binding(NamedTuple):
    """A RoleBinding or ClusterRoleBinding, and the role that it grants."""

    key: ObjectKey
    role: ObjectKey


class Bindings:
    """The bindings of the set, by the ServiceAccounts that they name, of the set or not."""

    def __init__(self, objects: Iterable[Object]) -> None:
        self._found: dict[tuple[str, str], list[Binding]] = defaultdict(list)
        for obj in objects:
            if kind_of(obj) in _BINDINGS:
                binding = Binding(key_of(obj), role_of(obj))
                for subject in entries(obj, "subjects"):
                    if accounts := _accounts(subject, binding.key.namespace):
                        self._found[accounts].append(binding)

    def of(self, account: ObjectKey) -> list[Binding]:
        places = (account.namespace, account.name), (account.namespace, ""), ("", "")
        return [binding for place in places for binding in self._found.get(place, ())]


def _accounts(subject: Object, own: str) -> tuple[str, str] | None:
    """Namespace and name of the accounts that a subject means, "" for any: also by a user or a group that stands for them."""
    kind, name = subject.get("kind"), str(subject.get("name"))
    if kind == "ServiceAccount":
        return str(subject.get("namespace") or own), name
    match kind, name.split(":"):
        case "User", ["system", "serviceaccount", namespace, account]:
            return namespace, account
        case "Group", ["system", "serviceaccounts", *namespaces] if len(namespaces) < 2:
            return "".join(namespaces), ""
    return None


def controllers(objects: Sequence[Object], known: Collection[str]) -> list[Controller]:
    """
    The workloads whose ServiceAccount may change objects by the RBAC of the set.

    Their groups are those of `known`, and "" for all others together: roles may have many that no object is of.
    """
    groups = _role_groups(objects, {*known, "*"})

    @functools.cache  # many accounts may have the same roles
    def changed(several: frozenset[ObjectKey]) -> frozenset[str]:
        none = frozenset[str]()
        return none.union(*(groups.get(role, _EVERYTHING if role.name == "cluster-admin" else none) for role in several))

    bindings, found = Bindings(objects), []
    for obj in objects:
        spec = pod_spec(obj)
        account = ObjectKey(*ACCOUNT, key_of(obj).namespace, str(field(spec, "serviceAccountName") or DEFAULT_ACCOUNT))
        granted = bindings.of(account) if spec else ()
        if changes := changed(frozenset(one.role for one in granted)):
            permissions = {account, *itertools.chain.from_iterable(granted)}
            found.append(Controller(key_of(obj), changes, frozenset(permissions)))
    return found


class Backends:
    """Services -> the Service and the workloads whose pods it selects."""

    def __init__(self, objects: Iterable[Object]) -> None:
        self._services: dict[ObjectKey, Object] = {}
        self._workloads: dict[str, list[tuple[ObjectKey, Mapping[str, str]]]] = defaultdict(list)
        self._found: dict[ObjectKey, set[ObjectKey]] = {}
        self._budget = Budget("Services and workloads")
        for obj in objects:
            if kind_of(obj) == GroupKind("", "Service"):
                self._services[key_of(obj)] = obj
            elif pod_spec(obj) is not None:
                pod = obj if kind_of(obj).kind == "Pod" else field(obj, "spec", "template")
                self._workloads[key_of(obj).namespace].append((key_of(obj), mapping(pod, "metadata", "labels")))

    def called_by(self, caller: Object) -> set[ObjectKey]:
        """What a webhook configuration, a CustomResourceDefinition or an API service has requests sent to."""
        kind = kind_of(caller)
        if kind in _WEBHOOKS:
            references = [field(webhook, "clientConfig", "service") for webhook in entries(caller, "webhooks")]
        elif kind == CRD:
            references = [field(caller, "spec", "conversion", "webhook", "clientConfig", "service")]
        elif kind == _API_SERVICE:
            references = [field(caller, "spec", "service")]
        else:
            references = []
        called = (needed for reference in references if self._budget.allows(len(needed := self.of(reference))))
        return set().union(*called)

    def of(self, reference: Any) -> set[ObjectKey]:
        """The Service of a reference {namespace, name} and its workloads; empty if the Service is not of the set."""
        key = ObjectKey("", "Service", str(field(reference, "namespace") or ""), str(field(reference, "name")))
        if key not in self._services:
            return set()
        if key not in self._found:
            selector = mapping(self._services[key], "spec", "selector")
            workloads = self._workloads[key.namespace]
            compared = workloads if selector and self._budget.allows(len(workloads)) else []
            selected = {workload for workload, pod in compared if selector.items() <= pod.items()}
            self._found[key] = {key} | selected
        return self._found[key]


def _plurals(kinds: Iterable[GroupKind], objects: Iterable[Object]) -> dict[str, dict[GroupKind, str]]:
    """By group and kind the name of the resource: as its CustomResourceDefinition says, else by English grammar."""
    said = {defined_by(obj): field(obj, "spec", "names", "plural") for obj in objects if kind_of(obj) == CRD}
    plurals: dict[str, dict[GroupKind, str]] = defaultdict(dict)
    for kind in kinds:
        plurals[kind.group][kind] = str(said.get(kind) or guessed_plural(kind.kind.lower()))
    return plurals


def guessed_plural(singular: str) -> str:
    """The name of a resource by English grammar, from its kind in lower case."""
    if singular.endswith(("s", "x", "ch", "sh")):
        return f"{singular}es"
    return f"{singular[:-1]}ies" if singular.endswith("y") else f"{singular}s"


def _webhook_kinds(
    configuration: Object, backends: Backends, plurals: Mapping[str, Mapping[GroupKind, str]], budget: Budget
) -> Iterator[tuple[GroupKind, set[ObjectKey]]]:
    for webhook in entries(configuration, "webhooks"):
        needed = backends.of(field(webhook, "clientConfig", "service"))
        for rule in entries(webhook, "rules") if needed else ():
            resources = set(texts(rule, "resources"))
            for group in set(texts(rule, "apiGroups")) & plurals.keys():
                for kind, plural in plurals[group].items() if budget.allows(len(plurals[group])) else ():
                    if resources & {"*", "*/*", plural}:
                        yield kind, needed


def _role_groups(objects: Iterable[Object], known: Set[str]) -> dict[ObjectKey, frozenset[str]]:
    """The API groups whose objects each role may change; an aggregated role has the rules of those that it selects."""
    roles = {key_of(obj): obj for obj in objects if kind_of(obj) in _ROLES}
    own = {key: _changed_groups(role, known) for key, role in roles.items()}
    return {key: own[key].union(*map(own.__getitem__, selected)) for key, selected in _selected(roles).items()}


def aggregated(objects: Iterable[Object]) -> dict[ObjectKey, set[ObjectKey]]:
    """The ClusterRoles that each aggregated ClusterRole selects, without itself."""
    found = _selected({key_of(obj): obj for obj in objects if kind_of(obj) in _ROLES})
    return {key: selected - {key} for key, selected in found.items() if selected}


def _selected(roles: Mapping[ObjectKey, Object]) -> dict[ObjectKey, set[ObjectKey]]:
    """The roles that each of `roles` selects by `matchLabels`."""
    found, budget = {key: set[ObjectKey]() for key in roles}, Budget("Aggregated roles")
    for key, role in roles.items():
        for selector in entries(role, "aggregationRule", "clusterRoleSelectors"):
            wanted = mapping(selector, "matchLabels")
            compared = roles if wanted and budget.allows(len(roles)) else {}
            found[key] |= {other for other, candidate in compared.items() if wanted.items() <= labels(candidate).items()}
    return found


def _changed_groups(role: Object, known: Set[str]) -> frozenset[str]:
    rules = [rule for rule in entries(role, "rules") if _CHANGING.intersection(texts(rule, "verbs"))]
    return frozenset(group if group in known else "" for rule in rules for group in texts(rule, "apiGroups"))
