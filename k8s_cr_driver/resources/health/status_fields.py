"""What a status says where it has no telling conditions: phases and states, flags, errors, counts of replicas.

Parts of the status, in objects and lists, are searched too, but not what speaks of another time ("lastUpdate",
"phaseTransitionTimestamps"), of a wish ("desiredState") or in another contract ("deprecated").
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from k8s_cr_driver.resources.health.fields import dig, integer, mapping, mappings, text
from k8s_cr_driver.resources.health.model import Health, failed, ready, suspended, waiting
from k8s_cr_driver.resources.health.vocabulary import Word, meaning_of_word, word_set

DEPTH = 2
WORD_FIELDS = word_set("phase state status health currentPhase currentState printableStatus overallStatus compliant")
FLAG_FIELDS = word_set("ready healthy available success succeeded pass passed provisioned initialized")
ERROR_FIELDS = word_set("error errMsg errorMsg errorMessage errorDescription failureMessage failureReason")
_WORD_ENDINGS = ("Phase", "State", "Status", "Health", "Progress")
# A kind whose status ends has done its work only then; for any other "Running" is the aim
_ENDINGS = ("completionTime", "completionTimestamp", "completedAt", "finishedAt", "finishTime", "endTime")
_ELSEWHERE = re.compile(
    r"(last(?!Operation|Observed)|previous|prev|desired|target|deprecated|history|conditions)([A-Z]|$)"
    r"|.*([Hh]istory|[Tt]ransitions?|[Tt]imestamps?|[Ee]vents?|[Aa]ttempts?|[Rr]evisions?)([A-Z]|$)"
)
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
    if not fields.keys().isdisjoint({"conditions", "replicas", *WORD_FIELDS, *FLAG_FIELDS, *_COUNTERS}):
        return True
    schemas = [schema for field, schema in fields.items() if not _ELSEWHERE.match(field)] if depth < DEPTH else []
    inner = (mapping(dig(part, "properties")) for schema in schemas for part in (schema, dig(schema, "items")))
    return any(says_readiness(properties, depth + 1) for properties in inner)


class Sign(NamedTuple):
    """A field of the status that says something, how deep it lies, and what it says."""

    depth: int
    field: str
    health: Health | None


def judge_words(status: dict[str, Any], fields: dict[str, Any], own_only: bool) -> Health | None:
    """Judge phases, states, flags and errors; None if there are none.

    `fields` are the schemas of the status' fields. With `own_only` only the object's own phase or state can object, as
    when conditions have already said "ready".
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
    best = min(settled, key=lambda health: health.state, default=None)
    if best and best.reason.lower() == "running" and _has_an_end_to_come(status, fields):
        return waiting(best.reason, f"{best.message}, and its work is not done yet")
    return best


def _has_an_end_to_come(status: dict[str, Any], fields: dict[str, Any]) -> bool:
    has_an_end = any(field in status or field in fields for field in _ENDINGS)
    return has_an_end and not any(status.get(field) for field in _ENDINGS)


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
        elif depth < DEPTH:
            yield from _signs(mapping(value), depth + 1)
            # One of several parts can only object
            several = (sign for part in mappings(value) for sign in _signs(part, depth + 1))
            yield from (sign for sign in several if sign.health and not sign.health.settled)


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


def judge_counts(live: dict[str, Any], fields: dict[str, Any]) -> Health | None:
    """Judge counts of ready replicas against the wanted number; None if there are none.

    `fields` are the schemas of the status' fields.
    """
    status, spec = mapping(live.get("status")), mapping(live.get("spec"))
    wanted = integer(spec.get("replicas", spec.get("instances")))
    counts = [(field, integer(have), wanted) for field, have in _counters(status, fields).items()]
    counts += [(have, integer(status.get(have)), integer(status.get(want))) for have, want in _PAIRS]
    for field, value in status.items():
        if fraction := _FRACTION.fullmatch(text(value)):
            counts.append((field, int(fraction[1]), int(fraction[2])))
    known = [(field, have, want) for field, have, want in counts if have is not None and want is not None]
    short = [f"{field} is {have} of {want}" for field, have, want in known if have < want]
    there = integer(status.get("replicas"))
    if there is not None and wanted is not None and there > wanted:
        short.append(f"{there} replicas are there, {wanted} are wanted")
    if short:
        return waiting("ReplicasNotReady", "; ".join(short))
    told = "; ".join(f"{field} is {have} of {want}" for field, have, want in known)
    return ready("ReplicasReady", told) if known else None


def _counters(status: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    """The counts of ready replicas. A count of zero is often left out, so what is only declared counts as zero."""
    present = {field: status[field] for field in _COUNTERS if field in status}
    declared = {field: 0 for field in _COUNTERS if field in fields}
    if present or declared:
        return present or declared
    # Where nothing counts the ready ones, those that are there are all there is to know
    return {"replicas": status.get("replicas")} if fields else {}
