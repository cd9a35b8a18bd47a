# SPDX-License-Identifier: Apache-2.0
"""
Whether an instance has objects of a kind, where no inventory says so.

An inventory that was deleted is created again from Tacker's record, which is that of the last operation that succeeded: it
does not name the kinds of what a failed one has written.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from k8s_cr_driver.errors import ApiError
from k8s_cr_driver.kube.connection import METADATA_LIST
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.objects.keys import Object, ObjectKey, key_of
from k8s_cr_driver.objects.marks import INSTANCE_LABEL
from k8s_cr_driver.writes.context import WriteContext, selector
from k8s_cr_driver.writes.members import is_hidden


def has_objects(context: WriteContext, resource: Resource, namespaces: Collection[str]) -> bool | None:
    """
    Whether objects of a kind have the instance's label, None if that cannot be listed.

    For an account that may not list all namespaces, in these.
    """
    found = _labelled(context, resource, namespaces)
    return None if found is None else bool(found)


def made_by_others(context: WriteContext, keys: Collection[ObjectKey]) -> list[ObjectKey]:
    """Those of `keys` with the instance's label that it does not own: others have created what a lost inventory had."""
    namespaces = {key.namespace for key in keys} - {""}
    served = filter(None, map(context.resources.find, sorted({key.group_kind for key in keys})))
    labelled = (live for resource in served for live in _labelled(context, resource, namespaces) or ())
    return [key_of(live) for live in labelled if key_of(live) in keys and not context.inventory.owns(live)]


def has_unlabeled(context: WriteContext, resource: Resource, namespaces: Collection[str]) -> bool:
    """Whether objects of a kind that the instance has applied have lost its label, in those namespaces that can be listed."""
    others = f"{INSTANCE_LABEL}!={context.instance}"  # selects those without it as well
    places = sorted(namespaces) if resource.namespaced else [""]
    found = (_listed(context, resource, place, others) or () for place in places)
    return any(is_hidden(live, context.instance) for several in found for live in several)


def _labelled(context: WriteContext, resource: Resource, namespaces: Collection[str]) -> Sequence[Object] | None:
    """In all namespaces, or in these for an account that may not list all; None if no list is allowed."""
    if "list" not in resource.verbs:
        return None
    selected = selector(context.instance, resource.group_kind)
    found = _listed(context, resource, "", selected)
    if found is not None or not resource.namespaced:
        return found
    each = [several for place in sorted(namespaces) if (several := _listed(context, resource, place, selected)) is not None]
    return [live for several in each for live in several] if each else None


def _listed(context: WriteContext, resource: Resource, namespace: str, selected: str) -> Sequence[Object] | None:
    """None if the account may not list the kind there."""
    try:
        return context.client.list_if_served(resource, namespace, selected, METADATA_LIST)
    except ApiError as error:
        if error.status not in (403, 405):
            raise
        return None
