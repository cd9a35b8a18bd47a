# SPDX-License-Identifier: Apache-2.0
"""The VNFCs of VDUs, read from the live objects.

Pods of a Deployment, Machines of a MachineDeployment: each child that a VDU's object controls, directly or through other
objects, is one VNFC. If the status of the object has a selector, each Pod that this finds is one VNFC. An object without
children has one VNFC for each replica, with an id that is the same each time.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from k8s_cr_driver.errors import ApiError, Refused, passes
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.objects.fields import text
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, controlled_by, controller_of, key_of, kind_of, split
from k8s_cr_driver.objects.marks import INSTANCE_LABEL
from k8s_cr_driver.resources.base import PODS, CustomResource
from k8s_cr_driver.resources.hooks import Children
from k8s_cr_driver.resources.replicas import count
from k8s_cr_driver.vnf.counts import FEWER
from k8s_cr_driver.vnf.descent import read_owner
from k8s_cr_driver.vnf.scale_in_order import in_order
from k8s_cr_driver.vnf.vdus import VduObjects
from k8s_cr_driver.writes.members import is_hidden

LONGEST = 1_000
"""Characters of a value in a VNFC's metadata: the record of an instance has those of all its VNFCs."""

_Collection = tuple[GroupKind, str, str]
"""Kind, version ("" for any) and namespace: what one LIST returns (API concepts, "Collections")."""


@dataclass(frozen=True)
class Vnfc:
    """One VNFC (SOL003 clause 5.5.3.5): `name` is that on the cluster, `kind` that of the VDU's object."""

    name: str
    vdu: str
    kind: str
    metadata: dict[str, str] = field(default_factory=dict)
    qualified: bool = False
    """Whether VNFCs of other VDUs may have the same name."""

    @property
    def id(self) -> str:
        """Unique in the instance; the name where that is unique, as the in-tree driver has it."""
        return f"{self.vdu}.{self.name}" if self.qualified else self.name


class Members(NamedTuple):
    """The live objects of VDUs, and by VDU id their live VNFCs, for kinds that have such."""

    owners: dict[ObjectKey, Object]
    children: dict[str, list[Object]]


def listed(vdus: VduObjects, there: Members, most: int) -> list[Vnfc]:
    """
    The VNFCs of all VDUs of an instance. Tacker requests the grant of a scale in for the first ones of a VDU.

    Refused if there are more than `most`: others may write counts and labels on the cluster, too.
    """
    qualified = _may_share_names(vdus)
    found: list[Vnfc] = []
    numbers = {vdu: _number(vdu, obj, there) for vdu, obj in vdus.items()}
    if sum(numbers.values()) > most:
        raise Refused(f"The cluster has {sum(numbers.values()):,} VNFCs of this instance, which may have {most:,}; {FEWER}")
    for vdu, obj in vdus.items():
        new = functools.partial(Vnfc, vdu=vdu, kind=obj.key.kind, qualified=qualified)
        if vdu in there.children:
            ordered = in_order(obj, there.children[vdu])
            found += [new(child["metadata"]["name"], metadata=_metadata(obj, child)) for child in ordered]
        else:
            found += [new(f"{obj.full_name}-{index}") for index in reversed(range(numbers[vdu]))]
    return found


def _metadata(obj: CustomResource, child: Object) -> dict[str, str]:
    return {name: str(value)[:LONGEST] for name, value in obj.child_metadata(child).items()}


def _number(vdu: str, obj: CustomResource, there: Members) -> int:
    if vdu in there.children:
        return len(there.children[vdu])
    return max(0, count(obj, there.owners[obj.key])) if obj.key in there.owners else 0


def _may_share_names(vdus: VduObjects) -> bool:
    """Whether VNFCs of two VDUs may have one name: controllers derive names from their own, selectors find any name.

    Decided from the VDUs and not from the VNFCs, so that an id stays the same when another VNFC comes.
    """
    names = {obj.full_name for obj in vdus.values()}
    namespaces = {obj.key.namespace for obj in vdus.values()}
    by_selector = any(one.by_selector for obj in vdus.values() if (one := obj.children()))
    return len(names) < len(vdus) or (by_selector and len(namespaces) > 1)


def members(client: Client, instance: str, vdus: VduObjects) -> Members:
    """The `owners` and `children` of these VDUs now."""
    lives = owners(client, instance, vdus)
    return Members(lives, children(client, lives, vdus))


