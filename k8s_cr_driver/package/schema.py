# SPDX-License-Identifier: Apache-2.0
"""Custom resources against the CustomResourceDefinitions of their own package, before anything is sent to a cluster.

A field that the schema does not know is an error, as in `kubectl`'s strict validation: the API server would drop it
without a word. What `structural` and `validation` leave out is decided by the API server, and so is all that exceeds
`STEPS`. Errors name fields, never values, for secrecy.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.objects.crds import crds_of, defined_by, served_schema, served_versions
from k8s_cr_driver.objects.fields import Path, entries, field, shown, similar, texts, type_name, walk
from k8s_cr_driver.objects.keys import GroupKind, Object, key_of, kind_of, split
from k8s_cr_driver.package import builtin, names, patterns
from k8s_cr_driver.package.samples import NO_SAMPLES, Sampled
from k8s_cr_driver.package.structural import Budget, Node, TooMuch, Unknown, drop_nulls, unknown_fields, with_defaults
from k8s_cr_driver.package.validation import Validation, Violation
from k8s_cr_driver.redaction import lines

REPORTED = 10
"""Violations in one error."""

STEPS = 5_000_000
"""Pairs of a value and a part of a schema that are compared for one package: some seconds."""

PATTERNS = 4_000
"""Patterns of CRDs that are compiled for one package: some seconds. The API server checks all."""
CHARACTERS = 200_000
"""Of these patterns together: some ten seconds at most. Those in use have some five thousand."""

_REASONS = 100
"""Why a value fits none of several forms: these are compared, and four different ones are shown."""

_MUTATING = {
    GroupKind("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): ("webhooks", "rules"),
    GroupKind("admissionregistration.k8s.io", "MutatingAdmissionPolicy"): ("spec", "matchConstraints", "resourceRules"),
}
_WHOLE = frozenset({"enum", "anyOf", "oneOf", "not", "unique"})
"""Keywords that a value within the field may decide."""
_VALUES = frozenset({"default", "enum", "example"})
"""Keywords of a schema that hold values, and no schema."""

_WORDS: Mapping[str, str] = {
    "required": "is missing and required",
    "pattern": "must match {}",
    "minimum": "must be at least {}",
    "maximum": "must be at most {}",
    "exclusiveMinimum": "must be more than {}",
    "exclusiveMaximum": "must be less than {}",
    "multipleOf": "must be a multiple of {}",
    "minLength": "must have at least {} characters",
    "maxLength": "must have at most {} characters",
    "minItems": "must have at least {} entries",
    "maxItems": "must have at most {} entries",
    "minProperties": "must have at least {} fields",
    "maxProperties": "must have at most {} fields",
    "not": "has a form that the schema forbids",
}


def check(objects: Sequence[Object]) -> None:
    """
    Raise InvalidPackage for custom resources that the package's own CustomResourceDefinitions do not allow.

    Also for a pattern in a CustomResourceDefinition that is no regular expression to the API server. The error has up to
    `REPORTED` violations, one a line. Required fields are not asked of kinds that a mutating webhook or policy of the
    package has a rule for: the API server validates after these.
    """
    found = list(islice(problems(objects), REPORTED + 1))
    if found:
        found[REPORTED:] = ["... and more"][: len(found) - REPORTED]
        raise InvalidPackage(lines(["custom resources do not fit their CustomResourceDefinitions:", *found]))


def builtin_problems(objects: Iterable[Object], sampled: Sampled = NO_SAMPLES) -> Iterator[str]:
    """
    A sentence for each field of a built-in kind that the API server would refuse, and of the `metadata` of any kind.

    Of the Kubernetes whose kinds `builtin` has. Not for an operation: a newer cluster may know more fields.
    """
    budget = Budget(STEPS)
    for obj in objects:
        version = split(obj["apiVersion"])[1]
        schema = builtin.schema(kind_of(obj), version)
        parts: list[tuple[Path, Node, Any]] = [(("metadata",), builtin.metadata(), obj["metadata"])]
        parts += [((), schema, {name: value for name, value in obj.items() if name != "status"})] if schema else []
        for path, node, value in parts:
            found = _builtin_problems(node, value, path, budget)
            yield from (f"{key_of(obj)}: {_path(at)}: {text}" for at, text in found if not sampled.is_at(obj, at, around=True))


def _builtin_problems(node: Node, value: Any, path: Path, budget: Budget) -> Iterator[tuple[Path, str]]:
    for unknown in unknown_fields(node, value, path):
        text = f"unknown field, which Kubernetes {builtin.release()} does not have; {_instead(unknown)}"
        yield unknown.path, text
    try:
        yield from ((found.path, _text(found)) for found in Validation(budget).violations(node, value, path))
    except TooMuch:
        return


def remove_nulls(objects: Iterable[Object], crd_of: Callable[[GroupKind], Object | None]) -> None:
    """
    Remove from custom resources, in place, the nulls that the API server would drop on create.

    Server-side apply refuses them where the schema has a type ("must be of type object: null"), but in built-in kinds it
    takes them as a create does. `crd_of` returns the CustomResourceDefinition of a kind, None for one without, or where it
    is not known: then the nulls stay.
    """
    for obj in objects:
        kind, version = kind_of(obj), split(obj["apiVersion"])[1]
        crd = crd_of(kind) if has_nulls(obj) else None
        if crd is not None:
            _drop_nulls(served_schema(crd, version), obj)


def problems(objects: Sequence[Object], sampled: Sampled = NO_SAMPLES) -> Iterator[str]:
    """A sentence for each violation, with those that `check` leaves out; none for a field that holds a sample."""
    crds, refusals = crds_of(objects), _Refusals()
    for crd in crds.values():
        yield from (f"{key_of(crd)}: {one}" for one in _pattern_problems(crd, refusals))
    completed = _completed(crds, objects)
    budget = Budget(STEPS)
    for obj in objects:
        kind = kind_of(obj)
        if kind in crds:
            validation = Validation(budget, completed=kind in completed)
            found = _object_problems(crds[kind], obj, validation, budget, sampled)
            yield from (f"{key_of(obj)}: {problem}" for problem in found)


def _object_problems(crd: Object, obj: Object, validation: Validation, budget: Budget, sampled: Sampled) -> Iterator[str]:
    if wrong := names.problem(obj):
        yield wrong
    schema = served_schema(crd, split(obj["apiVersion"])[1])
    if schema is None:
        known = ", ".join(f"{defined_by(crd).group}/{name}" for name in served_versions(crd))
        yield f"apiVersion: its CustomResourceDefinition serves only {known or 'no version'}"
        return
    clean = _without_nulls(schema, obj)
    for unknown in unknown_fields(schema, clean):
        yield f"{_path(unknown.path)}: unknown field, which the API server would drop; {_instead(unknown)}"
    try:
        for violation in validation.violations(schema, with_defaults(schema, clean, budget)):
            if not _is_of_sample(obj, violation, sampled):
                yield f"{_path(violation.path)}: {_text(violation)}"
    except TooMuch:
        return


def _is_of_sample(obj: Object, violation: Violation, sampled: Sampled) -> bool:
    return sampled.is_at(obj, violation.path, around=violation.keyword in _WHOLE)


def _without_nulls(schema: Node, obj: Object) -> Object:
    if not has_nulls(obj):
        return obj
    copied = copy.deepcopy(obj)
    _drop_nulls(schema, copied)
    return copied


def _drop_nulls(schema: Node | None, obj: Object) -> None:
    """Also the unknown ones: they say nothing, and `kubectl apply` leaves them out."""
    drop_nulls(schema, obj)
    for unknown in list(unknown_fields(schema, obj)):
        *steps, name = unknown.path
        holder: Any = obj
        for step in steps:
            holder = holder[step]
        if holder[name] is None:
            del holder[name]


def has_nulls(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(has_nulls, value.values()))
    return any(map(has_nulls, value)) if isinstance(value, list) else value is None


class _Refusals:
    """Why Go refuses the patterns in one package's CustomResourceDefinitions."""

    def __init__(self) -> None:
        self._known, self._left = dict[str, str](), CHARACTERS

    def of(self, pattern: str) -> str:
        """Empty if it may take it, and for what exceeds `PATTERNS` or `CHARACTERS`: that is left to the API server."""
        if pattern not in self._known and len(self._known) < PATTERNS:
            self._left -= len(pattern)
            self._known[pattern] = patterns.refused_by_go(pattern) if self._left >= 0 else ""
        return self._known.get(pattern, "")


