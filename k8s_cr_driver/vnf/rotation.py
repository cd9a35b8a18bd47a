# SPDX-License-Identifier: Apache-2.0
"""Gives an object whose changed content only takes effect under another name such a name, and repoints the references.

So the controllers roll out what refers to it, as the Cluster API book ("Changing infrastructure machine templates") asks
of a user. The former object stays until everything is ready, and is then pruned: a rollback finds it, or creates it again.
A name is kept as long as the content is: first the one of the manifest, later that name with a digest of the content.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.objects import dependencies
from k8s_cr_driver.objects.fields import field, walk
from k8s_cr_driver.objects.immutable import is_replaced
from k8s_cr_driver.objects.keys import Object, ObjectKey, annotations_of, key_of, kind_of, split
from k8s_cr_driver.objects.marks import INSTANCE_LABEL, is_managed
from k8s_cr_driver.resources.registry import resource_for

CONTENT = "k8s-cr-driver/content"
"""Annotation with the digest of the spec that was applied: the server adds defaults to the spec."""

Result = TypeVar("Result")


class Persist(Protocol):
    """See `Operation.persist`."""

    def __call__(self, request: Callable[[], Result], /) -> Result: ...


def mark(desired: Sequence[Object]) -> list[Object]:
    """Annotates the objects that are rotated with the digests of their contents, and returns them."""
    rotated = [obj for obj in desired if resource_for(obj).relations().is_rotated and not is_replaced(obj)]
    for obj in rotated:
        obj["metadata"]["annotations"] = {**annotations_of(obj), CONTENT: _digest(obj)}
    return rotated


class Lives:
    """
    The live objects of an instance. Its label finds them, and their names find those that have lost it.

    `persist` makes the requests: some follow when objects of the change have been renamed, so that no whole rotation may be
    repeated.
    """

    def __init__(self, client: Client, instance: str, persist: Persist = lambda request: request()) -> None:
        self._client, self._instance, self._persist = client, instance, persist
        self._listed: dict[ObjectKey, dict[str, Object]] = {}

    def labelled(self, obj: Object) -> Mapping[str, Object]:
        """Those of the same kind and namespace that have the label, by name."""
        collection = key_of(obj)._replace(name="")
        if collection not in self._listed:
            self._listed[collection] = self._persist(lambda: self._list(obj))
        return self._listed[collection]

    def named(self, obj: Object, name: str) -> Object | None:
        """The one of that kind, namespace and name."""
        if labelled := self.labelled(obj).get(name):
            return labelled
        key = key_of(obj)._replace(name=name)
        live = self._persist(lambda: self._client.find(self._resource(obj), key))
        return live if live and is_managed(live, self._instance) else None

    def _resource(self, obj: Object) -> Resource | None:
        return self._client.resources.find(kind_of(obj), split(obj["apiVersion"])[1])

    def _list(self, obj: Object) -> dict[str, Object]:
        resource = self._resource(obj)
        if resource is None or "list" not in resource.verbs:
            return {}
        found = self._client.list_if_served(resource, key_of(obj).namespace, f"{INSTANCE_LABEL}={self._instance}")
        return {live["metadata"]["name"]: live for live in found}


def rotate(desired: Sequence[Object], lives: Lives, referring: Sequence[Object] = ()) -> None:
    """
    Renames objects of a change where the live ones have other contents.

    `referring` are objects of before that are applied again, whose references stay: a heal creates what they refer to.
    """
    rotated = mark(desired)
    rotation = _Rotation(desired, lives, referring)
    keys = {key_of(obj) for obj in rotated}
    for obj in sorted(rotated, key=lambda one: any(key in keys for _, _, key in _references(one))):
        rotation.rename(obj)  # last what refers to others: its content has their names
    for obj in desired if rotation.renamed else ():
        dependencies.repoint(obj, rotation.renamed)


class _Rotation:
    """Where a set refers to what, which is found once: a set may have thousands of objects to rename."""

    def __init__(self, desired: Sequence[Object], lives: Lives, referring: Sequence[Object]) -> None:
        self._lives = lives
        self._used = {key for one in referring for _, _, key in _references(one)}
        self._places: dict[ObjectKey, list[tuple[Object, str]]] = defaultdict(list)
        self.renamed: dict[ObjectKey, str] = {}
        self._rotated: dict[ObjectKey, set[str]] = {}
        """By kind and namespace, the first names of live objects that have one with a digest."""
        for one in desired:
            for place, name, key in _references(one):
                self._places[key].append((place, name))

    def rename(self, obj: Object) -> None:
        """An object to which nothing in the set refers keeps its name: what refers to it is not there to be repointed."""
        mark([obj])
        key = key_of(obj)
        if key not in self._places or (name := self._name(obj)) == key.name:
            return
        obj["metadata"]["name"] = name
        renamed = key._replace(name=name)
        for reference, field_ in self._places[key]:
            reference[field_] = name
        self.renamed[key] = name
        self._places[renamed] += self._places.pop(key)

    def _name(self, obj: Object) -> str:
        """A name that had another content is not used again."""
        first = str(obj["metadata"]["name"])
        second = f"{first}-{annotations_of(obj)[CONTENT]}"
        if live := self._lives.named(obj, first):
            return first if _has_content(live, obj) else second
        is_used = key_of(obj)._replace(name=second) in self._used
        was_rotated = first in self._first_names(obj)
        return second if was_rotated or is_used or self._lives.named(obj, second) else first

    def _first_names(self, obj: Object) -> set[str]:
        collection = key_of(obj)._replace(name="")
        if collection not in self._rotated:
            labelled = self._lives.labelled(obj).items()
            digests = {name: f"-{annotations_of(live).get(CONTENT)}" for name, live in labelled}
            self._rotated[collection] = {name.removesuffix(end) for name, end in digests.items() if name.endswith(end)}
        return self._rotated[collection]


def _has_content(live: Object, obj: Object) -> bool:
    digest = annotations_of(live).get(CONTENT)
    return digest == annotations_of(obj)[CONTENT] if digest else _contains(live.get("spec"), obj.get("spec"))


def _contains(live: Any, given: Any) -> bool:
    """Whether `live` has all that is given, of an object that was applied before there were digests."""
    if isinstance(live, dict) and isinstance(given, dict):
        return all(_contains(live.get(name), value) for name, value in given.items())
    if isinstance(live, list) and isinstance(given, list):
        return len(live) == len(given) and all(map(_contains, live, given))
    return bool(live == given)


def _digest(obj: Object) -> str:
    return hashlib.sha256(json.dumps(obj.get("spec"), sort_keys=True).encode()).hexdigest()[:10]


def _references(obj: Object) -> list[tuple[Object, str, ObjectKey]]:
    """Where an object refers to others, by group, kind and name or as its kind knows: the mapping, the field, the object."""
    references = [one for _, one in walk(obj) if isinstance(one, dict) and one.get("kind") and one.get("name")]
    named = [(one, "name", _target(one, key_of(obj).namespace)) for one in references]
    return [*named, *resource_for(obj).relations().names()]


def _target(reference: Object, namespace: str) -> ObjectKey:
    group = field(reference, "apiGroup") or split(str(reference.get("apiVersion")))[0]
    own = reference.get("namespace") or namespace
    return ObjectKey(*map(str, (group, reference.get("kind"), own, reference.get("name"))))
