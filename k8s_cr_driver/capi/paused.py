# SPDX-License-Identifier: Apache-2.0
"""Objects whose controllers do nothing, because somebody has paused them or their Cluster (Cluster API book, "Paused").

Their status stays as it was: ready, or being deleted. A package that asks for a pause itself gets it.
"""

from __future__ import annotations

from k8s_cr_driver.capi import contract
from k8s_cr_driver.objects.fields import field
from k8s_cr_driver.objects.keys import Object, annotations_of
from k8s_cr_driver.resources.health import Health
from k8s_cr_driver.resources.health.model import PAUSED, waiting


def unless_paused(live: Object, manifest: Object, health: Health) -> Health:
    """`health`, or that the object waits for the end of a pause that its manifest does not ask for."""
    why = _why(live)
    if not why or (_why(manifest) and not field(live, "metadata", "deletionTimestamp")):
        return health
    return waiting(PAUSED, f"{why}: the controllers of Cluster API do nothing until the pause ends", trouble=True)


def change_error(live: Object, manifest: Object) -> str:
    """Why `live`, which the manifest pauses, cannot get other templates; "" if it can.

    It would go on with Machines of the former templates, which nothing in the package names any more.
    """
    why, before = _why(manifest), contract.templates(live)
    other = [".".join(path) for path, name in contract.templates(manifest).items() if name != before.get(path)]
    if not why or not other:
        return ""
    return (
        f"{why}, so its Machines would stay those of the former template; "
        f"end the pause in this change, or do not change what {' and '.join(other)} refers to"
    )


def _why(obj: Object) -> str:
    if field(obj, "spec", "paused") is True:
        return "spec.paused is true"
    if contract.PAUSED in annotations_of(obj):
        return f"the annotation {contract.PAUSED} is set"
    paused = (one for one in contract.conditions(obj) if one.get("type") == "Paused" and one.get("status") == "True")
    return "it or its Cluster is paused (condition Paused)" if any(paused) else ""
