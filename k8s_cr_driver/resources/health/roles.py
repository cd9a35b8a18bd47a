# SPDX-License-Identifier: Apache-2.0
"""What a field of a status is by its name: a phase, a flag, an error, or one that speaks of another time or of a wish."""

from __future__ import annotations

import enum
import re
from typing import Any

from k8s_cr_driver.objects.fields import mapping, text
from k8s_cr_driver.resources.health.condition_words import GOOD, word_set
from k8s_cr_driver.resources.health.judged_once import judged_once
from k8s_cr_driver.resources.health.words import Meaning, meaning_of_type, parts

DEPTH = 2
WORD_FIELDS = word_set(
    """phase state status health currentPhase currentState printableStatus overallStatus compliant stage robustness
    clusterStatus verdict"""
)
_WORD_ENDINGS = ("Phase", "State", "Status", "Health", "Stage", "_phase", "_state", "_status", "_health", "_stage")
_PROGRESS = ("progress", "Progress")
_IN_FORCE = word_set("enforced inForce inEffect")
_FLAGS = word_set(
    """ready healthy available success successful succeeded pass passed provisioned initialized synced insync reconciled
    accepted valid applied created deployed programmed bound established uptodate"""
)
_ALARMS = word_set("abort aborted error errors failed failure degraded unhealthy stalled unavailable broken")
_ERROR = re.compile(
    r"(.*[a-z_-])?([Ee]rr|[Ee]rrors?|[Ff]ailure)"
    r"([Mm]sg|[Mm]essages?|[Dd]escription|[Rr]eason|[Tt]ype|[Dd]etails?)?"
)
_ELSEWHERE = re.compile(
    r"(last(?!Operation|Observed)|previous|prev|desired|target|deprecated|history|conditions)([A-Z]|$)"
    r"|.*([Hh]istory|[Tt]ransitions?|[Tt]imestamps?|[Ee]vents?|[Aa]ttempts?|[Rr]evisions?)([A-Z]|$)"
)


class Role(enum.Enum):
    """What a field of the status is by its name."""

    ELSEWHERE = enum.auto()
    WORD = enum.auto()
    ENDS_IN_WORD = enum.auto()
    ERROR = enum.auto()
    FLAG = enum.auto()
    FLAG_OF_PART = enum.auto()
    ALARM = enum.auto()
    IN_FORCE = enum.auto()
    PROGRESS = enum.auto()
    OTHER = enum.auto()


@judged_once
def role_of(field: Any) -> Role:
    """The role of a field of this name; one that is no text has none."""
    if not isinstance(field, str) or _ELSEWHERE.match(field):
        return Role.ELSEWHERE
    if field in WORD_FIELDS:
        return Role.WORD
    if _ERROR.fullmatch(field):
        return Role.ERROR
    if field in _IN_FORCE:
        return Role.IN_FORCE
    if field.endswith(_PROGRESS):
        return Role.PROGRESS
    words = parts(field)
    if field in _FLAGS or (words[:1] == ["is"] and not GOOD.isdisjoint(words)) or words[:2] == ["ready", "to"]:
        return Role.FLAG
    if words and words[-1] in _FLAGS:
        return Role.FLAG_OF_PART
    if words and (words[-1] in _ALARMS or meaning_of_type(field) in (Meaning.HELD, Meaning.BUSY)):
        return Role.ALARM
    return Role.ENDS_IN_WORD if field.endswith(_WORD_ENDINGS) else Role.OTHER


def says_readiness(fields: dict[str, Any], depth: int = 0, *, counts: bool = True) -> bool:
    """Whether a status of these fields (field -> schema) has one that reports readiness, also within its parts.

    Without `counts` the replicas of its parts do not: the spec asks for none.
    """
    for field, schema in fields.items():
        role = role_of(field)
        if field == "conditions" or (field == "replicas" and (counts or depth == 0)):
            return True
        if role in (Role.WORD, Role.ERROR) or text(schema, "type") == "boolean":
            return True
        if role is not Role.ELSEWHERE and depth < DEPTH:
            inner = (mapping(schema, "properties"), mapping(schema, "items", "properties"))
            if any(says_readiness(properties, depth + 1, counts=counts) for properties in inner):
                return True
    return False
