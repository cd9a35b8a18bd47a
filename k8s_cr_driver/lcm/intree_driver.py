"""Instances that Tacker's own Kubernetes driver has made, or has worked on since.

The first verb of this driver that writes takes over what that driver has made. How Tacker 16 places objects, and what it
stores, is told here and nowhere else; from then on the instance is like any other, but for its namespaces, for which
Tacker's rule stays. Instances of Tacker's Helm driver have another vimType and never come here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from k8s_cr_driver.engine.takeover import InTreeDriver
from k8s_cr_driver.lcm import instance_info
from k8s_cr_driver.objects.keys import GroupKind, Object, kind_of
from k8s_cr_driver.resources import replicas
from k8s_cr_driver.vnf.session import Session

MANAGER = "OpenAPI-Generator"
"""Tacker names no field manager: the API server takes the product of the Python client's User-Agent."""


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

`SUPPORTED_NAMESPACE_KIND` in Tacker's kubernetes_utils.py. A comma lacks there between Role and RoleBinding, so these two
stay where their manifests say.
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

MADE = PLACED | _UNPLACED
"""Every kind of which Tacker's driver makes objects; it leaves out all others without a word."""

_WITH_PODS = ("Pod", "Deployment", "DaemonSet", "StatefulSet", "ReplicaSet")
"""Kinds that can be a VDU for Tacker's driver."""


def is_pending(inst: Any) -> bool:
    """Whether Tacker's driver was the last to write an instance that is instantiated.

    It tells VNFCs without metadata, this driver names their node.
    """
    if not instance_info.metadata_of(inst):
        return False
    return not instance_info.kept(inst) or any(
        one.computeResource.vimLevelResourceType in _WITH_PODS and not one.metadata
        for one in inst.instantiatedVnfInfo.vnfcResourceInfo
    )


def intree_driver(namespace: str, kinds: frozenset[GroupKind] = MADE) -> InTreeDriver:
    """Tacker's own driver; `namespace` is the instance's, `kinds` are those that it may have made objects of."""
    return InTreeDriver("Tacker's own driver", MANAGER, MADE & kinds, namespace)


def take_over(inst: Any, session: Session) -> None:
    """Makes the objects ours, and the record one of this driver."""
    info, options = inst.instantiatedVnfInfo, instance_info.stored_options(inst)
    session.take_over(intree_driver(info.metadata["namespace"]))
    if not instance_info.kept(inst):
        instance_info.keep_options(inst, options, session.inventory, by_tacker=True)
    told = [one.vduId for one in info.vnfcResourceInfo]
    # Tacker scales from the VNFCs; of a VDU that a change of package has left out it stores the new manifest's count.
    assigned = instance_info.assigned_vdus(info).items()
    instance_info.update_vdus(inst, {vdu: replicas.with_replicas(obj, told.count(vdu)) for vdu, obj in assigned})


def placed(inst: Any, desired: list[Object], namespace: str) -> list[Object]:
    """The objects where Tacker's driver would put them, if it has made the instance."""
    if instance_info.is_by_tacker(inst):
        for obj in desired:
            if kind_of(obj) in PLACED:
                obj["metadata"]["namespace"] = namespace
    return desired
