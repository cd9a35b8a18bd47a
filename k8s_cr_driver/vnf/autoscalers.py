# SPDX-License-Identifier: Apache-2.0
"""
The autoscalers of the objects that a SCALE changes: a count outside of their bounds would be undone in seconds.

Others than a HorizontalPodAutoscaler, such as a ScaledObject of KEDA, make one for each object that they scale, and are its
controller; they remove it while they are paused. One list for each namespace finds them all, and names whose count it is in
later errors. One that has made none yet is found by its structure, among the kinds that are called like autoscalers.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from k8s_cr_driver.errors import ApiError, InvalidRequest
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.objects.api_groups import is_builtin
from k8s_cr_driver.objects.fields import entries, field, integer, text
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, key_of, split
from k8s_cr_driver.resources.replicas import explicit_count
from k8s_cr_driver.vnf.vdus import VduObjects

KIND = GroupKind("autoscaling", "HorizontalPodAutoscaler")
MOST_KINDS = 5
"""Kinds of other autoscalers of which objects are listed."""
_CALLED = re.compile(r"[Ss]caler$|^Scaled")
_LEAST, _MOST = ("minReplicas", "minReplicaCount"), ("maxReplicas", "maxReplicaCount")
"""The fields of a spec."""


class Autoscaler(NamedTuple):
    """`name`: the object, and the one that controls it, if any. `most` is None for one without a bound."""

    name: str
    least: int
    most: int | None

    def __str__(self) -> str:
        return f"{self.name} (minReplicas {self.least}, maxReplicas {self.most})"

    def undoes(self, count: int) -> bool:
        """Not a count of 0: it disables the autoscaler ("Implicit maintenance-mode deactivation" in its documents)."""
        return 0 < count < self.least or (self.most is not None and count > self.most)


def of(client: Client, keys: Iterable[ObjectKey]) -> dict[ObjectKey, Autoscaler]:
    """The autoscalers of these objects, by the object; none where the account may not list them.

    ApiError or TransportError if they cannot be read.
    """
    several = {key for key in keys if key.namespace}
    resource = client.resources.find(KIND)
    found = _found(client, resource, several) if resource else {}
    for other in [one for one in client.resources if _is_called_so(one)][:MOST_KINDS]:
        found |= _found(client, other, several - found.keys())
    return found


def _is_called_so(resource: Resource) -> bool:
    kind = resource.group_kind
    is_listed = resource.namespaced and "list" in resource.verbs
    return is_listed and not is_builtin(kind) and _CALLED.search(kind.kind) is not None


def _found(client: Client, resource: Resource, keys: Collection[ObjectKey]) -> dict[ObjectKey, Autoscaler]:
    found: dict[ObjectKey, Autoscaler] = {}
    for namespace in sorted({key.namespace for key in keys}):
        try:
            lives = client.list_if_served(resource, namespace)
        except ApiError as error:
            if error.status != 403:
                raise
            continue
        read = [(live, autoscaler) for live in lives if (autoscaler := _read(live))]
        found |= {key: one for live, one in read for key in keys if key.namespace == namespace and _scales(live, key)}
    return found


def _scales(live: Object, key: ObjectKey) -> bool:
    """By its reference, whose version says nothing; a ScaledObject may name no kind."""
    target = field(live, "spec", "scaleTargetRef")
    group, _ = split(text(target, "apiVersion") or "apps/v1")
    return (group, text(target, "kind") or "Deployment", text(target, "name")) == (key.group, key.kind, key.name)


def _read(live: Object) -> Autoscaler | None:
    """None for one that is paused, or has no bounds."""
    key = key_of(live)
    least, most = _count(live, _LEAST), _count(live, _MOST)
    if (least is None and most is None) or _is_paused(live):
        return None
    owners = [one for one in entries(live, "metadata", "ownerReferences") if one.get("controller") is True]
    names = [
        str(ObjectKey(split(text(one, "apiVersion"))[0], text(one, "kind"), key.namespace, text(one, "name"))) for one in owners
    ]
    name = f"{names[0]}, by its {key}" if names else str(key)
    return Autoscaler(name, 1 if least is None else least, most)


def _count(live: Object, names: Iterable[str]) -> int | None:
    return next((count for name in names if (count := integer(live, "spec", name)) is not None), None)


def _is_paused(live: Object) -> bool:
    conditions = entries(live, "status", "conditions")
    return any((one.get("type"), one.get("status")) == ("Paused", "True") for one in conditions)


def check(scaled: VduObjects, autoscalers: Mapping[ObjectKey, Autoscaler]) -> None:
    """InvalidRequest for a count that the autoscaler of the VDU's object would undo."""
    for vdu, obj in scaled.items():
        autoscaler, count = autoscalers.get(obj.key), explicit_count(obj)
        if autoscaler and count is not None and autoscaler.undoes(count):
            raise InvalidRequest(
                f"aspectId: VDU {vdu} is {obj}, {'.'.join(obj.replicas() or ())}: cannot be {count}: {autoscaler} would undo "
                "it. Change these bounds, or scale within them"
            )
