# SPDX-License-Identifier: Apache-2.0
"""Judges a status without usable conditions: phases and states, flags, errors.

Parts of the status, in objects and lists, are searched too, but not what speaks of another time ("lastUpdate",
"phaseTransitionTimestamps"), of a wish ("desiredState") or in another contract ("deprecated").
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from k8s_cr_driver.objects.fields import entries, sequence, text
from k8s_cr_driver.resources.health.condition_words import word_set
from k8s_cr_driver.resources.health.model import RUNNING, Health, State, failed, ready, suspended, waiting
from k8s_cr_driver.resources.health.roles import DEPTH, Role, role_of
from k8s_cr_driver.resources.health.sentences import meaning_of_message, still_waits
from k8s_cr_driver.resources.health.words import (
    TROUBLED,
    Word,
    ends_badly,
    ends_in_part,
    meaning_of_word,
    says_failed,
)

_PERCENTAGE = re.compile(r"\s*([0-9]{1,3})(?:\.[0-9]{1,9})?\s*%\s*")
_WISHES = re.compile(r"(?i)(?:desired|expected|target|wanted|goal)_?(\w+)|(\w+?)_?goal")
_MOST_ERRORS = 3
_NO_ERROR = word_set("none ok no null nil false success 0 - n/a noerror")
# A kind whose status ends has done its work only then; for any other "Running" is the aim
COMPLETION_TIMES = ("completionTime", "completionTimestamp", "completedAt", "finishedAt", "finishTime", "endTime")
"""Where the status of what runs to an end says when it ended: Job, TaskRun, Workflow, ..."""


class Sign(NamedTuple):
    """A field of the status that says something: how deep it lies, its role, what it says, and the fields beside it."""

    depth: int
    field: str
    role: Role
    word: Word
    value: Any
    beside: dict[str, Any]
    listed: bool = False

    @property
    def says(self) -> bool:
        return self.word is not Word.UNKNOWN

    @property
    def objects(self) -> bool:
        """Whether it says that something is not ready."""
        return self.word in TROUBLED or self.word is Word.UNFINISHED

    def health(self) -> Health:
        reason, message = self._explain()
        path = f"status.{self.field}" if self.depth == 0 else f"status, {self.field} in it"
        if self.role is Role.WORD and self.depth == 0 and self.word in (Word.FAILED, Word.REFUSED):
            return failed(reason, message, path)
        if self.objects:
            return waiting(reason, message, path, trouble=self.in_trouble)
        return suspended(reason, message, path) if self.word is Word.HELD else ready(reason, message, path)

    @property
    def in_trouble(self) -> bool:
        return self.word in TROUBLED or meaning_of_message(self._detail()) is Word.TROUBLE

    def _detail(self) -> str:
        return next((found for name in ("message", "reason") if (found := text(self.beside.get(name)))), "")

    def _explain(self) -> tuple[str, str]:
        if self.role is Role.ERROR:
            return "Error", f"{self.field} is {self.value}"
        if not isinstance(self.value, str):
            return "NotReady" if self.objects else "Ready", f"{self.field} is {str(self.value).lower()} in the status"
        detail = self._detail()
        reason = self.value if re.fullmatch(r"\w{1,60}", self.value) else self.field
        return reason, f"{self.field} is {self.value}" + (f": {detail}" if detail else "")


def judge_words(status: dict[str, Any], fields: dict[str, Any], own_only: bool) -> Health | None:
    """Judge phases, states, flags and errors; None if there are none.

    `fields` are the schemas of the status' fields. With `own_only` only the object's own phase or state can object, as
    when conditions have already said "ready".
    """
    signs = list(_signs(status, 0))
    if own_only:
        signs = [sign for sign in signs if sign.role in (Role.WORD, Role.ERROR) and (sign.depth == 0 or sign.listed)]
    # What a flag of a part says does not matter beside a flag of the whole that is true
    if any(sign.role is Role.FLAG and sign.word is Word.GOOD and sign.depth == 0 for sign in signs):
        signs = [sign for sign in signs if sign.role is not Role.FLAG_OF_PART]
    if over := [sign for sign in signs if sign.objects and _is_over(sign, status, fields)]:
        return replace(over[0].health(), state=State.FAILED, trouble=True)
    if objections := [sign for sign in signs if sign.objects]:
        return min((sign.health() for sign in objections), key=lambda health: health.badness)
    return _settled(signs, status, fields)


def error_texts(status: dict[str, Any]) -> list[tuple[str, str]]:
    """(field, text) of the errors that the status itself has, as far as they are texts."""
    errors = ((field, value) for field, value in status.items() if role_of(field) is Role.ERROR and _is_error(value))
    return [(field, found) for field, value in errors if (found := _text_of_error(value))]


def _text_of_error(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(filter(None, (_text_of_error(one) for one in value[:_MOST_ERRORS] if not isinstance(one, list))))
    if isinstance(value, dict):
        return next((found for name in ("message", "description", "reason") if (found := text(value, name))), "")
    return text(value)


def own_words(status: dict[str, Any]) -> list[str]:
    """The object's own phases and states, in lower case."""
    words = [(field, value) for field, value in status.items() if value and isinstance(value, str)]
    return [value.lower() for field, value in words if role_of(field) is Role.WORD]


