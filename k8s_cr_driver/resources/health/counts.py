# SPDX-License-Identifier: Apache-2.0
"""What a status says by counts: of ready, available and updated replicas against the wanted number, and "2/3".

Its parts may count too (`scale`, `instances`): each says itself of how many.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from k8s_cr_driver.objects.fields import entries, integer, mapping, text
from k8s_cr_driver.resources.health.model import Health, ready, waiting
from k8s_cr_driver.resources.health.roles import Role, role_of

_FRACTION = re.compile(r"\s*(\d{1,9})\s*/\s*(\d{1,9})\s*")
_READY = ("readyReplicas", "availableReplicas", "readyInstances")
_UPDATED = (
    *("updatedReplicas", "updatedReadyReplicas", "updatedInstances", "updatedNodes"),
    *("upToDateReplicas", "upToDateInstances", "upToDateNodes"),
)
_PARTS = ("shards", "groups", "partitions", "parts", "zones")
"""Fields of a spec that say how many parts have the wanted count each."""
COUNTERS = (*_READY, *_UPDATED)
_PAIRS = {
    "ready": ("size",),
    "currentHealthy": ("expectedMachines", "desiredHealthy"),
    "numberAvailable": ("desiredNumberScheduled",),
    "numberReady": ("desiredNumberScheduled",),
    "availableNumber": ("desiredNumber",),
    "readyPods": ("matchedPods", "desiredPods", "pods"),
    "updatedPods": ("matchedPods", "desiredPods", "pods"),
}
_DONE = re.compile(r"(?:ready|available|updated)([A-Z]\w*)")
_NOT_DONE = re.compile(r"(?:unavailable|unready|notReady)[A-Z]\w*")

Count = tuple[str, int, int]


def judge_counts(live: dict[str, Any], fields: dict[str, Any]) -> Health | None:
    """Judge counts of ready replicas against the wanted number; None if there are none.

    `fields` are the schemas of the status' fields.
    """
    status = mapping(live, "status")
    counts = _counts(live, fields) or _counts_of_parts(status)
    short = _short(counts + _counts_of_listed(status)) + _surplus(live, wanted_count(live)) + _missing(status)
    if short:
        return waiting("ReplicasNotReady", "; ".join(short), f"status.{short[0].partition(' ')[0]}")
    judged = "; ".join(f"{field} is {have} of {want}" for field, have, want in counts)
    return ready("ReplicasReady", judged, f"status.{counts[0][0]}") if counts else None


def counts_between(live: dict[str, Any], fields: dict[str, Any]) -> str:
    """The counts that some and not all of the wanted replicas have reached; "" if there are none, or all are zero."""
    counts = _counts(live, fields)
    return "; ".join(_short(counts)) if any(have for _, have, _ in counts) else ""


def contradicting_counts(live: dict[str, Any]) -> Health | None:
    """WAITING if counts contradict a condition that says "ready": a rollout that is not through, or nothing ready at all.

    Fewer ready replicas than wanted do not: an object of five can be available with four.
    """
    wanted = wanted_count(live)
    if wanted is None:
        return None
    status = mapping(live, "status")
    known = {field: have for field in COUNTERS if field in status and (have := integer(status[field])) is not None}
    updated = wanted - _partition(live)
    judged = [f"{field} is {known[field]} of {updated}" for field in _UPDATED if known.get(field, updated) < updated]
    judged += [f"{field} is 0 of {wanted}" for field in _READY if wanted > 0 and known.get(field) == 0]
    judged += _surplus(live, wanted)
    return waiting("ReplicasNotReady", "; ".join(judged)) if judged else None


def _counts(live: dict[str, Any], fields: dict[str, Any]) -> list[Count]:
    status, wanted = mapping(live, "status"), wanted_count(live)
    counted = [] if wanted is None else _counters(status, fields, wanted, _partition(live))
    return list(dict.fromkeys(counted + _pairs(status) + _fractions(status)))


def _counts_of_parts(status: dict[str, Any]) -> list[Count]:
    """The counts in the parts of a status, each of which says of how many."""
    parts = ((name, part) for name, part in status.items() if isinstance(part, dict) and role_of(name) is not Role.ELSEWHERE)
    return [(f"{name}.{field}", have, want) for name, part in parts for field, have, want in _of_itself(part)]


def _counts_of_listed(status: dict[str, Any]) -> list[Count]:
    """The counts in the lists of a status, and in its maps of parts. They can only object: there may be more parts."""
    groups = ((name, part) for name, part in status.items() if role_of(name) is not Role.ELSEWHERE)
    listed = ((name, one) for name, group in groups for name, one in _listed(name, group))
    return [(f"{name}.{field}", have, want) for name, one in listed for field, have, want in _of_itself(one)]


def _listed(name: str, group: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """The parts in a list, or in a map of nothing but parts, with their names in the status."""
    if isinstance(group, list):
        yield from ((name, one) for one in entries(group))
    elif isinstance(group, dict) and all(isinstance(one, dict) for one in group.values()):
        yield from ((f"{name}.{key}", one) for key, one in group.items() if role_of(key) is not Role.ELSEWHERE)


def _of_itself(part: dict[str, Any]) -> list[Count]:
    counted = []
    if (wanted := integer(part.get("replicas"))) is not None:
        counted = [(field, have, wanted) for field in _READY if (have := integer(part.get(field))) is not None]
    return counted + _pairs(part) + _fractions(part)


def _short(counts: list[Count]) -> list[str]:
    return [f"{field} is {have} of {want}" for field, have, want in counts if have < want]


def wanted_count(live: dict[str, Any]) -> int | None:
    """How many replicas the spec asks for; None if it does not say."""
    spec = mapping(live, "spec")
    return integer(spec.get("replicas", spec.get("instances")))


def _surplus(live: dict[str, Any], wanted: int | None) -> list[str]:
    there = integer(live, "status", "replicas")
    if there is None or wanted is None or there <= wanted or _is_product(live, there, wanted):
        return []
    return [f"{there} replicas are there, {wanted} are wanted"]


def _is_product(live: dict[str, Any], there: int, wanted: int) -> bool:
    """Whether the wanted count is that of one part, and another count in the spec (shards, groups) is the number of parts."""
    factors = [integer(live, "spec", field) for field in _PARTS]
    return wanted > 0 and there % wanted == 0 and there // wanted in factors


def _partition(live: dict[str, Any]) -> int:
    """How many replicas a rolling update is to leave as they are."""
    strategy = mapping(live, "spec", "updateStrategy")
    return integer(strategy, "partition") or integer(strategy, "rollingUpdate", "partition") or 0


def _counters(status: dict[str, Any], fields: dict[str, Any], wanted: int, partition: int) -> list[Count]:
    """The counts of ready replicas. A count of zero is often left out, so what is only declared counts as zero."""
    present = {field: status[field] for field in COUNTERS if field in status}
    # Where nothing counts the ready ones, those that are there are all there is to know
    there = {"replicas": status.get("replicas")} if fields else {}
    found = present or {field: 0 for field in COUNTERS if field in fields} or there
    known = [(field, have) for field, value in found.items() if (have := integer(value)) is not None]
    return [(field, have, wanted - partition if field in _UPDATED else wanted) for field, have in known]


def _wholes(field: Any) -> tuple[str, ...]:
    """The fields that may say of how many this field counts a part: of "readyNodes" those are "nodes", "desiredNodes", ..."""
    match = _DONE.fullmatch(text(field))
    if field in _PAIRS or not match:
        return _PAIRS.get(field, ())
    things = match[1]
    return (f"desired{things}", f"expected{things}", f"total{things}", things[0].lower() + things[1:])


def _pairs(status: dict[str, Any]) -> list[Count]:
    """Counts of which the status itself says of how many."""
    found = []
    for field, value in status.items():
        if (wholes := _wholes(field)) and (have := integer(value)) is not None:
            want = next((want for whole in wholes if (want := integer(status.get(whole))) is not None), None)
            found += [] if want is None else [(field, have, want)]
    return found


def _missing(status: dict[str, Any]) -> list[str]:
    names = [field for field in status if isinstance(field, str) and field.startswith(("un", "not"))]
    return [f"{field} is {status[field]}" for field in names if _NOT_DONE.fullmatch(field) and integer(status[field])]


def _fractions(status: dict[str, Any]) -> list[Count]:
    """Counts such as "2/3", as controllers write them for kubectl's columns."""
    texts = [(field, value) for field, value in status.items() if isinstance(value, str) and "/" in value]
    matches = [(field, _FRACTION.fullmatch(value)) for field, value in texts]
    return [(field, int(match[1]), int(match[2])) for field, match in matches if match]
