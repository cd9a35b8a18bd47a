# SPDX-License-Identifier: Apache-2.0
"""Files of readiness rules for kinds, in the form of Flux's health checks: a document with `healthCheckExprs`.

Each entry names a kind (`apiVersion` or `group`, and `kind`) and has expressions of CEL: `current`, `inProgress`, `failed`, and
of this driver `suspended` and `ignoreGeneration`. The version in `apiVersion` does not matter.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from k8s_cr_driver.objects.cel import ExpressionError
from k8s_cr_driver.objects.fields import text, type_name
from k8s_cr_driver.objects.keys import GroupKind, split
from k8s_cr_driver.objects.rule_texts import cel

LIST = "healthCheckExprs"
PACKAGE_RULES = "k8s-cr-driver/package-rules"
"""The annotation in which an object keeps the rules that its package has for its kind, as JSON."""
MOST = 500
"""Entries of a file."""
EXPRESSIONS = ("current", "inProgress", "failed", "suspended")
_IGNORE = "ignoreGeneration"
_FIELDS = ("apiVersion", "group", "kind", *EXPRESSIONS, _IGNORE)

KindRules = Mapping[str, Any]
"""The expressions of a kind by their names in the file, and `ignoreGeneration`."""


def is_rules(document: Any) -> bool:
    """Whether a document of YAML is one of rules, and no manifest."""
    return isinstance(document, dict) and LIST in document and "kind" not in document


def unknown_keys(document: Mapping[str, Any]) -> list[str]:
    """The keys beside LIST, which nobody reads."""
    return [str(name)[:40] for name in document if name != LIST]


def read(document: Any) -> dict[GroupKind, KindRules]:
    """The rules of a document, by kind. ExpressionError names the entry, the field and the column."""
    if isinstance(document, dict) and LIST not in document:
        found_keys = ", ".join(str(name)[:40] for name in list(document)[:5]) or "nothing"
        raise ExpressionError(f"{LIST}: is missing, and {found_keys} is there; rules are a list under {LIST}")
    entries = document.get(LIST) if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise ExpressionError(f"{LIST}: is {type_name(entries)}, must be a list of entries with kind and current")
    if len(entries) > MOST:
        raise ExpressionError(f"{LIST}: has {len(entries):,} entries, {MOST} are allowed")
    found: dict[GroupKind, KindRules] = {}
    for index, entry in enumerate(entries):
        place = f"{LIST}[{index}]"
        if not isinstance(entry, dict):
            raise ExpressionError(f"{place}: is {type_name(entry)}, must be a mapping")
        kind = _kind(entry, place)
        if kind in found:
            raise ExpressionError(f"{place}: {kind} has an entry before; write one")
        found[kind] = _rules(entry, f"{place} ({kind})")
    return found


def _kind(entry: dict[str, Any], place: str) -> GroupKind:
    for name in entry:
        if name not in _FIELDS:
            meant = difflib.get_close_matches(str(name)[:40], _FIELDS, n=1)
            raise ExpressionError(f"{place}.{str(name)[:40]}: is not known" + (f"; write {meant[0]}" if meant else ""))
    if not text(entry, "kind") or not isinstance(entry.get("apiVersion", entry.get("group")), str):
        raise ExpressionError(f"{place}: kind, and apiVersion or group, are needed")
    group = split(entry["apiVersion"])[0] if "apiVersion" in entry else entry["group"]
    return GroupKind(group, entry["kind"])


def _rules(entry: dict[str, Any], place: str) -> KindRules:
    if not isinstance(entry.get(_IGNORE, False), bool):
        raise ExpressionError(f"{place}.{_IGNORE}: must be true or false")
    written = {name: entry[name] for name in EXPRESSIONS if entry.get(name) is not None}
    if not written:
        raise ExpressionError(f"{place}: has no expression; write current")
    for name, expression in written.items():
        if not isinstance(expression, str):
            raise ExpressionError(f"{place}.{name}: is {type_name(expression)}, must be an expression")
        try:
            cel(expression)
        except ExpressionError as error:
            raise ExpressionError(f"{place}.{name}: {error}") from None
    return {**written, _IGNORE: True} if entry.get(_IGNORE) else written
