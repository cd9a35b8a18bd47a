# SPDX-License-Identifier: Apache-2.0
"""
The HorizontalPodAutoscalers of the objects that a SCALE changes: a count outside of their bounds would be undone in seconds.

Other autoscalers, such as a ScaledObject of KEDA, make one for each object that they scale, and are its controller; they
remove it while they are paused. One list for each namespace finds them all, and names whose count it is in later errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from k8s_cr_driver.errors import ApiError, InvalidRequest
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.objects.fields import entries, field, integer, text
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, key_of, split
from k8s_cr_driver.resources.replicas import explicit_count
from k8s_cr_driver.vnf.vdus import VduObjects

KIND = GroupKind("autoscaling", "HorizontalPodAutoscaler")


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
    several = set(keys)
    resource = client.resources.find(KIND)
    found: dict[ObjectKey, Autoscaler] = {}
    for namespace in sorted({key.namespace for key in several if key.namespace}) if resource else ():
        assert resource is not None
        try:
            lives = client.list_if_served(resource, namespace)
        except ApiError as error:
            if error.status != 403:
                raise
            continue
        found |= {key: _read(live) for live in lives for key in several if key.namespace == namespace and _scales(live, key)}
    return found


def _scales(live: Object, key: ObjectKey) -> bool:
    """By its reference, whose version says nothing."""
    target = field(live, "spec", "scaleTargetRef")
    group, _ = split(text(target, "apiVersion"))
    return (group, text(target, "kind"), text(target, "name")) == (key.group, key.kind, key.name)


def _read(live: Object) -> Autoscaler:
    key, least = key_of(live), integer(live, "spec", "minReplicas")
    owners = [one for one in entries(live, "metadata", "ownerReferences") if one.get("controller") is True]
    names = [
        str(ObjectKey(split(text(one, "apiVersion"))[0], text(one, "kind"), key.namespace, text(one, "name"))) for one in owners
    ]
    name = f"{names[0]}, by its {key}" if names else str(key)
    return Autoscaler(name, 1 if least is None else least, integer(live, "spec", "maxReplicas"))


def check(scaled: VduObjects, autoscalers: Mapping[ObjectKey, Autoscaler]) -> None:
    """InvalidRequest for a count that the autoscaler of the VDU's object would undo."""
    for vdu, obj in scaled.items():
        autoscaler, count = autoscalers.get(obj.key), explicit_count(obj)
        if autoscaler and count is not None and autoscaler.undoes(count):
            raise InvalidRequest(
                f"aspectId: VDU {vdu} is {obj}, {'.'.join(obj.replicas() or ())}: cannot be {count}: {autoscaler} would undo "
                "it. Change these bounds, or scale within them"
            )
