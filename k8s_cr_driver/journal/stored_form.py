# SPDX-License-Identifier: Apache-2.0
"""
What an inventory says, and its stored form, a ConfigMap.

Annotations are those of an ApplySet parent (KEP-3659): kinds and namespaces. The keys of objects are in `data`, grouped by
kind and namespace, and compressed in `binaryData` where they are many: annotations are limited to 256 KiB, a ConfigMap
to 1 MiB. Version 0 has no annotation of a version, and may have adopted objects as an annotation and no members.
"""

from __future__ import annotations

import base64
import functools
import gzip
import json
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from k8s_cr_driver.kube.responses import checked, understood
from k8s_cr_driver.objects.decoding import decoded
from k8s_cr_driver.objects.fields import entries, field
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, annotations_of, key_of, labels
from k8s_cr_driver.objects.marks import has_been_adopted, is_copy, is_created

INVENTORY_LABEL = "k8s-cr-driver/inventory"
INVENTORY_MANAGER = "k8s-cr-driver"
"""The field manager of inventories."""
VERSION = 1
"""Of the form that this driver writes. It reads earlier ones, and refuses later ones."""
CONFIG_MAP = GroupKind("", "ConfigMap")
PLAIN_LIMIT = 128 * 1024
"""Bytes up to which keys are stored as readable JSON."""
UID_DIGITS = 4
"""Of the uid of an adopted object: whole ones of 100,000 objects, which cannot be compressed, would exceed the ConfigMap."""
UNPACKED_LIMIT = 64 * 1024 * 1024
"""Bytes of keys that are unpacked: 100,000 objects with the longest names have half of that."""
VALUES_LIMIT = 1_000_000
"""JSON values of keys that are read: 100,000 objects that have all ended have 600,000."""

_DIGITS = 10
_TOOLING = "applyset.kubernetes.io/tooling"
_KINDS = "applyset.kubernetes.io/contains-group-kinds"
_NAMESPACES = "applyset.kubernetes.io/additional-namespaces"
_VERSION = "k8s-cr-driver/version"
_TOKEN = "k8s-cr-driver/token"  # noqa: S105 (names a fencing token)
_OPERATION = "k8s-cr-driver/operation"
_RELEASED = "k8s-cr-driver/released"
_WORKER = "k8s-cr-driver/worker"
_ADOPTED = "k8s-cr-driver/adopted"
"""Where earlier versions kept the keys of adopted objects."""


class _Fields(NamedTuple):
    kinds: frozenset[GroupKind] = frozenset()
    namespaces: frozenset[str] = frozenset()
    adopted: frozenset[ObjectKey] = frozenset()
    """Objects that existed before the instance; never deleted by us."""
    adopted_uids: frozenset[tuple[ObjectKey, str]] = frozenset()
    """The first UID_DIGITS of the uids that these had; earlier versions have recorded none."""
    token: str = ""
    operation: str = ""
    version: int = 0
    """Of its form; see VERSION."""
    resource_version: str = ""
    uid: str = ""
    """Of the ConfigMap: it identifies the cluster on which the instance is."""
    created: str = ""
    """creationTimestamp of the instance's first inventory, RFC 3339: no object of the instance is older."""
    released: bool = False
    """Whether the run that has the token is over, so that nothing of it is in flight."""
    worker: str = ""
    """The process of the run that has the token; see `journal.fence`."""
    members: frozenset[ObjectKey] | None = frozenset()
    """Objects that the instance has applied, or is about to apply; None if that is not known."""
    new: frozenset[ObjectKey] = frozenset()
    """Those members that no run is known to have written: others may have created objects of their names before."""
    finished: frozenset[tuple[ObjectKey, str]] = frozenset()
    """Objects that have run to their end, with the digest of their manifest: they do not run again when they vanish."""
    early: frozenset[ObjectKey] = frozenset()
    """Those that leave orphans and that the instance began with, also after they went. Of others nothing older is an orphan."""


