"""Built-in kinds that know more than their own readiness: what their VNFCs are, where their count stands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from k8s_cr_driver.keys import Kind, Object, as_selector, labels
from k8s_cr_driver.resources.base import PODS, Children, CustomResource

REPLICA_SETS = Kind("apps", "ReplicaSet")

_OPERATORS = {"In": "{key} in ({values})", "NotIn": "{key} notin ({values})", "Exists": "{key}", "DoesNotExist": "!{key}"}


class Workload(CustomResource):
    """Pods by a selector, with a count."""

    through: ClassVar[tuple[Kind, ...]] = ()

    def children(self, live: Object | None = None) -> Children:
        del live
        selector = (self.manifest.get("spec") or {}).get("selector") or {}
        return Children(PODS, "v1", self.key.namespace, _text(selector), self.through)

    def replicas(self) -> tuple[str, ...] | None:
        return ("spec", "replicas")


class Deployment(Workload):
    group, kind, through = "apps", "Deployment", (REPLICA_SETS,)


class StatefulSet(Workload):
    group, kind = "apps", "StatefulSet"


class ReplicaSet(Workload):
    group, kind = "apps", "ReplicaSet"


class DaemonSet(Workload):
    group, kind = "apps", "DaemonSet"

    def replicas(self) -> tuple[str, ...] | None:
        return None


class Pod(CustomResource):
    """A bare pod: its own only VNFC; its containers are immutable."""

    group, kind = "", "Pod"

    def children(self, live: Object | None = None) -> Children:
        del live
        return Children(PODS, "v1", self.key.namespace, as_selector(labels(self.manifest)))

    def replace_strategy(self) -> bool:
        return True


class Job(CustomResource):
    group, kind = "batch", "Job"

    def replace_strategy(self) -> bool:
        return True


def _text(selector: Mapping[str, Any]) -> str:
    """A LabelSelector as a query has it."""
    expressions = [
        _OPERATORS[one["operator"]].format(key=one["key"], values=",".join(one.get("values") or []))
        for one in selector.get("matchExpressions") or []
        if one.get("operator") in _OPERATORS
    ]
    return ",".join(filter(None, [as_selector(selector.get("matchLabels") or {}), *expressions]))
