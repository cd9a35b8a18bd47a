# SPDX-License-Identifier: Apache-2.0
"""The hooks of a kind: what the engine asks it.

`CustomResource` works for any kind; a kind with rules of its own is a subclass that overrides some hooks and is
registered by entry point (see `registry`):

    class Elasticsearch(CustomResource):
        group, kind = "elasticsearch.k8s.elastic.co", "Elasticsearch"

        def assess(self, live):
            health = (live.get("status") or {}).get("health")
            if health == "green":
                return READY
            return Health(State.WAITING, "Health", f"cluster health is {health}")

No hook makes a request: a kind knows what to read of an object, the engine reads and writes it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from k8s_cr_driver.objects.crds import scale_path, status_selector
from k8s_cr_driver.objects.fields import field, mapping
from k8s_cr_driver.objects.keys import (
    CRD,
    NAMESPACE,
    GroupKind,
    Object,
    ObjectKey,
    SecretEntry,
    annotations_of,
    key_of,
)
from k8s_cr_driver.resources.health import Health, State, assess, operator_rules
from k8s_cr_driver.resources.health.at_rest import held_in_admission
from k8s_cr_driver.resources.health.custom import terminating
from k8s_cr_driver.resources.health.model import HELD_IN_ADMISSION, PAUSED, suspended, waiting
from k8s_cr_driver.resources.health.rules import Rules, of_annotations, of_package
from k8s_cr_driver.resources.health.status_fields import has_ended
from k8s_cr_driver.resources.hooks import Causes, Changes, Children, Made, Orphans, Relations, Scaling

_Self = TypeVar("_Self", bound="CustomResource")

ANY = "*"
"""`kind` of a class for all kinds of its group, and of groups that end in it, that have no class of their own."""

PODS = GroupKind("", "Pod")
REPLICAS = ("spec", "replicas")
"""The path of the wanted count in most kinds that have one."""


class CustomResource:
    """One object of any kind: its manifest, the CRD of its kind if that is known, and what its kind knows.

    A kind whose objects have several counts has a second class for what has one of them: a *part* of the object. Its `key`
    and `manifest` are the object's. The hooks on VNFCs and counts are about the part.
    """

    group: ClassVar[str] = ""
    kind: ClassVar[str] = ""
    orphaned: ClassVar[GroupKind | None] = None
    """The kind of its `orphans`, if objects of the kind may have any."""

    def __init__(self, manifest: Object, crd: Object | None = None) -> None:
        self.manifest = manifest
        self.crd = crd
        self.old_status: Any = None
        """The status that the server returned for our last change of the spec, None if we changed nothing."""
        self.request_rules: Mapping[GroupKind, Rules] | None = None
        """The rules that the request, or one before it, has for kinds."""
        self.paused_by: ObjectKey | None = None
        """The object of the set that pauses this one; see `Relations.pauses`."""
        self.key: ObjectKey = key_of(manifest)
        self.hides_count = False
        """Whether only a CRD that may not be read names the field of its count."""
        self.part = ""
        """Which part of the object this is, unique in the object; "" for all of it."""

    def __str__(self) -> str:
        return f"{self.key} {self.part}".rstrip()

    @property
    def name(self) -> str:
        """The name by which a VDU finds it."""
        return self.key.name

    @property
    def full_name(self) -> str:
        """The same, also among the parts of other objects."""
        return self.key.name

    def annotations(self) -> Mapping[str, str]:
        return annotations_of(self.manifest)

    def parts(self) -> Sequence[CustomResource]:
        """The parts of the object, which can be VDUs as objects can."""
        return []

    def whole(self) -> CustomResource:
        """The object of which this is a part, with the same manifest."""
        return self

    def with_manifest(self: _Self, manifest: Object) -> _Self:
        """The same with another manifest of the object."""
        other = copy.copy(self)
        other.manifest, other.old_status = manifest, None
        return other

    def health(self, live: Object) -> Health:
        """The health that the engine uses: one that is being deleted is never ready, what the set pauses is at rest."""
        if health := terminating(live):
            return health
        if self.paused_by:
            return suspended(PAUSED, f"{self.paused_by} pauses it")
        if rules := next(rule_sources(self, live), None):
            return rules.health(live, self.old_status, lambda: self.health_by_kind(live))
        return self.health_by_kind(live)

    def health_by_kind(self, live: Object) -> Health:
        """The same by the rules of its kind alone."""
        health = self.assess(live)
        if health.state is State.SUSPENDED and (held := held_in_admission(live, self.manifest, self.crd)):
            return waiting(HELD_IN_ADMISSION, f"{held}, by a webhook and not by the manifest: it has not begun")
        return health

    def assess(self, live: Object) -> Health:
        """The health of the object as it is now, from `live`, the CRD and the old status alone."""
        return assess(live, self.crd, self.old_status)

    def children(self, live: Object | None = None) -> Children | None:
        """
        The objects that are this object's VNFCs, or None: then it has one VNFC for each replica.

        `live` is the object as it was read, None if it is not there, or only the kind of its VNFCs matters. Of a custom
        resource they are what autoscalers take for its Pods: those of the label selector that the CRD's subresource
        `scale` names, in the status and not in the spec.
        """
        path = status_selector(self.crd, self.manifest["apiVersion"])
        if not path:
            return None
        selector = field(live, *path)
        return Children(PODS, "v1", self.key.namespace, selector if isinstance(selector, str) else "", by_selector=True)

    def has_controlled(self, orphan: Object) -> bool:
        """
        Whether an object that the selector of `children` finds, and that has no controller, is what this object has left.

        `kubectl delete --cascade=orphan` leaves such ones, and the same object takes them over once it is created again.
        """
        del orphan
        return False

    def causes(self, live: Object) -> Causes:
        """Where it is said why `live`, which may be {}, is not ready, beside its own status."""
        del live
        return Causes()

    def made(self, live: Object) -> Made | None:
        """What a controller makes of it, as its status alone does not say how far that is; None if nothing."""
        del live
        return None

    def kubeconfig(self) -> SecretEntry | None:
        """Where the kubeconfig of the cluster is that the object describes, which is to open before the object is ready."""
        return None

    def child_metadata(self, child: Object) -> dict[str, str]:
        """The metadata of one VNFC's vnfcResourceInfo: the node of a Pod."""
        node = field(child, "spec", "nodeName")
        return {"node": node} if node else {}

    def replicas(self) -> tuple[str, ...] | None:
        """The path of the wanted count, None if the kind cannot be scaled."""
        return scale_path(self.crd, self.manifest["apiVersion"], "specReplicasPath")

    def scaling(self) -> Scaling:
        """Which counts it can have, and in which order its VNFCs go."""
        return Scaling()

    def changes(self) -> Changes | None:
        """What a change of the package asks of it, with the live object; None if there is nothing to ask."""
        return None

    def relations(self) -> Relations:
        """How it stands to the other objects of the set."""
        return Relations()

    def orphans(self) -> Orphans | None:
        """What its controller leaves behind when it is deleted; its manifest is then the live one."""
        return None

    def has_finished(self, live: Object) -> bool:
        """Whether the object has run to its end, as a Job does: it may then vanish, and is not to run again."""
        return has_ended(mapping(live, "status"))

    def runs_to_end(self) -> bool:
        """Whether it may run to an end at all, by its manifest."""
        return True


def rule_sources(obj: CustomResource, live: Object) -> Iterator[Rules]:
    """What users say of the object's readiness, source by source: the first decides."""
    yield from _first_rules(obj, live)
    # What is live may be of another package, which has kept the object or shares it
    of_crd, of_all = of_annotations(obj.crd, "annotation of the CRD"), operator_rules.of(obj.key.group_kind)
    yield from filter(None, (of_crd, of_package(obj.manifest), of_all))


def is_ruled(obj: CustomResource, live: Object) -> bool:
    """Whether users have rules for the object that decide before those of its CRD."""
    return next(_first_rules(obj, live), None) is not None


def _first_rules(obj: CustomResource, live: Object) -> Iterator[Rules]:
    kind = obj.key.group_kind
    # Those of a CRD are for the objects of its kind, those of a Namespace may be of another instance
    own = None if kind == CRD else obj.manifest if kind == NAMESPACE else live
    yield from filter(None, (of_annotations(own, "annotation of the object"), (obj.request_rules or {}).get(kind)))
