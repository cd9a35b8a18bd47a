# SPDX-License-Identifier: Apache-2.0
"""
What an inventory says, and its form as a ConfigMap.

Annotations are those of an ApplySet parent (KEP-3659): kinds and namespaces. The keys of objects are in `data`, grouped by
kind and namespace, and compressed in `binaryData` where they are many: annotations are limited to 256 KiB, a ConfigMap
to 1 MiB.
"""

from __future__ import annotations

import base64
import functools
import gzip
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from k8s_cr_driver.kube.responses import checked, understood
from k8s_cr_driver.objects.fields import field
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, annotations_of, key_of
from k8s_cr_driver.ownership.labels import is_created

CONFIG_MAP = GroupKind("", "ConfigMap")
PLAIN_LIMIT = 128 * 1024
"""Bytes up to which keys are stored as readable JSON."""

_TOOLING = "applyset.kubernetes.io/tooling"
_KINDS = "applyset.kubernetes.io/contains-group-kinds"
_NAMESPACES = "applyset.kubernetes.io/additional-namespaces"
_TOKEN = "k8s-cr-driver/token"  # noqa: S105 (names a fencing token)
_OPERATION = "k8s-cr-driver/operation"
_RELEASED = "k8s-cr-driver/released"
_ADOPTED = "k8s-cr-driver/adopted"
"""Where earlier versions kept the keys of adopted objects."""


@dataclass(frozen=True)
class InventoryContent:
    """The data of an inventory."""

    kinds: frozenset[GroupKind] = frozenset()
    namespaces: frozenset[str] = frozenset()
    adopted: frozenset[ObjectKey] = frozenset()
    """Objects that existed before the instance; never deleted by us."""
    token: str = ""
    operation: str = ""
    version: str = ""
    """resourceVersion."""
    uid: str = ""
    """Of the ConfigMap: it identifies the cluster on which the instance is."""
    created: str = ""
    """creationTimestamp of the inventory, RFC 3339: no object of the instance is older."""
    released: bool = False
    """Whether the run that has the token is over, so that nothing of it is in flight."""
    members: frozenset[ObjectKey] | None = frozenset()
    """Objects that the instance has applied, or is about to apply; None if that is not known."""

    finished: frozenset[tuple[ObjectKey, str]] = frozenset()
    """Objects that have run to their end, with the digest of their manifest: they do not run again when they vanish."""

    def is_adopted(self, live: Object) -> bool:
        """Whether the object existed before the instance and was not created again by it since."""
        return key_of(live) in self.adopted and not is_created(live)

    def is_member(self, key: ObjectKey) -> bool:
        return self.members is not None and key in self.members

    def places(self, kind: GroupKind) -> list[str]:
        """The namespaces in which the instance may have objects of a kind."""
        return sorted(self._places.get(kind) or self.namespaces)

    @functools.cached_property
    def _places(self) -> dict[GroupKind, set[str]]:
        found: dict[GroupKind, set[str]] = {}
        for key in self.members or ():
            found.setdefault(key.group_kind, set()).add(key.namespace)
        return found


NOTHING = InventoryContent(members=None)


def form(content: InventoryContent) -> Object:
    """The annotations and data of a ConfigMap with this content."""
    annotations = {
        _TOOLING: "k8s-cr-driver/v1",
        _KINDS: ",".join(sorted(map(str, content.kinds))),
        _NAMESPACES: ",".join(sorted(content.namespaces)),
        _TOKEN: content.token,
        _OPERATION: content.operation,
        _RELEASED: json.dumps(content.released),
    }
    data = {"finished": json.dumps([[*key, digest] for key, digest in sorted(content.finished)])}
    binary: dict[str, str] = {}
    for name, keys in (("adopted", content.adopted), ("members", content.members)):
        if keys is not None:
            text = json.dumps(_grouped(keys), separators=(",", ":"))
            if len(text) <= PLAIN_LIMIT:
                data[name] = text
            else:
                binary[f"{name}.gz"] = base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
    return {"annotations": annotations, "data": data, "binaryData": binary}


def parse(live: Object) -> InventoryContent:
    """The content of an inventory's ConfigMap; TransportError if it is none."""
    where = f"the inventory {field(live, 'metadata', 'namespace')}/{field(live, 'metadata', 'name')}"
    with understood(where):
        annotations = annotations_of(checked(live, CONFIG_MAP, where))
        adopted = frozenset(ObjectKey(*entry) for entry in json.loads(annotations.get(_ADOPTED) or "[]"))
        return InventoryContent(
            kinds=frozenset(map(GroupKind.parse, filter(None, annotations.get(_KINDS, "").split(",")))),
            namespaces=frozenset(filter(None, annotations.get(_NAMESPACES, "").split(","))),
            adopted=_stored(live, "adopted") or adopted,
            token=annotations.get(_TOKEN, ""),
            operation=annotations.get(_OPERATION, ""),
            version=live["metadata"]["resourceVersion"],
            uid=live["metadata"]["uid"],
            created=str(live["metadata"].get("creationTimestamp") or ""),
            released=annotations.get(_RELEASED) == "true",
            members=_stored(live, "members"),
            finished=frozenset(
                (ObjectKey(*key), digest) for *key, digest in json.loads((live.get("data") or {}).get("finished") or "[]")
            ),
        )


def _stored(live: Object, name: str) -> frozenset[ObjectKey] | None:
    text: str | bytes | None = (live.get("data") or {}).get(name)
    if packed := (live.get("binaryData") or {}).get(f"{name}.gz"):
        text = gzip.decompress(base64.b64decode(packed))
    return None if text is None else frozenset(_keys(json.loads(text)))


def _grouped(keys: Iterable[ObjectKey]) -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = {}
    for key in sorted(keys):
        found.setdefault(str(key.group_kind), {}).setdefault(key.namespace, []).append(key.name)
    return found


def _keys(grouped: Mapping[str, Mapping[str, Iterable[str]]]) -> Iterable[ObjectKey]:
    for kind, places in grouped.items():
        for namespace, names in places.items():
            for name in names:
                yield ObjectKey(*GroupKind.parse(kind), namespace, name)
