# SPDX-License-Identifier: Apache-2.0
"""Is this object ready? Pure functions of the object as it was read, without I/O.

`assess` is the one way in: a kind built into Kubernetes is judged by its own rule (`builtin.RULES`), any other
by the structure of its status and by what its CRD declares. Every rule judges the whole object again.
"""

from __future__ import annotations

from typing import Any

from k8s_cr_driver.objects.api_groups import GROUPS
from k8s_cr_driver.objects.fields import text
from k8s_cr_driver.objects.keys import CRD, kind_of, split
from k8s_cr_driver.resources.health.builtin import RULES
from k8s_cr_driver.resources.health.custom import assess_custom, stored_suffices, terminating
from k8s_cr_driver.resources.health.model import Health, State, ready, waiting

__all__ = ["Health", "State", "assess"]


def assess(live: dict[str, Any], crd: dict[str, Any] | None, old_status: Any = None) -> Health:
    """Judge an object as read from the API server; `crd` is its CustomResourceDefinition, None if not known.

    `old_status` is the status that the server returned for our last change of the spec, None if we changed nothing: where
    no generation says which spec a status speaks of, one that equals it is older than the change.
    Never raises: a malformed object is judged as far as it can be read.
    """
    if deletion := terminating(live):
        return deletion
    version, kind = text(live, "apiVersion"), text(live, "kind")
    if not kind or not version:
        return waiting("NoKind", "it has no kind or no apiVersion, so nothing is known of it")
    if stored_suffices(live if kind_of(live) != CRD else None, crd):  # those of a CRD are for the objects of its kind
        return ready("Stored", "no more is asked for than that it is stored")
    group = split(version)[0]
    if rule := RULES.get((group, kind)):
        return rule(live)
    if crd is None and group in GROUPS:
        return ready("Stored", "a kind without a state of its own")
    return assess_custom(live, crd, old_status)
