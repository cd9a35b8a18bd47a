# SPDX-License-Identifier: Apache-2.0
"""The identity of objects.

An object is identified by group, kind, namespace and name. Its version is only a way to look at it: two documents that
differ in the version of `apiVersion` alone are one object. Every layer names objects by these keys.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

Object = dict[str, Any]
"""An API object as JSON gives it: `manifest` as its author wrote it, `live` as a server returned it."""


class GroupKind(NamedTuple):
    """A kind of objects; `group` is "" for the core group."""

    group: str
    kind: str

    def __str__(self) -> str:
        """As `kubectl` and an ApplySet's `contains-group-kinds` write it: `Deployment.apps`, `ConfigMap`."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @classmethod
    def parse(cls, text: str) -> GroupKind:
        kind, _, group = text.partition(".")
        return cls(group, kind)


class ObjectKey(NamedTuple):
    """One object; `namespace` is "" for objects of the cluster."""

    group: str
    kind: str
    namespace: str
    name: str

    @property
    def group_kind(self) -> GroupKind:
        return _group_kind(self.group, self.kind)

    def __str__(self) -> str:
        """`Deployment.apps default/web`, `Namespace blue`."""
        return f"{self.group_kind} {self.namespace}/{self.name}" if self.namespace else f"{self.group_kind} {self.name}"


class SecretEntry(NamedTuple):
    """One value of a Secret."""

    namespace: str
    name: str
    key: str

    def __str__(self) -> str:
        return f"Secret {self.namespace}/{self.name}"


class CloudEntry(NamedTuple):
    """An OpenStack cloud by its name in the clouds.yaml of a Secret, and a server in it by its id; "" for none."""

    secret: SecretEntry
    name: str
    region: str = ""
    server: str = ""

    def __str__(self) -> str:
        return f"cloud {self.name} in {self.secret.key} of the {self.secret}"


NAMESPACE = GroupKind("", "Namespace")
CRD = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")


_OF_EVERY_NAMESPACE = {("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")}


def is_of_every_namespace(key: ObjectKey) -> bool:
    """Whether Kubernetes itself puts an object of that name into each Namespace."""
    return key.group == "" and (key.kind, key.name) in _OF_EVERY_NAMESPACE


def split(api_version: str) -> tuple[str, str]:
    """`apps/v1` -> ("apps", "v1"); `v1` -> ("", "v1")."""
    group, _, version = api_version.rpartition("/")
    return group, version


def kind_of(obj: Mapping[str, Any]) -> GroupKind:
    return _kind(str(obj.get("apiVersion", "")), str(obj.get("kind", "")))


@functools.lru_cache(maxsize=1024)
def _kind(api_version: str, kind: str) -> GroupKind:
    """Made once for the objects of a kind, of which an operation asks for each one many times."""
    return _group_kind(split(api_version)[0], kind)


@functools.lru_cache(maxsize=1024)
def _group_kind(group: str, kind: str) -> GroupKind:
    return GroupKind(group, kind)


def key_of(obj: Mapping[str, Any]) -> ObjectKey:
    metadata = obj.get("metadata") or {}
    return ObjectKey(*kind_of(obj), metadata.get("namespace") or "", metadata.get("name") or "")


def bare(key: ObjectKey, api_version: str, **metadata: Any) -> Object:
    """A manifest that names an object and, but for more `metadata`, says nothing of it."""
    named = {"name": key.name, **({"namespace": key.namespace} if key.namespace else {})}
    return {"apiVersion": api_version, "kind": key.kind, "metadata": {**named, **metadata}}


def labels(obj: Mapping[str, Any]) -> dict[str, str]:
    """The labels of an object, never None."""
    return (obj.get("metadata") or {}).get("labels") or {}


def annotations_of(obj: Mapping[str, Any]) -> dict[str, str]:
    """The annotations of an object, never None."""
    return (obj.get("metadata") or {}).get("annotations") or {}


def as_selector(wanted: Mapping[str, str]) -> str:
    """The label selector for objects with all these labels."""
    return ",".join(f"{key}={value}" for key, value in sorted(wanted.items()))


def controller_of(obj: Mapping[str, Any]) -> str:
    """The uid of the object that controls this one, "" if none does."""
    return str((controlled_by(obj) or {}).get("uid") or "")


def controlled_by(obj: Mapping[str, Any]) -> Object | None:
    """The ownerReference to the object that controls this one."""
    return next((reference for reference in references(obj) if reference.get("controller")), None)


def references(obj: Mapping[str, Any]) -> list[Object]:
    """The ownerReferences of an object, never None."""
    return (obj.get("metadata") or {}).get("ownerReferences") or []


def owner_uids(obj: Mapping[str, Any]) -> list[str]:
    return [str(reference.get("uid")) for reference in references(obj)]


def owner_names(obj: Mapping[str, Any]) -> str:
    """For a message."""
    return ", ".join(f"{one.get('kind')} {one.get('name')}" for one in references(obj))
