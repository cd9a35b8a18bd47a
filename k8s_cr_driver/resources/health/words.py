# SPDX-License-Identifier: Apache-2.0
"""What a word means: a condition's type or reason, a phase, a state.

A word is judged by its parts, the worst counts, and what follows a negation is turned round ("NotReady", "NoErrors").
Each word is judged once: controllers repeat themselves.
"""

from __future__ import annotations

import enum
import re

from k8s_cr_driver.resources.health.condition_words import (
    ASPECTS,
    BAD_ENDS,
    BUSY,
    CLEAR,
    COMPLETION,
    DIRECTIONS,
    ENDED,
    FACTS,
    FAULTS,
    FINAL,
    GOOD,
    HALF,
    HELD,
    MUST_BE,
    NEGATIONS,
    NEGATIVE_PREFIXES,
    OFF,
    POINTERS,
    PROPOSALS,
    REFUSAL,
    SCHEDULES,
    SENTENCE_OPENERS,
    STAGES,
    STARTED_BY_USERS,
    STEMS,
    SUMMARIES,
    TROUBLE,
    UNFINISHED,
    WRITTEN,
)
from k8s_cr_driver.resources.health.judged_once import LONGEST, judged_once

_DOMAIN = re.compile(r"^[\w.-]+/")
# Several words that mean one thing
_PHRASES = re.compile(
    r"(?i)(up[ _-]?to[ _-]?date)|(out[ _-]?of[ _-]?sync)|(back[ _-]?off)|(rolled?[ _-]?back)|(timed[ _-]?out)"
    r"|(failed[ _-]?over$)"
)
_JOINED = ("Uptodate", "Outofsync", "Backoff", "Rollback", "Timeout", "Failedover")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_OVER = ENDED | OFF


class Meaning(enum.Enum):
    """What it means that a condition type is True."""

    FINAL_FAILURE = enum.auto()
    TROUBLE = enum.auto()
    NEGATED = enum.auto()
    HELD = enum.auto()
    BUSY = enum.auto()
    WHOLE_IS_WELL = enum.auto()
    SIDE_IS_WELL = enum.auto()
    PART_IS_WELL = enum.auto()
    STAGE = enum.auto()
    FACT = enum.auto()


class Word(enum.Enum):
    """What a reason, a phase or a state says."""

    FAILED = enum.auto()
    REFUSED = enum.auto()
    TROUBLE = enum.auto()
    UNFINISHED = enum.auto()
    HELD = enum.auto()
    GOOD = enum.auto()
    UNKNOWN = enum.auto()


TROUBLED = (Word.FAILED, Word.REFUSED, Word.TROUBLE)

SINGLE_WORDS = {
    **dict.fromkeys(("stalled", "failed", "terminal"), Meaning.FINAL_FAILURE),
    **dict.fromkeys(SUMMARIES, Meaning.WHOLE_IS_WELL),
    **dict.fromkeys(ASPECTS, Meaning.SIDE_IS_WELL),
    **dict.fromkeys(STAGES, Meaning.STAGE),
}


def parts(word: str) -> list[str]:
    """The parts of a CamelCase, snake_case or spoken word, in lower case, without a `domain/` in front."""
    return [part.lower() for part in _PART.findall(_PHRASES.sub(_joined, _DOMAIN.sub("", word[:LONGEST])))]


def _joined(phrase: re.Match[str]) -> str:
    return _JOINED[(phrase.lastindex or 1) - 1]


@judged_once
def meaning_of_type(condition_type: str) -> Meaning:
    """What it means that a condition of this type is True; some are named with the word Condition at their end."""
    words = parts(condition_type.removesuffix("Condition"))
    if not words:
        return Meaning.FACT
    if len(words) == 1 and words[0] in SINGLE_WORDS:
        return SINGLE_WORDS[words[0]]
    if words[0] in NEGATIONS:
        if words[-1] not in TROUBLE:
            return Meaning.NEGATED
        return Meaning.FACT if words[-1] in FACTS else Meaning.PART_IS_WELL
    return _meaning_of_ends(words)


def _meaning_of_ends(words: list[str]) -> Meaning:
    first, last = words[0], words[-1]
    if last == "terminal":
        return Meaning.FINAL_FAILURE
    if last in HELD or (first in PROPOSALS and last in GOOD):
        return Meaning.HELD
    if last in BUSY or (last in DIRECTIONS and words[-2:][0] in BUSY):
        return Meaning.BUSY
    if last in FACTS:
        return Meaning.FACT
    if _is_trouble(last) or (_is_trouble(first) and last not in ("resolved", "ready")):  # "DeadLetterSinkResolved" is well
        return Meaning.TROUBLE
    if not NEGATIONS.isdisjoint(words) or _is_negative(first) or _is_negative(last) or first in HALF or last in _OVER:
        return Meaning.NEGATED
    if last in GOOD or (first in GOOD and first.endswith("ed")):
        return Meaning.FACT if first in STEMS and last not in COMPLETION else Meaning.PART_IS_WELL
    if first in BUSY and last not in STAGES:
        return Meaning.BUSY
    return Meaning.STAGE if last.endswith("ed") else Meaning.FACT


def _is_trouble(part: str) -> bool:
    return part in TROUBLE or part in REFUSAL


