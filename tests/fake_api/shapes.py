# SPDX-License-Identifier: Apache-2.0
"""How the parts of an object merge: which maps and lists are one value, which lists have keys.

A `Shape` describes one place in an object. Custom resources declare it in their schema (`x-kubernetes-list-type` and
its kin); for built-in kinds a short table of field names says what their published schemas say.
"""

from dataclasses import dataclass, field
from functools import cache
from typing import Any

_POD_LISTS = {"containers": "name", "initContainers": "name", "ephemeralContainers": "name", "volumes": "name",
              "imagePullSecrets": "name", "hostAliases": "ip", "resourceClaims": "name", "schedulingGates": "name",
              "topologySpreadConstraints": "topologyKey whenUnsatisfiable"}
_CONTAINER_LISTS = {"env": "name", "ports": "containerPort protocol=TCP", "volumeMounts": "mountPath",
                    "volumeDevices": "devicePath"}
_MERGE_KEYS: dict[tuple[str, str], str] = {
    ("metadata", "ownerReferences"): "uid",
    ("status", "conditions"): "type",
    ("", "webhooks"): "name",
    ("webhooks", "matchConditions"): "name",
    ("", "secrets"): "name",
    **{("spec", name): keys for name, keys in _POD_LISTS.items()},
    **{(parent, name): keys for parent in ("containers", "initContainers", "ephemeralContainers")
       for name, keys in _CONTAINER_LISTS.items()},
}
_SERVICE_PORTS = "port protocol=TCP"
_ATOMIC_MAPS = {
    "selector", "labelSelector", "podSelector", "namespaceSelector", "objectSelector", "nodeSelector",
    "secretKeyRef", "configMapKeyRef", "fieldRef", "resourceFieldRef", "secretRef", "roleRef", "scaleTargetRef",
    "claimRef", "involvedObject", "targetRef",
}


@dataclass(frozen=True)
class Shape:
    """`keys` are (name, default) pairs of a keyed list; `schema` is None in built-in kinds, {} where all is allowed."""

    atomic: bool = False
    is_set: bool = False
    keys: tuple[tuple[str, Any], ...] = ()
    schema: dict[str, Any] | None = field(default=None, hash=False)
    kind: str = ""
    name: str = ""
    parent: str = ""

    @property
    def granular_list(self) -> bool:
        return self.is_set or bool(self.keys)

    def is_entry(self, name: str) -> bool:
        """Whether the field `name` is an entry of a free map, which is owned as a whole too, and not a declared field."""
        return self.schema is not None and bool(self.name) and name not in (self.schema.get("properties") or {})

    def declares(self, name: str) -> bool:
        """Whether an object here may have the field `name`; unknown for built-in kinds, which is yes."""
        if self.schema is None or not self.schema:
            return True
        return (name in (self.schema.get("properties") or {}) or bool(self.schema.get("additionalProperties"))
                or bool(self.schema.get("x-kubernetes-preserve-unknown-fields"))
                or self.schema.get("type") not in ("object", None))

    def child(self, name: str) -> "Shape":
        if self.schema is not None and (self.name or name not in ("metadata", "apiVersion", "kind")):
            properties = self.schema.get("properties") or {}
            extra = self.schema.get("additionalProperties")
            return of_schema(properties.get(name) or (extra if isinstance(extra, dict) else {}), name)
        return _built_in(self.kind, self.name, name)

    def item(self) -> "Shape":
        if self.schema is not None:
            return of_schema(self.schema.get("items") or {}, self.name or "item")
        return _built_in_item(self.kind, self.parent, self.name)


def of_kind(kind: str, schema: dict[str, Any] | None) -> Shape:
    """The shape of a whole object; `schema` is None for built-in kinds."""
    return Shape(schema=schema, kind=kind)


def of_schema(schema: dict[str, Any], name: str) -> Shape:
    list_type = schema.get("x-kubernetes-list-type")
    item_properties = (schema.get("items") or {}).get("properties") or {}
    keys = tuple((key, (item_properties.get(key) or {}).get("default"))
                 for key in schema.get("x-kubernetes-list-map-keys") or ()) if list_type == "map" else ()
    return Shape(atomic=schema.get("x-kubernetes-map-type") == "atomic", is_set=list_type == "set", keys=keys,
                 schema=schema, name=name)


@cache
def _built_in(kind: str, parent: str, name: str) -> Shape:
    declared = _MERGE_KEYS.get((parent, name), "")
    if kind == "Service" and (parent, name) == ("spec", "ports"):
        declared = _SERVICE_PORTS
    keys = tuple((key, default or None) for key, _, default in (part.partition("=") for part in declared.split()))
    atomic = name in _ATOMIC_MAPS and parent != "metadata" and parent != "labels" and parent != "annotations"
    return Shape(atomic=atomic, is_set=(parent, name) == ("metadata", "finalizers"), keys=keys, kind=kind, name=name,
                 parent=parent)


@cache
def _built_in_item(kind: str, parent: str, name: str) -> Shape:
    return Shape(atomic=name == "ownerReferences", kind=kind, name=name, parent=parent)
