"""What the words mean that controllers use for condition types, phases and states.

The same English is used by controllers that know nothing of each other ("Ready", "AllReplicasReady", "Provisioning",
"ConfigError"), so a word is judged by its parts. No API group or kind is known here.
"""

from __future__ import annotations

import enum
import re
from functools import lru_cache

_DOMAIN = re.compile(r"^[\w.-]+/")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def word_set(words: str) -> frozenset[str]:
    """The words of a text, each once."""
    return frozenset(words.split())


GOOD = word_set(
    """ready available healthy succeeded success successful succeeding complete completed done finished bound deployed
    created exists accepted synced synchronized sync insync applied installed provisioned reconciled online up green
    enabled active running valid established connected attached issued published initialized compliant normal stable
    ok programmed operational serving listening reachable discoverable resolved uptodate known matched"""
)
CLEAR = word_set("ready healthy running")
TROUBLE = word_set(
    """error errors err failed failure failures failing fail fatal rejected invalid degraded unhealthy crash crashed
    crashloop red warn warning lost aborted cancelled canceled expired conflict conflicted unavailable unknown missing
    timeout exceeded noncompliant unreachable blocked broken misconfigured denied refused dead unresponsive inactive
    disconnected corrupted corrupt faulted offline down fallback exhausted violation evicted dangling pressure orphaned
    unschedulable backoff stuck"""
)
HELD = word_set("paused suspended hibernated hibernation")
# In a spec these are a wish; in a status they may be no more than the state before the first start
AT_REST = HELD | word_set("stopped halted")
UNFINISHED = word_set(
    """pending progress queued requested scheduled submitted new init initial not non no partial partially yellow
    retry rerun stopped halted uninitialized unset unready incomplete unbound terminated deleted"""
)
NEGATIONS = word_set("not non no")
BUSY = word_set(
    """reconciling progressing provisioning creating updating upgrading deleting terminating rolling scaling remediating
    pending installing initializing starting stopping restarting restoring migrating resizing rebalancing deploying
    processing waiting issuing unpacking draining disrupting configuring joining recovering rollout"""
)
# "RollingOut", "ScalingUp" and "ScalingDown" carry their verb in front
DIRECTIONS = word_set("out up down in")
# Said of the object as a whole, where "InfrastructureReady" is said of a part
SUMMARIES = word_set("ready available healthy succeeded complete completed established")
# Said of the object as a whole, but of one side of it
ASPECTS = word_set("programmed synced accepted reconciled applied compliant valid issued")
# Passed on the way; True is no sign that the end is reached
STAGES = word_set(
    """launched registered scheduled initialized admitted created adopted started bootstrapped approved requested
    validated"""
)
# Facts about an object that is well either way
FACTS = word_set("limited managed allowed deprecated required restricted requested ignored warning running")


class Meaning(enum.Enum):
    """What it means that a condition type is True."""

    FINAL_FAILURE = enum.auto()
    TROUBLE = enum.auto()
    HELD = enum.auto()
    BUSY = enum.auto()
    WHOLE_IS_WELL = enum.auto()
    SIDE_IS_WELL = enum.auto()
    PART_IS_WELL = enum.auto()
    STAGE = enum.auto()
    FACT = enum.auto()


class Word(enum.Enum):
    """What a phase or state says."""

    FAILED = enum.auto()
    TROUBLE = enum.auto()
    UNFINISHED = enum.auto()
    HELD = enum.auto()
    GOOD = enum.auto()
    UNKNOWN = enum.auto()


def parts(word: str) -> list[str]:
    """The parts of a CamelCase, snake_case or spoken word, in lower case, without a `domain/` in front."""
    return [part.lower() for part in _PART.findall(_DOMAIN.sub("", word[:200]))]


SINGLE_WORDS = {
    **dict.fromkeys(("stalled", "failed"), Meaning.FINAL_FAILURE),
    **dict.fromkeys(SUMMARIES, Meaning.WHOLE_IS_WELL),
    **dict.fromkeys(ASPECTS, Meaning.SIDE_IS_WELL),
    **dict.fromkeys(STAGES, Meaning.STAGE),
}


@lru_cache(maxsize=1024)
def meaning_of_type(condition_type: str) -> Meaning:
    """What it means that a condition of this type is True."""
    words = parts(condition_type)
    if not words:
        return Meaning.FACT
    if len(words) == 1 and words[0] in SINGLE_WORDS:
        return SINGLE_WORDS[words[0]]
    if words[0] in NEGATIONS:
        return Meaning.PART_IS_WELL if words[-1].rstrip("s") in TROUBLE else Meaning.TROUBLE
    return _meaning_of_ends(words[0], words[-1], words[-2:])


def _meaning_of_ends(first: str, last: str, end: list[str]) -> Meaning:
    if last == "terminal":
        return Meaning.FINAL_FAILURE
    if last in HELD:
        return Meaning.HELD
    if last in BUSY or (last in DIRECTIONS and end[0] in BUSY):
        return Meaning.BUSY
    if last in FACTS:
        return Meaning.FACT
    if last in TROUBLE or first in TROUBLE:
        return Meaning.TROUBLE
    well = any(word in GOOD or word.endswith("ed") for word in (first, last))
    return Meaning.PART_IS_WELL if well else Meaning.FACT


@lru_cache(maxsize=1024)
def meaning_of_word(word: str) -> Word:
    """What a phase or state says; the worst of its parts counts ("DeployedNotReady" is unfinished)."""
    words = parts(word)
    if words == ["failed"]:
        return Word.FAILED
    if any(part in TROUBLE for part in words):
        return Word.TROUBLE
    if words[:2] == ["out", "of"] or any(_is_unfinished(part) for part in words):
        return Word.UNFINISHED
    if any(part in HELD for part in words):
        return Word.HELD
    # "Another tenant already exists" is a sentence, where one good word says little
    good = GOOD if len(words) <= 3 else CLEAR
    return Word.GOOD if any(part in good for part in words) else Word.UNKNOWN


def ends_well(reason: str) -> bool:
    """Whether a reason tells that the work is done ("NewReplicaSetAvailable")."""
    words = parts(reason)
    return bool(words) and words[-1] in GOOD and NEGATIONS.isdisjoint(words)


def _is_unfinished(part: str) -> bool:
    return part in UNFINISHED or part in BUSY or (part.endswith("ing") and part not in GOOD)
