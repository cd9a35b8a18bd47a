# SPDX-License-Identifier: Apache-2.0
"""Objects to judge: a custom resource, its CRD, a condition, an entry of managedFields."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

ANY_FIELDS = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
CONDITIONS = {"type": "object", "properties": {"conditions": {"type": "array"}}}


def custom(status: Any = None, spec: Json | None = None, **metadata: Any) -> Json:
    """A custom resource; without a status if that is None."""
    live: Json = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w", "generation": 1, **metadata},
        "spec": spec or {},
    }
    return live if status is None else {**live, "status": status}


def crd(status: Json | None, spec: Json | None = None, **metadata: Any) -> Json:
    """The CRD of `custom` with this schema of the status; None declares no status."""
    properties: Json = {"spec": spec or {"type": "object"}}
    if status is not None:
        properties["status"] = status
    schema = {"openAPIV3Schema": {"type": "object", "properties": properties}}
    versions = [{"name": "v1beta1", "schema": {}}, {"name": "v1", "schema": schema, "subresources": {"status": {}}}]
    return {"metadata": {"name": "widgets.example.com", **metadata}, "spec": {"versions": versions}}


def condition(kind: str, status: str = "True", reason: str = "", message: str = "", **more: Any) -> Json:
    """A condition as a controller writes it."""
    return {"type": kind, "status": status, "reason": reason, "message": message, **more}


def conditions(*types: str, **statuses: str) -> Json:
    """A status of conditions that are True, and of others with the status given."""
    return {"conditions": [condition(kind) for kind in types] + [condition(k, s) for k, s in statuses.items()]}


def wrote(manager: str, time: str, *fields: str, operation: str = "Update", subresource: str = "") -> Json:
    """An entry of managedFields."""
    entry: Json = {"manager": manager, "operation": operation, "time": time, "fieldsV1": {f: {} for f in fields}}
    return {**entry, "subresource": subresource} if subresource else entry
