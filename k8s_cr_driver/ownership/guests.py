# SPDX-License-Identifier: Apache-2.0
"""
Guests: objects of others that the deletion of a Namespace or CRD would delete too.

A Namespace takes all its content with it, and a CRD all objects of its kind. So the last instance that uses one looks for
guests before it deletes it, and only releases it if there are any. What cannot be listed counts as a guest.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence

from k8s_cr_driver.errors import ApiError
from k8s_cr_driver.kube.connection import METADATA_LIST
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.objects.crds import defined_by
from k8s_cr_driver.objects.fields import field
from k8s_cr_driver.objects.keys import NAMESPACE, GroupKind, Object, ObjectKey, annotations_of, key_of, kind_of, labels, split
from k8s_cr_driver.ownership.labels import INSTANCE_LABEL, RELEASED_BY, is_managed
from k8s_cr_driver.ownership.write import WriteContext

CONTENT = (GroupKind("", "Pod"), GroupKind("", "PersistentVolumeClaim"))
"""Kinds whose objects keep a Namespace: what runs, and data."""
HELM = (GroupKind("", "Secret"), GroupKind("", "ConfigMap"))
"""Kinds in which Helm stores releases, with the label `owner=helm`."""
EVENTS = (GroupKind("", "Event"), GroupKind("events.k8s.io", "Event"))
NAMED = 3
"""Guests that are named in the reason."""
LONGEST_CHAIN = 10
"""Owners from a Pod upwards that are read."""


def guests_of(context: WriteContext, live: Object) -> str:
    """Why a Namespace or CRD must stay; "" if nobody else needs it."""
    key = key_of(live)
    kind = defined_by(live)
    for other in context.inventory.others():
        if (key.name in other.namespaces) if key.group_kind == NAMESPACE else (kind in other.kinds):
            return "other instances use it"
    try:
        found = _in_namespace(context, key.name) if key.group_kind == NAMESPACE else _of_kind(context, kind)
        names = [str(key_of(guest)) for guest in found]
    except ApiError as error:
        if error.status != 403:
            raise
        return f"it may hold objects of others, which the driver may not list: {error.message}"
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"it holds objects of others: {', '.join(names[:NAMED])}{more}" if names else ""


def _of_kind(context: WriteContext, kind: GroupKind) -> Iterator[Object]:
    resource = context.resources.find(kind)
    if resource is not None:
        yield from _strangers(context, context.client.list_if_served(resource, "", "", METADATA_LIST))


def _in_namespace(context: WriteContext, namespace: str) -> Iterator[Object]:
    """Pods and claims; of other kinds Helm's releases, what has another instance's label, and what instances have released."""
    for resource in context.resources:
        if resource.group_kind in CONTENT:
            yield from _strangers(context, context.client.list_if_served(resource, namespace, "", METADATA_LIST))
        elif _is_content(resource):
            yield from filter(functools.partial(_is_spoken_for, context), _allowed(context, resource, namespace))


def _is_content(resource: Resource) -> bool:
    """Whether the deletion of a Namespace deletes objects of the kind; Events are nobody's."""
    return resource.namespaced and {"list", "delete"} <= resource.verbs and resource.group_kind not in EVENTS


def _is_spoken_for(context: WriteContext, live: Object) -> bool:
    is_release = kind_of(live) in HELM and labels(live).get("owner") == "helm"
    belongs_to_other = labels(live).get(INSTANCE_LABEL, context.instance) != context.instance
    return belongs_to_other or RELEASED_BY in annotations_of(live) or (is_release and not _goes(context, live, LONGEST_CHAIN))


def _allowed(context: WriteContext, resource: Resource, namespace: str) -> Sequence[Object]:
    """Kinds that the account may not list, or whose server is down, are left out: few accounts may list all kinds."""
    try:
        return context.client.list_if_served(resource, namespace, "", METADATA_LIST)
    except ApiError as error:
        if error.status not in (403, 405, 503):
            raise
        return []


def _strangers(context: WriteContext, found: Iterable[Object]) -> Iterator[Object]:
    return (live for live in found if not _goes(context, live, LONGEST_CHAIN))


def _goes(context: WriteContext, live: Object, chain: int) -> bool:
    """Whether an object is deleted, or is to be garbage collected, or descends from an object of this instance.

    The garbage collector deletes an object only if all its owners are gone.
    """
    if field(live, "metadata", "deletionTimestamp") or is_managed(live, context.instance):
        return True
    owners = field(live, "metadata", "ownerReferences") or []
    return bool(owners) and chain > 0 and all(_owner_goes(context, live, owner, chain - 1) for owner in owners)


def _owner_goes(context: WriteContext, live: Object, owner: Object, chain: int) -> bool:
    """False for an owner of a kind that the cluster does not list: the garbage collector keeps what it owns."""
    group, version = split(owner["apiVersion"])
    kind = GroupKind(group, owner["kind"])
    resource = context.resources.find(kind, version) or context.resources.find(kind)
    if resource is None:
        return False
    namespace = key_of(live).namespace if resource.namespaced else ""
    try:
        above = context.client.read(resource, ObjectKey(*kind, namespace, owner["name"]))
    except ApiError as error:
        if error.status != 404:
            raise
        return True
    return bool(above["metadata"]["uid"] != owner["uid"]) or _goes(context, above, chain)
