# SPDX-License-Identifier: Apache-2.0
"""
Parameters of a new package: values of a chart, and `${NAME}` that the manifests have.

A value of a chart becomes a parameter if the chart only puts it into its manifests. So the chart is rendered with `${NAME}` in
the place of the value, and with two values: what the driver fills into the first must be what the chart makes of each.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.objects.fields import mapping, similar, type_name
from k8s_cr_driver.objects.keys import GroupKind, Object, key_of, kind_of
from k8s_cr_driver.package import parameters, substitution
from k8s_cr_driver.scaffold.model import Choice, Parameter
from k8s_cr_driver.scaffold.volatile import Random

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(:=([^}]*))?\}")
_TYPES = {bool: "boolean", int: "integer", float: "float", str: "string"}
_SHELL = {"command", "args", "data", "stringData", "binaryData"}
"""Fields whose texts are often scripts."""
_SECRET = GroupKind("", "Secret")
_Uses = dict[str, list[tuple[str, str | None]]]
"""The name of a parameter -> the field that is nothing but the reference, else "", and the default in the reference."""


def of_value(name: str, path: str, values: Mapping[str, Any]) -> Parameter:
    """The parameter for the value at `path`, whose default is the value's own. InvalidPackage for one that there is not."""
    found: Any = values
    for step in path.split("."):
        if not isinstance(found, dict) or step not in found:
            near = similar(step, found) if isinstance(found, dict) else ""
            hint = f"did you mean {near}?" if near else f"give its value with --set {path}=VALUE"
            raise InvalidPackage(f"--param {name}={path}: the chart's values have no {step}; {hint}")
        found = found[step]
    if type(found) not in _TYPES:
        raise InvalidPackage(
            f"--param {name}={path}: is {type_name(found)} in the chart's values; name a text, a number or a boolean, or give "
            f"one with --set {path}=VALUE"
        )
    return Parameter(name, _TYPES[type(found)], found, f"{path} of the chart")


def misspelt(given: Mapping[str, Any], values: Mapping[str, Any], path: str = "") -> Iterator[Choice]:
    """The values that somebody gives, and of which the chart has none, but one with nearly the same name."""
    for key, value in given.items():
        here = f"{path}.{key}" if path else str(key)
        if key not in values and (near := similar(str(key), values)):
            why = f"the chart's values have no {key}; did you mean {near}?"
            yield Choice(f"{here} of the chart", "given to the chart", why)
        elif isinstance(value, dict):
            yield from misspelt(value, mapping(values, key), here)


def other(parameter: Parameter) -> Any:
    """Another value of the type, in the form of the default."""
    default = parameter.default
    if isinstance(default, bool):
        return not default
    if isinstance(default, (int, float)):
        return default + 1
    last = next((index for index in reversed(range(len(default))) if default[index].isalnum()), None)
    if last is None:
        return f"{default}a"
    char = default[last]
    following = "1" if char in "09" else chr(ord(char) + 1) if char.isascii() and char not in "zZ" else "a"
    return default[:last] + following + default[last + 1 :]


def check_harmless(
    templates: Sequence[Object],
    declared: Sequence[Parameter],
    renderings: Sequence[tuple[Mapping[str, Any], Sequence[Object]]],
    random: Random,
) -> None:
    """InvalidPackage if a chart does more with a value than to put it into its manifests.

    `templates` are escaped, with references; `renderings` are what the chart makes of values, by the names of parameters.
    `random` is of two renderings with the defaults.
    """
    declarations = {one.name: parameters.Declaration(one.name, one.type, one.default, required=False) for one in declared}
    by_default = substitution.filler(declarations, {one.name: one.default for one in declared})
    for values, objects in renderings:
        fill = substitution.filler(declarations, values)
        filled = {key_of(one): (one, key_of(by_default(template))) for template in templates for one in [fill(template)]}
        rendered = {key_of(obj): obj for obj in objects}
        common = (key for key in rendered if key in filled)
        changed = ((key, name) for key in common for name in random.changed(filled[key][1], filled[key][0], rendered[key]))
        for key, what in [*((key, "") for key in random.lost(filled.keys(), rendered.keys())), *changed]:
            how = f"{what}: the chart computes it from" if what else "the chart decides whether it is there by"
            raise InvalidPackage(f"{key}: {how} {blamed(declared)}; give that value with --set in place of --param")


