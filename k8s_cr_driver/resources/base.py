"""What the engine asks of a kind.

`CustomResource` works for any kind; a kind with rules of its own is a subclass that overrides some hooks and is
registered by entry point (see `registry`):

    class Elasticsearch(CustomResource):
        group, kind = "elasticsearch.k8s.elastic.co", "Elasticsearch"

        def assess(self, live):
            health = (live.get("status") or {}).get("health")
            if health == "green":
                return READY
            return Health(State.WAITING, "Health", f"cluster health is {health}")

The verbs of an object (`create`, `apply`, `read`, `delete`) are one request each and raise ApiError or TransportError.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from k8s_cr_driver.answers import checked
from k8s_cr_driver.builtin import is_builtin
from k8s_cr_driver.connection import APPLY, Connection
from k8s_cr_driver.discovery import Resource
from k8s_cr_driver.fields import entries, field
from k8s_cr_driver.keys import Key, Kind, Object, annotations_of, bare, key_of, kind_of, split
from k8s_cr_driver.marks import manager as manager_of
from k8s_cr_driver.resources.health import Health, assess
from k8s_cr_driver.resources.health.generic import terminating

PODS = Kind("", "Pod")

REPLACE = "k8s-cr-driver/replace"
"""Annotation `k8s-cr-driver/replace: "true"`: delete the object and make it again when a change of it is immutable."""

ONLY_NEW = "1"
"""A resourceVersion that no stored object has: an apply with it creates, or is answered with 409 and writes nothing."""


@dataclass(frozen=True)
class Children:
    """Where the VNFCs of an object are: objects of `kind` in `namespace` that it controls (ownerReferences), or itself.

    `selector` is a label selector that finds them all, and may find others. `through` are the kinds between, from the top:
    a Deployment controls ReplicaSets, and these the Pods; the selector finds them, too. `version` may be "": any.
    With `by_selector` they are what the selector finds, whoever controls them; one that is "" finds none.
    """

    kind: Kind
    version: str
    namespace: str
    selector: str
    through: tuple[Kind, ...] = ()
    by_selector: bool = False


@dataclass(frozen=True)
class Remains:
    """What the controller of an object leaves when it is deleted: objects of `kind` in `namespace` with such `names`."""

    kind: Kind
    version: str
    namespace: str
    names: re.Pattern[str]


class CustomResource:
    """One object of any kind: its manifest, the CRD of its kind if that is known, and what its kind knows."""

    group: ClassVar[str] = ""
    kind: ClassVar[str] = ""

    def __init__(self, manifest: Object, crd: Object | None = None) -> None:
        self.manifest = manifest
        self.crd = crd
        self.key: Key = key_of(manifest)

    def health(self, live: Object) -> Health:
        """What the engine asks: an object that is being deleted is not ready, whatever `assess` says of its status."""
        return terminating(live) or self.assess(live)

    def assess(self, live: Object) -> Health:
        """Is this object, as it is now, ready? Pure: `live` and the CRD are all there is to know."""
        return assess(live, self.crd)

    def children(self, live: Object | None = None) -> Children | None:
        """
        The objects that are this object's VNFCs, or None: then it has one VNFC for each replica.

        `live` is the object as it was read, None if it is not there, or only the kind of its VNFCs matters. Of a custom
        resource they are what autoscalers take for its Pods: those of the label selector that the CRD's subresource
        `scale` names, in the status.
        """
        path = self._scale("labelSelectorPath")
        if not path:
            return None
        selector = field(live, *path)
        return Children(PODS, "v1", self.key.namespace, selector if isinstance(selector, str) else "", by_selector=True)

    def child_metadata(self, child: Object) -> dict[str, str]:
        """What a user of Tacker's API should know of one VNFC, the metadata of its vnfcResourceInfo: the node of a Pod."""
        node = field(child, "spec", "nodeName")
        return {"node": node} if node else {}

    def replicas(self) -> tuple[str, ...] | None:
        """The path of the wanted count, None if the kind cannot be scaled."""
        return self._scale("specReplicasPath")

    def _scale(self, name: str) -> tuple[str, ...] | None:
        """A path that the CRD's subresource `scale` gives for this version."""
        for version in entries(self.crd, "spec", "versions"):
            if version.get("name") == split(self.manifest["apiVersion"])[1]:
                path = field(version, "subresources", "scale", name)
                return tuple(path.lstrip(".").split(".")) if path and isinstance(path, str) else None
        return None

    def remains(self) -> Remains | None:
        """What is to go with the object, of which the manifest is the live one, when the whole instance goes."""
        return None

    def expendable(self, count: int) -> int:
        """How many of `count` children may be deleted at the same time."""
        return count

    def delete_before(self, others: Iterable[Object]) -> list[Key]:
        """Those of `others` that may be deleted only when this object is gone."""
        del others
        return []

    def replace_strategy(self) -> bool:
        """Whether a change of an immutable field deletes the object and makes it again."""
        return annotations_of(self.manifest).get(REPLACE) == "true"

    def create(self, connection: Connection, resource: Resource, manager: str) -> Object:
        """Makes the object if there is none of its name: 201, or ApiError 409 and nothing written.

        Kinds without `patch` (TokenReview, ...) are posted.
        """
        if "patch" not in resource.verbs:
            return self._post(connection, resource, manager)
        body = {**self.manifest, "metadata": {**self.manifest["metadata"], "resourceVersion": ONLY_NEW}}
        return self._apply(connection, resource, manager, body, force=False)

    def apply(self, connection: Connection, resource: Resource, manager: str, *, force: bool) -> Object:
        """Server-side apply (KEP-555) of the whole manifest; ApiError 409 with causes is a field conflict."""
        return self._apply(connection, resource, manager, self.manifest, force=force)

    def read(self, connection: Connection, resource: Resource) -> Object:
        """The object as it is; ApiError 404 if there is none."""
        path = resource.path(self.key.namespace, self.key.name)
        return checked(connection.request("GET", path), resource.of, f"GET {path}")

    def delete(
        self,
        connection: Connection,
        resource: Resource,
        live: Object,
        *,
        unchanged: bool = False,
        grace_period: int | None = None,
    ) -> None:
        """Asks for deletion of exactly `live`; ApiError 409 if it is another object by now, or (`unchanged`) has changed."""
        metadata = live["metadata"]
        preconditions = {"uid": metadata["uid"], **({"resourceVersion": metadata["resourceVersion"]} if unchanged else {})}
        body: dict[str, Any] = {"propagationPolicy": _propagation(live), "preconditions": preconditions}
        if grace_period is not None:
            body["gracePeriodSeconds"] = grace_period
        connection.request("DELETE", resource.path(self.key.namespace, self.key.name), body=body)

    def release(self, connection: Connection, resource: Resource, manager: str, resource_version: str) -> Object:
        """Gives up all fields that only `manager` owns; the object stays. ApiError 409 if it has changed since."""
        body = bare(self.key, resource.api_version, resourceVersion=resource_version)
        return self._apply(connection, resource, manager, body, force=False)

    def _apply(
        self, connection: Connection, resource: Resource, manager: str, body: Object, *, force: bool
    ) -> Object:
        query = [("fieldManager", manager), ("force", json.dumps(force)), ("fieldValidation", "Strict")]
        path = resource.path(self.key.namespace, self.key.name)
        answer = connection.request("PATCH", path, query=query, body=body, content_type=APPLY)
        return checked(answer, resource.of, f"PATCH {path}", stored=False)

    def _post(self, connection: Connection, resource: Resource, manager: str) -> Object:
        query = [("fieldManager", manager), ("fieldValidation", "Strict")]
        body = self.manifest
        if resource.of.group == "authorization.k8s.io":  # its reviews refuse all metadata but a namespace
            body = {**body, "metadata": {"namespace": self.key.namespace} if self.key.namespace else {}}
        return connection.request("POST", resource.path(self.key.namespace), query=query, body=body)


def _propagation(live: Object) -> str:
    """Foreground for what may have dependents, so that being gone means that these are gone too.

    Not for an object with finalizers: its controller takes the dependents down in an order of its own, which the garbage
    collector would run ahead of (a Cluster of Cluster API never goes then). Nor for kinds that own nothing: the collector
    takes 20 objects a second at its usual limits. Nor for a custom resource that no controller has ever written to: the
    collector learns of a new CRD up to 30 s late, and of one that has gone meanwhile never.
    """
    kind = kind_of(live)
    workload = kind.group in ("apps", "batch") or kind == Kind("", "ReplicationController")
    may_own = workload or (not is_builtin(kind) and _has_controller(live))
    held = set(live["metadata"].get("finalizers") or []) - {"foregroundDeletion"}  # our own of an earlier request
    return "Foreground" if may_own and not held else "Background"


def _has_controller(live: Object) -> bool:
    """Whether anybody but VNF instances has written it, as a controller does when it takes an object on."""
    managers = [str(entry.get("manager")) for entry in live["metadata"].get("managedFields") or []]
    return not all(name.startswith(manager_of("")) for name in managers)