class InventoryContent(_Fields):
    """The data of an inventory; each run makes some dozen of it, which differ in a few fields."""

    def is_adopted(self, live: Object) -> bool:
        """Whether the object existed before the instance and was not created again by it since."""
        return self.has_adopted(live) or has_been_adopted(live)

    def has_adopted(self, live: Object) -> bool:
        """The same by what is recorded alone: whoever asked for the adoption has consented to it."""
        if not self.adopted or key_of(live) not in self.adopted:
            return False
        return not is_created(live) or self.may_change_adopted(live)  # anybody may write the annotation

    def may_change_adopted(self, live: Object) -> bool:
        """Whether it is the object itself that was adopted: of another one of its name nobody has asked for the adoption."""
        key, uid = key_of(live), str(live["metadata"].get("uid"))[:UID_DIGITS]
        return key in self.adopted and self._uids.get(key, uid) == uid

    def uids_in_order(self) -> list[str]:
        """Those of the adopted objects, in the order of their keys; empty ones are not known. See `known_uids`."""
        return [self._uids.get(key, "") for key in sorted(self.adopted)]

    def is_member(self, key: ObjectKey) -> bool:
        return self.members is not None and key in self.members

    def was_member(self, key: ObjectKey) -> bool:
        """Whether the object was a member before the instance brought what is `new`."""
        return self.is_member(key) and key not in self.new

    def may_own(self, live: Object, instance: str) -> bool:
        """Whether the object, which the field manager of this instance has applied, is a member, and not the copy of one."""
        key = key_of(live)
        return self.members is None or (key in self.members and not (key in self.new and is_copy(live, instance)))

    def places(self, kind: GroupKind) -> list[str]:
        """The namespaces in which the instance may have objects of a kind."""
        return sorted(self._places.get(kind) or self.namespaces)

    @functools.cached_property
    def _uids(self) -> dict[ObjectKey, str]:
        return dict(self.adopted_uids)

    @functools.cached_property
    def _places(self) -> dict[GroupKind, set[str]]:
        found: dict[GroupKind, set[str]] = {}
        for key in self.members or ():
            found.setdefault(key.group_kind, set()).add(key.namespace)
        return found


NOTHING = InventoryContent(members=None)


_ENCODER = json.JSONEncoder(separators=(",", ":"))


def form(content: InventoryContent) -> Object:
    """The annotations and data of a ConfigMap with this content."""
    annotations = {
        _TOOLING: "k8s-cr-driver/v1",
        _VERSION: str(VERSION),
        _KINDS: ",".join(sorted(map(str, content.kinds))),
        _NAMESPACES: ",".join(sorted(content.namespaces)),
        _TOKEN: content.token,
        _OPERATION: content.operation,
        _RELEASED: json.dumps(content.released),
        _WORKER: content.worker,
    }
    data: dict[str, str] = {}
    binary: dict[str, str] = {}
    for name, value in _values(content).items():
        text = _ENCODER.encode(value)
        if len(text) <= PLAIN_LIMIT:
            data[name] = text
        else:
            binary[f"{name}.gz"] = base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
    return {"annotations": annotations, "data": data, "binaryData": binary}


def _values(content: InventoryContent) -> dict[str, Any]:
    finished = [[*key, digest] for key, digest in sorted(content.finished)]
    values = {"finished": finished, "adopted": _grouped(content.adopted), "adopted-uids": content.uids_in_order()}
    members = {} if content.members is None else {"members": _grouped(content.members)}
    new = {"new": True if content.new == content.members else _grouped(content.new)} if content.new else {}
    return {**values, **members, **new, **({"early": _grouped(content.early)} if content.early else {})}


def inventory_name(instance: str) -> str:
    return f"k8s-cr-driver-{instance}"


def is_inventory(live: Object) -> bool:
    """Whether name, label and field manager of a ConfigMap agree: anybody may set the label."""
    name = inventory_name(labels(live).get(INVENTORY_LABEL, ""))
    return live["metadata"]["name"] == name and is_by_driver(live)


def is_by_driver(live: Object) -> bool:
    """Whether the driver has written fields of an inventory's ConfigMap."""
    return any(entry.get("manager") == INVENTORY_MANAGER for entry in entries(live, "metadata", "managedFields"))


