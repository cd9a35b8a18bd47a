# SPDX-License-Identifier: Apache-2.0
"""The short rule that a status meets, for somebody who knows that its object is ready although the rule for all kinds waits.

It may not be met by an object that has failed: a status that speaks of trouble anywhere has no such rule, and none is made of a
step on the way, of work, or of what is so in any state.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from k8s_cr_driver.objects.fields import entries, text
from k8s_cr_driver.resources.health.condition_words import AT_REST, FACTS, OFF
from k8s_cr_driver.resources.health.roles import Role, role_of
from k8s_cr_driver.resources.health.sentences import meaning_of_message
from k8s_cr_driver.resources.health.status_fields import error_texts
from k8s_cr_driver.resources.health.words import TROUBLED, Meaning, Word, meaning_of_type, meaning_of_word, parts

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,60}")
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]{0,60}")
_ENUMERATED = re.compile(r"[A-Z][A-Za-z_]{2,40}")
_INNER = ("status", "state", "phase", "health")
"""Fields of a part of a status that say how it is."""
_RESTS = AT_REST | OFF


def fitting_rule(status: dict[str, Any], *, is_silent: bool = False) -> str:
    """A rule in quotation marks where YAML needs them; "" if there is none.

    With `is_silent` the rule for all kinds finds no word on readiness in the status, so any word, flag or condition counts.
    Else something in it objects, and a word that sounds well beside that may be there when the object has failed.
    """
    return "" if _speaks_of_trouble(status) else next(_rules(status, is_silent), "")


def _rules(status: dict[str, Any], is_silent: bool) -> Iterator[str]:
    plain = {name: value for name, value in status.items() if isinstance(name, str) and _NAME.fullmatch(name)}
    for name, value in plain.items():
        if role_of(name) is Role.WORD and _may_be_an_aim(value) and (is_silent or meaning_of_word(value) is not Word.GOOD):
            yield f"jsonpath={{.status.{name}}}={value}"
    if not is_silent:
        return
    yield from _of_conditions(status)
    yield from (f"jsonpath={{.status.{name}}}=true" for name, value in plain.items() if value is True)
    if "conditions" not in plain:
        yield from _of_parts(plain)
    words = [name for name, value in plain.items() if isinstance(value, str) and _ENUMERATED.fullmatch(value)]
    if len(words) == 1 and _may_be_an_aim(plain[words[0]]):
        yield f"jsonpath={{.status.{words[0]}}}={plain[words[0]]}"


def _of_conditions(status: dict[str, Any]) -> Iterator[str]:
    """By a condition that is no step on the way, and no fact that is so in any state."""
    for one in entries(status, "conditions"):
        kind = text(one, "type")
        is_fit = meaning_of_type(kind) is Meaning.FACT and FACTS.isdisjoint(parts(kind)[-1:])
        if is_fit and _PLAIN.fullmatch(kind) and one.get("status") == "True":
            yield f"condition={kind}"


def _of_parts(status: dict[str, Any]) -> Iterator[str]:
    """By a word of a part of a status, or by the word of all entries of a list."""
    for name, value in status.items():
        for inner in _INNER:
            if isinstance(value, dict) and _may_be_an_aim(value.get(inner)):
                yield f"jsonpath={{.status.{name}.{inner}}}={value[inner]}"
            words = {text(one, inner) for one in entries(status, name)}
            if len(words) == 1 and len(entries(status, name)) == len(status[name]) and _may_be_an_aim(word := words.pop()):
                yield f"\"cel: size(status.{name}) > 0 && status.{name}.all(one, one.{inner} == '{word}')\""


def _may_be_an_aim(word: Any) -> bool:
    """Whether a word that YAML takes as it is may be the aim of an object: no trouble, no work, perhaps a rest."""
    if not isinstance(word, str) or not _PLAIN.fullmatch(word):
        return False
    meaning = meaning_of_word(word)
    return meaning in (Word.GOOD, Word.UNKNOWN, Word.HELD) or (
        meaning is Word.UNFINISHED and not _RESTS.isdisjoint(parts(word))
    )


def _speaks_of_trouble(status: dict[str, Any]) -> bool:
    """Whether an error, a reason or a sentence for humans names trouble, of the object or of one of its conditions."""
    speaking = (status, *entries(status, "conditions"))
    return (
        bool(error_texts(status))
        or any(meaning_of_word(text(one, "reason")) in TROUBLED for one in speaking)
        or any(meaning_of_message(text(one, "message")) is Word.TROUBLE for one in speaking)
    )