def blamed(declared: Sequence[Parameter]) -> str:
    """The values of these parameters, as an error names them."""
    return " or ".join(one.description for one in declared) + f" (--param {', '.join(one.name for one in declared)})"


def escaped(value: Any, names: Sequence[str]) -> Any:
    """`value` with all `${` that begin no reference to one of `names` as the driver leaves them: `$${`."""
    if isinstance(value, str):
        return _escaped(value, names) if "${" in value else value
    if isinstance(value, dict):
        return {key: escaped(one, names) for key, one in value.items()}
    return [escaped(one, names) for one in value] if isinstance(value, list) else value


def _escaped(text: str, names: Sequence[str]) -> str:
    kept = {match.start() for match in _REFERENCE.finditer(text) if match[1] in names}
    return re.sub(r"\$\{", lambda match: "${" if match.start() in kept else "$${", text)


def found_in(objects: Sequence[Object], wanted: Sequence[str]) -> tuple[list[Parameter], list[Choice]]:
    """The parameters that `${NAME}` in manifests means: those of `wanted`, and of fields that hold no scripts."""
    plain: _Uses = {}
    scripts: _Uses = {}
    for obj in objects:
        _collect(obj, (), plain, scripts)
    if missing := [name for name in wanted if name not in plain and name not in scripts]:
        raise InvalidPackage(f"--param {missing[0]}: no manifest has ${{{missing[0]}}}; for a value of a chart write NAME=PATH")
    names = [*plain, *(name for name in wanted if name not in plain)]
    choices = [Choice(f"${{{name}}}", f"parameter {name}", "a field of a manifest has it") for name in names]
    left = "only texts of scripts have it"
    choices += [
        Choice(f"${{{name}}}", "left as it stands", f"{left}; --param {name} makes it one")
        for name in scripts
        if name not in names
    ]
    return [_from_references(name, [*plain.get(name, ()), *scripts.get(name, ())]) for name in names], choices


def without_credentials(objects: Sequence[Object], wanted: Sequence[str]) -> tuple[list[Object], list[Choice]]:
    """The objects without Secrets of which each value is `${NAME}`, unless `wanted` has one of these names."""
    kept: list[Object] = []
    choices = []
    for obj in objects:
        values = [value for part in ("data", "stringData") for value in mapping(obj, part).values()]
        names = [match[1] for value in values if isinstance(value, str) and (match := _REFERENCE.fullmatch(value))]
        if kind_of(obj) != _SECRET or not names or len(names) < len(values) or not set(names).isdisjoint(wanted):
            kept.append(obj)
        else:
            why = f"no package has credentials: create it on the cluster; --param {names[0]} keeps it"
            choices.append(Choice(str(key_of(obj)), "left out", why))
    return kept, choices


def _from_references(name: str, uses: Sequence[tuple[str, str | None]]) -> Parameter:
    """An integer if it is the count of an object, or if all its defaults are integers."""
    defaults = [default for _, default in uses if default is not None]
    is_count = any(field == "replicas" for field, _ in uses)
    is_number = bool(defaults) and all(re.fullmatch(r"-?[0-9]{1,18}", one) for one in defaults)
    has_default = bool(defaults) and len(defaults) == len(uses)
    return Parameter(name, "integer" if is_count or is_number else "string", None, required=not has_default)


def _collect(value: Any, path: tuple[str, ...], plain: _Uses, scripts: _Uses) -> None:
    if isinstance(value, dict):
        for key, one in value.items():
            _collect(one, (*path, str(key)), plain, scripts)
    elif isinstance(value, list):
        for one in value:
            _collect(one, path, plain, scripts)
    elif isinstance(value, str) and "${" in value:
        is_script = "\n" in value or not _SHELL.isdisjoint(path)
        for match in _REFERENCE.finditer(value):
            field = path[-1] if match[0] == value and path else ""
            (scripts if is_script else plain).setdefault(match[1], []).append((field, match[3]))


def as_set(path: str, value: Any) -> list[str]:
    """The option of helm that sets a value in its type."""
    if isinstance(value, str):
        return ["--set-string", f"{path}={_literal(value)}"]
    return ["--set", f"{path}={json.dumps(value)}"]


def _literal(text: str) -> str:
    """Text as `--set-string` takes it."""
    return re.sub(r"([,\\{}])", r"\\\1", text) if not text.startswith("${") else text