def version_of(live: Object) -> int:
    """The version of its form; 0 for one that is no number. A later form may differ in all else."""
    text = annotations_of(live).get(_VERSION, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < _DIGITS else 0


SPOILED = (
    "If it stays so, others have spoiled it: delete that ConfigMap, and the driver creates it again from what Tacker remembers."
)


def parse(live: Object) -> InventoryContent:
    """The content of an inventory's ConfigMap; TransportError if it is none."""
    where = f"the inventory {field(live, 'metadata', 'namespace')}/{field(live, 'metadata', 'name')}"
    with understood(where):
        annotations = annotations_of(checked(live, CONFIG_MAP, where))
        _check_printable(*(annotations.get(name, "") for name in (_KINDS, _NAMESPACES)))
        adopted, uids = (_stored(live, name) for name in ("adopted", "adopted-uids"))
        earlier = frozenset(_key(*entry) for entry in decoded(annotations.get(_ADOPTED) or "[]"))
        members, new = (_stored(live, name) for name in ("members", "new"))
        keys = None if members is None else frozenset(_keys(members))
        return parse_scope(live)._replace(
            version=version_of(live),
            adopted=earlier if adopted is None else frozenset(_keys(adopted)),
            adopted_uids=known_uids(_keys(adopted or {}) if uids else [], uids or []),
            operation=annotations.get(_OPERATION, ""),
            resource_version=live["metadata"]["resourceVersion"],
            uid=live["metadata"]["uid"],
            created=str(live["metadata"].get("creationTimestamp") or ""),
            released=annotations.get(_RELEASED) == "true",
            worker=annotations.get(_WORKER, ""),
            members=keys,
            new=(keys or frozenset()) if new is True else frozenset(_keys(new or {})),
            finished=frozenset((_key(*key), digest) for *key, digest in _stored(live, "finished") or []),
            early=frozenset(_keys(_stored(live, "early") or {})),
        )


def parse_foreign(live: Object) -> InventoryContent | None:
    """The kinds and namespaces alone, from metadata; None for metadata that no driver and no API server writes.

    The inventory's own namespace is one of them: whoever deletes that deletes the inventory.
    """
    annotations = annotations_of(live)
    kinds, namespaces = (annotations.get(name, " ").split(",") for name in (_KINDS, _NAMESPACES))
    names = "".join((*kinds, *namespaces))
    if any(map(str.isspace, names)) or not names.isprintable() or any(text[:1] == "." for text in kinds):
        return None
    content, home = parse_scope(live), key_of(live).namespace
    return content._replace(namespaces=content.namespaces | {home}) if home else None


def parse_scope(live: Object) -> InventoryContent:
    """The kinds, the namespaces and the token alone, from metadata; for any text of the annotations."""
    annotations = annotations_of(live)
    return InventoryContent(
        kinds=frozenset(map(GroupKind.parse, filter(None, annotations.get(_KINDS, "").split(",")))),
        namespaces=frozenset(filter(None, annotations.get(_NAMESPACES, "").split(","))),
        token=annotations.get(_TOKEN, ""),
        members=None,
    )


def _stored(live: Object, name: str) -> Any:
    """The JSON value of that name, or None."""
    text: str | bytes | None = (live.get("data") or {}).get(name)
    if packed := (live.get("binaryData") or {}).get(f"{name}.gz"):
        text = _unpacked(base64.b64decode(packed))
    return None if text is None else decoded(text, VALUES_LIMIT)


def known_uids(adopted: Iterable[ObjectKey], uids: Iterable[str]) -> frozenset[tuple[ObjectKey, str]]:
    """Uids of adopted objects are stored without the keys, in the order of these; ValueError if one is missing."""
    return frozenset((key, uid) for key, uid in zip(sorted(adopted), uids, strict=True) if uid)


def _unpacked(packed: bytes) -> bytes:
    """ValueError if it is not gzip, is cut, or has more than UNPACKED_LIMIT bytes."""
    unpacking = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    try:
        text = unpacking.decompress(packed, UNPACKED_LIMIT)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if not unpacking.eof:
        raise ValueError("it is cut, or too large")
    return text


def _grouped(keys: Iterable[ObjectKey]) -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = {}
    for key in sorted(keys):
        found.setdefault(str(key.group_kind), {}).setdefault(key.namespace, []).append(key.name)
    return found


def _keys(grouped: Mapping[str, Mapping[str, Iterable[str]]]) -> Iterable[ObjectKey]:
    for text, places in grouped.items():
        group, kind = GroupKind.parse(text)
        for namespace, names in places.items():
            _check_printable(text, namespace, *names)
            for name in names:
                yield ObjectKey(group, kind, namespace, name)


def _key(*parts: str) -> ObjectKey:
    _check_printable(*parts)
    return ObjectKey(*parts)


def _check_printable(*texts: str) -> None:
    """ValueError for control characters: names are in log lines and errors, and users may write the inventory."""
    if not all(map(str.isprintable, texts)):
        raise ValueError("a text has control characters")
