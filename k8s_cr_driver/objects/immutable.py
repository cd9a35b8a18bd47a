# SPDX-License-Identifier: Apache-2.0
"""The fields of built-in kinds that the API server's validation never lets change (pkg/apis/*/validation, Kubernetes 1.36).

`validate --update-of` asks before there is a cluster; the engine asks when the API server has refused an update, whatever the
words of the refusal. Only the cluster knows the immutable fields of custom resources.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from k8s_cr_driver.objects.fields import field
from k8s_cr_driver.objects.keys import CRD, GroupKind, Object, kind_of

_SELECTOR = "spec.selector"
_ROLE = "roleRef"
_FIELDS: Mapping[GroupKind, Sequence[str]] = {
    GroupKind("apps", "Deployment"): (_SELECTOR,),
    GroupKind("apps", "DaemonSet"): (_SELECTOR,),
    GroupKind("apps", "ReplicaSet"): (_SELECTOR,),
    GroupKind("apps", "StatefulSet"): (_SELECTOR, "spec.serviceName", "spec.podManagementPolicy", "spec.volumeClaimTemplates"),
    GroupKind("batch", "Job"): (_SELECTOR, "spec.template", "spec.completionMode"),
    GroupKind("", "Pod"): ("spec",),
    GroupKind("", "Service"): ("spec.clusterIP",),
    GroupKind("", "PersistentVolumeClaim"): (
        "spec.accessModes", "spec.storageClassName", "spec.volumeName", "spec.volumeMode", "spec.dataSource", _SELECTOR
    ),
    GroupKind("", "Secret"): ("type",),
    GroupKind("rbac.authorization.k8s.io", "RoleBinding"): (_ROLE,),
    GroupKind("rbac.authorization.k8s.io", "ClusterRoleBinding"): (_ROLE,),
    GroupKind("networking.k8s.io", "IngressClass"): ("spec.controller",),
    GroupKind("storage.k8s.io", "StorageClass"): ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"),
    GroupKind("scheduling.k8s.io", "PriorityClass"): ("value",),
    CRD: ("spec.group", "spec.scope", "spec.names.kind", "spec.names.plural"),
}
_FROZEN = (GroupKind("", "ConfigMap"), GroupKind("", "Secret"))
"""Kinds whose data cannot change once `immutable` is true."""


def changed_fields(old: Object, new: Object) -> list[str]:
    """The paths of the immutable fields of `old` that differ in `new`, an object of the same kind."""
    kind = kind_of(old)
    frozen = ("data", "binaryData", "immutable") if kind in _FROZEN and old.get("immutable") is True else ()
    paths = (*_FIELDS.get(kind, ()), *frozen)
    return [path for path in paths if field(old, *path.split(".")) != field(new, *path.split("."))]


def concerns(where: str, path: str) -> bool:
    """Whether a refusal of the field `where` is one of `path`: not of a field in it, which may only be wrong."""
    return f"{path}.".startswith(f"{where}.")
