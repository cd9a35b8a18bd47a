# SPDX-License-Identifier: Apache-2.0
"""
What a chart renders in another way each time, or on another cluster: random values, certificates, `lookup`, `.Capabilities`.

The package has what one rendering without a cluster was, for all its instances.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Any

from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, key_of
from k8s_cr_driver.scaffold.model import Choice, enumerated

_SECRET = GroupKind("", "Secret")
_LOOKUP = re.compile(r"\blookup +[\"(.$]")
_CAPABILITIES = re.compile(r"\.Capabilities\.(APIVersions|KubeVersion)")
_ASKED = {
    "lookup": "rendered as if the cluster had nothing; give the value with --set",
    ".Capabilities.APIVersions": "rendered for what helm takes for served; --api-versions adds to that",
    ".Capabilities.KubeVersion": "rendered for helm's own version of Kubernetes; --kube-version names another one",
}


class Random:
    """What differs between two renderings with the same values, so that no value is the cause of it."""

    def __init__(self, first: Sequence[Object], second: Sequence[Object]) -> None:
        after = {key_of(obj): obj for obj in second}
        self._fields = {
            key: list(changed_fields(obj, after[key])) if key in after else None for obj in first for key in [key_of(obj)]
        }
        """Of the objects of the first one; None for one that the second does not have."""

    def choices(self) -> list[Choice]:
        """A choice for each object that the renderings have with other values; no value is shown."""
        found = []
        for key, fields in self._fields.items():
            if fields is None:
                found.append(Choice(str(key), "its name is random", f"a second rendering has another one; {_remedy('value')}"))
            elif fields:
                what = f"{enumerated(fields)}: as it was rendered, the same in every instance"
                remedy = _remedy("Secret" if key.group_kind == _SECRET else "value")
                found.append(Choice(str(key), what, f"a second rendering has other values; {remedy}"))
        return found

    def lost(self, one: Set[ObjectKey], other: Set[ObjectKey]) -> list[ObjectKey]:
        """The objects that only one of two renderings has, but for those whose names are random."""
        here, there = (Counter(map(_nameless, keys)) for keys in (one - other, other - one))
        names = Counter(_nameless(key) for key, fields in self._fields.items() if fields is None)
        random = {kind for kind, count in names.items() if here[kind] == there[kind] == count}
        return sorted(key for key in one ^ other if _nameless(key) not in random)

    def changed(self, key: ObjectKey, one: Object, other: Object) -> list[str]:
        """The fields that differ, but for those of the object `key` that are random."""
        return [name for name in changed_fields(one, other) if name not in (self._fields.get(key) or ())]


def _nameless(key: ObjectKey) -> ObjectKey:
    return key._replace(name="")


def of_templates(templates: Iterable[tuple[str, str]]) -> list[Choice]:
    """What the templates ask the cluster, which a rendering for a package does not have: a choice for each question."""
    asking: dict[str, dict[str, None]] = {}
    for name, content in templates:
        if _LOOKUP.search(content):
            asking.setdefault("lookup", {})[name] = None
        for what in _CAPABILITIES.findall(content):
            asking.setdefault(f".Capabilities.{what}", {})[name] = None
    return [Choice(what, _ASKED[what], f"asked by {enumerated(list(names))}") for what, names in asking.items()]


def _remedy(what: str) -> str:
    if what == "Secret":
        return "give the chart a Secret that is there before (such as existingSecret), or make the value a parameter (--param)"
    return "set it with --set, or make it a parameter (--param)"


def changed_fields(first: Any, second: Any, path: str = "") -> Iterator[str]:
    """The fields that differ; of lists of other lengths the list."""
    if isinstance(first, dict) and isinstance(second, dict):
        for name in dict.fromkeys([*first, *second]):
            yield from changed_fields(first.get(name), second.get(name), f"{path}.{name}" if path else str(name))
    elif isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        for index, (one, other) in enumerate(zip(first, second, strict=True)):
            yield from changed_fields(one, other, f"{path}[{index}]")
    elif first != second:
        yield path
