# SPDX-License-Identifier: Apache-2.0
"""Objects whose controllers do nothing, because somebody has paused them or their Cluster (Cluster API book, "Paused").

Their status stays as it was: ready, or being deleted. A package that asks for a pause itself gets it: what it pauses is
done when it is applied. `spec.paused` of a Cluster pauses all that belongs to it, the annotation the annotated object alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from k8s_cr_driver.capi import contract
from k8s_cr_driver.objects.fields import field
from k8s_cr_driver.objects.keys import Object, annotations_of, key_of, kind_of
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.health import Health
from k8s_cr_driver.resources.health.model import PAUSED, waiting


def unless_paused(obj: CustomResource, live: Object, health: Health) -> Health:
    """`health`, or that the object waits for the end of a pause that the package does not ask for."""
    why, by_package = _why(live), bool(obj.paused_by or _why(obj.manifest))
    if not why or (by_package and not field(live, "metadata", "deletionTimestamp")):
        return health
    return waiting(PAUSED, f"{why}: the controllers of Cluster API do nothing until the pause ends", trouble=True)


def with_cluster(cluster: Object, obj: Object) -> bool:
    """Whether the manifest of a Cluster pauses another object."""
    return field(cluster, "spec", "paused") is True and contract.belongs_to(obj, cluster)


def change_error(live: Object | None, manifest: Object, desired: Iterable[Object]) -> str:
    """Why `live`, which the package pauses, None if it is not there, cannot get other templates; "" if it can.

    It would go on with Machines of the former templates, which nothing in the package names any more.
    """
    if live is None:
        return ""
    before = contract.templates(live)
    other = [".".join(path) for path, name in contract.templates(manifest).items() if name != before.get(path)]
    why = other and (_why(manifest) or _why_of_cluster(manifest, desired))
    if not why:
        return ""
    return (
        f"{why}, so its Machines would stay those of the former template; "
        f"end the pause in this change, or do not change what {' and '.join(other)} refers to"
    )


def _why_of_cluster(manifest: Object, desired: Iterable[Object]) -> str:
    clusters = (one for one in desired if kind_of(one) == contract.CLUSTERS)
    return next((f"spec.paused of {key_of(one)} is true" for one in clusters if with_cluster(one, manifest)), "")


def _why(obj: Object) -> str:
    if field(obj, "spec", "paused") is True:
        return "spec.paused is true"
    if contract.PAUSED in annotations_of(obj):
        return f"the annotation {contract.PAUSED} is set"
    paused = (one for one in contract.conditions(obj) if one.get("type") == "Paused" and one.get("status") == "True")
    return "it or its Cluster is paused (condition Paused)" if any(paused) else ""
