"""Built-in kinds that know more than their own readiness: what their VNFCs are, where their count stands."""

from __future__ import annotations

from k8s_cr_driver.keys import Kind, Object, labels
from k8s_cr_driver.resources.base import Children, CustomResource

PODS = Kind("", "Pod")


class Workload(CustomResource):
    """Pods by a selector, with a count."""

    def children(self) -> Children | None:
        selector = (self.manifest.get("spec") or {}).get("selector") or {}
        wanted = selector.get("matchLabels") or {}
        return Children(PODS, "v1", self.key.namespace, wanted) if wanted else None

    def child_metadata(self, child: Object) -> dict[str, str]:
        return pod_metadata(child)

    def replicas(self) -> tuple[str, ...] | None:
        return ("spec", "replicas")


class Deployment(Workload):
    group, kind = "apps", "Deployment"


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

    def children(self) -> Children:
        return Children(PODS, "v1", self.key.namespace, labels(self.manifest), self.key.name)

    def child_metadata(self, child: Object) -> dict[str, str]:
        return pod_metadata(child)

    def replace_strategy(self) -> bool:
        return True


class Job(CustomResource):
    group, kind = "batch", "Job"

    def replace_strategy(self) -> bool:
        return True


def pod_metadata(pod: Object) -> dict[str, str]:
    node = (pod.get("spec") or {}).get("nodeName")
    return {"node": node} if node else {}
