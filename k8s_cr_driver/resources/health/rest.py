# SPDX-License-Identifier: Apache-2.0
"""Whether the spec or an annotation suspends the object.

A spec says so in a field ("paused: true", "runStrategy: Halted"), also in that of its update strategy, or an annotation
does. Nobody works on such an object, so whatever its status says does not change before somebody acts on it.
"""

from __future__ import annotations

import json
from typing import Any

from k8s_cr_driver.objects.fields import entries, mapping, text
from k8s_cr_driver.resources.health.model import Health, suspended
from k8s_cr_driver.resources.health.vocabulary import AT_REST, word_set

_PAUSES = word_set("paused pause suspend suspended disabled")
_RUNS = word_set("running enabled")
_ANNOTATIONS = word_set("paused pause suspended pause-reconciliation reconcile-paused")
_OFF = word_set("disabled paused suspended off false")
_OURS = "k8s-cr-driver-"
"""With which the names of our field managers begin, see `ownership.labels.manager`."""
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


def held_in_admission(live: dict[str, Any], manifest: dict[str, Any], crd: dict[str, Any] | None) -> str:
    """
    The field of the spec by which a webhook holds an object that it has admitted, as queues do; "" if there is none.

    The manifest does not ask for that, no other field manager has written it, and it is no default of the CRD. Whoever holds
    the object so lets it go when there is room: it is not at rest on purpose.
    """
    if not entries(live, "metadata", "managedFields"):
        return ""  # nobody knows who has written it
    for name, value in mapping(live, "spec").items():
        if not _asks_for_rest(name, value) or mapping(manifest, "spec").get(name) == value or _is_of_others(live, name):
            continue
        if not _has_default(crd, text(live, "apiVersion").rpartition("/")[2], name):
            return f"spec.{name} is {json.dumps(value)}"
    return ""


def _is_of_others(live: dict[str, Any], name: str) -> bool:
    return any(
        f"f:{name}" in mapping(entry, "fieldsV1", "f:spec") and not text(entry, "manager").startswith(_OURS)
        for entry in entries(live, "metadata", "managedFields")
    )


def _has_default(crd: dict[str, Any] | None, version: str, name: str) -> bool:
    for one in entries(crd or {}, "spec", "versions"):
        if one.get("name") == version:
            return "default" in mapping(one, "schema", "openAPIV3Schema", "properties", "spec", "properties", name)
    return False


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
