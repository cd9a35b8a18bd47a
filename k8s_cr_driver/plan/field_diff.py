# SPDX-License-Identifier: Apache-2.0
"""Compares two states of one object, field by field, without the server's own fields and without secrets."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from k8s_cr_driver.objects.keys import GroupKind, Object, kind_of
from k8s_cr_driver.redaction import looks_secret, printable

HIDDEN = "(hidden)"
_SECRET = GroupKind("", "Secret")
_STEPS = re.compile(r"[^.\[\]]+")
_SECRET_NAME = re.compile(
    r"(?i)(?:\b|_|(?-i:[a-z](?=P)))(?:pass$|pwd)|passw|passphrase|secret|token|credential|stringdata|"
    r"(?:api|access|private|signing|encryption|auth|hmac|licen[cs]e|shared)[_-]?key|connection[_-]?string"
)
_REFERENCE = re.compile(r"(?i)(?:refs?|names?|namespace|paths?|kind|type|mode)$|^keys?$")
"""Fields that say where a secret is, and are none."""
_MANIFEST_OF_SECRET = (
    re.compile(r"(?:\b|\\n)kind\\?[\"']?:\s*\\?[\"']?Secret\b"),
    re.compile(r"(?:\b|\\n)(?:data|stringData)\\?[\"']?:"),
)
"""What the text of a Secret has, as YAML or JSON: in the ConfigMap of a ClusterResourceSet, or kubectl's last-applied one."""
_ELEMENT = re.compile(r"<([\w:.-]{1,253})(?:\s[^<>]*)?(?<!/)>(?=\s*(?:[^<\s]|<[^/]))")
"""The begin of an element of XML that holds anything: text, a CDATA section, or another element."""
_ENTRY = re.compile(
    r"<\w{1,253}\s[^<>]{0,100}?\b(?:key|name)\s{0,8}=\s{0,8}[\"']([^\"'<>]{1,253})|<(?:key|name)>([^<]{1,253})<"
)
"""What names an entry in XML, whose value is in another attribute or element."""
LONGEST_NAME = 253
"""Characters of a field's name that are looked at: the value of a longer one is hidden."""
_NAMES = {"name": re.compile(r".+", re.S), "key": re.compile(r"[A-Z][A-Z0-9_]*")}
"""The field of an entry that names it, and its form: any other `key` may be a secret one."""
_SERVER_S = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink")


class Change(NamedTuple):
    """A field that differs; None where it is absent."""

    path: str
    before: Any
    after: Any

    def __str__(self) -> str:
        return printable(f"{self.path}: {_shown(self.before)} -> {_shown(self.after)}")


def changes(before: Object, after: Object) -> list[Change]:
    """The fields that differ, without the status; of a Secret their names, never their values."""
    found = _differences("", _wanted(before), _wanted(after))
    if kind_of(after) == _SECRET:
        return list(map(_without_values, found))
    return [Change(path, _redacted(_steps(path), was), _redacted(_steps(path), now)) for path, was, now in found]


def _steps(path: str) -> list[str]:
    return _STEPS.findall(path) or [path]  # a field may be named "."


def _wanted(obj: Object) -> Object:
    metadata = {name: value for name, value in obj["metadata"].items() if name not in _SERVER_S}
    return {**{name: value for name, value in obj.items() if name != "status"}, "metadata": metadata}


