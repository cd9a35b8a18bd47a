# SPDX-License-Identifier: Apache-2.0
"""
Parameters of a package: declared with types, given in `additionalParams.parameters`, filled into manifests.

`${NAME}` and `${NAME:=default}` are replaced in string values of parsed objects, never in keys and never in text that
is yet to be parsed, so that no value can change a document's structure. A package that declares nothing is left as it
is: shell scripts in ConfigMaps are full of `${...}`. In one that declares parameters, `$${` stands for a plain `${`;
forms that are no parameter, such as `${HOME:-/}` or `${#}`, stay as they are.

A secret parameter is never a value: the request names a Secret's key, `{"secretRef": {"name": ..., "key": ...}}`, and a
value that is exactly `${NAME}` becomes `{"name": ..., "key": ...}`, which is what `secretKeyRef` and its like hold.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from k8s_cr_driver.errors import InvalidPackage, InvalidRequest
from k8s_cr_driver.objects.fields import field, mapping, sequence, similar, text, type_name
from k8s_cr_driver.package import limits, patterns

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_SHOWN = 1024
"""Characters of a description or constraint that an error may show."""
TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "float": (int, float),
    "boolean": (bool,),
    "list": (list,),
    "map": (dict,),
}
"""The TOSCA types that a parameter may have."""
_ENTRY = "entry_schema"

_CONSTRAINTS: Mapping[str, Callable[[Any, Any], bool]] = {
    "equal": lambda value, bound: value == bound,
    "greater_than": lambda value, bound: value > bound,
    "greater_or_equal": lambda value, bound: value >= bound,
    "less_than": lambda value, bound: value < bound,
    "less_or_equal": lambda value, bound: value <= bound,
    "in_range": lambda value, bound: bound[0] <= value and (bound[1] == "UNBOUNDED" or value <= bound[1]),
    "valid_values": lambda value, bound: value in bound,
    "length": lambda value, bound: len(value) == bound,
    "min_length": lambda value, bound: len(value) >= bound,
    "max_length": lambda value, bound: len(value) <= bound,
    "pattern": lambda value, bound: patterns.is_match(bound, value),
}


@dataclass(frozen=True)
class Declaration:
    """
    One parameter, as a TOSCA property definition has it; `metadata: {secret: true}` makes it secret.

    `constraints` are pairs of a TOSCA constraint clause and its bound. Without `required` and `default` the parameter
    has no value unless it is given, and each use needs a default of its own, `${NAME:=default}`.
    """

    name: str
    type: str = "string"
    default: Any = None
    required: bool = True
    description: str = ""
    constraints: tuple[tuple[str, Any], ...] = ()
    secret: bool = False
    entries: str = ""
    """The type of the entries of a list or a map; "" for any."""

    @property
    def must_be_given(self) -> bool:
        return self.required and self.default is None


def declared(definitions: Mapping[str, Mapping[str, Any]]) -> dict[str, Declaration]:
    """
    The parameters that a VNFD declares, by name; empty if it declares none.

    `definitions` are the parsed TOSCA files of the package by their names. The node type of the VNF names, as the type
    of `additional_parameters` of its operation `instantiate`, a data type whose property `parameters` has the data type
    that has a property for each parameter. Raises InvalidPackage.
    """
    for file, content in definitions.items():
        limits.check_expanded(content, limits.parts, file)
    types = {name: one for content in definitions.values() for name, one in mapping(content, "data_types").items()}
    nodes = {name: one for content in definitions.values() for name, one in mapping(content, "node_types").items()}
    found: dict[str, Declaration] = {}
    holders: set[str] = set()
    budget, clauses = limits.declarations(), limits.constraints()
    for name, node_type in nodes.items():
        interface = mapping(node_type, "interfaces", "Vnflcm")
        operation = field(interface, "operations", "instantiate") or field(interface, "instantiate")
        request = field(operation, "inputs", "additional_parameters", "type")
        holder = field(_properties(types, request, budget), "parameters", "type")
        if holder is not None and not (isinstance(holder, str) and holder in types):
            raise InvalidPackage(f"node type {name}: its parameters have the type {holder}, which no file defines")
        if holder is None or holder in holders:  # several node types, as those of deployment flavours, may share one
            continue
        holders.add(holder)
        for parameter, definition in _properties(types, holder, budget).items():
            clauses.spend(sum(map(_cost, sequence(definition, "constraints"))))
            where = f"parameter {parameter} in the VNFD's {holder[:_SHOWN]}"  # one of MiB would be copied for each parameter
            found[parameter] = _declaration(parameter, definition, where)
    return found


def _properties(types: Mapping[str, Any], name: Any, budget: limits.Budget) -> dict[str, Any]:
    """The properties of a TOSCA data type, with those that it inherits."""
    chain: dict[str, None] = {}
    while isinstance(name, str) and name in types and name not in chain:
        chain[name] = None
        budget.spend(1 + len(mapping(types[name], "properties")))
        name = field(types[name], "derived_from")
    return {key: value for step in reversed(chain) for key, value in mapping(types[step], "properties").items()}


def _declaration(name: Any, definition: Any, where: str) -> Declaration:
    if not (isinstance(name, str) and re.fullmatch(_NAME, name)):
        raise InvalidPackage(f"{where}: a name is letters, digits and underscores, and begins with no digit")
    if not isinstance(definition, dict) or definition.get("type") not in list(TYPES):
        raise InvalidPackage(f"{where}: its type must be one of {', '.join(TYPES)}")
    if not isinstance(definition.get("constraints") or [], list):
        raise InvalidPackage(f"{where}: its constraints must be a list")
    declaration = Declaration(
        name,
        type=definition["type"],
        default=definition.get("default"),
        required=definition.get("required", True) is True,
        description=text(definition, "description")[:_SHOWN],
        constraints=tuple(_constraint(clause, where) for clause in definition.get("constraints") or []),
        secret=str(field(definition, "metadata", "secret")).lower() == "true",
        entries=_entries(definition, where),
    )
    if declaration.secret and (declaration.default is not None or declaration.type != "string"):
        raise InvalidPackage(f"{where}: a secret one is a string without default; the request names its Secret")
    for clause, bound in declaration.constraints:
        if problem := _unusable(declaration, clause, bound):
            raise InvalidPackage(f"{where}: its constraint {clause} {problem}")
    if declaration.default is not None and (problem := _wrong(declaration, declaration.default)):
        raise InvalidPackage(f"{where}: its default {problem}")
    return declaration


def _entries(definition: Mapping[str, Any], where: str) -> str:
    """TOSCA has the type of entries as a text, or in a mapping."""
    written = definition.get(_ENTRY)
    name = field(written, "type") if isinstance(written, dict) else written
    if definition["type"] not in ("list", "map") or name is None:
        return ""
    if name not in list(TYPES):
        raise InvalidPackage(f"{where}: the type in its {_ENTRY} must be one of {', '.join(TYPES)}")
    return str(name)


def _constraint(clause: Any, where: str) -> tuple[str, Any]:
    if not (isinstance(clause, dict) and len(clause) == 1 and set(clause) <= set(_CONSTRAINTS)):
        raise InvalidPackage(f"{where}: each constraint is a mapping with one of {', '.join(_CONSTRAINTS)}")
    ((name, bound),) = clause.items()
    if not all(_is_scalar(one) for one in (bound if isinstance(bound, list) else [bound])):
        raise InvalidPackage(f"{where}: the bound of its constraint {name} must be text, a number, or a list of them")
    if name == "pattern" and (reason := patterns.problem(str(bound))):
        raise InvalidPackage(f"{where}: its pattern is no regular expression of RE2: {reason}; rewrite it")
    return name, bound


def _unusable(declared: Declaration, clause: str, bound: Any) -> str:
    """Why no value can meet a constraint with bounds of that form; empty if one can. YAML reads `on` and `1` as no text."""
    if clause == "valid_values":
        wrong = [one for one in bound if not _is_of(one, declared.type)] if isinstance(bound, list) else []
        if not isinstance(bound, list) or not bound:
            return f"is {type_name(bound)}, must be a list of the values"
        if wrong:
            return f"has {_shown(wrong[0])}, which is {type_name(wrong[0])} and must be of type {declared.type}; quote a text"
    if clause == "in_range" and not (isinstance(bound, list) and len(bound) == 2):
        return "must be a list of the lower and the upper bound"
    return ""


def resolve(declarations: Mapping[str, Declaration], given: Mapping[str, Any]) -> dict[str, Any]:
    """
    Every declared parameter with its value as JSON: what is given, else the default, else None.

    A secret one keeps the form `{"secretRef": {"name": ..., "key": ...}}`; so the result may be stored and logged, and
    is what `fill` takes. Raises InvalidRequest for a parameter that is unknown, missing or of a wrong type.
    """
    for name in given:
        if name not in declarations:
            near = similar(name, declarations)
            known = f"did you mean {near}?" if near else f"it declares {', '.join(sorted(declarations)) or 'none'}"
            raise InvalidRequest(f"additionalParams.parameters.{name}: the package declares no such parameter; {known}")
    return {name: _resolved(declaration, given.get(name)) for name, declaration in declarations.items()}


def _resolved(declared: Declaration, given: Any) -> Any:
    where = f"additionalParams.parameters.{declared.name}"
    if given is None:
        if declared.must_be_given:
            purpose = f" ({declared.description})" if declared.description else ""
            raise InvalidRequest(f"{where}: is missing{purpose}; it is a {declared.type} without a default")
        return declared.default
    if problem := wrong(declared, given):
        raise InvalidRequest(f"{where}: {problem}")
    return given


def wrong(declared: Declaration, given: Any) -> str:
    """Why a request cannot give that value; empty if it can."""
    return _wrong_secret(given) if declared.secret else _wrong(declared, given)


def _wrong(declared: Declaration, value: Any) -> str:
    """Why `value` is none of `declared`; empty if it is one."""
    if not _is_of(value, declared.type):
        return f"is {type_name(value)} and must be of type {declared.type}"
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for place, entry in inner if declared.entries else ():
        if not _is_of(entry, declared.entries):
            return f"its entry {_shown(place)} is {type_name(entry)} and must be of type {declared.entries}"
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        return "holds what JSON cannot say: infinity, no number, or half a surrogate pair"
    for name, bound in declared.constraints:
        try:
            met = _CONSTRAINTS[name](value, bound)
        except (TypeError, LookupError, ValueError):
            return f"cannot be checked: the constraint {name} does not fit the type {declared.type}, or the value is too long"
        if not met:
            return f"does not meet the constraint {name}: {_shown(bound)}"
    return ""


def _is_of(value: Any, type: str) -> bool:
    return isinstance(value, TYPES[type]) and not (isinstance(value, bool) and type != "boolean")


def steps(declared: Declaration, text: str) -> int:
    """How many the constraints take for `text` at most: a comparison with one of a list is one."""
    return sum(
        patterns.steps(str(bound), text) if name == "pattern" else 10 + (len(bound) if isinstance(bound, list) else 0)
        for name, bound in declared.constraints
    )


def _cost(clause: Any) -> int:
    """How many constraints it counts as: a pattern is one more for each hundred characters."""
    pattern = mapping(clause).get("pattern")
    texts = [part for part in (pattern if isinstance(pattern, list) else [pattern]) if isinstance(part, str)]
    return 1 + sum(map(len, texts)) // 100


def _is_scalar(value: Any) -> bool:
    """Whether `value` is a text or a number that JSON can hold: Python does not write integers of 5,000 digits."""
    return isinstance(value, str | float) or (isinstance(value, int) and abs(value) < 2**64)


def _shown(bound: Any) -> str:
    text = str(bound)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _wrong_secret(given: Any) -> str:
    remedy = 'name a Secret of the namespace where it is used: {"secretRef": {"name": ..., "key": ...}}'
    reference = given.get("secretRef") if isinstance(given, dict) and len(given) == 1 else None
    if not isinstance(reference, dict):
        return f"is secret and takes no value of its own; {remedy}"
    if set(reference) != {"name", "key"} or not all(isinstance(part, str) and part for part in reference.values()):
        return f"its secretRef wants exactly name and key, both text; {remedy}"
    return ""
