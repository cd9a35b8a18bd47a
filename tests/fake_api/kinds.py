# SPDX-License-Identifier: Apache-2.0
"""The kinds that the server serves: a table of built-in ones, and those that CustomResourceDefinitions add.

A `Kind` is one served version of a resource. Versions of one resource share their storage (`Kind.resource`), as on a
real server with `conversion: None`.
"""

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from tests.fake_api.shapes import Shape, of_kind

Resource = tuple[str, str]
CRDS: Resource = ("apiextensions.k8s.io", "customresourcedefinitions")

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
CREATE_ONLY = ("create",)
NO_WATCH = ("get", "list")
_SPECIAL_VERBS = {"O": CREATE_ONLY, "W": NO_WATCH,
                  "I": tuple(verb for verb in ALL_VERBS if verb != "deletecollection")}


@dataclass(frozen=True, eq=False)
class Scale:
    """Where a kind keeps what its `scale` subresource shows, as field paths."""

    spec: tuple[str, ...] = ("spec", "replicas")
    status: tuple[str, ...] = ("status", "replicas")
    selector: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Kind:
    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    verbs: tuple[str, ...] = ALL_VERBS
    status: bool = False
    scale: Scale | None = None
    generation: bool = False
    schema: dict[str, Any] | None = None
    custom: bool = False
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    singular: str = ""

    @cached_property
    def resource(self) -> Resource:
        return self.group, self.plural

    @cached_property
    def shape(self) -> Shape:
        return of_kind(self.kind, self.schema)

    @cached_property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def subresources(self) -> list[str]:
        return [name for name, has in (("scale", self.scale), ("status", self.status)) if has]


# kind, plural, then flags: C cluster-scoped, S status subresource, R scale subresource, G generation is kept,
# O create only, W without watch, I deleted one by one only.
_TABLE: dict[str, list[tuple[str, str, str]]] = {
    "v1": [
        ("ComponentStatus", "componentstatuses", "CW"),
        ("ConfigMap", "configmaps", ""),
        ("Endpoints", "endpoints", ""),
        ("Event", "events", ""),
        ("LimitRange", "limitranges", ""),
        ("Namespace", "namespaces", "CSI"),
        ("Node", "nodes", "CS"),
        ("PersistentVolume", "persistentvolumes", "CS"),
        ("PersistentVolumeClaim", "persistentvolumeclaims", "S"),
        ("Pod", "pods", "SG"),
        ("PodTemplate", "podtemplates", ""),
        ("ReplicationController", "replicationcontrollers", "SRG"),
        ("ResourceQuota", "resourcequotas", "S"),
        ("Secret", "secrets", ""),
        ("Service", "services", "S"),
        ("ServiceAccount", "serviceaccounts", ""),
    ],
    "admissionregistration.k8s.io/v1": [
        ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations", "CG"),
        ("ValidatingAdmissionPolicy", "validatingadmissionpolicies", "CSG"),
        ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations", "CG"),
    ],
    "apiextensions.k8s.io/v1": [("CustomResourceDefinition", "customresourcedefinitions", "CSG")],
    "apiregistration.k8s.io/v1": [("APIService", "apiservices", "CS")],
    "apps/v1": [
        ("ControllerRevision", "controllerrevisions", ""),
        ("DaemonSet", "daemonsets", "SG"),
        ("Deployment", "deployments", "SRG"),
        ("ReplicaSet", "replicasets", "SRG"),
        ("StatefulSet", "statefulsets", "SRG"),
    ],
    "authentication.k8s.io/v1": [("TokenReview", "tokenreviews", "CO")],
    "authorization.k8s.io/v1": [
        ("SelfSubjectAccessReview", "selfsubjectaccessreviews", "CO"),
        ("SelfSubjectRulesReview", "selfsubjectrulesreviews", "CO"),
        ("SubjectAccessReview", "subjectaccessreviews", "CO"),
    ],
    "autoscaling/v2": [("HorizontalPodAutoscaler", "horizontalpodautoscalers", "S")],
    "autoscaling/v1": [("HorizontalPodAutoscaler", "horizontalpodautoscalers", "S")],
    "batch/v1": [("CronJob", "cronjobs", "SG"), ("Job", "jobs", "SG")],
    "coordination.k8s.io/v1": [("Lease", "leases", "")],
    "discovery.k8s.io/v1": [("EndpointSlice", "endpointslices", "G")],
    "networking.k8s.io/v1": [
        ("Ingress", "ingresses", "SG"),
        ("IngressClass", "ingressclasses", "CG"),
        ("NetworkPolicy", "networkpolicies", "G"),
    ],
    "policy/v1": [("PodDisruptionBudget", "poddisruptionbudgets", "SG")],
    "rbac.authorization.k8s.io/v1": [
        ("ClusterRole", "clusterroles", "C"),
        ("ClusterRoleBinding", "clusterrolebindings", "C"),
        ("Role", "roles", ""),
        ("RoleBinding", "rolebindings", ""),
    ],
    "scheduling.k8s.io/v1": [("PriorityClass", "priorityclasses", "CG")],
    "storage.k8s.io/v1": [("StorageClass", "storageclasses", "C")],
}

