# SPDX-License-Identifier: Apache-2.0
"""What a change from one package to another cannot apply, as far as the packages show.

Immutable fields are those of the API server's validation in Kubernetes 1.36; only the cluster knows those of custom resources.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from k8s_cr_driver.objects.fields import field
from k8s_cr_driver.objects.keys import CRD, GroupKind, Object, ObjectKey, key_of
from k8s_cr_driver.resources.base import REPLACE
from k8s_cr_driver.resources.registry import resource_for

_SELECTOR = "spec.selector"
_IMMUTABLE: Mapping[GroupKind, Sequence[str]] = {
    GroupKind("apps", "Deployment"): (_SELECTOR,),
    GroupKind("apps", "DaemonSet"): (_SELECTOR,),
    GroupKind("apps", "ReplicaSet"): (_SELECTOR,),
    GroupKind("apps", "StatefulSet"): (_SELECTOR, "spec.serviceName", "spec.podManagementPolicy", "spec.volumeClaimTemplates"),
    GroupKind("", "Service"): ("spec.clusterIP",),
    GroupKind("", "PersistentVolumeClaim"): ("spec.accessModes", "spec.storageClassName", "spec.volumeName", "spec.selector"),
    GroupKind("", "Secret"): ("type",),
    GroupKind("rbac.authorization.k8s.io", "RoleBinding"): ("roleRef",),
    GroupKind("rbac.authorization.k8s.io", "ClusterRoleBinding"): ("roleRef",),
    GroupKind("storage.k8s.io", "StorageClass"): ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"),
    GroupKind("scheduling.k8s.io", "PriorityClass"): ("value",),
    CRD: ("spec.group", "spec.scope", "spec.names.kind", "spec.names.plural"),
}
_FROZEN = (GroupKind("", "ConfigMap"), GroupKind("", "Secret"))
"""Kinds whose data cannot change once `immutable` is true."""


def immutable_changes(old: Sequence[Object], new: Sequence[Object]) -> Iterator[str]:
    """A sentence for each field that the cluster will not let change, where the object may not be replaced."""
    before: dict[ObjectKey, Object] = {key_of(obj): obj for obj in old}
    for obj in new:
        key = key_of(obj)
        was = before.get(key)
        if was is None or resource_for(obj).replace_strategy():
            continue
        paths = [*_IMMUTABLE.get(key.group_kind, ())]
        if key.group_kind in _FROZEN and was.get("immutable") is True:
            paths += ["data", "binaryData", "immutable"]
        for path in paths:
            if field(was, *path.split(".")) != field(obj, *path.split(".")):
                yield (
                    f"{key}: {path} is immutable and changes. Keep it, rename the object, or annotate it with "
                    f'{REPLACE}: "true"'
                )


def lost_vdus(old: Collection[str], new: Collection[str]) -> Iterator[str]:
    for vdu in sorted(set(old) - set(new)):
        yield f"VDU {vdu} vanishes, with its VNFCs and their objects"


def new_aspects(old: Collection[str], new: Collection[str]) -> Iterator[str]:
    for aspect in sorted(set(new) - set(old)):
        yield f"Scaling aspect {aspect} is new: Tacker can scale it after its next database synchronization, not before"