def owners(client: Client, instance: str, vdus: VduObjects) -> dict[ObjectKey, Object]:
    """The live objects of VDUs, as far as they exist; one LIST for each kind and namespace.

    One GET for each object that these do not contain: it may have lost the label of the instance.
    """
    wanted = {obj.key for obj in vdus.values()}
    collections = {(obj.key.group_kind, split(obj.manifest["apiVersion"])[1], obj.key.namespace) for obj in vdus.values()}
    labeled = {
        key_of(live): live
        for collection in sorted(collections)
        if client.resources.find(*collection[:2]) or client.resources.unknown_in(*collection[:2])
        for live in _list(client, collection, f"{INSTANCE_LABEL}={instance}")
        if key_of(live) in wanted
    }
    hidden = {key: live for key in sorted(wanted - labeled.keys()) if (live := _hidden(client, instance, key))}
    return labeled | hidden


def _hidden(client: Client, instance: str, key: ObjectKey) -> Object | None:
    """The object if it exists, and the instance has applied it, though it does not have its label."""
    resource = client.resources.find(key.group_kind)
    try:
        live = client.read(resource, key) if resource else None
    except ApiError as error:
        if passes(error):
            raise
        if error.status != 404:
            raise Refused(f"{key}: cannot be read, so its VNFCs are not known: {error}") from None
        return None
    return live if live and is_hidden(live, instance) else None


def children(
    client: Client, lives: Mapping[ObjectKey, Object], vdus: VduObjects
) -> dict[str, list[Object]]:
    """
    VDU id -> the live objects that are its VNFCs, for the VDUs whose kind has such.

    `lives` are the VDUs' objects, as `owners` finds them. Listed by label, with one LIST for each kind and namespace, and
    filtered by controller, because anybody may set the labels. By the selector of a status: one LIST for each VDU.
    """
    wanted = {vdu: one for vdu, obj in vdus.items() if (one := obj.children(lives.get(obj.key)))}
    selected = {vdu: _selected(client, one) for vdu, one in wanted.items() if one.by_selector}
    controlled = {vdu: one for vdu, one in wanted.items() if vdu not in selected}
    selectors: dict[_Collection, set[str]] = {}
    for one in controlled.values():
        for collection in _collections(one):
            selectors.setdefault(collection, set()).add(one.selector)
    lists = {
        collection: _list(client, collection, texts.pop() if len(texts) == 1 else "")
        for collection, texts in sorted(selectors.items())
    }
    found = {vdu: _descendants(vdus[vdu], lives.get(vdus[vdu].key), one, lists) for vdu, one in controlled.items()} | selected
    return {vdu: several for vdu, several in found.items() if several or not wanted[vdu].or_replicas}


def _selected(client: Client, one: Children) -> list[Object]:
    collection = (one.kind, one.version, one.namespace)
    if not one.selector:
        return []
    found = [live for live in _list(client, collection, one.selector) if _lives(live)]
    references = {controller_of(live): controlled_by(live) for live in found}
    stay = {
        uid
        for uid, reference in references.items()
        if not reference or _stays(client, reference, one.namespace)
    }
    return [live for live in found if controller_of(live) in stay]


def _stays(client: Client, reference: Object, namespace: str) -> bool:
    """False if the controller of a child is deleted or being deleted: the garbage collector will delete the child, too."""
    live = read_owner(client, reference, namespace)
    return live is not None and not text(live, "metadata", "deletionTimestamp")


def _collections(one: Children) -> list[_Collection]:
    """From the top."""
    return [*((kind, "", one.namespace) for kind in one.through), (one.kind, one.version, one.namespace)]


def _descendants(
    obj: CustomResource, root: Object | None, one: Children, lists: Mapping[_Collection, list[Object]]
) -> list[Object]:
    """Those of `root`, the live `obj`, or of what that has left without an owner when it was deleted."""
    *between, last = collections = _collections(one)
    orphans = () if root else lists[collections[0]]
    family = {live["metadata"]["uid"] for live in orphans if not controller_of(live) and obj.has_controlled(live)}
    family |= {root["metadata"]["uid"]} if root else set()
    for collection in between:
        family |= {live["metadata"]["uid"] for live in lists[collection] if controller_of(live) in family}
    return [
        live
        for live in lists[last]
        if _lives(live) and (live["metadata"]["uid"] in family or controller_of(live) in family)
    ]


def _list(client: Client, collection: _Collection, selector: str) -> list[Object]:
    kind, version, namespace = collection
    resource = client.resources.find(kind, version)
    if resource is None:
        raise Refused(f"The cluster does not know {kind}, whose objects are the VNFCs of a VDU.")
    try:
        return list(client.list_if_served(resource, namespace, selector))
    except ApiError as error:
        if passes(error):
            raise
        raise Refused(f"The VNFCs cannot be listed: {error}") from None


def _lives(child: Object) -> bool:
    """Pods that have ended, and what is being deleted, are no VNFCs. A failed Machine is one, so that it can be healed."""
    ended = kind_of(child) == PODS and text(child, "status", "phase") in ("Succeeded", "Failed")
    return not child["metadata"].get("deletionTimestamp") and not ended
