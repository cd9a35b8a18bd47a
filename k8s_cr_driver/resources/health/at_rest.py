# SPDX-License-Identifier: Apache-2.0
"""Whether the spec or an annotation suspends the object.

A spec says so in a field ("paused: true", "runStrategy: Halted"), also in that of its update strategy, or an annotation
does. Nobody works on such an object, so whatever its status says does not change before somebody acts on it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from k8s_cr_driver.objects.fields import entries, field, mapping, text
from k8s_cr_driver.resources.health.condition_words import AT_REST, word_set
from k8s_cr_driver.resources.health.model import Health, suspended

_PAUSES = word_set("paused pause suspend suspended disabled")
_RUNS = word_set("running enabled enable")
_ANNOTATIONS = word_set("paused pause suspended pause-reconciliation reconcile-paused detached")
_BY_USERS = word_set("manual ondemand")
_ATTACHED_TO = word_set("nodeID nodeId nodeName node attachedTo attachTo instanceID instanceId serverID serverId")
_OFF = word_set("disabled paused suspended off false")
_OURS = "k8s-cr-driver-"
"""With which the names of our field managers begin, see `objects.marks.manager`."""
_ATOMIC = ""
"""In place of a field: all of them."""
_LONGEST = max(map(len, AT_REST))


def held_by_spec(live: dict[str, Any]) -> Health | None:
    """SUSPENDED if the spec or an annotation asks for rest: to leave the object alone, or not to run it."""
    for name, value in mapping(live, "spec").items():
        if isinstance(value, dict):
            if str(name).lower().endswith("strategy") and _pauses(value):
                return suspended("Suspended", f"spec.{name} is paused", f"spec.{name}")
        elif _asks_for_rest(name, value):
            return suspended("Suspended", f"spec.{name} is {json.dumps(value)}", f"spec.{name}")
    for annotation, value in mapping(live, "metadata", "annotations").items():
        if (_is_pause(annotation) and value != "false") or (_reconciles(annotation) and text(value) in _OFF):
            return suspended("Suspended", f"the annotation {annotation} is {value!r}", "metadata.annotations")
    return None


def is_started_by_users(live: dict[str, Any]) -> str:
    """The field of the spec that leaves it to a user when the object runs; "" if there is none."""
    spec = mapping(live, "spec")
    return next((f"spec.{name}" for name, value in spec.items() if isinstance(value, str) and value.lower() in _BY_USERS), "")


def is_detached_by_spec(live: dict[str, Any]) -> str:
    """The field of the spec that names what the object is attached to, and names nothing; "" if there is none."""
    return next((f"spec.{name}" for name, value in mapping(live, "spec").items() if name in _ATTACHED_TO and value == ""), "")


def held_in_admission(live: dict[str, Any], manifest: dict[str, Any], crd: dict[str, Any] | None) -> str:
    """
    The field of the spec by which a webhook holds an object that it has admitted, as queues do; "" if there is none.

    The manifest does not ask for that, no other field manager has written it, and it is no default of the CRD. Whoever holds
    the object so lets it go when there is room: it is not at rest on purpose.
    """
    if not entries(live, "metadata", "managedFields") or crd == {}:
        return ""  # nobody knows who has written it, or whether it is a default: the CRD may not be read
    resting = [(path, value) for path, value in _fields(mapping(live, "spec")) if _asks_for_rest(path[-1], value)]
    written = _written_by_others(live) if resting else set()
    schema = _schema_of_spec(crd, text(live, "apiVersion").rpartition("/")[2])
    for path, value in resting:
        if field(manifest, "spec", *path) == value or _has_written(written, path) or _is_default(schema, path, value):
            continue
        return f"spec.{'.'.join(path)} is {json.dumps(value)}"
    return ""


def _fields(spec: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """(path, value) of the fields of a spec, also of those in its policies: jobs of Kubeflow have `runPolicy.suspend`."""
    for name, value in spec.items():
        yield (name,), value
        if isinstance(value, dict) and name.lower().endswith("policy"):
            yield from (((name, inner), one) for inner, one in value.items())


def _written_by_others(live: dict[str, Any]) -> set[tuple[str, ...]]:
    """
    The paths of the fields of the spec that other field managers have written, as far as `_fields` goes.

    One that ends in `_ATOMIC` is of a mapping that has no fields of its own: who has written it, has written all in it.
    """
    found = set[tuple[str, ...]]()
    for entry in entries(live, "metadata", "managedFields"):
        fields = mapping(entry, "fieldsV1")
        if "f:spec" in fields and not text(entry, "manager").startswith(_OURS):
            spec = mapping(fields, "f:spec")
            found |= _paths(spec, ())
            for name in spec:
                found |= _paths(mapping(spec, name), (name,))
    return found


def _paths(fields: dict[str, Any], path: tuple[str, ...]) -> set[tuple[str, ...]]:
    return {(*path, name) for name in fields} or {(*path, _ATOMIC)}


def _has_written(written: set[tuple[str, ...]], path: tuple[str, ...]) -> bool:
    steps = tuple(f"f:{name}" for name in path)
    return steps in written or any((*steps[:length], _ATOMIC) in written for length in range(len(steps)))


def _is_default(schema: dict[str, Any], path: tuple[str, ...], value: Any) -> bool:
    """Whether the CRD has that value for the field, or for what it is in; `schema` is of the spec."""
    defaults = []
    for place, name in enumerate(path):
        defaults.append(field(schema, "default", *path[place:]))
        schema = mapping(schema, "properties", name)
    return value in (*defaults, schema.get("default"))


def _schema_of_spec(crd: dict[str, Any] | None, version: str) -> dict[str, Any]:
    versions = [one for one in entries(crd or {}, "spec", "versions") if one.get("name") == version]
    return mapping(versions[0], "schema", "openAPIV3Schema", "properties", "spec") if versions else {}


def _asks_for_rest(name: Any, value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= _LONGEST and value.lower() in AT_REST
    return (value is True and name in _PAUSES) or (value is False and name in _RUNS)


def _pauses(strategy: dict[str, Any]) -> bool:
    """Update strategies of workloads carry the switch themselves or in `rollingUpdate`."""
    return strategy.get("paused") is True or mapping(strategy, "rollingUpdate").get("paused") is True


def _is_pause(annotation: Any) -> bool:
    return isinstance(annotation, str) and "/" in annotation and annotation.rpartition("/")[2] in _ANNOTATIONS


def _reconciles(annotation: Any) -> bool:
    return isinstance(annotation, str) and "/" in annotation and annotation.rpartition("/")[2].startswith("reconcil")
