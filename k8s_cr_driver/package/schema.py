"""Custom resources against the CustomResourceDefinitions of their own package, before anything is sent to a cluster.

A structural schema (OpenAPI 3.0 with `x-kubernetes-*`) becomes a JSON Schema of draft 4, whose keywords mean the same.
A field that the schema does not know is an error, as in `kubectl`'s strict validation: the API server would drop it
without a word. CEL rules and formats are left to the API server. Errors name fields, never values, for secrecy.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from jsonschema import Draft4Validator, ValidationError
from jsonschema.exceptions import UnknownType
from jsonschema.validators import extend

from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.objects.crds import defined_by
from k8s_cr_driver.objects.fields import entries, field, mapping, texts, type_name
from k8s_cr_driver.objects.keys import CRD, GroupKind, Object, key_of, kind_of, split
from k8s_cr_driver.package.merge_keys import repeated

REPORTED = 10
"""Violations that one error tells of."""

_MUTATING = GroupKind("admissionregistration.k8s.io", "MutatingWebhookConfiguration")
_SAME = frozenset(
    {"enum", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength"}
    | {"maxLength", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties"}
    | {"allOf", "anyOf", "oneOf", "not"}
)
_NOT_PYTHON = re.compile(r"\[\[:|\\[zQpPC]|\(\?[a-zA-Z-]*U")
_WORDS: Mapping[str, str] = {
    "pattern": "must match {}",
    "minimum": "must be at least {}",
    "maximum": "must be at most {}",
    "multipleOf": "must be a multiple of {}",
    "minLength": "must have at least {} characters",
    "maxLength": "must have at most {} characters",
    "minItems": "must have at least {} entries",
    "maxItems": "must have at most {} entries",
    "uniqueItems": "must not have an entry twice",
    "minProperties": "must have at least {} fields",
    "maxProperties": "must have at most {} fields",
    "not": "has a form that the schema forbids",
}


def check(objects: Sequence[Object]) -> None:
    """Raise InvalidPackage for custom resources that the package's own CustomResourceDefinitions do not allow.

    The error has up to `REPORTED` violations, one a line. Required fields are not asked of kinds that a
    MutatingWebhookConfiguration of the package may complete: the API server validates after it.
    """
    crds = {defined_by(obj): obj for obj in objects if kind_of(obj) == CRD}
    completed = _completed_groups(objects)
    validators: dict[tuple[GroupKind, str], Any] = {}
    problems: list[str] = []
    for obj in objects:
        kind, version = kind_of(obj), split(obj["apiVersion"])[1]
        if kind not in crds:
            continue
        if (kind, version) not in validators:
            validators[kind, version] = _validator(crds[kind], version, kind.group in completed)
        validator = validators[kind, version]
        if validator is None:
            served = [entry.get("name") for entry in entries(crds[kind], "spec", "versions") if entry.get("served")]
            known = ", ".join(f"{kind.group}/{name}" for name in served)
            found: Iterable[str] = [f"apiVersion: its CustomResourceDefinition serves only {known or 'no version'}"]
        else:
            found = _violations(validator, obj)
        problems += [f"{key_of(obj)}: {problem}" for problem in found]
        if len(problems) > REPORTED:
            problems[REPORTED:] = ["... and more"]
            break
    if problems:
        raise InvalidPackage("\n".join(["custom resources do not fit their CustomResourceDefinitions:", *problems]))


def _completed_groups(objects: Iterable[Object]) -> set[str]:
    """The groups for which a MutatingWebhookConfiguration of the set has a rule."""
    return {
        group
        for obj in objects
        if kind_of(obj) == _MUTATING
        for webhook in entries(obj, "webhooks")
        for rule in entries(webhook, "rules")
        for group in texts(rule, "apiGroups")
    }


def _validator(crd: Object, version: str, completed: bool) -> Any:
    """Of a served version; None if it is not served."""
    for entry in entries(crd, "spec", "versions"):
        if entry.get("name") == version and entry.get("served"):
            schema = mapping(entry, "schema", "openAPIV3Schema")
            keep = field(crd, "spec", "preserveUnknownFields") is True or not schema
            return _Validator(_converted({"x-kubernetes-preserve-unknown-fields": keep, **schema}, completed, True))
    return None


def _converted(node: Any, completed: bool, embedded: bool = False) -> dict[str, Any]:
    """A node of a structural schema as JSON Schema; an `embedded` one is a whole object."""
    if not isinstance(node, Mapping):
        return {}
    result = {keyword: node[keyword] for keyword in _SAME & node.keys()}
    types = [node["type"]] if "type" in node else []
    if node.get("x-kubernetes-int-or-string"):
        types = ["integer", "string"]
        result.pop("anyOf", None)
    if types:
        # The API server takes the default for a null.
        result["type"] = [*types, "null"] if node.get("nullable") or "default" in node else types
    properties = mapping(node, "properties")
    result["properties"] = {name: _converted(child, completed) for name, child in properties.items()}
    if embedded or node.get("x-kubernetes-embedded-resource"):
        result["properties"] |= {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {}}
    if not completed:
        given = [name for name in texts(node, "required") if "default" not in mapping(properties, name)]
        result["required"] = given
    if isinstance(node.get("additionalProperties"), Mapping):
        result["additionalProperties"] = _converted(node["additionalProperties"], completed)
    elif node.get("type") == "object" and not (
        node.get("x-kubernetes-preserve-unknown-fields") or node.get("additionalProperties")
    ):
        result["additionalProperties"] = False
    if "items" in node:
        result["items"] = _converted(node["items"], completed)
    if node.get("x-kubernetes-list-type") == "map":
        result["mergeKeys"] = texts(node, "x-kubernetes-list-map-keys")
    return result


def _pattern(validator: Any, pattern: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """Patterns are of Go's RE2; the few that Python understands otherwise are left to the API server."""
    if not isinstance(instance, str) or not isinstance(pattern, str) or _NOT_PYTHON.search(pattern):
        return
    try:
        matches = re.search(pattern, instance) is not None
    except re.error:
        return
    if not matches:
        yield ValidationError("pattern")


