# SPDX-License-Identifier: Apache-2.0
"""Structural schemas and objects of all sorts, right ones and wrong ones, for hypothesis."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from .oracle import Object

Schema = dict[str, Any]

_NAMES = st.sampled_from(["a", "b", "c", "kind", "metadata", "labels"])
_TEXTS = st.sampled_from(["", "a", "ab", "abc", "A", "é", "80%", "1", "a b", "x\n"])
_NUMBERS = st.integers(-3, 70) | st.sampled_from([0.1, 0.3, 0.35, 1.5, 2.5, -0.5, 2**31, 2**40])
_PATTERNS = st.sampled_from(["^a", "b$", "^[a-z]+$", "^[[:alpha:]]*$", "(?i)A", r"\d", "^(a+)+$", r"^\pL$", "(?=a)", "a{1001}"])
_PLAIN = st.none() | st.booleans() | _NUMBERS | _TEXTS
_ANY = st.recursive(_PLAIN, lambda one: st.lists(one, max_size=3) | st.dictionaries(_NAMES, one, max_size=3), max_leaves=4)


def _node(required: Schema, optional: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Schema]:
    fixed = {name: value if isinstance(value, st.SearchStrategy) else st.just(value) for name, value in required.items()}
    return st.fixed_dictionaries(fixed, optional={**optional, "nullable": st.just(True)})


_SIZES = st.integers(0, 3)
_TEXT = _node(
    {"type": "string"},
    {
        "pattern": _PATTERNS,
        "minLength": _SIZES,
        "maxLength": _SIZES,
        "enum": st.lists(_TEXTS, min_size=1, max_size=3, unique=True),
        "default": _TEXTS,
    },
)
_LIMITS = {
    "minimum": _NUMBERS,
    "maximum": _NUMBERS,
    "exclusiveMinimum": st.booleans(),
    "exclusiveMaximum": st.booleans(),
    "multipleOf": st.sampled_from([0.1, 0.5, 1, 2, 2.5]),
    "default": _NUMBERS,
}
_NUMBER = _node({"type": st.sampled_from(["integer", "number"])}, _LIMITS)
_OTHER = st.sampled_from(
    [{"type": "boolean"}, {"x-kubernetes-int-or-string": True}, {"x-kubernetes-preserve-unknown-fields": True}]
)


@st.composite
def _objects(draw: st.DrawFn, inner: st.SearchStrategy[Schema]) -> Schema:
    properties = draw(st.dictionaries(_NAMES, inner, min_size=1, max_size=3))
    names = st.sampled_from(sorted(properties))
    field = st.fixed_dictionaries({}, optional={"enum": st.lists(_PLAIN, min_size=1, max_size=2), "pattern": _PATTERNS})
    branch = st.fixed_dictionaries({}, optional={
        "required": st.lists(names, min_size=1, max_size=2, unique=True),
        "properties": st.dictionaries(names, field, max_size=1),
        "minProperties": _SIZES,
        "not": st.fixed_dictionaries({"required": st.lists(names, min_size=1, max_size=1)}),
    })
    return draw(_node(
        {"type": "object", "properties": st.just(properties)},
        {
            "required": st.lists(names, min_size=1, max_size=2, unique=True),
            "minProperties": _SIZES,
            "maxProperties": st.integers(1, 3),
            "x-kubernetes-preserve-unknown-fields": st.just(True),
            "default": st.just({}),
            "anyOf": st.lists(branch, min_size=1, max_size=2),
            "oneOf": st.lists(branch, min_size=1, max_size=2),
            "allOf": st.lists(branch, min_size=1, max_size=2),
            "not": branch,
        },
    ))


def _maps(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    return _node({"type": "object", "additionalProperties": inner | st.just(True)}, {"maxProperties": _SIZES})


def _lists(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    sizes = {"minItems": _SIZES, "maxItems": _SIZES, "x-kubernetes-preserve-unknown-fields": st.just(True)}
    fields = st.fixed_dictionaries({"a": st.just({"type": "string"}), "b": inner})
    entry = _node({"type": "object", "required": ["a"], "properties": fields}, {})
    keyed = {"type": "array", "items": entry, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]}
    unique = {"type": "array", "items": _TEXT | _NUMBER, "x-kubernetes-list-type": "set"}
    return _node({"type": "array", "items": inner}, sizes) | _node(keyed, sizes) | _node(unique, {})


SCHEMAS = st.recursive(_TEXT | _NUMBER | _OTHER, lambda inner: _objects(inner) | _maps(inner) | _lists(inner), max_leaves=5)


def definition(node: Schema) -> Object:
    """A CustomResourceDefinition whose objects have `node` as the schema of the field `value` of their spec."""
    spec = {"type": "object", "properties": {"value": node}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
    }
    names = {"kind": "Tab", "plural": "tabs", "singular": "tab", "listKind": "TabList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "tabs.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }


def tab(value: Any) -> Object:
    metadata = {"name": "one", "namespace": "blue"}
    return {"apiVersion": "example.com/v1", "kind": "Tab", "metadata": metadata, "spec": {"value": value}}


def values(node: Schema) -> st.SearchStrategy[Any]:
    """Values that mostly fit a schema, and now and then do not."""
    return st.one_of(*[_fitting(node)] * 5, _ANY)


def _fitting(node: Schema) -> st.SearchStrategy[Any]:
    match node.get("type"):
        case "string":
            return _TEXTS
        case "integer" | "number":
            return _NUMBERS
        case "boolean":
            return st.booleans()
        case "array":
            return st.lists(values(node["items"]), max_size=3)
        case "object" if "properties" in node:
            fields = {name: values(child) for name, child in node["properties"].items()}
            return st.fixed_dictionaries({}, optional={**fields, "unknown": _ANY})
        case "object":
            inner = node["additionalProperties"]
            return st.dictionaries(_NAMES, _ANY if inner is True else values(inner), max_size=3)
    return _ANY
