# SPDX-License-Identifier: Apache-2.0
"""
Kinds that an operation would wait for without end: their CRD declares a status, and nothing of the package may write it.

Who may change objects is read from the RBAC of the package, as for the order of a deletion. A controller that the cluster has
already is not known here, so this is a warning with a remedy.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from k8s_cr_driver.objects.backends import controllers
from k8s_cr_driver.objects.crds import crds_of
from k8s_cr_driver.objects.fields import pod_spec
from k8s_cr_driver.objects.keys import GroupKind, Object, key_of, kind_of
from k8s_cr_driver.resources.health.custom import REMEDY
from k8s_cr_driver.resources.health.model import NO_STATUS
from k8s_cr_driver.resources.registry import resource_for
from k8s_cr_driver.scaffold.model import Choice, enumerated


def of(objects: Sequence[Object], namespace: str) -> list[Choice]:
    """A choice for each of these kinds; `namespace` is that of workloads and bindings that name none."""
    crds = crds_of(objects)
    waiting: dict[GroupKind, list[str]] = defaultdict(list)
    for obj in objects:
        if (crd := crds.get(kind_of(obj))) and resource_for(obj, crd).health(_created(obj)).reason == NO_STATUS:
            waiting[kind_of(obj)].append(key_of(obj).name)
    acting = controllers([_placed(obj, namespace) for obj in objects], {kind.group for kind in waiting}) if waiting else []
    return [
        Choice(
            f"{kind} ({enumerated(names)})",
            "waits until a controller writes its status",
            f"no workload of the package may write it. If none of the cluster does, {REMEDY}",
        )
        for kind, names in waiting.items()
        if not any(one.acts_on(kind.group) for one in acting)
    ]


def _created(obj: Object) -> Object:
    """The object as the API server has it before any controller has seen it."""
    return {**{key: value for key, value in obj.items() if key != "status"}, "metadata": {**obj["metadata"], "generation": 1}}


def _placed(obj: Object, namespace: str) -> Object:
    if key_of(obj).namespace or not (pod_spec(obj) is not None or obj["kind"] == "RoleBinding"):
        return obj
    return {**obj, "metadata": {**obj["metadata"], "namespace": namespace}}
