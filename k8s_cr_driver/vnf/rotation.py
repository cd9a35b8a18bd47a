# SPDX-License-Identifier: Apache-2.0
"""Gives an object whose changed content only takes effect under another name such a name, and repoints the references.

So the controllers roll out what refers to it, as the Cluster API book ("Changing infrastructure machine templates") asks
of a user. The former object stays until everything is ready, and is then pruned: a rollback finds it, or creates it again.
A name is kept as long as the content is: first the one of the manifest, later that name with a digest of the content.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.objects import dependencies
from k8s_cr_driver.objects.fields import field
from k8s_cr_driver.objects.keys import Object, ObjectKey, annotations_of, key_of, kind_of, split
from k8s_cr_driver.ownership.labels import INSTANCE_LABEL, is_managed
from k8s_cr_driver.resources.registry import resource_for

CONTENT = "k8s-cr-driver/content"
"""Annotation with the digest of the spec that was applied: the server adds defaults to the spec."""

Result = TypeVar("Result")


class Persist(Protocol):
    """See `Operation.persist`."""

    def __call__(self, request: Callable[[], Result], /) -> Result: ...


def mark(desired: Sequence[Object]) -> list[Object]:
    """Annotates the objects that are rotated with the digests of their contents, and returns them."""
    rotated = [obj for obj in desired if (known := resource_for(obj)).is_rotated() and not known.replace_strategy()]
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
    keys = {key_of(obj) for obj in rotated}
    for obj in sorted(rotated, key=lambda one: bool(_references(one, keys))):  # their content has the names of the others
        _rename(obj, desired, lives, referring)


def _rename(obj: Object, desired: Sequence[Object], lives: Lives, referring: Sequence[Object]) -> None:
    """An object to which nothing in the set refers keeps its name: what refers to it is not there to be repointed."""
    mark([obj])
    key = key_of(obj)
    places = [place for one in desired for place in _references(one, {key})]
    if places and (name := _name(obj, lives, referring)) != key.name:
        obj["metadata"]["name"] = name
        for reference, field_ in places:
            reference[field_] = name
        for one in desired:
            dependencies.repoint(one, key, name)


def _name(obj: Object, lives: Lives, referring: Sequence[Object]) -> str:
    """A name that had another content is not used again."""
    first = str(obj["metadata"]["name"])
    second = f"{first}-{annotations_of(obj)[CONTENT]}"
    if live := lives.named(obj, first):
        return first if _has_content(live, obj) else second
    was_rotated = any(name == f"{first}-{annotations_of(live).get(CONTENT)}" for name, live in lives.labelled(obj).items())
    is_used = any(_references(one, {key_of(obj)._replace(name=second)}) for one in referring)
    return second if was_rotated or is_used or lives.named(obj, second) else first


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


def _references(obj: Object, keys: Collection[ObjectKey]) -> list[tuple[Object, str]]:
    """Where an object refers to one of `keys`, by group, kind and name or as its kind knows: the mapping and the field."""
    found = [(one, "name") for one in _mappings(obj) if _target(one, key_of(obj).namespace) in keys]
    return found + [(place, name) for place, name, key in resource_for(obj).names() if key in keys]


def _mappings(value: Any) -> Iterator[Object]:
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    for item in value if isinstance(value, list) else ():
        yield from _mappings(item)


def _target(reference: Object, namespace: str) -> ObjectKey:
    group = field(reference, "apiGroup") or split(str(reference.get("apiVersion")))[0]
    own = reference.get("namespace") or namespace
    return ObjectKey(*map(str, (group, reference.get("kind"), own, reference.get("name"))))
