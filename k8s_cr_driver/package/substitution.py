# SPDX-License-Identifier: Apache-2.0
"""Fills the values of parameters into manifests."""

from __future__ import annotations

import contextlib
import copy
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.objects.fields import similar
from k8s_cr_driver.package import limits
from k8s_cr_driver.package.parameters import _NAME, Declaration, _wrong, steps

_REFERENCE = re.compile(rf"\$\$\{{|\$\{{(?P<name>{_NAME})(?P<inline>:=(?P<default>[^}}]*))?(?P<end>\}})?")
"""Matches without its end, too, where it is no reference: to look for the end from each start would be quadratic."""

SHELL_DEFAULT = re.compile(rf"(?<!\$)\$\{{({_NAME}):?[-=?+](?<!:=)")
"""What a shell takes for a variable and its default, and this driver for text."""

_LONGEST = 253
"""Characters of a name that an error shows."""

Path = tuple[str, ...]
"""The fields that lead to a value; "[]" for any entry of a list."""


def filler(declarations: Mapping[str, Declaration], values: Mapping[str, Any]) -> Callable[[Any], Any]:
    """
    `fill` for all objects of one package, which have the limits together.

    What has no value takes the default of its reference, and the declared one only where that is none or wrong.
    """
    budgets = Budgets()
    return lambda value: fill(value, declarations, values, budgets)


class Budgets:
    """What the references of one package may add to its manifests, and take of time."""

    def __init__(self) -> None:
        self.characters, self.steps = limits.filled(), limits.steps()
        self.defaults: dict[tuple[str, str], Any] = {}
        """By the parameter and the text in its reference: most are written often, and each is compared once."""


def fill(value: Any, declarations: Mapping[str, Declaration], values: Mapping[str, Any], budgets: Budgets | None = None) -> Any:
    """
    `value`, an object or a part of one, with parameters in the place of their references; `values` is from `resolve`.

    A string that is exactly one reference takes the parameter's type, except where every Kubernetes object has text:
    names, labels, annotations, data of ConfigMaps and Secrets, env, command and args. Within a longer string a value
    becomes text. Raises InvalidPackage for an undeclared name, for one without a value, and for more than `budgets`.
    """
    if not declarations:
        return value

    left = budgets or Budgets()

    def found(match: re.Match[str]) -> Any:
        value = _value(match, declarations, values, left)
        left.characters.spend(len(value if isinstance(value, str) else json.dumps(value)))
        return copy.deepcopy(value) if isinstance(value, list | dict) else value  # objects are changed in place later

    def replaced(text: str, path: Path) -> Any:
        whole = _REFERENCE.fullmatch(text)
        if whole and whole["end"] and not _is_text(path):
            return found(whole)
        return _REFERENCE.sub(lambda match: as_text(match) if match["end"] else match[0].replace("$${", "${"), text)

    def as_text(match: re.Match[str]) -> str:
        return _as_text(found(match), match, is_secret=declarations[match["name"]].secret)

    return _mapped(value, replaced, ())


def references(value: Any) -> set[str]:
    """The names of the parameters that the string values within `value` refer to."""
    names: set[str] = set()

    def collect(text: str, path: Path) -> str:
        names.update(match["name"] for match in _REFERENCE.finditer(text) if match["end"])
        return text

    _mapped(value, collect, ())
    return names


def _mapped(value: Any, replaced: Callable[[str, Path], Any], path: Path) -> Any:
    """`value` with every string that may hold a reference replaced."""
    if isinstance(value, str):
        return replaced(value, path) if "${" in value else value
    if isinstance(value, dict):
        return {key: _mapped(item, replaced, (*path, key)) for key, item in value.items()}
    if isinstance(value, list):
        return [_mapped(item, replaced, (*path, "[]")) for item in value]
    return value


def _is_text(path: Path) -> bool:
    """Whether the API has text at `path`, whatever it looks like."""
    match path:
        case ("data" | "stringData", _) | (*_, "metadata", "labels" | "annotations", _):
            return True
        case (*_, "metadata", "name" | "namespace") | (*_, "env", "[]", "value") | (*_, "args" | "command", "[]"):
            return True
    return False


def _value(match: re.Match[str], declarations: Mapping[str, Declaration], values: Mapping[str, Any], left: Budgets) -> Any:
    declaration = declarations.get(match["name"])
    if declaration is None:
        near = similar(match["name"], declarations)
        guess = f" (did you mean {near}?)" if near else ""
        raise InvalidPackage(
            f"{_shown(match)} is not declared in the VNFD{guess}; declare it, or write ${_shown(match)} to have it as it stands"
        )
    if "${" in (match["default"] or ""):
        raise InvalidPackage(f"${{{declaration.name}:=...}}: its default refers to another parameter, which is not possible")
    value = values.get(declaration.name)
    if value is None and match["inline"]:
        written = declaration.name, match["default"]
        if written not in left.defaults:
            left.steps.spend(steps(declaration, match["default"]))
            left.defaults[written] = _default(match["default"], declaration)
        value = left.defaults[written]
    if value is None:
        value = declaration.default
    if value is None:
        name = declaration.name
        raise InvalidPackage(f"{_shown(match)} has no value: give the parameter, or write ${{{name}:=default}}")
    return value["secretRef"] if declaration.secret else value


def _default(text: str, declaration: Declaration) -> Any:
    """The default of a reference, or where that is wrong, the declared one, if there is one."""
    try:
        return _parsed(text, declaration)
    except InvalidPackage:
        if declaration.default is None:
            raise
        return declaration.default


def _parsed(text: str, declaration: Declaration) -> Any:
    """The default that is written into a reference, in the parameter's type."""
    value: Any = text
    if declaration.type != "string":
        with contextlib.suppress(ValueError, RecursionError):
            value = json.loads(text)
    wrong = "is plain text, and the parameter is secret" if declaration.secret else _wrong(declaration, value)
    if wrong:
        raise InvalidPackage(f"${{{declaration.name}:=...}}: its default {wrong}")
    return value


def _shown(match: re.Match[str]) -> str:
    """A reference in an error: without its default, which may be a secret, and of limited length."""
    return f"${{{match['name'][:_LONGEST]}{':=...' if match['inline'] else ''}}}"


def _as_text(value: Any, match: re.Match[str], *, is_secret: bool) -> str:
    if is_secret:
        raise InvalidPackage(
            f"{_shown(match)} is secret and can only be a whole value, as in secretKeyRef: ${{{match['name']}}}; never a "
            "part of text"
        )
    return value if isinstance(value, str) else json.dumps(value)
