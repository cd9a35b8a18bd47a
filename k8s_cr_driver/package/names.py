# SPDX-License-Identifier: Apache-2.0
"""
Names that the API server would refuse, so that they are reported with their file, and without a cluster.

Only of custom resources and of the built-in kinds that packages have most, whose names are DNS subdomains
(`ValidateObjectMeta` with `NameIsDNSSubdomain` or `NameIsDNSLabel` in Kubernetes' pkg/apis/*/validation). Others differ: a
Role may be named `system:Reader`, a PodDisruptionBudget as it likes. The API server decides on these.
"""

from __future__ import annotations

import re

from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.objects.keys import Object, kind_of

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_REMEDY = "write lower-case letters, digits, hyphens and dots, with a letter or digit at both ends of each part"
_KINDS = {
    "": {
        *("ConfigMap", "Endpoints", "LimitRange", "Namespace", "PersistentVolume", "PersistentVolumeClaim", "Pod"),
        *("ReplicationController", "ResourceQuota", "Secret", "Service", "ServiceAccount"),
    },
    "apps": {"DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"},
    "autoscaling": {"HorizontalPodAutoscaler"},
    "batch": {"CronJob", "Job"},
    "networking.k8s.io": {"Ingress", "IngressClass", "NetworkPolicy"},
    "scheduling.k8s.io": {"PriorityClass"},
    "storage.k8s.io": {"StorageClass"},
}


def check(obj: Object) -> None:
    """Raise InvalidPackage for a name that is no DNS subdomain, where the kind wants one."""
    kind = kind_of(obj)
    if kind.kind in _KINDS.get(kind.group, ()) and (wrong := problem(obj)):
        raise InvalidPackage(wrong)


def problem(obj: Object) -> str:
    """What is wrong with the name of an object whose kind wants a DNS subdomain; "" if it is one."""
    name = obj["metadata"]["name"]
    return "" if _SUBDOMAIN.fullmatch(name) else f"metadata.name: {name} is no name of a {obj['kind']}; {_REMEDY}"