def is_at_work(status: dict[str, Any]) -> bool:
    """Whether the object's own phase or state says that work is under way."""
    words = [text(value) for field, value in status.items() if role_of(field) is Role.WORD]
    return Word.UNFINISHED in [meaning_of_word(word) for word in words if word]


def has_ended(status: dict[str, Any]) -> bool:
    """Whether the status says when the work has ended."""
    return any(map(status.get, COMPLETION_TIMES))


def _settled(signs: list[Sign], status: dict[str, Any], fields: dict[str, Any]) -> Health | None:
    shallow = min((sign.depth for sign in signs if sign.says), default=0)
    if any(sign.role is Role.WORD and not sign.says and sign.depth <= shallow for sign in signs):
        return None
    settled = [sign for sign in signs if sign.says and sign.depth == shallow]
    best = min(settled, key=lambda sign: sign.word is Word.GOOD, default=None)
    if best is None:
        return None
    health = best.health()
    if health.settled and str(best.value).lower() == "running":
        if _has_an_end_to_come(status, fields):
            return waiting(health.reason, f"{health.message}, and its work is not done yet", health.field)
        return ready(RUNNING, health.message, health.field)
    if health.settled and still_waits(text(best.beside.get("message"))):
        return waiting(health.reason, health.message, health.field)
    return health


def _is_over(sign: Sign, status: dict[str, Any], fields: dict[str, Any]) -> bool:
    """Whether a phase that ends badly or in part is final: it says so, or its completion time, or the phases of its CRD."""
    if sign.depth or sign.role is not Role.WORD or not isinstance(sign.value, str):
        return False
    if not ends_in_part(sign.value):
        return ends_badly(sign.value) and has_ended(status)
    listed = [word for word in sequence(fields, sign.field, "enum") if isinstance(word, str)]
    at_work = any(meaning_of_word(word) is Word.UNFINISHED for word in listed)
    return not says_failed(sign.value) or has_ended(status) or (sign.value in listed and at_work)


def _has_an_end_to_come(status: dict[str, Any], fields: dict[str, Any]) -> bool:
    has_an_end = any(field in status or field in fields for field in COMPLETION_TIMES)
    return has_an_end and not has_ended(status)


def _signs(values: dict[str, Any], depth: int) -> Iterator[Sign]:
    for field, value in values.items():
        role = role_of(field)
        if role is Role.ELSEWHERE:
            continue
        if isinstance(value, (dict, list)) and role is not Role.ERROR:
            if depth < DEPTH and value:
                yield from _signs_of_parts(value, depth + 1)
        elif role is not Role.OTHER and (word := _read(role, value)) is not None and not _is_wanted(field, value, word, values):
            yield Sign(depth, field, role, word, value, values)


def _is_wanted(field: str, value: Any, word: Word, beside: dict[str, Any]) -> bool:
    """Whether a field beside says that this state, which sounds unfinished, is the wish: of "state" it is "desiredState"."""
    if word is not Word.UNFINISHED or not isinstance(value, str):
        return False
    wishes = [name for name, wish in beside.items() if wish == value and name != field]
    matches = [match for name in wishes if isinstance(name, str) and (match := _WISHES.fullmatch(name))]
    return any((match[1] or match[2]).lower() == field.lower() for match in matches)


def _signs_of_parts(value: Any, depth: int) -> Iterator[Sign]:
    if isinstance(value, dict):
        yield from _signs(value, depth)
        return
    every = [sign._replace(listed=True) for part in entries(value) for sign in _signs(part, depth)]
    # One of several parts can only object: there may be more than are listed. What is in force is so in each by itself
    yield from (sign for sign in every if sign.objects or sign.role is Role.IN_FORCE)


def _read(role: Role, value: Any) -> Word | None:
    """What a field of this role says by its value; None if it is no sign."""
    if role is Role.ERROR:
        return Word.TROUBLE if _is_error(value) else None
    if role is Role.PROGRESS:
        return _read_progress(value)
    if role in (Role.FLAG, Role.FLAG_OF_PART, Role.ALARM, Role.IN_FORCE):
        return _read_flag(role, value)
    if isinstance(value, str) and value and role in (Role.WORD, Role.ENDS_IN_WORD):
        return meaning_of_word(value)
    return Word.UNKNOWN if role is Role.WORD and isinstance(value, int) else None


def _read_progress(value: Any) -> Word | None:
    """A percentage, or a word as in any other field."""
    if isinstance(value, str):
        percentage = _PERCENTAGE.fullmatch(value)
        return meaning_of_word(value) if percentage is None and value else _unfinished_until(percentage and int(percentage[1]))
    return _unfinished_until(value if isinstance(value, int) and not isinstance(value, bool) else None)


def _unfinished_until(percent: int | None) -> Word | None:
    return Word.UNFINISHED if percent is not None and 0 <= percent < 100 else None


def _read_flag(role: Role, value: Any) -> Word | None:
    if isinstance(value, str):
        value = {"true": True, "false": False}.get(value.lower())
    if not isinstance(value, bool):
        return None
    if role is Role.ALARM:
        return Word.TROUBLE if value else None
    return Word.GOOD if value else Word.UNFINISHED


def _is_error(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return bool(value.strip()) and value.strip().lower() not in _NO_ERROR
    return isinstance(value, (dict, list)) and any(value.values() if isinstance(value, dict) else value)
