# SPDX-License-Identifier: Apache-2.0
"""The short rule that a status meets, for somebody who knows that its object is ready and whose readiness it does not say."""

from __future__ import annotations

import re
from typing import Any

from k8s_cr_driver.objects.fields import entries, text
from k8s_cr_driver.resources.health.status_fields import own_words

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,60}")
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]{0,60}")
_ENUMERATED = re.compile(r"[A-Z][A-Za-z_]{2,40}")
_INNER = ("status", "state", "phase", "health")
"""Fields of a part of a status that say how it is."""


def fitting_rule(status: dict[str, Any]) -> str:
    """A short rule that this status meets, for somebody who knows that the object is ready; "" if there is none."""
    for one in entries(status, "conditions"):
        if one.get("status") == "True" and _PLAIN.fullmatch(text(one, "type")):
            return f"condition={one['type']}"
    plain = {name: value for name, value in status.items() if isinstance(name, str) and _NAME.fullmatch(name)}
    words = own_words(status)
    worded = (name for name, value in plain.items() if isinstance(value, str) and value.lower() in words)
    if found := next((name for name in worded if _PLAIN.fullmatch(plain[name])), ""):
        return f"jsonpath={{.status.{found}}}={plain[found]}"
    if flag := next((name for name, value in plain.items() if value is True), ""):
        return f"jsonpath={{.status.{flag}}}=true"
    return _rule_of_parts(plain) or _rule_of_the_only_word(plain)


def _rule_of_parts(status: dict[str, Any]) -> str:
    """By a word of a part of a status, or by the word of all entries of a list; in quotes where YAML needs them."""
    for name, value in status.items() if "conditions" not in status else ():
        for inner in _INNER:
            if isinstance(value, dict) and _PLAIN.fullmatch(text(value, inner)):
                return f"jsonpath={{.status.{name}.{inner}}}={value[inner]}"
            words = {text(one, inner) for one in entries(status, name)}
            if len(words) == 1 and _PLAIN.fullmatch(word := words.pop()) and len(entries(status, name)) == len(status[name]):
                return f"\"cel: status.{name}.all(one, one.{inner} == '{word}')\""
    return ""


def _rule_of_the_only_word(status: dict[str, Any]) -> str:
    """By the field, if it is the only one, that has a word written as those of an enumeration are."""
    found = [name for name, value in status.items() if isinstance(value, str) and _ENUMERATED.fullmatch(value)]
    return f"jsonpath={{.status.{found[0]}}}={status[found[0]]}" if len(found) == 1 else ""
