# SPDX-License-Identifier: Apache-2.0
"""Objects of an instance with all that descends from them, whatever its kind, by ownerReferences.

Every kind that the cluster lists is searched in the instance's namespaces, by metadata only. Objects of the tree are then
read in whole, and their health assessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from k8s_cr_driver.cli.cluster import Cluster, Instance
from k8s_cr_driver.errors import ApiError
from k8s_cr_driver.kube.sent_values import SentValues
from k8s_cr_driver.objects.api_groups import is_builtin
from k8s_cr_driver.objects.fields import text
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, key_of, references
from k8s_cr_driver.redaction import foreign
from k8s_cr_driver.resources.health import Health
from k8s_cr_driver.resources.health.rules import without_rules
from k8s_cr_driver.resources.registry import resource_for

LEVELS = 50
"""Of a tree. Owner references of others can be a chain of any length, or a circle: an object there is a root of its own."""
_SECRET = GroupKind("", "Secret")
"""Has no state beyond its metadata, and data that nobody needs to read."""
_NO_OWNERS = frozenset({GroupKind("", "Event"), GroupKind("events.k8s.io", "Event")})


@dataclass
class Node:
    """One object; `children` are those that it owns."""

    key: ObjectKey
    created: str
    health: Health
    adopted: bool = False
    children: list[Node] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return {
            "object": str(self.key),
            "state": self.health.state.value,
            "reason": self.health.reason,
            "message": self.health.message,
            "created": self.created,
            "adopted": self.adopted,
            "children": [child.as_json() for child in self.children],
        }


def descent(cluster: Cluster, instance: Instance) -> list[Node]:
    """The objects that nobody of the tree owns, with their descendants, each in the order of kind and name."""
    members = cluster.members([instance])[instance.id]
    everything = _everything(cluster, instance, members)
    family = _family(members.values(), everything)
    whole = {live["metadata"]["uid"]: live for live in _whole(cluster, family.values())}
    values = SentValues(whole.values())
    crds: dict[GroupKind, Object | None] = {}
    nodes = {}
    for uid, metadata in family.items():
        live = metadata if key_of(metadata).group_kind == _SECRET else whole.get(uid)
        if live is not None:
            key = key_of(metadata)
            live = live if key in members else without_rules(live)
            obj = resource_for(live, crd_of(cluster, key.group_kind, crds))
            health = cluster.clouds.health(obj, live)
            reason, message = values.removed_from_reason(health.reason), values.removed_from(health.message)
            health = replace(health, reason=foreign(reason), message=foreign(message))
            created = text(metadata, "metadata", "creationTimestamp")
            nodes[uid] = Node(key, created, health, key in instance.content.adopted)
    return _linked(nodes, family)


def _everything(cluster: Cluster, instance: Instance, members: Iterable[ObjectKey]) -> list[Object]:
    """All objects that may be owned by a member: those of the cluster only where a member is one, too."""
    owners = [key for key in members if key.group_kind.kind not in ("Namespace", "CustomResourceDefinition")]
    everywhere = any(not key.namespace for key in owners)
    kinds = [
        resource.group_kind
        for resource in cluster.resources
        if resource.group_kind not in _NO_OWNERS and "delete" in resource.verbs and (resource.namespaced or everywhere)
    ]
    return cluster.lists(kinds, instance.content.namespaces)


def _family(members: Iterable[Object], everything: Iterable[Object]) -> dict[str, Object]:
    """By uid the metadata of the members and their descendants."""
    owned: dict[str, list[Object]] = {}
    for live in everything:
        for reference in references(live):
            owned.setdefault(text(reference, "uid"), []).append(live)
    family: dict[str, Object] = {}
    queue = list(members)
    while queue:
        live = queue.pop()
        uid = live["metadata"]["uid"]
        if uid not in family:
            family[uid] = live
            queue += owned.get(uid, [])
    return family


def _whole(cluster: Cluster, family: Iterable[Object]) -> list[Object]:
    """The objects as they are, but for Secrets; one LIST for each kind and namespace."""
    places: dict[str, set[GroupKind]] = {}
    for key in map(key_of, family):
        if key.group_kind != _SECRET:
            places.setdefault(key.namespace, set()).add(key.group_kind)
    return [
        live
        for namespace, kinds in places.items()
        for live in cluster.lists(sorted(kinds), [namespace], metadata_only=False)
    ]


def crd_of(cluster: Cluster, kind: GroupKind, known: dict[GroupKind, Object | None]) -> Object | None:
    """The CRD of a kind, which decides how the status of its objects is read."""
    resource = cluster.resources.find(kind)
    if is_builtin(kind) or resource is None:
        return None
    if kind not in known:
        try:
            known[kind] = cluster.client.crd(resource)
        except ApiError:
            known[kind] = None
    return known[kind]


def _linked(nodes: dict[str, Node], family: dict[str, Object]) -> list[Node]:
    """Each object below its owner, the controlling one if it has several; returns those without."""
    ordered = sorted(nodes, key=lambda uid: nodes[uid].key)
    owners = {}
    for uid in ordered:
        found = [one for one in references(family[uid]) if text(one, "uid") in nodes]
        if found:
            owners[uid] = str(min(found, key=lambda one: not one.get("controller"))["uid"])
    links = _short(owners)
    for uid, owner in links.items():
        nodes[owner].children.append(nodes[uid])
    for node in nodes.values():
        node.children.sort(key=lambda child: child.key)
    return [nodes[uid] for uid in ordered if uid not in links]


def _short(owners: Mapping[str, str]) -> dict[str, str]:
    """`owners` without one of each circle of them, and without one of each LEVELS that are above each other."""
    levels: dict[str, int] = {}
    for uid in owners:
        path: dict[str, None] = {}
        while uid in owners and uid not in levels and uid not in path:
            path[uid] = None
            uid = owners[uid]
        level = -1 if uid in path else levels.get(uid, 0)
        for below in reversed(path):
            level = (level + 1) % LEVELS
            levels[below] = level
    return {uid: owner for uid, owner in owners.items() if levels[uid]}
