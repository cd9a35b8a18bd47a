# SPDX-License-Identifier: Apache-2.0
"""Built-in kinds with rules of their own: their VNFCs, their replica count."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from k8s_cr_driver.objects.fields import entries, field, mapping, text, texts
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, as_selector, key_of, labels
from k8s_cr_driver.resources.base import PODS, REPLICAS, CustomResource
from k8s_cr_driver.resources.health import Health
from k8s_cr_driver.resources.health.freshness import repeated, unobserved
from k8s_cr_driver.resources.hooks import Children, Orphans, Relations, Scaling

CLAIMS = GroupKind("", "PersistentVolumeClaim")
REPLICA_SETS = GroupKind("apps", "ReplicaSet")
RETENTION = "persistentVolumeClaimRetentionPolicy"
"""The field of a StatefulSet's spec that says whether claims stay."""
RETAINED = {"whenDeleted": "Retain", "whenScaled": "Retain"}
"""Its default."""
CLAIM_TEMPLATES = "volumeClaimTemplates"

_OPERATORS = {"In": "{key} in ({values})", "NotIn": "{key} notin ({values})", "Exists": "{key}", "DoesNotExist": "!{key}"}


class ByDeletionCost(Scaling):
    """Pods that are not ready go before all others, and then the cheapest (ReplicaSet, "Pod deletion cost")."""

    removal_annotations: ClassVar[Mapping[str, str]] = {"controller.kubernetes.io/pod-deletion-cost": "-2147483648"}


class ByOrdinal(Scaling):
    """Pods have numbers, and are replaced one by one."""

    def removal_order(self, several: Sequence[Object]) -> list[Object]:
        """From the highest ordinal down (StatefulSet, "Deployment and Scaling Guarantees")."""
        return sorted(several, key=_ordinal, reverse=True)

    def awaited_revision(self, live: Object) -> str:
        """Unless its Pods start in parallel, or some are to stay as they are (StatefulSet, "Forced rollback")."""
        strategy = mapping(live, "spec", "updateStrategy")
        is_rolling = strategy.get("type") != "OnDelete" and not field(strategy, "rollingUpdate", "partition")
        is_ordered = field(live, "spec", "podManagementPolicy") != "Parallel"
        return text(live, "status", "updateRevision") if is_rolling and is_ordered and not unobserved(live) else ""


class Workload(CustomResource):
    """Pods by a selector, with a count."""

    through: ClassVar[tuple[GroupKind, ...]] = ()

    def children(self, live: Object | None = None) -> Children:
        del live
        return Children(PODS, "v1", self.key.namespace, _text(mapping(self.manifest, "spec", "selector")), self.through)

    def replicas(self) -> tuple[str, ...] | None:
        return REPLICAS

    def has_controlled(self, orphan: Object) -> bool:
        """By the name that its controller gives (kubernetes, pkg/controller/controller_utils.go)."""
        return text(orphan, "metadata", "generateName") == f"{self.key.name}-"


class ReplicaSet(Workload):
    group, kind = "apps", "ReplicaSet"

    def scaling(self) -> Scaling:
        return ByDeletionCost()


class Deployment(ReplicaSet):
    group, kind, through = "apps", "Deployment", (REPLICA_SETS,)

    def has_controlled(self, orphan: Object) -> bool:
        """By the name that its controller gives (kubernetes, pkg/controller/deployment/sync.go)."""
        digest = labels(orphan).get("pod-template-hash", "")
        return bool(digest) and text(orphan, "metadata", "name") == f"{self.key.name}-{digest}"


