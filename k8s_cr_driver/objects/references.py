# SPDX-License-Identifier: Apache-2.0
"""
Which objects of a set an object names, found by the structure of its fields and not by a list of kinds.

A mapping states the kind (`{kind, name}`), or the name of the field does: `secretName`, `providerConfigRef: {name}`,
`credentialsSecret`. Who refers to an object needs it, also to delete what it has made: it is written after it and deleted
before it. A name that no object of the set has is no reference, so each text is first looked up among the names of the set.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from k8s_cr_driver.objects.api_groups import is_builtin
from k8s_cr_driver.objects.fields import text
from k8s_cr_driver.objects.keys import CRD, NAMESPACE, GroupKind, Object, ObjectKey, annotations_of, key_of, kind_of, split

ACCOUNT = GroupKind("", "ServiceAccount")
SERVICE = GroupKind("", "Service")
_ACCOUNT_FIELDS = ("serviceAccountName", "serviceAccount")
DEFAULT_ACCOUNT = "default"
"""The ServiceAccount of Pods that name none."""
MOST_NAMESPACES = 10
"""Namespaces with an object of a name for which an object of the cluster that names no namespace refers to all of them."""

_TOKEN_OF = "kubernetes.io/service-account.name"  # noqa: S105
"""Annotation of a Secret: without the ServiceAccount that it names, Kubernetes deletes the Secret."""
_NO_SPEC = frozenset({"apiVersion", "kind", "metadata", "status", "data", "stringData", "binaryData"})
_SELECTING = re.compile(r"([sS]elector|[lL]abels|[aA]nnotations|^metadata|^status)$")
"""Fields whose values choose objects by labels, or describe an object that is to be made: they name none."""
_HOST = re.compile(r"([a-z0-9-]{1,63})\.([a-z0-9-]{1,63})\.svc(?![a-z0-9-])")
"""The host name of a Service in a text, with its namespace (DNS for Services and Pods)."""
_MOST_HOSTS = 10
"""In one text."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+")
_SUFFIXES = frozenset({"ref", "refs", "reference", "references", "name", "names"})
"""Words at the end of a field that make it a reference."""
_BY = frozenset({"key", "id", "ids", "arn", "arns"})
"""Words before those, which say what of the other object is of use: `secretKeyRef`, `vpcIdRef`."""
_OF_REFERENCES = frozenset({"name", "namespace", "key", "optional", "port"})
"""The keys of a mapping that does no more than to refer; one with others describes a part of the object, and names that."""
_USERS = (("claim",), ("consumer",))
"""Words of a reference to the user of an object, which goes before it: `claimRef` of a PersistentVolume."""
_WITH_KEYS = frozenset({GroupKind("", "Secret"), GroupKind("", "ConfigMap")})
"""The kinds that hold values by their keys."""
_PLAIN = _WITH_KEYS | {ACCOUNT, NAMESPACE}
"""The kinds that a text means whose field is no reference by its end, as `targetNamespace`."""
_SYNONYMS = {"credential": "secret", "credentials": "secret", "identity": "secret"}
"""What a field may call a kind, if the set has none of that name."""


Tiers = Sequence[Collection[GroupKind]]
"""Kinds that may be meant, the likeliest first."""


class _Field(NamedTuple):
    """What a field's name says. `words`: without the suffixes that make it a reference, as `is_reference` says."""

    words: tuple[str, ...]
    is_reference: bool


@dataclass
class Named:
    """
    What one object names.

    `stated`: by kind and name; `by_field`: by name, in a field that is called like the kind; `users`: objects that use this
    one, and go before it; `accounts`: the ServiceAccounts of its Pods, also those that are not of the set.
    """

    stated: set[ObjectKey] = field(default_factory=set)
    by_field: set[ObjectKey] = field(default_factory=set)
    users: set[ObjectKey] = field(default_factory=set)
    accounts: set[ObjectKey] = field(default_factory=set)


