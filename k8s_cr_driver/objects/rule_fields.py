# SPDX-License-Identifier: Apache-2.0
"""The first field that a rule reads and that no version of its kind has, by the schemas of the CRD."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from k8s_cr_driver.objects.cel.fields import variable
from k8s_cr_driver.objects.cel.syntax import Node, parse
from k8s_cr_driver.objects.crds import PRESERVE, served_schema, served_versions
from k8s_cr_driver.objects.fields import mapping, similar
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.objects.rule_texts import rule

_METADATA = (
    *("annotations", "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers", "generateName"),
    *("generation", "labels", "managedFields", "name", "namespace", "ownerReferences", "resourceVersion", "selfLink", "uid"),
)
_COMMON: Mapping[str, Any] = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {"type": "object", "properties": {name: {} for name in _METADATA}},
}
_ANY: Mapping[str, Any] = {PRESERVE: True, "properties": {**_COMMON, "spec": {}, "status": {}}}
"""Of a kind whose CRD is not known."""


class _Place(NamedTuple):
    """What a part of a rule reads: its name, and its schema; None if anything may be there."""

    name: str
    schema: Mapping[str, Any] | None


_Places = Mapping[str, _Place]
_NOWHERE = _Place("", None)


class _UnknownField(Exception):
    """A clause that names the field."""


def unknown_field(written: str, crd: Object | None) -> str:
    """What is wrong with the fields of `cel: EXPRESSION` or `jsonpath={...}`, as a clause; "" if nothing is.

    Without a CRD only what is nearly a field of all objects is wrong. ExpressionError if `written` is no rule.
    """
    if written.startswith("cel:"):
        return _unknown_of_tree(parse(written[len("cel:") :], len("cel:")), crd)
    steps = rule(written).path

    def walk(root: _Place) -> None:
        place = root
        for step in steps:
            place = _step(place, step, root)

    return _in_all(walk, crd) if steps else ""


def unknown_field_of_cel(expression: str, crd: Object | None) -> str:
    """The same of an expression alone, as the rules for kinds have it."""
    return _unknown_of_tree(parse(expression), crd)


def _unknown_of_tree(tree: Node, crd: Object | None) -> str:
    return _in_all(lambda root: _read(tree, {"self": root}) and None, crd)


def _in_all(walk: Callable[[_Place], None], crd: Object | None) -> str:
    """The clause for the last version, if the field is in none of them."""
    found = ""
    for schema in _schemas(crd):
        try:
            walk(_Place("", schema))
            return ""
        except _UnknownField as error:
            found = str(error)
    return found


def _schemas(crd: Object | None) -> Sequence[Mapping[str, Any]]:
    if crd is None:
        return [_ANY]
    schemas = [served_schema(crd, version) or {} for version in served_versions(crd)]
    return [{**one, "properties": {**mapping(one, "properties"), **_COMMON}} for one in schemas]


def _read(tree: Node, known: _Places) -> _Place:
    """What a tree reads, after each part of it was looked at. Its depth is limited by the parser."""
    if tree.kind == "name":
        name = str(tree.value)
        return known[name] if name in known else _step(known["self"], name, known["self"], tree.column)
    if tree.kind == "select":
        holder = _read(tree.parts[0], known)
        return _step(holder, tree.value[0], known["self"], tree.column + 1)
    if tree.kind == "index":
        holder, index = _read(tree.parts[0], known), tree.parts[1]
        _read(index, known)
        return _step(holder, index.value, known["self"], tree.column) if index.kind == "literal" else _NOWHERE
    if macro := variable(tree):
        source = _read(tree.parts[0], known)
        entry = _step(source, 0, known["self"]) if source.schema and source.schema.get("type") == "array" else _NOWHERE
        for part in tree.parts[2:]:
            _read(part, {**known, macro: entry})
        return source if tree.value[0] == "filter" else _NOWHERE
    for part in tree.parts:
        _read(part, known)
    return _NOWHERE


def _step(holder: _Place, step: Any, root: _Place, column: int = 0) -> _Place:
    """The field or entry of a place; raises _UnknownField."""
    schema, is_index = holder.schema, isinstance(step, int)
    name = f"{holder.name}[{step}]" if is_index else f"{holder.name}.{step}".lstrip(".")
    if schema is None:
        return _Place(name, None)
    properties = mapping(schema, "properties")
    if step in properties:
        return _Place(name, properties[step] if isinstance(properties[step], dict) else None)
    inner = schema.get("items") if schema.get("type") == "array" and is_index else schema.get("additionalProperties")
    if inner is not None and (is_index or schema.get("type") != "array"):
        return _Place(name, inner if isinstance(inner, dict) else None)
    near = similar(step, properties, cutoff=0.8) if isinstance(step, str) else ""
    is_open = not schema.get("type") or schema.get(PRESERVE) or schema.get("x-kubernetes-embedded-resource") or is_index
    if is_open and not (near and holder is root and schema is _ANY):
        return _Place(name, None)
    at = f"column {column}: " if column else ""
    if schema.get("type") == "array":
        raise _UnknownField(f"{at}{holder.name}: is a list; name an entry, or use exists or all")
    meant = f"; did you mean {f'{holder.name}.{near}'.lstrip('.')}?" if near else ""
    raise _UnknownField(f"{at}{name}: there is no such field in the kind{meant}")