def _pattern_problems(crd: Object, refusals: _Refusals) -> Iterator[str]:
    """The patterns of a CustomResourceDefinition that Go refuses."""
    for path, value in walk(crd.get("spec"), ("spec",)):
        is_pattern = isinstance(value, str) and path[-1] == "pattern" and _VALUES.isdisjoint(path)
        if is_pattern and (reason := refusals.of(value)):
            yield f"{shown(path)}: is no regular expression to the API server (RE2): {reason}; rewrite it"


def _completed(crds: Mapping[GroupKind, Object], objects: Iterable[Object]) -> set[GroupKind]:
    """The kinds for which a mutating webhook or policy of the set has a rule, or one that names no resources."""
    plurals = {kind: str(field(crd, "spec", "names", "plural")) for kind, crd in crds.items()}
    resources = {"*", "*/*", *plurals.values()}
    groups = {"*": resources, **{kind.group: {"*", "*/*"} for kind in crds}}
    for kind, plural in plurals.items():
        groups[kind.group].add(plural)
    found: dict[str, set[str]] = defaultdict(set)
    for obj in objects:
        for rule in _rules(obj, *_MUTATING[kind_of(obj)]) if kind_of(obj) in _MUTATING else ():
            named = resources.intersection(texts(rule, "resources") or "*")
            for group in groups.keys() & texts(rule, "apiGroups"):
                found[group] |= named & groups[group]
    return {kind for kind, plural in plurals.items() if {"*", "*/*", plural} & (found[kind.group] | found["*"])}