_SHORT_NAMES = {
    "componentstatuses": "cs", "configmaps": "cm", "cronjobs": "cj", "customresourcedefinitions": "crd crds",
    "daemonsets": "ds", "deployments": "deploy", "endpoints": "ep", "events": "ev", "horizontalpodautoscalers": "hpa",
    "ingresses": "ing", "limitranges": "limits", "namespaces": "ns", "networkpolicies": "netpol", "nodes": "no",
    "persistentvolumeclaims": "pvc", "persistentvolumes": "pv", "poddisruptionbudgets": "pdb", "pods": "po",
    "priorityclasses": "pc", "replicasets": "rs", "replicationcontrollers": "rc", "resourcequotas": "quota",
    "serviceaccounts": "sa", "services": "svc", "statefulsets": "sts", "storageclasses": "sc",
}


@cache
def built_in() -> tuple[Kind, ...]:
    """The built-in kinds, the preferred version of a group first."""
    kinds = []
    for api_version, rows in _TABLE.items():
        group, _, version = api_version.rpartition("/")
        for kind, plural, flags in rows:
            verbs = next((some for flag, some in _SPECIAL_VERBS.items() if flag in flags), ALL_VERBS)
            selector = ("status", "selector") if group == "" else ("spec", "selector")
            short = tuple(_SHORT_NAMES.get(plural, "").split())
            kinds.append(Kind(group, version, kind, plural, "C" not in flags, verbs, "S" in flags,
                              Scale(selector=selector) if "R" in flags else None, "G" in flags,
                              short_names=short, singular=kind.lower()))
    return tuple(kinds)


def from_crd(crd: dict[str, Any]) -> list[Kind]:
    """The kinds that a CustomResourceDefinition serves, in the order that discovery prefers them."""
    spec = crd["spec"]
    names = spec["names"]
    kinds = []
    for version in sorted((v for v in spec["versions"] if v.get("served")), key=lambda v: _priority(v["name"])):
        sub = version.get("subresources") or {}
        kinds.append(Kind(
            spec["group"], version["name"], names["kind"], names["plural"], spec["scope"] == "Namespaced", ALL_VERBS,
            "status" in sub, _scale_of(sub["scale"]) if "scale" in sub else None, True,
            (version.get("schema") or {}).get("openAPIV3Schema") or {}, True, tuple(names.get("shortNames") or ()),
            tuple(names.get("categories") or ()), names.get("singular") or names["kind"].lower()))
    return kinds


def _scale_of(declared: dict[str, str]) -> Scale:
    def path(name: str) -> tuple[str, ...]:
        return tuple(step for step in declared.get(name, "").split(".") if step)
    return Scale(path("specReplicasPath"), path("statusReplicasPath"), path("labelSelectorPath"))


def _priority(version: str) -> tuple[int, int, int, str]:
    """Sort key of kube-aware versions: v2, v1, v1beta2, v1beta1, v1alpha1, then other names by alphabet."""
    head, stage, minor = version[1:], 0, "0"
    for rank, name in ((1, "beta"), (2, "alpha")):
        if name in head:
            head, _, minor = head.partition(name)
            stage = rank
    if not version.startswith("v") or not head.isdigit() or not minor.isdigit():
        return 3, 0, 0, version
    return stage, -int(head), -int(minor), version