class References:
    """Finds what objects name among `keys`, in time that grows with the size of the objects."""

    def __init__(self, keys: Iterable[ObjectKey]) -> None:
        self._places: dict[tuple[GroupKind, str], list[ObjectKey]] = defaultdict(list)
        self._kinds: dict[str, set[GroupKind]] = defaultdict(set)
        for key in keys:
            self._places[key.group_kind, key.name].append(key)
            self._kinds[key.kind.lower()].add(key.group_kind)
        self._names = {name for _, name in self._places}
        self._of_field = functools.cache(self._kinds_of_field)

    def of(self, obj: Object) -> Named:
        """All that the object names. None of it is the object itself."""
        named = Named()
        if kind_of(obj) == CRD:  # its schema describes references, and is large
            return named
        _Search(self, obj, named).run()
        own = key_of(obj)
        for found in (named.stated, named.by_field, named.users):
            found.discard(own)
        named.by_field -= named.stated | named.users
        return named

    def has(self, name: str) -> bool:
        return name in self._names

    def at(self, tiers: Iterable[Iterable[GroupKind]], name: str, namespace: str, own: str) -> list[ObjectKey]:
        """
        The objects of that name of the first of several kinds that has one.

        `own`: the namespace of the object that names it, `namespace`: what stands beside the name.
        """
        for kinds in tiers:
            if found := [key for kind in kinds for key in self._in_reach((kind, name), namespace, own)]:
                return found
        return []

    def _in_reach(self, place: tuple[GroupKind, str], namespace: str, own: str) -> list[ObjectKey]:
        places = self._places.get(place, [])
        if namespace or own:
            return [key for key in places if key.namespace in ("", namespace or own)]
        return places if len(places) <= MOST_NAMESPACES else []

    def stated(self, kind: str, group: str | None, own: str) -> Tiers:
        """The kinds that `kind` may mean in an object of the group `own`; `group` is None where none is stated."""
        found = {one for one in self._kinds.get(kind.lower(), ()) if one.kind == kind}
        return [*_nearest(found, own), found] if group is None else [found & {GroupKind(group, kind)}]

    def of_field(self, name: str, parent: str, own: str, *, is_mapping: bool) -> Tiers:
        """
        The kinds that a field's name may mean in an object of the group `own`; `parent`: the field around it.

        A text, or an entry of a list, in a field that is no reference by its end may be of another system, as `role`,
        `database` or `deletionPolicy`: it means what holds values, and with several words an account or a Namespace.
        """
        return self._of_field(name, parent, own, is_mapping)

    def _kinds_of_field(self, name: str, parent: str, own: str, is_mapping: bool) -> Tiers:
        words, is_reference = read_field(name)
        called = self._called(words, own)
        if not is_reference:
            plain = _PLAIN if len(words) > 1 else _WITH_KEYS
            return called if is_mapping else [plain.intersection(kinds) for kinds in called]
        around = [{kind for kind in kinds if _ends(kind.kind, words)} for kinds in self._called(read_field(parent).words, own)]
        of_group = (kind for kinds in self._kinds.values() for kind in kinds if is_mapping and kind.group == own)
        longer = {kind for kind in of_group if _ends(kind.kind, words)}
        synonyms = self._called((_SYNONYMS.get(words[-1], ""),), own) if words else []
        return [*called, *around, longer, *synonyms]

    def _called(self, words: tuple[str, ...], own: str) -> Tiers:
        """The kinds whose name is an end of `words`, the longest first."""
        ends = ("".join(words[start:]) for start in range(len(words)))
        several = (one for end in ends for one in (end, *_singular(end)))
        return [kinds for one in several for kinds in _nearest(self._kinds.get(one, ()), own)]


