# SPDX-License-Identifier: Apache-2.0
"""What the kinds of a package say of a change from the live objects to its own, before anything is written."""

from __future__ import annotations

from collections.abc import Sequence

from k8s_cr_driver.engine.apply import readiness
from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.objects.keys import Object, ObjectKey, key_of, split
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.hooks import Changes


def changed_last(client: Client, desired: Sequence[CustomResource]) -> set[ObjectKey]:
    """The objects whose change waits until all others are ready; InvalidRequest for the first that cannot be changed."""
    manifests = [obj.manifest for obj in desired]
    last = set()
    for obj in desired:
        if changes := obj.changes():
            live = client.find(client.resources.find(obj.key.group_kind, split(obj.manifest["apiVersion"])[1]), obj.key)
            why = _error(client, obj, changes, live, manifests)
            if why and (others := _only_on_cluster(client, obj, manifests)):
                why = _error(client, obj, changes, live, [*manifests, *others])
            if why:
                raise InvalidRequest(f"{obj.key}: {why}")
            if live and changes.is_last(live):
                last.add(obj.key)
    return last


def _error(client: Client, obj: CustomResource, changes: Changes, live: Object | None, desired: Sequence[Object]) -> str:
    why = changes.error(live, desired)
    return changes.error_of_made(readiness.made_of(client, obj, live), desired) if live and not why else why


def _only_on_cluster(client: Client, obj: CustomResource, desired: Sequence[Object]) -> list[Object]:
    """What `obj` is applied after, and the set does not have; without what may not be read."""
    keys = set(obj.relations().applied_after()) - {key_of(one) for one in desired}
    found = (client.find(client.resources.find(key.group_kind), key) for key in sorted(keys))
    return [one for one in found if one]
