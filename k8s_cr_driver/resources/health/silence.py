# SPDX-License-Identifier: Apache-2.0
"""
Does any controller act on an object?

A controller that does not run, or cannot reach what it controls, writes no status, no condition and no Event. What waits for
its object reports no more than that it waits. So an object that nobody has written to for a while is named itself.
"""

from __future__ import annotations

import datetime

from k8s_cr_driver.objects.crds import CLEANUP
from k8s_cr_driver.objects.fields import entries, mapping, sequence, text
from k8s_cr_driver.objects.keys import Object, kind_of
from k8s_cr_driver.objects.times import moment
from k8s_cr_driver.resources.health.conditions import explain, status_of
from k8s_cr_driver.resources.health.custom import REMEDY
from k8s_cr_driver.resources.health.model import NO_STATUS, READINESS_UNKNOWN, Health, waiting

PATIENCE = 30.0
"""Seconds that a controller has for its next write."""
NOBODY_ACTS = "NobodyActs"
"""Reason of an object to which no controller has written what is awaited: whether it is ready, or that it may go."""
_SAYS_NOTHING = (NO_STATUS, READINESS_UNKNOWN)


def unless_silent(live: Object, health: Health, silent_deletion: float = 0.0) -> Health:
    """
    `health`, or that nobody acts on the object if it waits without a sign of its controller.

    A controller that has written a status before may delete in silence for `silent_deletion` seconds.
    """
    now = datetime.datetime.now(datetime.timezone.utc)
    unwritten, deleted = _unwritten(live, now), _age(text(live, "metadata", "deletionTimestamp"), now)
    if unwritten is None or unwritten < PATIENCE:
        return health
    if deleted is not None:
        if said := [one for one in entries(live, "status", "conditions") if _is_of_deletion(live, one, now)]:
            return waiting(*explain(said), trouble=True)
        held = ", ".join(_finalizers(live))
        is_held = held and deleted <= unwritten and not (deleted < silent_deletion and mapping(live, "status"))
        return _silent(unwritten, f"its deletion was requested, and the finalizers {held} hold it") if is_held else health
    if health.reason in _SAYS_NOTHING:
        return _silent(unwritten, "no status says whether it is ready")
    return health


def _is_of_deletion(live: Object, condition: Object, now: datetime.datetime) -> bool:
    """Whether a controller says in it why the object is not deleted."""
    since = _age(text(condition, "lastTransitionTime"), now)
    deleted = _age(text(live, "metadata", "deletionTimestamp"), now)
    is_later = since is not None and deleted is not None and since <= deleted
    return is_later and status_of(condition) == "false" and bool(text(condition, "message"))


def is_unwritten(live: Object) -> bool:
    """Whether nobody has written to the object for a while."""
    unwritten = _unwritten(live, datetime.datetime.now(datetime.timezone.utc))
    return unwritten is not None and unwritten >= PATIENCE


def _unwritten(live: Object, now: datetime.datetime) -> float | None:
    """Seconds since the last write; None if that is not known."""
    stamps = [text(live, "metadata", "creationTimestamp")]
    stamps += [text(entry, "time") for entry in entries(live, "metadata", "managedFields")]
    return min((age for stamp in stamps if (age := _age(stamp, now)) is not None), default=None)


def remedy(live: Object, health: Health) -> str:
    """What to ask of an object on which nobody acts, if no cause is known; `health` is what its status says."""
    question = f"does the controller of {kind_of(live).group or 'its kind'} run?"
    if acted := _acted_until(live):
        question = f"its controller acted until {acted}: what it needs may have been deleted, such as a Secret, or {question}"
    return f"{question} If it never writes a status, {REMEDY}" if health.reason in _SAYS_NOTHING else question


def _acted_until(live: Object) -> str:
    """When a controller wrote a status or a finalizer last, which nobody applies; "" if none did, or that is not known."""
    written = (
        text(entry, "time")
        for entry in entries(live, "metadata", "managedFields")
        if text(entry, "subresource") == "status"
        or mapping(entry, "fieldsV1", "f:status")
        or (text(entry, "operation") == "Update" and mapping(entry, "fieldsV1", "f:metadata", "f:finalizers"))
    )
    now = datetime.datetime.now(datetime.timezone.utc)
    dated = [(age, stamp) for stamp in written if (age := _age(stamp, now)) is not None]
    return min(dated, default=(0.0, ""))[1]


def _silent(seconds: float, sign: str) -> Health:
    message = f"no controller acts on it: {sign}, and nothing was written for {seconds:.0f} s"
    return waiting(NOBODY_ACTS, message, trouble=True)


def _finalizers(live: Object) -> list[str]:
    """Without those that the API server itself handles: that of a CRD waits for objects of its kind."""
    found = map(str, sequence(live, "metadata", "finalizers"))
    return [one for one in found if one not in ("foregroundDeletion", "orphan", CLEANUP)]


def _age(stamp: str, now: datetime.datetime) -> float | None:
    """Seconds since an RFC 3339 time; None for what is none."""
    try:
        return (now - moment(stamp)).total_seconds()
    except ValueError:
        return None