class _Search:
    """One object's fields, without recursion: a spec may be deep."""

    def __init__(self, references: References, obj: Object, named: Named) -> None:
        self._references, self._named, self._obj = references, named, obj
        self._group, _, self._namespace, _ = key_of(obj)
        self._is_builtin = is_builtin(kind_of(obj))
        self._todo: list[tuple[Any, str, str, bool]] = []

    def run(self) -> None:
        for name, value in self._obj.items():
            if name not in _NO_SPEC:
                self._field(name, value, {}, "")
        if kind_of(self._obj) == ("", "Secret"):
            account = annotations_of(self._obj).get(_TOKEN_OF, "")
            self._named.stated.update(self._references.at([[ACCOUNT]], account, "", self._namespace))
        while self._todo:
            value, name, parent, is_entry = self._todo.pop()
            if isinstance(value, dict):
                self._mapping(value, name, parent, is_entry=is_entry)
            else:
                self._todo += [(one, name, parent, True) for one in value if isinstance(one, (dict, list))]
                self._hosts(one for one in value if isinstance(one, str))
                for one in filter(self._may_name, value):
                    self._text(name, one, {}, parent)

    def _field(self, name: str, value: Any, beside: dict[str, Any], parent: str) -> None:
        """`beside`: the mapping that the field is in, `parent`: the field that this mapping is the value of."""
        if isinstance(value, str):
            if self._may_name(value) or _is_account(name):
                self._text(name, value, beside, parent)
            self._hosts([value])
        elif isinstance(value, (dict, list)) and value and not _is_selecting(name):
            self._todo.append((value, parent if name == "from" else name, parent, False))

    def _hosts(self, texts: Iterable[str]) -> None:
        """Services by their host names, which custom resources have in addresses."""
        for value in texts if not self._is_builtin else ():
            for found in itertools.islice(_HOST.finditer(value), _MOST_HOSTS) if ".svc" in value else ():
                self._named.by_field.update(self._references.at([[SERVICE]], found[1], found[2], self._namespace))

    def _may_name(self, value: Any) -> bool:
        return isinstance(value, str) and self._references.has(value.rpartition("/")[2])

    def _mapping(self, value: dict[str, Any], name: str, parent: str, *, is_entry: bool) -> None:
        kind, called = value.get("kind"), value.get("name")
        if isinstance(called, str) and self._references.has(called):
            if isinstance(kind, str):
                self._stated(value, kind, called, name)
            elif kind is None:
                self._untyped(value, called, name, parent, is_entry=is_entry)
        if self._is_builtin and isinstance(value.get("containers"), list) and not any(map(value.get, _ACCOUNT_FIELDS)):
            self._named.accounts.add(ObjectKey(*ACCOUNT, self._namespace, DEFAULT_ACCOUNT))
        for field_name, inner in value.items():
            if field_name != "name":
                self._field(field_name, inner, value, name)

    def _stated(self, value: dict[str, Any], kind: str, called: str, name: str) -> None:
        version = value.get("apiVersion")
        group = value.get("apiGroup", value.get("group", split(version)[0] if isinstance(version, str) else None))
        kinds = self._references.stated(kind, group if isinstance(group, str) else None, self._group)
        found = self._references.at(kinds, called, text(value, "namespace"), self._namespace)
        (self._named.users if read_field(name).words in _USERS else self._named.stated).update(found)

    def _untyped(self, value: dict[str, Any], called: str, name: str, parent: str, *, is_entry: bool) -> None:
        """`{name}` in a field that says the kind, or `{name, key}`, which selects a value of a Secret or a ConfigMap."""
        is_plain = value.keys() <= _OF_REFERENCES
        if not (is_plain or read_field(name).is_reference):
            return
        kinds = self._references.of_field(name, parent, self._group, is_mapping=not is_entry)
        if is_plain and isinstance(value.get("key"), str):
            kinds = next(([one] for one in kinds if set(one) <= _WITH_KEYS), [_WITH_KEYS])
        found = self._references.at(kinds, called, text(value, "namespace"), self._namespace)
        (self._named.users if read_field(name).words in _USERS else self._named.by_field).update(found)

    def _text(self, name: str, value: str, beside: dict[str, Any], parent: str) -> None:
        """The namespace of a text is before a slash in it, or beside it: `{secretName, secretNamespace}`."""
        place, _, called = value.rpartition("/")
        place = place or text(beside, f"{name.removesuffix('Name')}Namespace") or text(beside, "namespace")
        if _is_account(name):
            self._named.accounts.add(ObjectKey(*ACCOUNT, place or self._namespace, called))
        kinds = self._references.of_field(name, parent, self._group, is_mapping=False)
        self._named.by_field.update(self._references.at(kinds, called, place, self._namespace))


@functools.lru_cache(maxsize=4096)
def read_field(name: str) -> _Field:
    """`secretKeyRef` -> (secret,), a reference; `credentialsSecret` -> (credentials, secret), perhaps none."""
    words = read_words(name)
    if words[-1:] and words[-1] in _SUFFIXES:
        return _Field(words[:-2] if words[-2:-1] and words[-2] in _BY else words[:-1], is_reference=True)
    return _Field(words, is_reference=False)


@functools.lru_cache(maxsize=4096)
def _is_account(name: str) -> bool:
    return read_field(name).words[-2:] == ("service", "account")


@functools.lru_cache(maxsize=4096)
def _is_selecting(name: str) -> bool:
    return _SELECTING.search(name) is not None


def _singular(word: str) -> Iterator[str]:
    if word.endswith("ies"):
        yield f"{word[:-3]}y"
    elif word.endswith("s"):
        yield word[:-1]
        if word.endswith("es"):
            yield word[:-2]


def _ends(kind: str, words: tuple[str, ...]) -> bool:
    """Whether a kind's name ends with `words`, and is longer: ClusterClass with `class`."""
    own = read_words(kind)
    return bool(words) and len(own) > len(words) and own[-len(words) :] == words


@functools.lru_cache(maxsize=4096)
def read_words(name: str) -> tuple[str, ...]:
    """`KafkaUser` and `kafka-user` -> (kafka, user)."""
    return tuple(word.lower() for word in _WORD.findall(name))


def _nearest(kinds: Iterable[GroupKind], own: str) -> Tiers:
    """Those of the group `own`, then the built-in ones, then those of the same domain."""
    tiers: tuple[list[GroupKind], ...] = [], [], []
    for kind in kinds:
        if kind.group == own or is_builtin(kind):
            tiers[kind.group != own].append(kind)
        elif "." in own and kind.group.split(".")[-2:] == own.split(".")[-2:]:
            tiers[2].append(kind)
    return list(filter(None, tiers))