@judged_once
def meaning_of_word(word: str) -> Word:
    """What a reason, a phase or a state says; the worst of its parts counts ("DeployedNotReady" is unfinished)."""
    words = parts(word)
    if words == ["failed"]:
        return Word.FAILED
    if waits(word) and not STARTED_BY_USERS.isdisjoint(words):
        return Word.HELD
    found = {_meaning_of_part(words, index) for index in range(len(words))}
    if refused(words):
        return Word.REFUSED
    for meaning in (Word.TROUBLE, Word.UNFINISHED, Word.HELD):
        if meaning in found:
            return meaning
    # "Another tenant already exists" is a sentence, where one good word says little
    good = found if len(words) <= 3 else CLEAR.intersection(words) or _is_verdict(word, words)
    if good and STEMS.intersection(words) and COMPLETION.isdisjoint(words):
        return Word.UNFINISHED
    return Word.GOOD if Word.GOOD in found and good else Word.UNKNOWN


def _is_verdict(word: str, words: list[str]) -> bool:
    """Whether a sentence ends in what has happened ("All rules applied"), of no number and under no condition."""
    return words[-1] in GOOD and SENTENCE_OPENERS.isdisjoint(words) and not any(map(str.isdigit, word))


def refused(words: list[str]) -> bool:
    """Whether these parts say that what somebody wrote was refused."""
    if not POINTERS.isdisjoint(words) or not NEGATIONS.isdisjoint(words):
        return False
    return not REFUSAL.isdisjoint(words) or not (WRITTEN.isdisjoint(words) or FAULTS.isdisjoint(words))


def _meaning_of_part(words: list[str], index: int) -> Word:
    part = words[index]
    if not NEGATIONS.isdisjoint(words[:index]):
        if part in MUST_BE:
            return Word.TROUBLE
        return Word.UNFINISHED if part in GOOD else Word.UNKNOWN
    if _is_trouble(part):
        return Word.TROUBLE
    if words[:2] == ["out", "of"] or _is_unfinished(part) or (part in NEGATIONS and index == len(words) - 1):
        return Word.UNFINISHED
    if part in HELD:
        return Word.HELD
    return Word.GOOD if part in GOOD else Word.UNKNOWN


def _is_unfinished(part: str) -> bool:
    return part in UNFINISHED or part in BUSY or (part.endswith("ing") and part not in GOOD) or _is_negative(part)


def _is_negative(part: str) -> bool:
    """Whether this is the opposite of a good word: "unsynced", "disconnected"."""
    if part in GOOD:
        return False
    return any(part.startswith(prefix) and part[len(prefix) :] in GOOD for prefix in NEGATIVE_PREFIXES)


@judged_once
def ends_well(reason: str) -> bool:
    """Whether a reason says that the work is done ("NewReplicaSetAvailable")."""
    words = parts(reason)
    return bool(words) and words[-1] in GOOD and NEGATIONS.isdisjoint(words)


@judged_once
def is_final(reason: str) -> bool:
    """Whether a reason says that nothing will be tried again."""
    words = parts(reason)
    return any(word in FINAL and not _is_negated(words[:index]) for index, word in enumerate(words))


def _is_negated(before: list[str]) -> bool:
    """Whether a negation holds still after these words: in "NotFoundTerminal" it has turned another word round."""
    for word in reversed(before):
        if word in NEGATIONS or word in GOOD or word in MUST_BE:
            return word in NEGATIONS
    return False


@judged_once
def gives_up(reason: str) -> bool:
    """Whether a reason says that work has ended before its end: nobody goes on with it."""
    words = parts(reason)
    return ("aborted" in words and NEGATIONS.isdisjoint(words)) or is_final(reason)


@judged_once
def contradicts(reason: str) -> bool:
    """Whether a reason contradicts what it explains, that all is well: it names trouble, work under way, or an end."""
    words = parts(reason)
    if ends_well(reason):
        return False
    if meaning_of_word(reason) in TROUBLED or not BUSY.isdisjoint(words) or not ENDED.isdisjoint(words):
        return True
    return any(map(_is_negative, words)) or ("not" in words and not GOOD.isdisjoint(words))


@judged_once
def is_completion(reason: str) -> bool:
    """Whether a reason says that what has stopped came to its end ("InstallationCompleted")."""
    return ends_well(reason) and parts(reason)[-1] in COMPLETION


@judged_once
def ends_in_part(word: str) -> bool:
    """Whether a phase names an end that was reached in part ("PartiallyFailed", "CompletedWithErrors")."""
    words = parts(word)
    if words[:1] and words[0] in COMPLETION:
        return words[1:2] == ["with"]
    return len(words) == 2 and words[0] in HALF and (words[1] in COMPLETION or words[1] == "failed")


@judged_once
def ends_badly(word: str) -> bool:
    """Whether a phase names an end without success ("Error", "DeployFailed") and no work ("WaitingForJobFailed")."""
    words = parts(word)
    is_end = bool(words) and words[-1] in BAD_ENDS and NEGATIONS.isdisjoint(words)
    return is_end and not any(part.startswith("retry") or part.endswith("ing") for part in words)


def says_failed(word: str) -> bool:
    """Whether "failed" is one of its parts: an end, or a step that may be tried again."""
    return "failed" in parts(word)


@judged_once
def waits_for_its_time(reason: str) -> bool:
    """Whether a reason says that the next work begins at its time ("WaitingForSchedule")."""
    return waits(reason) and not SCHEDULES.isdisjoint(parts(reason))


@judged_once
def waits(reason: str) -> bool:
    """Whether a reason says what is waited for ("WaitingForOwner")."""
    return parts(reason)[:1] in (["waiting"], ["awaiting"], ["wait"], ["pending"])
