"""What a status says where it has no telling conditions: phases and states, flags, errors, counts of replicas.

Lists are not searched: they hold histories and parts ("phaseTransitionTimestamps"). Nor are fields that speak of
another time ("lastUpdate", "desiredState") or another contract ("deprecated").
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from k8s_cr_driver.resources.health.fields import dig, integer, mapping, text
from k8s_cr_driver.resources.health.model import Health, failed, ready, suspended, waiting
from k8s_cr_driver.resources.health.vocabulary import Word, meaning_of_word, word_set

DEPTH = 2
WORD_FIELDS = word_set("phase state status health currentPhase currentState printableStatus overallStatus compliant")
FLAG_FIELDS = word_set("ready healthy available success succeeded pass passed provisioned initialized")
ERROR_FIELDS = word_set("error errMsg errorMsg errorMessage errorDescription failureMessage failureReason")
_WORD_ENDINGS = ("Phase", "State", "Status", "Health")
_ELSEWHERE = re.compile(r"(last|previous|prev|desired|target|deprecated|history|conditions)([A-Z]|$)")
_FRACTION = re.compile(r"\s*(\d{1,9})\s*/\s*(\d{1,9})\s*")
_COUNTERS = (
    "readyReplicas",
    "availableReplicas",
    "updatedReplicas",
    "updatedReadyReplicas",
    "upToDateReplicas",
    "readyInstances",
    "availableInstances",
)
_PAIRS = (("ready", "size"), ("currentHealthy", "expectedMachines"), ("readyInstances", "instances"))


def says_readiness(fields: dict[str, Any], depth: int = 0) -> bool:
    """Whether a status of these fields (field -> schema) has one that tells readiness, also within its parts."""
    if not fields.keys().isdisjoint({"conditions"} | WORD_FIELDS | FLAG_FIELDS):
        return True
    schemas = [schema for field, schema in fields.items() if not _ELSEWHERE.match(field)] if depth < DEPTH else []
    inner = (mapping(dig(part, "properties")) for schema in schemas for part in (schema, dig(schema, "items")))
    return any(says_readiness(properties, depth + 1) for properties in inner)


class Sign(NamedTuple):
    """A field of the status that says something, how deep it lies, and what it says."""

    depth: int
    field: str
    health: Health | None


def judge_words(status: dict[str, Any], own_only: bool) -> Health | None:
    """Judge phases, states, flags and errors; None if there are none.

    With `own_only` only the object's own phase or state can object, as when conditions have already said "ready".
    """
    signs = list(_signs(status, 0))
    if own_only:
        signs = [sign for sign in signs if sign.depth == 0 and sign.field in WORD_FIELDS]
    judged = [sign.health for sign in signs if sign.health]
    if bad := [health for health in judged if not health.settled]:
        return min(bad, key=lambda health: health.state)
    shallow = min((sign.depth for sign in signs if sign.health), default=0)
    settled = [sign.health for sign in signs if sign.health and sign.depth == shallow]
    if any(sign.health is None and sign.depth <= shallow and sign.field in WORD_FIELDS for sign in signs):
        return None
    return min(settled, key=lambda health: health.state, default=None)


def _signs(values: dict[str, Any], depth: int) -> Iterator[Sign]:
    for field, value in values.items():
        if _ELSEWHERE.match(field):
            continue
        if field in FLAG_FIELDS and isinstance(value, bool):
            yield Sign(depth, field, ready() if value else waiting("NotReady", f"{field} is false in the status"))
        elif field in ERROR_FIELDS and text(value).strip():
            yield Sign(depth, field, waiting("Error", text(value)))
        elif isinstance(value, str) and value and (field in WORD_FIELDS or field.endswith(_WORD_ENDINGS)):
            own = depth == 0 and field in WORD_FIELDS
            yield Sign(depth, field, _judge_word(field, value, values, own))
        elif field in WORD_FIELDS and isinstance(value, int):
            yield Sign(depth, field, None)
        elif isinstance(value, dict) and depth < DEPTH:
            yield from _signs(mapping(value), depth + 1)


def _judge_word(field: str, word: str, values: dict[str, Any], own: bool) -> Health | None:
    detail = next((told for name in ("message", "reason", *ERROR_FIELDS) if (told := text(values.get(name)))), "")
    message = f"{field} is {word}" + (f": {detail}" if detail else "")
    reason = word if re.fullmatch(r"\w{1,60}", word) else field
    match meaning_of_word(word):
        case Word.FAILED if own:
            return failed(reason, message)
        case Word.FAILED | Word.TROUBLE | Word.UNFINISHED:
            return waiting(reason, message)
        case Word.HELD:
            return suspended(reason, message)
        case Word.GOOD:
            return ready(reason, message)
        case _:
            return None


def judge_counts(live: dict[str, Any]) -> Health | None:
    """Judge counts of ready replicas against the wanted number; None if there are none."""
    status = mapping(live.get("status"))
    wanted = next(
        (n for path in (("replicas",), ("instances",)) if (n := integer(dig(live, "spec", *path))) is not None), None
    )
    counts = [(field, integer(status.get(field)), wanted) for field in _COUNTERS if field in status]
    counts += [(have, integer(status.get(have)), integer(status.get(of))) for have, of in _PAIRS]
    for field, value in status.items():
        if fraction := _FRACTION.fullmatch(text(value)):
            counts.append((field, int(fraction[1]), int(fraction[2])))
    known = [(field, have, want) for field, have, want in counts if have is not None and want is not None]
    if short := [f"{field} is {have} of {want}" for field, have, want in known if have < want]:
        return waiting("ReplicasNotReady", "; ".join(short))
    if known:
        return ready("ReplicasReady", "; ".join(f"{field} is {have} of {want}" for field, have, want in known))
    if wanted and integer(status.get("replicas")) is not None:
        return waiting("ReplicasNotReady", f"none of {wanted} replicas is counted as ready")
    return None
