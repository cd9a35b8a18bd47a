"""What a list of conditions says about the object as a whole.

A condition of the whole ("Ready", "Available") outweighs those of its parts ("InfrastructureReady"); trouble and
unfinished work veto either. In Cluster API's v1beta2 contract Paused, Deleting, RollingOut, ScalingUp and the like are
False on a healthy object, so "every condition must be True" would be wrong.
"""

from __future__ import annotations

from typing import Any

from k8s_cr_driver.resources.health.fields import mappings, text
from k8s_cr_driver.resources.health.freshness import is_stale
from k8s_cr_driver.resources.health.model import Health, failed, ready, suspended, waiting
from k8s_cr_driver.resources.health.vocabulary import HELD, Meaning, ends_well, meaning_of_type, parts

_FINAL_REASONS = frozenset({"stalled", "terminal", "fatal", "unrecoverable", "unretryable", "permanent", "permanently"})
_WELL = (Meaning.WHOLE_IS_WELL, Meaning.SIDE_IS_WELL, Meaning.PART_IS_WELL, Meaning.STAGE)


def judge_conditions(conditions: Any, generation: int | None) -> Health | None:
    """Judge a `conditions` list; None if none of them says whether the object is ready.

    `generation` is the object's; conditions observed at an older one cannot make it ready.
    """
    by_meaning: dict[Meaning, list[dict[str, Any]]] = {meaning: [] for meaning in Meaning}
    for condition in mappings(conditions):
        by_meaning[meaning_of_type(text(condition.get("type")))].append(condition)

    def fresh(meaning: Meaning) -> list[dict[str, Any]]:
        return [c for c in by_meaning[meaning] if status_of(c) == "true" and not is_stale(c, generation)]

    if final := fresh(Meaning.FINAL_FAILURE):
        return failed(*explain(final))
    summaries, parts_ = by_meaning[Meaning.WHOLE_IS_WELL], by_meaning[Meaning.PART_IS_WELL]
    whole = summaries + by_meaning[Meaning.SIDE_IS_WELL]
    not_well = [c for meaning in _WELL for c in by_meaning[meaning] if status_of(c) != "true"]
    if stopped := [c for c in not_well if c in whole and status_of(c) == "false" and _is_final(c)]:
        return failed(*explain([c for c in stopped if not is_stale(c, generation)] or stopped))
    if held := fresh(Meaning.HELD) + [c for c in not_well if set(parts(text(c.get("reason")))) & HELD]:
        return suspended(*explain(held))
    trouble = fresh(Meaning.TROUBLE)
    busy = [c for c in fresh(Meaning.BUSY) if not ends_well(text(c.get("reason")))]
    decisive = whole if summaries else whole + parts_
    if trouble or busy or any(c in not_well for c in decisive):
        return waiting(*explain([*trouble, *not_well, *busy]))
    if old := [c for c in decisive if is_stale(c, generation)]:
        return waiting("SpecNotObserved", f"{explain(old)[1]}, but that speaks of an older generation of the spec")
    if not decisive:
        return waiting(*explain(not_well)) if not_well else None
    return ready(*explain(decisive))


def speak_for_the_whole(conditions: Any) -> bool:
    """Whether one of the conditions sums up the object."""
    return any(meaning_of_type(text(c.get("type"))) is Meaning.WHOLE_IS_WELL for c in mappings(conditions))


def status_of(condition: dict[str, Any]) -> str:
    """The status in lower case: "true", "false", "unknown" or whatever else was written."""
    return str(condition.get("status")).lower()


def explain(conditions: list[dict[str, Any]]) -> tuple[str, str]:
    """Reason and message for an operator from the conditions that matter; False and talkative ones come first."""
    ordered = sorted(conditions, key=lambda c: (status_of(c) == "unknown", not text(c.get("message"))))
    told = [_tell(condition) for condition in ordered[:3]]
    first = ordered[0]
    return text(first.get("reason")) or text(first.get("type")), "; ".join(dict.fromkeys(told))


def _tell(condition: dict[str, Any]) -> str:
    reason, message = text(condition.get("reason")), text(condition.get("message"))
    line = f"{text(condition.get('type')) or 'a condition without a type'} is {condition.get('status')}"
    return line + (f" ({reason})" if reason else "") + (f": {message}" if message else "")


def _is_final(condition: dict[str, Any]) -> bool:
    return bool(_FINAL_REASONS & set(parts(text(condition.get("reason")))))