def _differences(path: str, before: Any, after: Any) -> Iterator[Change]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        is_secret = path != "metadata" and (_names_secret(before) or _names_secret(after))
        for name in sorted(before.keys() | after.keys()):
            step = f"[{name}]" if "." in name or "/" in name else f".{name}" if path else name
            was, now = before.get(name), after.get(name)
            if is_secret and name == "value" and was != now:
                yield Change(path + step, _hidden(was), _hidden(now))
            elif _is_data_of_secret(before, name) or _is_data_of_secret(after, name):
                yield from map(_without_values, _differences(path + step, was, now))
            else:
                found = _differences(path + step, was, now)
                yield from map(_in_secret_entry, found) if is_secret else found
    elif isinstance(before, list) and isinstance(after, list) and before != after:
        was, now = _keyed(before), _keyed(after)
        for key in dict.fromkeys([*was, *now]):
            found = _differences(f"{path}[{key}]", was.get(key), now.get(key))
            is_secret = isinstance(key, int) and any(_is_secret_option(items.get(key - 1)) for items in (was, now))
            yield from map(_without_values, found) if is_secret else found
    elif before != after:
        yield Change(path, before, after)


def _keyed(items: list[Any]) -> dict[Any, Any]:
    """Entries by their names if all have one, as containers have; else by their places."""
    for field, form in _NAMES.items():
        names = [item.get(field) if isinstance(item, Mapping) else None for item in items]
        named = [name for name in names if isinstance(name, str) and form.fullmatch(name)]
        if len(set(named)) == len(items):
            return dict(zip(named, items, strict=True))
    return dict(enumerate(items))


def _names_secret(entry: Mapping[str, Any]) -> bool:
    """Whether an entry has the name of a secret, also where the path has its place instead."""
    return any(_is_secret(str(entry[field])) for field in _NAMES if field in entry)


def _is_secret_option(argument: Any) -> bool:
    """Whether an argument of a command is an option that is named as a secret, whose value is the next argument."""
    return isinstance(argument, str) and argument.startswith("-") and "=" not in argument and _is_secret(argument)


def _is_data_of_secret(manifest: Mapping[str, Any], field: Any) -> bool:
    """Whether a field has what a Secret holds, also one within another object."""
    return manifest.get("kind") == "Secret" and field in ("data", "stringData")


def _in_secret_entry(change: Change) -> Change:
    steps = ["secret", *_STEPS.findall(change.path)]
    return Change(change.path, _redacted(steps, change.before), _redacted(steps, change.after))


def _without_values(change: Change) -> Change:
    return Change(change.path, _hidden(change.before), _hidden(change.after))


def _hidden(value: Any) -> Any:
    return None if value is None else HIDDEN


def _redacted(steps: Sequence[str], value: Any) -> Any:
    """`value` with the texts hidden that look like credentials, or are in a field whose name says so."""
    if isinstance(value, Mapping):
        is_secret = _names_secret(value)
        steps = [*steps, "secret"] if is_secret else steps
        hidden = {name for name in value if (is_secret and name == "value") or _is_data_of_secret(value, name)}
        return {name: _hidden(item) if name in hidden else _redacted([*steps, str(name)], item) for name, item in value.items()}
    if isinstance(value, list):
        before = [None, *value]
        return [HIDDEN if _is_secret_option(one) else _redacted(steps, item) for one, item in zip(before, value, strict=False)]
    return HIDDEN if isinstance(value, str) and _is_secret_text(steps, value) else value


def _is_secret_text(steps: Sequence[str], value: str) -> bool:
    holds_secret = all(part.search(value) for part in _MANIFEST_OF_SECRET)
    named = (*_ELEMENT.findall(value), *("".join(one) for one in _ENTRY.findall(value)))
    holds_secret = holds_secret or any(map(_is_secret, named))
    return holds_secret or _in_secret(steps) or looks_secret(f"{steps[-1]}: {json.dumps(value)}")


def _in_secret(steps: Sequence[str]) -> bool:
    """Whether a field, or one that it is in, has the name of a secret; references to Secrets are none."""
    *outer, own = steps
    return _is_secret(own) or (any(map(_is_secret, outer)) and not _REFERENCE.search(own))


def _is_secret(name: str) -> bool:
    if len(name) > LONGEST_NAME:
        return True
    return bool(_SECRET_NAME.search(name)) and not _REFERENCE.search(name)


def _shown(value: Any) -> str:
    return "(absent)" if value is None else json.dumps(value, ensure_ascii=False)