class StatefulSet(Workload):
    group, kind = "apps", "StatefulSet"
    orphaned = CLAIMS

    def has_controlled(self, orphan: Object) -> bool:
        """By the ordinal in the name (StatefulSet, "Stable Network ID")."""
        name, _, ordinal = text(orphan, "metadata", "name").rpartition("-")
        return name == self.key.name and ordinal.isascii() and ordinal.isdecimal()

    def scaling(self) -> Scaling:
        return ByOrdinal()

    def orphans(self) -> Orphans | None:
        """The claims of its pods, by the names and labels that its controller gives them.

        The names alone are ambiguous: `data-a` of `b` and `data` of `a-b` are one. The controller copies to each claim the
        labels of its template and of the selector (kubernetes, pkg/controller/statefulset/stateful_set_utils.go). Claims
        without any are left.
        """
        spec = mapping(self.manifest, "spec")
        templates, selected = entries(spec, CLAIM_TEMPLATES), mapping(spec, "selector", "matchLabels")
        if not templates:
            return None
        common = set.intersection(*(set(labels(template).items()) for template in templates))
        names = "|".join(re.escape(text(one, "metadata", "name")) for one in templates)
        return Orphans(
            CLAIMS,
            "v1",
            self.key.namespace,
            re.compile(f"({names})-{re.escape(self.key.name)}-[0-9]+"),
            selector=as_selector({**dict(common), **selected}) or None,
            labels=selected,
            are_taken=text(spec, RETENTION, "whenDeleted") == "Delete",
            are_kept=self._keeps_claims(),
        )

    def _keeps_claims(self) -> bool:
        """
        The API server defaults whenDeleted: Retain in all of them; only the field's owner shows whether it was applied.

        Who updates an object owns its defaults, too. So of one that nobody has applied, as `kubectl replace --force` leaves it,
        nobody can know: the data stay.
        """
        if field(self.manifest, "spec", RETENTION, "whenDeleted") != "Retain":
            return False
        managed = entries(self.manifest, "metadata", "managedFields")
        is_applied = any(entry.get("operation") == "Apply" and mapping(entry, "fieldsV1", "f:spec") for entry in managed)
        named = ("fieldsV1", "f:spec", f"f:{RETENTION}")
        return not is_applied or any("f:whenDeleted" in mapping(entry, *named) for entry in managed)

    def relations(self) -> Relations:
        return BeforeClaims(self)


@dataclass(frozen=True)
class BeforeClaims(Relations):
    owner: StatefulSet

    def deleted_before(self, others: Iterable[Object]) -> Sequence[ObjectKey]:
        """Its claims: as long as it exists, its controller creates a claim again that a Pod of it needs."""
        orphans = self.owner.orphans()
        if orphans is None or orphans.selector is None:
            return []
        return list(filter(orphans.are_called, (key_of(other) for other in others if other["kind"] == CLAIMS.kind)))


class DaemonSet(Workload):
    group, kind = "apps", "DaemonSet"

    def replicas(self) -> tuple[str, ...] | None:
        return None


class Pod(CustomResource):
    """A bare pod is its own VNFC; of its containers only the images may change."""

    group, kind = "", "Pod"

    def assess(self, live: Object) -> Health:
        """The kubelet sees a changed image some time later, and reports until then that the former container is ready."""
        health = super().assess(live)
        runs = text(live, "status", "phase") == "Running"  # it looks at no Pod again that has ended
        return (unobserved(live) or repeated(live, self.old_status) or health) if health.settled and runs else health

    def children(self, live: Object | None = None) -> Children:
        del live
        return Children(PODS, "v1", self.key.namespace, as_selector(labels(self.manifest)))

    def has_finished(self, live: Object) -> bool:
        """
        Not one that is being deleted: its containers end for that, and the kubelet writes Succeeded if they end with 0.

        https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-phase
        """
        has_succeeded = field(live, "status", "phase") == "Succeeded"
        return has_succeeded and self.runs_to_end() and not field(live, "metadata", "deletionTimestamp")

    def runs_to_end(self) -> bool:
        return field(self.manifest, "spec", "restartPolicy") in ("OnFailure", "Never")


def _ordinal(pod: Object) -> int:
    ordinal = pod["metadata"]["name"].rpartition("-")[2]
    return int(ordinal) if ordinal.isdecimal() else -1


def _text(selector: Mapping[str, Any]) -> str:
    """A LabelSelector as a query has it."""
    expressions = [
        form.format(key=one.get("key"), values=",".join(texts(one, "values")))
        for one in entries(selector, "matchExpressions")
        if (form := _OPERATORS.get(str(one.get("operator"))))
    ]
    return ",".join(filter(None, [as_selector(mapping(selector, "matchLabels")), *expressions]))
