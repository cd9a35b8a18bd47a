"""Does the status speak of the spec that is stored now?

Controllers tell by `observedGeneration`. Where they do not, the API server's own record in `metadata.managedFields`
tells who wrote the status and when, with a resolution of one second.
"""

from __future__ import annotations

import re
from typing import Any

from k8s_cr_driver.resources.health.fields import dig, integer, mapping, mappings, text
from k8s_cr_driver.resources.health.model import Health, waiting

OBSERVED = ("observedGeneration", "lastObservedGeneration", "reconciledGeneration", "lastReconciledGeneration")
_BOOKKEEPING = frozenset({"f:metadata", "f:status", "f:apiVersion", "f:kind"})
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


def behind(live: dict[str, Any]) -> Health | None:
    """WAITING if the status was written for an older spec, or by no controller at all; None if it is current."""
    generation = integer(dig(live, "metadata", "generation"))
    observed = [seen for field in OBSERVED if (seen := integer(dig(live, "status", field))) is not None]
    if generation is not None and observed:
        if max(observed) < generation:
            return waiting(
                "SpecNotObserved",
                f"the controller has seen generation {max(observed)} of the spec, the latest is {generation}",
            )
        return None
    if generation is not None and _in_conditions(live):
        return None
    return _older_than_spec(live)


def is_stale(condition: dict[str, Any], generation: int | None) -> bool:
    """Whether a condition was written for an older spec."""
    observed = integer(condition.get("observedGeneration"))
    return generation is not None and observed is not None and observed < generation


def _in_conditions(live: dict[str, Any]) -> bool:
    conditions = mappings(dig(live, "status", "conditions"))
    return any(integer(condition.get("observedGeneration")) is not None for condition in conditions)


def _older_than_spec(live: dict[str, Any]) -> Health | None:
    entries = list(mappings(dig(live, "metadata", "managedFields")))
    status_writers: dict[str, str] = {}
    spec_writers: dict[str, str] = {}
    for entry in entries:
        time = _TIME.match(text(entry.get("time")))
        owned = mapping(entry.get("fieldsV1")).keys()
        applied = entry.get("operation") == "Apply" and not entry.get("subresource")
        target = status_writers if "f:status" in owned and not applied else spec_writers
        if time and (target is status_writers or owned - _BOOKKEEPING):
            manager = text(entry.get("manager"))
            target[manager] = max(target.get(manager, ""), time.group())
    if not spec_writers:
        return None
    if not status_writers:
        return waiting("StatusNotWritten", "no controller has written the status: it holds only what was created with it")
    # A controller's own changes to the spec (a provider ID, an endpoint) ask nothing new of it
    changed = max((time for manager, time in spec_writers.items() if manager not in status_writers), default="")
    written = max(status_writers.values())
    if written < changed:
        return waiting("StatusOlderThanSpec", f"the status was last written at {written}Z, the spec changed at {changed}Z")
    return None
