# SPDX-License-Identifier: Apache-2.0
"""What a list of conditions says about the object as a whole.

A condition of the whole ("Ready", "Available") outweighs those of its parts ("InfrastructureReady"); trouble,
unfinished work and contradictions veto either. In Cluster API's v1beta2 contract Paused, Deleting, RollingOut, ScalingUp
and the like are False on a healthy object, so "every condition must be True" would be wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from k8s_cr_driver.objects.fields import entries, text
from k8s_cr_driver.resources.health.freshness import is_stale
from k8s_cr_driver.resources.health.model import Health, failed, ready, suspended, waiting
from k8s_cr_driver.resources.health.sentences import meaning_of_message
from k8s_cr_driver.resources.health.words import (
    TROUBLED,
    Meaning,
    Word,
    contradicts,
    ends_well,
    gives_up,
    is_completion,
    is_final,
    meaning_of_type,
    meaning_of_word,
    parts,
    says_failed,
    waits,
    waits_for_its_time,
)

# Tuples, because the hash of an enum's member is computed in Python
_WHOLE = (Meaning.WHOLE_IS_WELL, Meaning.SIDE_IS_WELL)
_WELL = (*_WHOLE, Meaning.PART_IS_WELL, Meaning.STAGE)
_ALARMS = (Meaning.TROUBLE, Meaning.NEGATED)
_QUIET = (*_ALARMS, Meaning.FINAL_FAILURE, Meaning.BUSY, Meaning.HELD)
_NUMBER = re.compile(r"\s*[0-9]{1,20}\s*")
_STATUSES = {"True": "true", "False": "false", "Unknown": "unknown"}


class Condition:
    """One condition as it was read: what its type means, its status, and the words that explain it."""

    __slots__ = ("meaning", "message", "raw", "reason", "stale", "status", "type", "word")

    def __init__(self, raw: dict[str, Any], generation: int | None) -> None:
        self.raw = raw
        self.type, self.reason, self.message = text(raw, "type"), text(raw, "reason"), text(raw, "message")
        self.status = status_of(raw)
        self.meaning = meaning_of_type(self.type)
        self.word = meaning_of_word(self.reason)
        self.stale = is_stale(raw, generation)

    @property
    def is_held(self) -> bool:
        """Whether it says that the object is at rest on purpose."""
        if self.meaning is Meaning.HELD:
            return self.status == "true" and not self.stale
        if self.word is not Word.HELD or self.status == "true":
            return False
        return self.status == "unknown" or self.meaning in _WELL or (self.meaning is Meaning.BUSY and self.status == "false")

    @property
    def vetoes(self) -> bool:
        """Whether it contradicts a condition that says "ready"."""
        if self.stale:
            return False
        if self.meaning in _ALARMS:
            return self.status == "true" and not (self.meaning is Meaning.NEGATED and is_completion(self.reason))
        if self.meaning is Meaning.BUSY:
            busy = self.status == "true" and not ends_well(self.reason)
            return busy or self.status == "unknown" or (self.status == "false" and self.word in TROUBLED)
        return self.meaning in _WHOLE and self.status == "true" and contradicts(self.reason)

    @property
    def is_of_a_part(self) -> bool:
        """Whether it is an alarm about a part, such as MetricsError, and does not say that the work has failed."""
        return self.meaning is Meaning.TROUBLE and len(parts(self.type)) > 1 and not says_failed(self.type)

    @property
    def stands_in_the_way(self) -> bool:
        """Whether it is a step that was not passed for a reason of trouble, so that what follows it was of nothing."""
        return self.meaning is Meaning.STAGE and self.status == "false" and not self.stale and self.word in TROUBLED

    @property
    def is_quiet(self) -> bool:
        """Whether it says that a trouble is not there, or that no work is under way; its reason may repeat its type."""
        if self.meaning not in _QUIET or self.status != "false" or self.stale:
            return False
        return self.word not in TROUBLED or not set(parts(self.type)).isdisjoint(parts(self.reason))

    @property
    def counts(self) -> bool:
        """Whether it is a counter: its status is Unknown for ever, and its message a number."""
        return self.status == "unknown" and _NUMBER.fullmatch(self.message) is not None

    @property
    def refuses(self) -> bool:
        """Whether it says that nothing gets better without a change to what somebody wrote, or that work was given up."""
        if self.meaning is Meaning.BUSY:
            return not self.stale and self.status == "false" and gives_up(self.reason)
        if self.stale or not (self.word is Word.REFUSED or is_final(self.reason)):
            return False
        return self.status == ("true" if self.meaning in _ALARMS else "false") and self.meaning in _WHOLE + _ALARMS

    @property
    def in_trouble(self) -> bool:
        """Whether what it objects to is trouble, and not work in progress."""
        if self.stale or (self.status == "unknown" and self.word is not Word.TROUBLE):
            return False
        severity = text(self.raw.get("severity")).lower()
        if self.word in TROUBLED or self.meaning is Meaning.TROUBLE or severity == "error":
            return True
        if severity == "info":
            return False
        return not waits(self.reason) and meaning_of_message(self.message) is Word.TROUBLE

    @property
    def is_settled(self) -> bool:
        """Whether it states that the whole is not well and names no work under way, which is trouble if nothing else is."""
        if self.stale or self.status == "unknown":
            return False
        if self.status not in ("true", "false"):
            return True
        explained = self.word is Word.UNKNOWN and bool(self.reason or self.message)
        alarming = self.meaning in _WHOLE or self.meaning in _ALARMS
        return explained and alarming and meaning_of_message(self.message) is not Word.UNFINISHED


def judge_conditions(conditions: Any, generation: int | None, *, at_work: bool = False, done: bool = False) -> Health | None:
    """Judge a `conditions` list; None if none of them says whether the object is ready.

    `generation` is the object's; conditions observed at an older one cannot make it ready. `at_work`: the object's phase
    says that work is under way, so that what is not well without such a reason is no trouble. `done`: it says that all work is
    done, so that an alarm about a part of it says nothing.
    """
    found = _read(conditions, generation)
    if not found:
        return None
    if final := _final(found):
        return failed(*_explain(final))
    if held := [c for c in found if c.is_held]:
        return suspended(*_explain(held))
    return _judge([c for c in found if not (done and c.is_of_a_part)], at_work)


def judge_alarms(conditions: Any, generation: int | None) -> Health | None:
    """READY if there are only conditions of trouble and of work under way, and none of them is True; else None.

    Their controller has looked at the object and found nothing wrong. What is no more than not at work is not enough, unless
    it waits for its time.
    """
    found = _read(conditions, generation)
    if not found or not all(c.is_quiet for c in found):
        return None
    clear = [c for c in found if c.meaning is not Meaning.BUSY or waits_for_its_time(c.reason)]
    return ready(*_explain(clear)) if any(c.meaning is not Meaning.HELD for c in clear) else None


def _read(conditions: Any, generation: int | None) -> list[Condition]:
    return [one for raw in entries(conditions) if raw and not (one := Condition(raw, generation)).counts]


def _judge(found: list[Condition], at_work: bool) -> Health | None:
    not_well = [c for c in found if c.meaning in _WELL and c.status != "true"]
    vetoes = [c for c in found if c.vetoes]
    summed_up = Meaning.WHOLE_IS_WELL in [c.meaning for c in found]
    if not summed_up:
        vetoes += [c for c in found if c.stands_in_the_way]
    decisive = [c for c in found if c.meaning in _WHOLE or (c.meaning is Meaning.PART_IS_WELL and not summed_up)]
    if vetoes or any(c.status != "true" for c in decisive):
        return _unready(vetoes, not_well, at_work)
    if old := [c for c in decisive if c.stale]:
        return waiting("SpecNotObserved", f"{_explain(old)[1]}, but that speaks of an older generation of the spec")
    if decisive:
        return ready(*_explain(decisive))
    return _unready([], not_well, at_work) if not_well else None


def _unready(vetoes: list[Condition], not_well: list[Condition], at_work: bool) -> Health:
    busy = [c for c in vetoes if c.meaning is Meaning.BUSY]
    objections = [c for c in vetoes if c.meaning is not Meaning.BUSY and c not in not_well] + not_well
    stands_still = not busy and not at_work and any(c.is_settled for c in objections)
    trouble = stands_still or any(c.in_trouble for c in objections + busy)
    return waiting(*_explain(objections + busy), trouble=trouble)


def _final(found: list[Condition]) -> list[Condition]:
    """Those that say that the controller has given up, or has refused what was written."""
    given_up = [c for c in found if c.meaning is Meaning.FINAL_FAILURE and c.status == "true" and not c.stale]
    return given_up or [c for c in found if c.refuses]


def is_trouble(condition: dict[str, Any]) -> bool:
    """Whether one condition that says that something is not well names trouble, and not work in progress."""
    return Condition(condition, None).in_trouble


def speak_for_the_whole(conditions: Any) -> bool:
    """Whether one of the conditions sums up the object."""
    return Meaning.WHOLE_IS_WELL in [meaning_of_type(text(c, "type")) for c in entries(conditions)]


def status_of(condition: dict[str, Any]) -> str:
    """The status in lower case: "true", "false", "unknown" or whatever else was written."""
    status = condition.get("status")
    return _STATUSES[status] if isinstance(status, str) and status in _STATUSES else str(status).lower()


def explain(conditions: Iterable[dict[str, Any]]) -> tuple[str, str]:
    """Reason and message for an operator from the conditions that matter; False and talkative ones come first."""
    return _lines(sorted(conditions, key=lambda c: (status_of(c) == "unknown", not text(c, "message"))))


def _lines(ordered: list[dict[str, Any]]) -> tuple[str, str]:
    first = ordered[0]
    return text(first, "reason") or text(first, "type"), "; ".join(dict.fromkeys(map(_line, ordered[:3])))


def _explain(conditions: list[Condition]) -> tuple[str, str, str]:
    """As `explain`, with the field; among conditions of one generation those in trouble come first."""

    def rank(c: Condition) -> tuple[bool, ...]:
        return c.stale, not c.in_trouble, c.status == "unknown", not c.message

    ordered = sorted(conditions, key=rank)
    return (*_lines([c.raw for c in ordered]), f"status.conditions[{ordered[0].type}]")


def _line(condition: dict[str, Any]) -> str:
    reason, message = text(condition, "reason"), text(condition, "message")
    line = f"{text(condition.get('type')) or 'a condition without a type'} is {condition.get('status')}"
    return line + (f" ({reason})" if reason else "") + (f": {message}" if message else "")