def _rules(obj: Mapping[str, Any], *path: str) -> list[dict[str, Any]]:
    if len(path) == 1 or isinstance(field(obj, path[0]), dict):
        return entries(obj, *path)
    return [rule for holder in entries(obj, path[0]) for rule in _rules(holder, *path[1:])]


def _path(path: Path) -> str:
    return shown(path) or "the object"


def _text(violation: Violation) -> str:
    """What is wrong and what is allowed, without the value."""
    keyword, bound = violation.keyword, violation.bound
    if keyword == "type":
        return f"is {type_name(violation.value)}, must be {' or '.join(bound)}"
    if keyword == "enum":
        near = similar(violation.value, map(str, bound)) if isinstance(violation.value, str) else ""
        return f"must be one of {_listed(bound)}" + (f"; did you mean {near}?" if near else "")
    if keyword == "unique":
        return f"another entry of this list has the same {bound}" if bound else "another entry of this list is the same"
    if keyword in ("anyOf", "oneOf"):
        reasons = dict.fromkeys(f"{_path(reason.path)} {_text(reason)}" for reason in violation.reasons[:_REASONS])
        return f"fits {'none' if reasons else 'more than one'} of the forms that the schema allows" + "".join(
            f"; {reason}" for reason in list(reasons)[:4]
        )
    return _WORDS[keyword].format(bound)


def _instead(unknown: Unknown) -> str:
    near = similar(str(unknown.path[-1]), unknown.known)
    return f"did you mean {near}?" if near else f"known are {_listed(sorted(unknown.known)) or 'none'}"


def _listed(names: Iterable[Any]) -> str:
    names = [str(name) for name in names]
    return ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
