# SPDX-License-Identifier: Apache-2.0
"""
The objects that the inventory names, also those that no watch and no list by label finds.

These have lost the instance's label, for example by `kubectl replace` with another manifest, or an operation that failed has
released them. Each is read by its key. The label is restored before a prune, so that they are deleted, waited for and reported
as all members are: `managedFields` still names our field manager.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from k8s_cr_driver.errors import ApiError, Contended
from k8s_cr_driver.kube.connection import METADATA_LIST
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.objects.fields import uid_of
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, annotations_of, key_of, kind_of, labels
from k8s_cr_driver.objects.marks import INSTANCE_LABEL, RELEASED_BY, SHARED, appliers, is_managed, used_by
from k8s_cr_driver.writes.context import WriteContext, has_gone, is_selected, selector
from k8s_cr_driver.writes.orphans import OwnedOrphans
from k8s_cr_driver.writes.owners import release_from_owners
from k8s_cr_driver.writes.release import has_left_fields

FEW = 10
"""So many objects of a kind and a namespace at most are read one by one: an operation may have deleted thousands."""

Found = tuple[Resource, Object]
Request = Callable[[], Sequence[Object]]
Send = Callable[[Request, str], Sequence[Object]]
"""Makes a request for what is named."""


def listed_members(context: WriteContext) -> list[Found]:
    """What has the instance's label, as PartialObjectMetadata: one LIST for each kind."""
    content = context.inventory.content
    resources = filter(None, map(context.resources.find, sorted(content.kinds)))
    return [(one, live) for one in resources for live in _labelled(context, one, content.places(one.group_kind)) or ()]


def unlisted_members(
    context: WriteContext, known: Collection[ObjectKey], send: Send = lambda request, _: request()
) -> Iterator[Found]:
    """Those that exist, and are the instance's or released by it, but for `known` ones."""
    contents = (context.inventory.content, context.inventory.remembered)
    missing = sorted(frozenset[ObjectKey]().union(*(one.members or () for one in contents)).difference(known))
    for (kind, namespace), keys in itertools.groupby(missing, lambda key: (key.group_kind, key.namespace)):
        if resource := context.resources.find(kind):
            for request, what in _requests(context, resource, namespace, list(keys)):
                for live in send(request, what):
                    has_marks = is_managed(live, context.instance) or is_selected(context.instance, live)
                    if has_marks or was_released(context, live):
                        yield resource, live


def was_released(context: WriteContext, live: Object) -> bool:
    """Whether a run has released it. An adopted object without a namespace, and a shared one, may have no mark.

    Another object of the name may have the mark, but not the fields that a release leaves.
    """
    is_marked = annotations_of(live).get(RELEASED_BY) == context.instance and has_left_fields(live)
    return is_marked or kind_of(live) in SHARED or context.inventory.content.is_adopted(live)


def release_others(context: WriteContext, deleted: Collection[Object], listed: Iterable[Found]) -> None:
    """
    Removes the references to what is about to be deleted from all else of the instance.

    Once: the garbage collector has what an operator owns again. `listed`: all that has the instance's label.
    """
    keys, labelled, claims = {key_of(live) for live in deleted}, list(listed), OwnedOrphans(context)
    others = [one for one in labelled if is_managed(one[1], context.instance) or context.inventory.owns(one[1])]
    others += unlisted_members(context, {*keys, *(key_of(live) for _, live in labelled)})
    others += [one for live in deleted for one in claims.of(live)]
    staying = [(resource, live) for resource, live in others if key_of(live) not in keys]
    release_from_owners(context, frozenset(map(uid_of, deleted)), staying)


def _requests(
    context: WriteContext, resource: Resource, namespace: str, keys: Collection[ObjectKey]
) -> Iterator[tuple[Request, str]]:
    """They find those that exist, and what they are for."""
    if len(keys) > FEW and "list" in resource.verbs:
        yield functools.partial(_named, context, resource, namespace, set(keys)), f"{resource.plural} in {namespace}"
    else:
        for key in keys:
            yield functools.partial(_found, context, resource, key), str(key)


def _named(context: WriteContext, resource: Resource, namespace: str, keys: Collection[ObjectKey]) -> list[Object]:
    found = context.client.list_if_served(resource, namespace, "", METADATA_LIST)
    return [live for live in found if key_of(live) in keys]


def _found(context: WriteContext, resource: Resource, key: ObjectKey) -> list[Object]:
    live = context.client.find(resource, key)
    return [live] if live else []


def is_hidden(live: Object, instance: str) -> bool:
    """Whether the instance has applied the object, and no other one whose label it has."""
    label = labels(live).get(INSTANCE_LABEL)
    return is_managed(live, instance) and label != instance and label not in appliers(live)


def read_unlabeled(context: WriteContext, resource: Resource, key: ObjectKey) -> Object | None:
    """The object if it exists, has no label of an instance that owns it, and this instance has applied it; else None."""
    try:
        live = context.client.read(resource, key)
    except ApiError as error:
        if error.status != 404:
            raise
        return None
    if key.group_kind not in SHARED:
        return live if is_hidden(live, context.instance) else None
    return live if used_by(context.instance) not in labels(live) and is_managed(live, context.instance) else None


def reclaim(context: WriteContext, resource: Resource, live: Object) -> Object | None:
    """Restores the label and returns the object; None if it no longer exists. Idempotent, so it may be repeated.

    A merge patch: an apply that names the label alone would drop our other fields. An adopted object is released and not
    deleted, so it is only read.
    """
    key, uid = key_of(live), live["metadata"]["uid"]
    if context.inventory.content.is_adopted(live):
        return read_unlabeled(context, resource, key)
    label = {INSTANCE_LABEL: context.instance}
    try:
        whole = context.client.read_again(resource, live)  # an error names no value of it
        context.inventory.fence.before_write()
        return context.client.patch_metadata(resource, whole, context.manager, uid=uid, labels=label)
    except ApiError as error:
        if error.status in (404, 409, 422) and has_gone(context, key, resource, uid):
            return None
        raise (Contended(f"{key} is changed by others all the time") if error.status == 409 else error) from None


def has_objects(context: WriteContext, resource: Resource, namespaces: Collection[str]) -> bool | None:
    """
    Whether objects of a kind have the instance's label, None if that cannot be listed.

    For an account that may not list all namespaces, in these.
    """
    found = _labelled(context, resource, namespaces)
    return None if found is None else bool(found)


def owned(context: WriteContext, kinds: Collection[GroupKind], namespaces: Collection[str]) -> list[ObjectKey]:
    """What of these kinds has the instance's label and its field manager; of a kind that cannot be listed nothing."""
    return [key_of(live) for live in _labelled_of(context, kinds, namespaces) if is_managed(live, context.instance)]


def made_by_others(context: WriteContext, keys: Collection[ObjectKey]) -> list[ObjectKey]:
    """Those of `keys` with the instance's label that it does not own: others have created what a lost inventory had."""
    kinds, namespaces = {key.group_kind for key in keys}, {key.namespace for key in keys} - {""}
    labelled = _labelled_of(context, kinds, namespaces)
    return [key_of(live) for live in labelled if key_of(live) in keys and not context.inventory.owns(live)]


def _labelled_of(context: WriteContext, kinds: Collection[GroupKind], namespaces: Collection[str]) -> Iterator[Object]:
    for resource in filter(None, map(context.resources.find, sorted(kinds))):
        yield from _labelled(context, resource, namespaces) or ()


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
