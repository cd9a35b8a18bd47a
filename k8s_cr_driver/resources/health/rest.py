# SPDX-License-Identifier: Apache-2.0
"""Whether the spec or an annotation suspends the object.

A spec says so in a field ("paused: true", "runStrategy: Halted"), also in that of its update strategy, or an annotation
does. Nobody works on such an object, so whatever its status says does not change before somebody acts on it.
"""

from __future__ import annotations

import json
from typing import Any

from k8s_cr_driver.objects.fields import mapping, text
from k8s_cr_driver.resources.health.model import Health, suspended
from k8s_cr_driver.resources.health.vocabulary import AT_REST, word_set

_PAUSES = word_set("paused pause suspend suspended disabled")
_RUNS = word_set("running enabled")
_ANNOTATIONS = word_set("paused pause suspended pause-reconciliation reconcile-paused")
_OFF = word_set("disabled paused suspended off false")
_LONGEST = max(map(len, AT_REST))


def held_by_spec(live: dict[str, Any]) -> Health | None:
    """SUSPENDED if the spec or an annotation asks for rest: to leave the object alone, or not to run it."""
    for field, value in mapping(live, "spec").items():
        if isinstance(value, dict):
            if str(field).lower().endswith("strategy") and _pauses(value):
                return suspended("Suspended", f"spec.{field} is paused")
        elif _asks_for_rest(field, value):
            return suspended("Suspended", f"spec.{field} is {json.dumps(value)}")
    for annotation, value in mapping(live, "metadata", "annotations").items():
        if (_is_pause(annotation) and value != "false") or (_reconciles(annotation) and text(value) in _OFF):
            return suspended("Suspended", f"the annotation {annotation} is {value!r}")
    return None


def _asks_for_rest(field: Any, value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= _LONGEST and value.lower() in AT_REST
    return (value is True and field in _PAUSES) or (value is False and field in _RUNS)


def _pauses(strategy: dict[str, Any]) -> bool:
    """Update strategies of workloads carry the switch themselves or in `rollingUpdate`."""
    return strategy.get("paused") is True or mapping(strategy, "rollingUpdate").get("paused") is True


def _is_pause(annotation: Any) -> bool:
    return isinstance(annotation, str) and "/" in annotation and annotation.rpartition("/")[2] in _ANNOTATIONS


def _reconciles(annotation: Any) -> bool:
    return isinstance(annotation, str) and "/" in annotation and annotation.rpartition("/")[2].startswith("reconcil")
