# SPDX-License-Identifier: Apache-2.0
"""The fields of built-in kinds that the API server's validation never lets change (pkg/apis/*/validation, Kubernetes 1.36).

`validate --update-of` asks before there is a cluster; the engine asks when the API server has refused an update, whatever the
words of the refusal. Only the cluster knows the immutable fields of custom resources.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from k8s_cr_driver.objects.fields import field, mapping, sequence
from k8s_cr_driver.objects.keys import CRD, GroupKind, Object, annotations_of, kind_of
from k8s_cr_driver.objects.quantities import as_amount

_RBAC, _RESOURCE, _STORAGE = "rbac.authorization.k8s.io", "resource.k8s.io", "storage.k8s.io"
_SELECTOR, _SPEC, _CLAIM_TEMPLATES = "spec.selector", "spec", "spec.volumeClaimTemplates"
REPLACE = "k8s-cr-driver/replace"
"""Annotation `k8s-cr-driver/replace: "true"`: delete the object and create it again when an immutable field changes."""
_REPLACED = frozenset({GroupKind("", "Pod"), GroupKind("batch", "Job")})
"""Kinds of which that holds without the annotation."""
_SERVICE = GroupKind("", "Service")
_REQUEST = GroupKind("certificates.k8s.io", "CertificateSigningRequest")
_ROLE = ("roleRef.apiGroup", "roleRef.kind", "roleRef.name")
_FIELDS: Mapping[GroupKind, Sequence[str]] = {
    GroupKind("apps", "ControllerRevision"): ("data",),
    GroupKind("apps", "DaemonSet"): (_SELECTOR,),
    GroupKind("apps", "Deployment"): (_SELECTOR,),
    GroupKind("apps", "ReplicaSet"): (_SELECTOR,),
    GroupKind("apps", "StatefulSet"): (_SELECTOR, "spec.serviceName", "spec.podManagementPolicy", _CLAIM_TEMPLATES),
    GroupKind("batch", "Job"): (
        _SELECTOR, "spec.template", "spec.completionMode", "spec.podFailurePolicy", "spec.successPolicy",
        "spec.backoffLimitPerIndex", "spec.managedBy",
    ),
    _REQUEST: ("spec.request", "spec.signerName", "spec.usages", "spec.expirationSeconds"),
    GroupKind("certificates.k8s.io", "ClusterTrustBundle"): ("spec.signerName",),
    GroupKind("certificates.k8s.io", "PodCertificateRequest"): (_SPEC,),
    GroupKind("coordination.k8s.io", "LeaseCandidate"): ("spec.leaseName",),
    GroupKind("", "Pod"): (_SPEC,),
    GroupKind("", "PersistentVolume"): ("spec.volumeMode",),
    GroupKind("", "PersistentVolumeClaim"): (
        "spec.accessModes", "spec.storageClassName", "spec.volumeMode", "spec.dataSource", "spec.dataSourceRef",
        "spec.resources.limits", _SELECTOR,
    ),
    GroupKind("", "Secret"): ("type",),
    GroupKind("discovery.k8s.io", "EndpointSlice"): ("addressType",),
    GroupKind("networking.k8s.io", "IPAddress"): ("spec.parentRef",),
    GroupKind("networking.k8s.io", "IngressClass"): ("spec.controller",),
    GroupKind("node.k8s.io", "RuntimeClass"): ("handler",),
    GroupKind(_RBAC, "ClusterRoleBinding"): _ROLE,
    GroupKind(_RBAC, "RoleBinding"): _ROLE,
    GroupKind(_RESOURCE, "ResourceClaim"): (_SPEC,),
    GroupKind(_RESOURCE, "ResourceClaimTemplate"): (_SPEC,),
    GroupKind(_RESOURCE, "ResourceSlice"): ("spec.driver", "spec.nodeName", "spec.pool.name"),
    GroupKind("scheduling.k8s.io", "PriorityClass"): ("value", "preemptionPolicy"),
    GroupKind(_STORAGE, "CSIDriver"): ("spec.attachRequired", "spec.volumeLifecycleModes"),
    GroupKind(_STORAGE, "CSIStorageCapacity"): ("nodeTopology", "storageClassName"),
    GroupKind(_STORAGE, "StorageClass"): ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"),
    GroupKind(_STORAGE, "VolumeAttachment"): (_SPEC,),
    GroupKind(_STORAGE, "VolumeAttributesClass"): ("driverName", "parameters"),
    GroupKind("storagemigration.k8s.io", "StorageVersionMigration"): (_SPEC,),
    CRD: ("spec.group", "spec.scope", "spec.names.kind", "spec.names.plural"),
}  # fmt: skip
_DEFAULTS: Mapping[tuple[str, str], Any] = {
    ("StatefulSet", "spec.podManagementPolicy"): "OrderedReady",
    ("Job", "spec.completionMode"): "NonIndexed",
    ("PersistentVolume", "spec.volumeMode"): "Filesystem",
    ("PersistentVolumeClaim", "spec.volumeMode"): "Filesystem",
    ("Secret", "type"): "Opaque",
    ("ClusterRoleBinding", "roleRef.apiGroup"): _RBAC,
    ("RoleBinding", "roleRef.apiGroup"): _RBAC,
    ("PriorityClass", "preemptionPolicy"): "PreemptLowerPriority",
    ("CSIDriver", "spec.attachRequired"): True,
    ("CSIDriver", "spec.volumeLifecycleModes"): ["Persistent"],
    ("StorageClass", "reclaimPolicy"): "Delete",
    ("StorageClass", "volumeBindingMode"): "Immediate",
}
"""Values that the API server sets (pkg/apis/*/v1/defaults.go), by kind and field: to name one is no change."""
_OF_CLAIMS = {"volumeMode": "Filesystem"}
_DEFAULTS_WITHIN: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("PersistentVolume", "spec.hostPath"): {"type": ""},
    ("PersistentVolume", "spec.iscsi"): {"iscsiInterface": "default"},
    ("PersistentVolume", "spec.rbd"): {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
}
"""The same within a field that is given."""
_QUANTITIES = frozenset({"requests", "limits", "capacity"})
"""Mappings to amounts, wherever they are (core/v1, ResourceList)."""
_TEXTS = frozenset({"labels", "annotations", "matchLabels"})
"""Mappings to texts, of which an empty one is none; an empty structure is not."""
_MUTABLE_OF_VOLUME = frozenset(
    {
        "accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity", "persistentVolumeReclaimPolicy",
        "storageClassName", "volumeAttributesClassName", "volumeMode",
    }
)  # fmt: skip
"""Fields in the spec of a PersistentVolume; the others are its source."""
_REPORTED_AS = {
    "spec.clusterIPs": "spec.clusterIP",
    "spec.attachedRequired": "spec.attachRequired",
    "spec.persistentvolumesource": "spec",
    "nodeAffinity": "spec.nodeAffinity",
    "volumeMode": "spec.volumeMode",
}
"""Names of fields in refusals, and those in manifests, where they differ."""


def is_replaced(manifest: Object) -> bool:
    """Whether a change of an immutable field deletes the object and creates it again."""
    return kind_of(manifest) in _REPLACED or annotations_of(manifest).get(REPLACE) == "true"


def changed_fields(old: Object, new: Object) -> list[str]:
    """The paths of the immutable fields of `old` that differ in `new`, an object of the same kind."""
    kind = kind_of(old)
    changed = [path for path in _FIELDS.get(kind, ()) if _value(old, path) != _value(new, path)]
    rule = _RULES.get(kind)
    return changed + (rule(old, new) if rule else [])


def staying_fields(live: Object, manifest: Object) -> list[str]:
    """The fields that stay as they are where a manifest leaves them out, although a new object would have others."""
    return _no_more_headless(live, manifest) if kind_of(live) == _SERVICE else []


def ignored_fields(live: Object, manifest: Object) -> list[str]:
    """The fields that an API server has left as they were, without a refusal (pkg/registry/certificates/certificates)."""
    if kind_of(live) != _REQUEST:
        return []
    return [path for path in _FIELDS[_REQUEST] if _decoded(manifest, path) not in (None, _decoded(live, path))]


def _decoded(obj: Object, path: str) -> Any:
    """Line ends count for nothing in what the API server decodes from base64."""
    found = _value(obj, path)
    return "".join(found.split()) if isinstance(found, str) else found


def concerns(where: str, path: str) -> bool:
    """Whether a refusal of the field `where` is one of `path`: not of a field in it, which may only be wrong."""
    where = re.sub(r"\[[0-9]+\]$", "", where)
    return f"{path}.".startswith(f"{_REPORTED_AS.get(where, where)}.")


def _value(obj: Object, path: str) -> Any:
    """The value as the API server compares it: with its defaults, quantities by their amounts, and without nulls."""
    kind, found = str(obj.get("kind")), field(obj, *path.split("."))
    if found is None:
        return _DEFAULTS.get((kind, path))
    if path == _CLAIM_TEMPLATES and isinstance(found, list):
        return [_plain(_of_template(one)) for one in found]
    whole = {**_DEFAULTS_WITHIN.get((kind, path), {}), **found} if isinstance(found, dict) else found
    name = path.rpartition(".")[2]
    return _plain({name: whole}).get(name)


def _of_template(template: Any) -> Any:
    """A claim template without its kind and status, which the API server sets in all of them."""
    kept = {name: one for name, one in mapping(template).items() if name in ("metadata", "spec")}
    return {**kept, "spec": {**_OF_CLAIMS, **mapping(template, "spec")}}


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if not isinstance(value, dict):
        return value
    found = {name: _amounts(one) if name in _QUANTITIES else _plain(one) for name, one in value.items()}
    return {name: one for name, one in found.items() if one is not None and not (one == {} and name in _TEXTS)}


def _amounts(value: Any) -> Any:
    return {name: as_amount(one) for name, one in value.items()} if isinstance(value, dict) else _plain(value)


def _differing(old: Object, new: Object, *paths: str) -> list[str]:
    return [path for path in paths if _value(old, path) != _value(new, path)]


def _of_frozen(old: Object, new: Object) -> list[str]:
    """ConfigMaps and Secrets, once `immutable` is true."""
    if old.get("immutable") is not True:
        return []
    return _differing(old, new, "data", "stringData", "binaryData", "immutable")


def _of_job(old: Object, new: Object) -> list[str]:
    """Completions of an Indexed Job may change together with its parallelism."""
    spec = mapping(new, "spec")
    is_elastic = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    return [] if is_elastic else _differing(old, new, "spec.completions")


def _of_service(old: Object, new: Object) -> list[str]:
    """What the server has allocated stays where the new manifest does not name it; nothing is immutable of an ExternalName."""
    types = {field(old, "spec", "type") or "ClusterIP", field(new, "spec", "type") or "ClusterIP"}
    if "ExternalName" in types:
        return []
    named = [path for path in ("spec.clusterIP", "spec.healthCheckNodePort") if _value(new, path) is not None]
    changed = _differing(old, new, *named) + _no_more_headless(old, new)
    if types == {"LoadBalancer"}:
        changed += _differing(old, new, "spec.loadBalancerClass")
    is_headless = field(new, "spec", "clusterIP") == "None"
    return changed + [path for path in _LISTS_OF_SERVICE if not is_headless and _is_another(old, new, path)]


def _no_more_headless(old: Object, new: Object) -> list[str]:
    """A Service gets no address any more where its new manifest leaves `clusterIP: None` out."""
    is_named = any(_value(new, path) is not None for path in ("spec.clusterIP", "spec.clusterIPs"))
    is_another = _value(new, "spec.type") == "ExternalName"
    return ["spec.clusterIP"] if _value(old, "spec.clusterIP") == "None" and not is_named and not is_another else []


_LISTS_OF_SERVICE = ("spec.clusterIPs", "spec.ipFamilies")


def _is_another(old: Object, new: Object, path: str) -> bool:
    """A list to which entries may be added at the end, and from which they may be removed there."""
    before, after = (sequence(obj, *path.split(".")) for obj in (old, new))
    return any(one != other for one, other in zip(before, after, strict=False))


def _of_claim(old: Object, new: Object) -> list[str]:
    """A claim can be bound once."""
    return _differing(old, new, "spec.volumeName") if field(old, "spec", "volumeName") else []


def _of_volume(old: Object, new: Object) -> list[str]:
    """The source, and the affinity once it is set."""
    sources = (mapping(old, "spec").keys() | mapping(new, "spec").keys()) - _MUTABLE_OF_VOLUME
    changed = _differing(old, new, *(f"spec.{name}" for name in sorted(sources)))
    return changed + (_differing(old, new, "spec.nodeAffinity") if field(old, "spec", "nodeAffinity") else [])


def _of_quota(old: Object, new: Object) -> list[str]:
    before, after = ({str(one) for one in sequence(obj, "spec", "scopes")} for obj in (old, new))
    return [] if before == after else ["spec.scopes"]


def _of_cidrs(old: Object, new: Object) -> list[str]:
    """One of the other family may be added."""
    path = "spec.cidrs"
    is_shorter = len(sequence(new, "spec", "cidrs")) < len(sequence(old, "spec", "cidrs"))
    return [path] if is_shorter or _is_another(old, new, path) else []


_RULES: Mapping[GroupKind, Callable[[Object, Object], list[str]]] = {
    GroupKind("batch", "Job"): _of_job,
    GroupKind("", "ConfigMap"): _of_frozen,
    GroupKind("", "Secret"): _of_frozen,
    _SERVICE: _of_service,
    GroupKind("", "PersistentVolume"): _of_volume,
    GroupKind("", "PersistentVolumeClaim"): _of_claim,
    GroupKind("", "ResourceQuota"): _of_quota,
    GroupKind("networking.k8s.io", "ServiceCIDR"): _of_cidrs,
}
"""Fields that are immutable only in some objects of the kind."""
