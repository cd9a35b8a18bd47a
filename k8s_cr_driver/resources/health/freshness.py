# SPDX-License-Identifier: Apache-2.0
"""Does the status speak of the spec that is stored now?

Controllers report it by `observedGeneration`. Where they do not, the status that our own change of the spec got back is
older than that change, and so is one that equals it. Where nothing was changed, the API server's record in
`metadata.managedFields` says who wrote the status and when, with a resolution of one second.
"""

from __future__ import annotations

import re
from typing import Any

from k8s_cr_driver.objects.fields import entries, integer, mapping, text
from k8s_cr_driver.resources.health.model import STATUS_OLDER_THAN_SPEC, Health, waiting

OBSERVED = (
    "observedGeneration",
    "lastObservedGeneration",
    "reconciledGeneration",
    "lastReconciledGeneration",
    "lastEvaluatedGeneration",
    "lastProcessedGeneration",
    "lastSyncedGeneration",
)
ACCEPTED = object()
"""In the place of an old status: the status counts as current, because nobody has written it for long."""
_BOOKKEEPING = frozenset({"f:metadata", "f:status", "f:apiVersion", "f:kind"})
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


def unobserved(live: dict[str, Any]) -> Health | None:
    """WAITING if the controller reports that it has seen only an older spec; None if it is silent or up to date."""
    return _unobserved(live, _observed(live))


def _unobserved(live: dict[str, Any], observed: list[int]) -> Health | None:
    generation = integer(live, "metadata", "generation")
    seen = max(observed, default=None)
    if generation is None or seen is None or seen >= generation:
        return None
    message = f"the controller has seen generation {seen} of the spec, the latest is {generation}"
    status = mapping(live, "status")
    newest = next(name for name in OBSERVED if name in status and integer(status[name]) == seen)
    return waiting("SpecNotObserved", message, f"status.{newest}")


def behind(live: dict[str, Any], old_status: Any) -> Health | None:
    """WAITING if the status was written for an older spec, or by no controller at all; None if it is current.

    `old_status` is the status that the server returned for our last change of the spec, None if we changed nothing, and
    ACCEPTED if the status counts as current.
    """
    observed = _observed(live)
    if observed or _observed_by_conditions(live):
        return _unobserved(live, observed)
    if old_status is ACCEPTED:
        older = _older_than_spec(live)
        return older if older and older.reason != STATUS_OLDER_THAN_SPEC else None
    return repeated(live, old_status) if old_status else _older_than_spec(live)


def repeated(live: dict[str, Any], old_status: Any) -> Health | None:
    """WAITING if nobody has written the status since our last change of the spec."""
    if not old_status or live.get("status") != old_status:
        return None
    return waiting(STATUS_OLDER_THAN_SPEC, "the status is as it was when the spec was changed")


def is_observed(live: dict[str, Any]) -> bool:
    """Whether the controller reports which generation of the spec its status or conditions speak of."""
    return bool(_observed(live)) or _observed_by_conditions(live)


def last_written(live: dict[str, Any], manager: str) -> str:
    """When a field manager has last changed the object, not its status, in UTC to the second; "" if nobody says it."""
    entered = (one for one in entries(live, "metadata", "managedFields") if text(one, "subresource") != "status")
    times = (_TIME.match(text(one, "time")) for one in entered if text(one, "manager") == manager)
    return max((time.group() for time in times if time), default="")


def is_stale(condition: dict[str, Any], generation: int | None) -> bool:
    """Whether a condition was written for an older spec."""
    if generation is None or "observedGeneration" not in condition:
        return False
    observed = integer(condition["observedGeneration"])
    return observed is not None and observed < generation


def _observed(live: dict[str, Any]) -> list[int]:
    status = mapping(live, "status")
    return [seen for field in OBSERVED if field in status and (seen := integer(status[field])) is not None]


def _observed_by_conditions(live: dict[str, Any]) -> bool:
    observed = [one["observedGeneration"] for one in entries(live, "status", "conditions") if "observedGeneration" in one]
    return any(integer(seen) is not None for seen in observed)


def _older_than_spec(live: dict[str, Any]) -> Health | None:
    status_written: dict[str, str] = {}
    spec_written: dict[str, str] = {}
    for entry in entries(live, "metadata", "managedFields"):
        owned = mapping(entry, "fieldsV1").keys()
        # A status in an applied manifest is nobody's observation
        observes = "f:status" in owned and (entry.get("operation") != "Apply" or entry.get("subresource") == "status")
        time = _TIME.match(text(entry, "time"))
        if time and (observes or owned - _BOOKKEEPING):
            written, manager = status_written if observes else spec_written, text(entry, "manager")
            written[manager] = max(written.get(manager, ""), time.group())
    if not spec_written:
        return None
    if not status_written:
        return waiting("StatusNotWritten", "no controller has written the status: it holds what it was created with")
    if integer(live, "metadata", "generation") == 1:
        # The spec is as it was created; a later write can only have changed metadata
        return None
    # What a controller itself puts into the spec (a provider ID, an endpoint) asks nothing new of it
    changed = max((time for manager, time in spec_written.items() if manager not in status_written), default="")
    observed = max(status_written.values())
    if observed >= changed:
        return None
    return waiting(STATUS_OLDER_THAN_SPEC, f"the status was last written at {observed}Z, the spec at {changed}Z")
