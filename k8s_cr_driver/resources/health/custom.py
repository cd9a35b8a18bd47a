# SPDX-License-Identifier: Apache-2.0
"""The rule for any custom resource, from the structure of the object and its CRD alone.

No API group or kind is named here. An object is ready only if something says so: the status of a controller that has
seen the latest spec, or a CRD without status. What says nothing is waiting, and the message names the remedy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from k8s_cr_driver.objects.crds import is_template, status_fields
from k8s_cr_driver.objects.fields import entries, field, integer, mapping, sequence, text
from k8s_cr_driver.objects.rule_texts import READY_WHEN, STORED
from k8s_cr_driver.resources.health.at_rest import held_by_spec, is_detached_by_spec, is_started_by_users
from k8s_cr_driver.resources.health.conditions import judge_alarms, judge_conditions, speak_for_the_whole
from k8s_cr_driver.resources.health.counts import contradicting_counts, counts_between, judge_counts, wanted_count
from k8s_cr_driver.resources.health.freshness import behind, is_observed
from k8s_cr_driver.resources.health.model import NO_STATUS, READINESS_UNKNOWN, Health, State, ready, suspended, waiting
from k8s_cr_driver.resources.health.roles import says_readiness
from k8s_cr_driver.resources.health.status_fields import error_texts, has_ended, is_at_work, judge_words, own_words
from k8s_cr_driver.resources.health.suggestion import fitting_rule
from k8s_cr_driver.resources.health.words import is_completion

REMEDY = f"annotate the object, or its CRD in the package that brings it, with {READY_WHEN}: {STORED}"


def terminating(live: dict[str, Any]) -> Health | None:
    """WAITING if the object is being deleted."""
    if not field(live, "metadata", "deletionTimestamp"):
        return None
    finalizers = ", ".join(map(str, sequence(live, "metadata", "finalizers")))
    return waiting("Terminating", "is being deleted" + (f"; held by the finalizers {finalizers}" if finalizers else ""))


def stored_suffices(*objects: dict[str, Any] | None) -> bool:
    """Whether one of the objects carries the annotation that asks for no more than being stored."""
    return STORED in [field(item, "metadata", "annotations", READY_WHEN) for item in objects if item]


def assess_custom(live: dict[str, Any], crd: dict[str, Any] | None, old_status: Any) -> Health:
    """Judge a custom resource that is not being deleted; the arguments are those of `assess`."""
    version = text(live, "apiVersion")
    fields = status_fields(crd, version) if crd is not None else {}
    if fields is None:
        return ready("Stored", "its CRD declares no status")
    if crd is not None and fields and not says_readiness(fields) and is_template(crd, version):
        # An infrastructure machine template of Cluster API may carry a capacity there; not every provider knows one
        return ready("Stored", "a template whose status does not report readiness")
    if held := held_by_spec(live):
        return held
    status = mapping(live, "status")
    if not status:
        return waiting(NO_STATUS, f"no controller has written a status yet; if none ever does, {REMEDY}")
    return behind(live, old_status) or _judge_status(live, status, fields) or _judge_silence(live, status, fields)


def _judge_status(live: dict[str, Any], status: dict[str, Any], fields: dict[str, Any]) -> Health | None:
    generation = integer(live, "metadata", "generation")
    at_work = is_at_work(status)
    lists = _condition_lists(status)
    done = has_ended(status) and _is_complete(status)
    found = [health for group in lists if (health := judge_conditions(group, generation, at_work=at_work, done=done))]
    decided = speak_for_the_whole(status.get("conditions"))
    if health := judge_words(status, fields, own_only=decided):
        found.append(health)
    if health := contradicting_counts(live) if decided else judge_counts(live, fields):
        found.append(health)
    # What is held speaks of other things as unfinished, and nobody works on those
    order = (State.FAILED, State.SUSPENDED, State.WAITING, State.READY)
    worst = min(found, key=lambda health: (order.index(health.state), not health.trouble), default=None)
    if worst and worst.state is State.WAITING and (resting := _at_rest(worst, live, status)):
        return resting
    if worst and worst.trouble:
        return _with_errors(worst, found, status)
    return _unless_unfinished(worst, live, fields) if worst and worst.state is State.SUSPENDED else worst


def _is_complete(status: dict[str, Any]) -> bool:
    """Whether a phase or a condition says that all work was done."""
    types = [text(one, "type") for one in entries(status, "conditions") if one.get("status") == "True"]
    return any(map(is_completion, [*own_words(status), *types]))


def _with_errors(health: Health, others: list[Health], status: dict[str, Any]) -> Health:
    """`health` with what else the status says of the trouble: other conditions or phases, and the texts of errors."""
    said = [f"message is {text(status, 'message')}"] if health.state is State.FAILED and text(status, "message") else []
    said += [other.message for other in others if other is not health and other.trouble]
    said += [f"{name} is {found}" for name, found in error_texts(status)]
    message = health.message
    for one in said:
        if one.partition(" is ")[2] not in message:
            message = f"{message}; {one}"
    return replace(health, message=message)


def _at_rest(health: Health, live: dict[str, Any], status: dict[str, Any]) -> Health | None:
    """SUSPENDED if the object is off because its spec leaves it to a user to start, or attaches it to nothing."""
    words = own_words(status)
    if "stopped" in words and (path := is_started_by_users(live)):
        return suspended("Stopped", f"{path} leaves it to a user to start")
    if "detached" in words and not health.trouble and (path := is_detached_by_spec(live)):
        return suspended("Detached", f"{path} attaches it to nothing")
    return None


def _unless_unfinished(held: Health, live: dict[str, Any], fields: dict[str, Any]) -> Health:
    """A controller may pause a rollout between two of its steps, and then goes on by itself or when somebody says so."""
    between = counts_between(live, fields)
    return replace(held, message=f"{held.message}; in the middle of a change: {between}", unfinished=True) if between else held


def _condition_lists(status: dict[str, Any]) -> Iterator[Any]:
    """The status' own conditions, and those of its parts (`parents`, `listeners`, `conditionedStatus`)."""
    yield status.get("conditions")
    for name, value in status.items():
        if isinstance(value, (dict, list)) and name not in ("deprecated", "conditions"):
            for part in (value,) if isinstance(value, dict) else entries(value):
                if conditions := part.get("conditions"):
                    yield conditions


def _judge_silence(live: dict[str, Any], status: dict[str, Any], fields: dict[str, Any]) -> Health:
    """Judge a current status without a word on readiness: is one still to come, by the CRD's schema?"""
    others = {name: schema for name, schema in fields.items() if name != "conditions"}
    nothing_to_come = bool(fields) and not says_readiness(others)
    if (nothing_to_come or is_observed(live)) and not own_words(status):
        alarms = judge_alarms(status.get("conditions"), integer(live, "metadata", "generation"))
        if alarms:
            return alarms
    if fields and not says_readiness(fields, counts=wanted_count(live) is not None):
        return ready("StatusWritten", "a controller has written the status, which has no field for readiness")
    types = ", ".join(text(c, "type") for c in entries(status, "conditions") if c)
    seen = f"the status, with the conditions {types}," if types else "the status"
    rule = fitting_rule(status, is_silent=True)
    remedy = f"if it is, annotate it with {READY_WHEN}: {rule}" if rule else f"if it never does, {REMEDY}"
    return waiting(READINESS_UNKNOWN, f"{seen} does not say whether it is ready; {remedy}")
