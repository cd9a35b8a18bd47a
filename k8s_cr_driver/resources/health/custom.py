"""The rule for any custom resource, from the structure of the object and its CRD alone.

No API group or kind is named here. An object is ready only if something says so: the status of a controller that has
seen the latest spec, or a CRD without status. What says nothing is waiting, and the message names the remedy.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from k8s_cr_driver.resources.health.conditions import judge_conditions, speak_for_the_whole
from k8s_cr_driver.resources.health.fields import dig, integer, mapping, mappings, sequence, text
from k8s_cr_driver.resources.health.freshness import behind
from k8s_cr_driver.resources.health.model import NO_STATUS, READINESS_UNKNOWN, Health, State, ready, suspended, waiting
from k8s_cr_driver.resources.health.schema import is_template, status_fields
from k8s_cr_driver.resources.health.status_fields import judge_counts, judge_words, says_readiness
from k8s_cr_driver.resources.health.vocabulary import AT_REST

READY_WHEN = "k8s-cr-driver/ready-when"
STORED = "stored"
REMEDY = f"annotate the object or its CRD with {READY_WHEN}: {STORED}"

_PAUSE_FIELDS = ("paused", "pause", "suspend", "suspended", "disabled")
_RUN_FIELDS = ("running", "enabled")
_PAUSE_ANNOTATIONS = frozenset({"paused", "pause", "suspended", "pause-reconciliation", "reconcile-paused"})


def terminating(live: dict[str, Any]) -> Health | None:
    """WAITING if the object is being deleted."""
    if not dig(live, "metadata", "deletionTimestamp"):
        return None
    finalizers = ", ".join(map(str, sequence(dig(live, "metadata", "finalizers"))))
    return waiting("Terminating", "is being deleted" + (f"; held by the finalizers {finalizers}" if finalizers else ""))


def stored_suffices(*objects: dict[str, Any] | None) -> bool:
    """Whether one of the objects carries the annotation that asks for no more than being stored."""
    return any(dig(item, "metadata", "annotations", READY_WHEN) == STORED for item in objects)


def held_by_spec(live: dict[str, Any]) -> Health | None:
    """SUSPENDED if the spec or an annotation asks for rest: to leave the object alone, or not to run it."""
    for field, value in mapping(live.get("spec")).items():
        wished = isinstance(value, str) and value.lower() in AT_REST
        if wished or (value is True and field in _PAUSE_FIELDS) or (value is False and field in _RUN_FIELDS):
            return suspended("Suspended", f"spec.{field} is {json.dumps(value)}")
    for annotation, value in mapping(dig(live, "metadata", "annotations")).items():
        if annotation.rpartition("/")[2] in _PAUSE_ANNOTATIONS and value != "false" and "/" in annotation:
            return suspended("Suspended", f"the annotation {annotation} is set")
    return None


def assess_custom(live: dict[str, Any], crd: dict[str, Any] | None) -> Health:
    """Judge a custom resource that is not being deleted; `crd` is its definition, None if not known."""
    version = text(live.get("apiVersion"))
    fields = status_fields(crd, version) if crd is not None else {}
    if fields is None:
        return ready("Stored", "its CRD declares no status")
    if crd is not None and fields and not says_readiness(fields) and is_template(crd, version):
        # An infrastructure machine template of Cluster API may carry a capacity there; not every provider knows one
        return ready("Stored", "a template whose status does not tell readiness")
    if held := held_by_spec(live):
        return held
    status = mapping(live.get("status"))
    if not status:
        return waiting(NO_STATUS, f"no controller has written a status yet; if none ever does, {REMEDY}")
    return behind(live) or _judge_status(live, status, fields) or _judge_silence(status, fields)


def _judge_status(live: dict[str, Any], status: dict[str, Any], fields: dict[str, Any]) -> Health | None:
    generation = integer(dig(live, "metadata", "generation"))
    told = [health for group in _condition_lists(status) if (health := judge_conditions(group, generation))]
    decided = speak_for_the_whole(status.get("conditions"))
    if health := judge_words(status, fields, own_only=decided):
        told.append(health)
    if not decided and (health := judge_counts(live, fields)):
        told.append(health)
    by_state = {health.state: health for health in reversed(told)}
    # What is held speaks of other things as unfinished, and nobody works on those
    order = (State.FAILED, State.SUSPENDED, State.WAITING, State.READY)
    return next((by_state[state] for state in order if state in by_state), None)


def _condition_lists(status: dict[str, Any]) -> Iterator[Any]:
    """The status' own conditions, and those of its parts (`parents`, `listeners`, `conditionedStatus`)."""
    yield status.get("conditions")
    for field, value in status.items():
        if field != "deprecated":
            for part in (mapping(value), *mappings(value)):
                yield part.get("conditions")


def _judge_silence(status: dict[str, Any], fields: dict[str, Any]) -> Health:
    """Judge a current status without a word on readiness: is one still to come, by the CRD's schema?"""
    if fields and not says_readiness(fields):
        return ready("StatusWritten", "a controller has written the status, which has no field for readiness")
    types = ", ".join(text(c.get("type")) for c in mappings(status.get("conditions")))
    seen = f"the status, with the conditions {types}," if types else "the status"
    return waiting(READINESS_UNKNOWN, f"{seen} does not say whether it is ready; if it never does, {REMEDY}")
