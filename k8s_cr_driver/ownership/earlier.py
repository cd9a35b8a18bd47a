# SPDX-License-Identifier: Apache-2.0
"""
What an operation that failed has released, and what stays: its operator may own it again before the next operation.

It is a member still, which no watch selects any more.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from k8s_cr_driver.kube.connection import METADATA_LIST
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.objects.fields import field
from k8s_cr_driver.objects.keys import Object, ObjectKey, annotations_of, key_of, kind_of
from k8s_cr_driver.ownership.context import WriteContext
from k8s_cr_driver.ownership.labels import RELEASED_BY, SHARED

FEW = 10
"""So many objects of a kind and a namespace at most are read one by one: an operation may have deleted thousands."""

Request = Callable[[], Sequence[Object]]
Send = Callable[[Request, str], Sequence[Object]]
"""Makes a request for what is named."""


def released_earlier(
    context: WriteContext, missing: Iterable[ObjectKey], send: Send = lambda request, _: request()
) -> Iterator[tuple[Resource, Object]]:
    """Those of the members `missing` that a run before this one has released. No watch and no list has found these."""
    for (kind, namespace), keys in itertools.groupby(sorted(missing), lambda key: (key.group_kind, key.namespace)):
        if resource := context.resources.find(kind):
            for request, what in _requests(context, resource, namespace, list(keys)):
                yield from ((resource, live) for live in send(request, what) if _was_released(context, live))


def _requests(
    context: WriteContext, resource: Resource, namespace: str, keys: Collection[ObjectKey]
) -> Iterator[tuple[Request, str]]:
    """They find those that exist, and what they are for."""
    if len(keys) > FEW and "list" in resource.verbs:
        yield functools.partial(_listed, context, resource, namespace, set(keys)), f"{resource.plural} in {namespace}"
    else:
        for key in keys:
            yield functools.partial(_found, context, resource, key), str(key)


def _listed(context: WriteContext, resource: Resource, namespace: str, keys: Collection[ObjectKey]) -> list[Object]:
    found = context.client.list_if_served(resource, namespace, "", METADATA_LIST)
    return [live for live in found if key_of(live) in keys]


def _found(context: WriteContext, resource: Resource, key: ObjectKey) -> list[Object]:
    live = context.client.find(resource, key)
    return [live] if live else []


def _was_released(context: WriteContext, live: Object) -> bool:
    """And still stays. An adopted object without a namespace, and a Namespace or CRD that others use, have no mark."""
    is_marked = annotations_of(live).get(RELEASED_BY) == context.instance or kind_of(live) in SHARED
    is_going = bool(field(live, "metadata", "deletionTimestamp"))
    return not is_going and (is_marked or context.inventory.content.is_adopted(live))
