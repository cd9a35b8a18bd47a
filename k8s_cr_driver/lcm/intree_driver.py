# SPDX-License-Identifier: Apache-2.0
"""Instances that Tacker's in-tree Kubernetes driver has instantiated, or has written since this driver did.

The first verb that writes takes the objects of such an instance over. This module alone knows where the driver of
Tacker 16 places objects and what it stores. Afterwards the instance is like any other, except that the placement rule of
the in-tree driver still holds. Instances of Tacker's Helm driver have another vimType and never come here.
"""

from __future__ import annotations

from collections.abc import Mapping

from k8s_cr_driver.engine.run.takeover import InTreeDriver
from k8s_cr_driver.lcm.instance_info import StoredInstance
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, kind_of
from k8s_cr_driver.vnf import counts
from k8s_cr_driver.vnf.session import Session

MANAGER = "OpenAPI-Generator"
"""Tacker names no field manager, so the API server takes the product of the Python client's User-Agent."""


def _kinds(groups: Mapping[str, str]) -> frozenset[GroupKind]:
    return frozenset(GroupKind(group, kind) for group, kinds in groups.items() for kind in kinds.split())


PLACED = _kinds(
    {
        "": "Binding ConfigMap LimitRange PersistentVolumeClaim Pod PodTemplate ResourceQuota Secret Service ServiceAccount",
        "apps": "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet",
        "authorization.k8s.io": "LocalSubjectAccessReview",
        "autoscaling": "HorizontalPodAutoscaler",
        "batch": "Job",
        "coordination.k8s.io": "Lease",
        "networking.k8s.io": "NetworkPolicy",
    }
)
"""Kinds whose objects Tacker puts into the one namespace of the instance, whatever their manifests say.

`SUPPORTED_NAMESPACE_KIND` in Tacker's kubernetes_utils.py. It misses a comma between Role and RoleBinding, so these two
stay in the namespaces of their manifests.
"""

_UNPLACED = _kinds(
    {
        "": "Namespace Node PersistentVolume",
        "apiregistration.k8s.io": "APIService",
        "rbac.authorization.k8s.io": "ClusterRole ClusterRoleBinding Role RoleBinding",
        "scheduling.k8s.io": "PriorityClass",
        "storage.k8s.io": "StorageClass VolumeAttachment",
    }
)

KINDS = PLACED | _UNPLACED
"""Every kind of which the in-tree driver creates objects; it ignores manifests of all others without a message."""


def intree_driver(
    namespace: str, kinds: frozenset[GroupKind] = KINDS, recorded: frozenset[ObjectKey] = frozenset()
) -> InTreeDriver:
    """The in-tree driver; `namespace` is the instance's, `kinds` are those of which it may have created objects."""
    return InTreeDriver("Tacker's own driver", MANAGER, KINDS & kinds, namespace, PLACED, recorded)


def take_over(stored: StoredInstance, session: Session) -> None:
    """Makes the objects, and the counts in the record, those of this driver."""
    recorded = frozenset(obj.key for obj in stored.vdus.values())
    session.take_over(intree_driver(stored.info.metadata["namespace"], recorded=recorded))
    present = [one.vduId for one in stored.info.vnfcResourceInfo]
    # The in-tree driver scales from the number of VNFCs. For a VDU that a change of the package has left out it stores the
    # count of the new manifest. VNFCs of other kinds it does not know.
    scaled = {vdu: present.count(vdu) for vdu, obj in stored.vdus.items() if obj.key.group_kind in KINDS}
    stored.vdus = counts.with_counts(stored.vdus, scaled)


def placed(stored: StoredInstance, desired: list[Object], namespace: str) -> list[Object]:
    """The objects in the namespaces of the in-tree driver, if it has instantiated the instance."""
    if stored.by_intree_driver:
        for obj in desired:
            if kind_of(obj) in PLACED:
                obj["metadata"]["namespace"] = namespace
    return desired