def _known(validator: Any, properties: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """The API server drops a field that is null, unless it may be null."""
    if isinstance(instance, Mapping):
        for name, child in properties.items():
            if instance.get(name) is not None:
                yield from validator.descend(instance[name], child, path=name, schema_path=name)


def _unknown(validator: Any, allowed: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not isinstance(instance, Mapping):
        return
    known = schema["properties"]
    for name in instance.keys() - known.keys():
        if allowed is not False:
            if instance[name] is not None:
                yield from validator.descend(instance[name], allowed, path=name)
            continue
        near = difflib.get_close_matches(name, known, n=1)
        remedy = f"did you mean {near[0]}?" if near else f"known are {_listed(sorted(known)) or 'none'}"
        yield ValidationError(f"unknown field, which the API server would drop; {remedy}", path=[name])


def _required(validator: Any, required: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, Mapping):
        for name in required:
            may_be_null = "null" in schema.get("properties", {}).get(name, {}).get("type", ())
            if name not in instance or (instance[name] is None and not may_be_null):
                yield ValidationError("is missing and required", path=[name])


def _merge_keys(validator: Any, keys: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, list):
        for index, key in repeated(instance, tuple(keys)):
            yield ValidationError(f"another entry of this list has {key}, too", path=[index])


_Validator = extend(
    Draft4Validator,
    {
        "pattern": _pattern,
        "properties": _known,
        "additionalProperties": _unknown,
        "required": _required,
        "mergeKeys": _merge_keys,
    },
)


def _violations(validator: Any, obj: Object) -> list[str]:
    """What is wrong with `obj`. Nothing if the schema itself cannot be evaluated: the API server says why."""
    try:
        errors = sorted(validator.iter_errors(obj), key=lambda error: [str(step) for step in error.absolute_path])
    except (UnknownType, TypeError, ValueError, LookupError, AttributeError):
        return []
    return [f"{_path(error)}: {_text(error)}" for error in errors]


def _path(error: Any) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path)
    return text.lstrip(".") or "the object"


def _text(error: Any) -> str:
    """What is wrong and what is allowed, without the value."""
    keyword, allowed = error.validator, error.validator_value
    if keyword == "type":
        types = allowed if isinstance(allowed, list) else [allowed]
        return f"is {type_name(error.instance)}, must be {' or '.join(map(str, types))}"
    if keyword == "enum":
        near = difflib.get_close_matches(str(error.instance), map(str, allowed), n=1)
        return f"must be one of {_listed(allowed)}" + (f"; did you mean {near[0]}?" if near else "")
    if keyword in ("anyOf", "oneOf"):
        reasons = dict.fromkeys(f"{_path(reason)} {_text(reason)}" for reason in error.context)
        return f"fits {'none' if reasons else 'more than one'} of the forms that the schema allows" + "".join(
            f"; {reason}" for reason in list(reasons)[:4]
        )
    if keyword in _WORDS:
        return _WORDS[keyword].format(allowed)
    return str(error.message)


def _listed(names: Iterable[Any]) -> str:
    names = [str(name) for name in names]
    return ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
