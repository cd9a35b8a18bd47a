# SPDX-License-Identifier: Apache-2.0
"""
What the API server refuses of a CustomResourceDefinition, as far as it can be seen without a cluster.

The rules are those of apiextensions.k8s.io/v1: names, versions, and structural schemas ("Specifying a structural schema" in the
documents of Kubernetes).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from k8s_cr_driver.objects.cel import syntax
from k8s_cr_driver.objects.fields import entries, field, mapping, sequence, text, texts
from k8s_cr_driver.objects.keys import CRD, Object, key_of, kind_of
from k8s_cr_driver.package import rule_types

NODES = 500_000
"""Parts of the schemas of one package that are looked at."""
_UNREAD = re.compile(r"""\b[rRbB]{1,2}["']|["']{3}|`""")
"""Raw, binary and long texts and quoted fields, which the parser does not read."""
_NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_LOGICAL = ("allOf", "anyOf", "oneOf")
_NOT_IN_LOGICAL = ("type", "description", "title", "default", "additionalProperties", "nullable")
_PRESERVE, _INT_OR_STRING = "x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string"
_FORBIDDEN = (
    *("$ref", "definitions", "dependencies", "deprecated", "discriminator"),
    *("id", "patternProperties", "readOnly", "writeOnly", "xml"),
)


def problems(objects: Iterable[Object]) -> list[str]:
    """A sentence for each mistake."""
    left = _Left(NODES)
    return [
        f"{key_of(crd)}: {problem}"
        for crd in objects
        if kind_of(crd) == CRD
        for problem in (*_names(crd), *_versions(crd), *_schemas(crd, left))
    ]


class _Left:
    def __init__(self, nodes: int) -> None:
        self.nodes = nodes


def _names(crd: Object) -> Iterator[str]:
    group, plural, kind = (text(crd, "spec", *path) for path in (("group",), ("names", "plural"), ("names", "kind")))
    if "." not in group:
        yield f"spec.group: {group!r} must be a domain with a dot; write one such as example.com"
    if not _NAME.fullmatch(plural):
        yield f"spec.names.plural: {plural!r} must be lower-case letters, digits and hyphens; write the plural of the kind"
    if not kind:
        yield "spec.names.kind: is missing and required; write the kind of the objects"
    if (name := key_of(crd).name) != f"{plural}.{group}":
        yield f"metadata.name: must be {plural}.{group}, from spec.names.plural and spec.group, and is {name}; rename it"
    if field(crd, "spec", "scope") not in ("Namespaced", "Cluster"):
        yield "spec.scope: must be Namespaced or Cluster; write one of them"


def _versions(crd: Object) -> Iterator[str]:
    versions = entries(crd, "spec", "versions")
    names = [text(one, "name") for one in versions]
    if not names:
        yield "spec.versions: has no version; write at least one"
        return
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"spec.versions: {name} is there twice; remove one of them"
    stored = [text(one, "name") for one in versions if one.get("storage") is True]
    if len(stored) != 1:
        has = f"{', '.join(stored)} have" if stored else "none has"
        yield f"spec.versions: exactly one version must have storage: true, and {has}; correct the others"
    if not any(one.get("served") is True for one in versions):
        yield "spec.versions: none has served: true, so nobody can create its objects; set it on one"


def _schemas(crd: Object, left: _Left) -> Iterator[str]:
    for index, version in enumerate(entries(crd, "spec", "versions")):
        where = f"spec.versions[{index}].schema.openAPIV3Schema"
        schema = field(version, "schema", "openAPIV3Schema")
        if not isinstance(schema, dict):
            yield f"{where}: is missing and required; write at least type: object"
        elif schema.get("type") != "object":
            yield f"{where}.type: must be object at the root of a schema; write that"
        else:
            yield from _structural(schema, where, left)


def _structural(node: Mapping[str, Any], where: str, left: _Left) -> Iterator[str]:
    """The rules of a node that describes a value, and of those within it."""
    left.nodes -= 1
    if left.nodes < 0:
        return
    for rule in (_form, _list_map, _cel):
        yield from rule(node, where)
    yield from _logical(node, where, left)
    for name, child in mapping(node, "properties").items():
        if isinstance(child, dict):
            yield from _structural(child, f"{where}.properties.{name}", left)
    for name in ("items", "additionalProperties"):
        if isinstance(child := node.get(name), dict):
            yield from _structural(child, f"{where}.{name}", left)


def _form(node: Mapping[str, Any], where: str) -> Iterator[str]:
    is_free = node.get(_PRESERVE) is True or node.get(_INT_OR_STRING) is True
    if not node.get("type") and not is_free:
        yield f"{where}.type: is missing, and a schema is structural only with it; write the type, or {_PRESERVE}: true"
    if node.get("type") and node.get(_INT_OR_STRING) is True:
        yield f"{where}.type: must be left out beside {_INT_OR_STRING}; remove it"
    for name in _FORBIDDEN:
        if name in node:
            yield f"{where}.{name}: is not possible in a CustomResourceDefinition; remove it"
    if node.get("uniqueItems") is True:
        yield f"{where}.uniqueItems: cannot be true; write x-kubernetes-list-type: set"
    if node.get("additionalProperties") and mapping(node, "properties"):
        yield f"{where}: has both properties and additionalProperties; keep one of them"
    if node.get("type") == "array" and not isinstance(node.get("items"), dict):
        yield f"{where}.items: is missing, and an array must have it; describe one entry there"


def _list_map(node: Mapping[str, Any], where: str) -> Iterator[str]:
    if node.get("x-kubernetes-list-type") != "map":
        return
    keys, item = texts(node, "x-kubernetes-list-map-keys"), mapping(node, "items")
    if not keys:
        yield f"{where}.x-kubernetes-list-map-keys: is missing beside x-kubernetes-list-type: map; name the keys of an entry"
    for key in keys:
        known = mapping(item, "properties", key)
        if not known:
            yield f"{where}.x-kubernetes-list-map-keys: an entry has no property {key}; name one that it has"
        elif key not in texts(item, "required") and "default" not in known:
            yield f"{where}.x-kubernetes-list-map-keys: {key} must be required in an entry, or have a default; add it there"


def _cel(node: Mapping[str, Any], where: str) -> Iterator[str]:
    for index, rule in enumerate(entries(node, "x-kubernetes-validations")):
        at = f"{where}.x-kubernetes-validations[{index}]"
        if not text(rule, "rule").strip():
            yield f"{at}.rule: is missing and required; write an expression in CEL"
        for name, wanted in (("rule", "boolean"), ("messageExpression", "string")):
            expression = text(rule, name)
            if not expression or len(expression) > syntax.LONGEST or _UNREAD.search(expression):
                continue
            try:
                is_optional = rule.get("optionalOldSelf") is True
                rule_types.check(syntax.parse(expression), node, wanted=wanted, optional_old=is_optional)
            except syntax.LimitError:
                continue
            except syntax.ExpressionError as error:
                yield f"{at}.{name}: does not compile as CEL: {error}; correct the expression"


def _logical(node: Mapping[str, Any], where: str, left: _Left) -> Iterator[str]:
    branches = [(f"{name}[{index}]", one) for name in _LOGICAL for index, one in enumerate(sequence(node, name))]
    branches += [("not", node["not"])] if "not" in node else []
    is_int_or_string = node.get(_INT_OR_STRING) is True
    for name, branch in branches:
        if isinstance(branch, dict):
            yield from _within_logical(branch, f"{where}.{name}", left, may_have_type=is_int_or_string)


def _within_logical(node: Mapping[str, Any], where: str, left: _Left, *, may_have_type: bool = False) -> Iterator[str]:
    """Within allOf, anyOf, oneOf and not only values are validated: what describes them stands outside."""
    left.nodes -= 1
    if left.nodes < 0:
        return
    for name in _NOT_IN_LOGICAL:
        if name in node and not (may_have_type and name == "type"):
            yield f"{where}.{name}: is not possible within allOf, anyOf, oneOf and not; write it outside of them"
    for name in _LOGICAL:
        for index, one in enumerate(entries(node, name)):
            yield from _within_logical(one, f"{where}.{name}[{index}]", left, may_have_type=may_have_type)
    for name, child in mapping(node, "properties").items():
        if isinstance(child, dict):
            yield from _within_logical(child, f"{where}.properties.{name}", left)
    if isinstance(child := node.get("items"), dict):
        yield from _within_logical(child, f"{where}.items", left)
