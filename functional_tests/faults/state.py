# SPDX-License-Identifier: Apache-2.0
"""What a cluster has of one instance, in a form in which two instances, and two moments of one, can be compared."""

from __future__ import annotations

import json
import re
from collections import Counter

from ..objects import Object
from ..proxy import Upstream
from .life import INVENTORIES, Instance

State = dict[str, Object]
"""What each object, by its kind and name, was made to be; objects with generated names are numbered."""

# What differs from one run of the same verb to the next, or is a controller's own.
_OF_A_RUN = frozenset(
    {"uid", "resourceVersion", "generation", "creationTimestamp", "ownerReferences", "managedFields", "finalizers"}
)
_MARKS_OF_A_RUN = frozenset(
    {
        *("k8s-cr-driver/token", "k8s-cr-driver/worker", "k8s-cr-driver/operation", "k8s-cr-driver/released"),
        "deployment.kubernetes.io/revision",
    }
)


class Observer:
    """Reads past the driver and the proxies, with the same login; safe to use from many threads."""

    def __init__(self, upstream: Upstream, authorization: str) -> None:
        self._upstream, self._headers = upstream, {"Authorization": authorization}

    def state(self, instance: Instance) -> State:
        """All that is in the instance's namespace, and what of the cluster is its own."""
        numbers: Counter[str] = Counter()
        found = [live for path in _paths(instance) for live in self._read(path)]
        return dict(_comparable(live, instance, numbers) for live in found)

    def pods(self, instance: Instance) -> frozenset[str]:
        """The names of the instance's pods."""
        found = self._read(f"/api/v1/namespaces/{instance.namespace}/pods")
        return frozenset(live["metadata"]["name"] for live in found)

    def _read(self, path: str) -> list[Object]:
        """The objects of a list, or the one object; none where the path leads to nothing."""
        answer = self._upstream.request("GET", path, self._headers, b"")
        if answer.status == 404:
            answer.drain_conn()
            return []
        found = answer.json()
        assert answer.status == 200, found
        kind = found["kind"].removesuffix("List")
        return [{"kind": kind, **live} for live in found.get("items", [found])]


def _paths(instance: Instance) -> list[str]:
    inside = f"namespaces/{instance.namespace}"
    return [
        f"/api/v1/{inside}",
        f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gauges.{instance.group}",
        f"/api/v1/namespaces/{INVENTORIES}/configmaps/k8s-cr-driver-{instance.id}",
        f"/apis/{instance.group}/v1/{inside}/gauges",
        *(f"/api/v1/{inside}/{plural}" for plural in ("configmaps", "secrets", "services", "pods")),
        *(f"/apis/apps/v1/{inside}/{plural}" for plural in ("deployments", "replicasets")),
    ]


def _comparable(live: Object, instance: Instance, numbers: Counter[str]) -> tuple[str, Object]:
    metadata = live["metadata"]
    kind, name = live["kind"], metadata["name"]
    owners = [owner["name"] for owner in metadata.get("ownerReferences") or []]
    if owners:  # a controller's: how many there are is what matters
        numbers[kind] += 1
        return f"{kind} #{numbers[kind]}", {"replicas": live["spec"].get("replicas")}
    kept = {field: value for field, value in metadata.items() if field not in _OF_A_RUN}
    kept["annotations"] = {mark: value for mark, value in kept.get("annotations", {}).items() if mark not in _MARKS_OF_A_RUN}
    found = {field: value for field, value in live.items() if field not in ("metadata", "status")}
    if kind in ("Namespace", "Service"):
        found.pop("spec", None)  # the server's own: finalizers, the address that it was given
    owned = [entry["fieldsV1"] for entry in metadata.get("managedFields", []) if instance.id in entry["manager"]]
    found |= {"metadata": kept, "owned": owned}
    text = json.dumps([f"{kind} {name}", found], sort_keys=True).replace(instance.name, "INSTANCE")
    name, found = json.loads(re.sub(r"applyset-[\w-]+-v1", "APPLYSET", text))
    return name, found
