# SPDX-License-Identifier: Apache-2.0
"""What the kinds of a package say of a change from the live objects to its own, before anything is written."""

from __future__ import annotations

from collections.abc import Sequence

from k8s_cr_driver.engine import last_look
from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.objects.keys import ObjectKey, split
from k8s_cr_driver.resources.base import CustomResource


def changed_last(client: Client, desired: Sequence[CustomResource]) -> set[ObjectKey]:
    """The objects whose change waits until all others are ready; InvalidRequest for the first that cannot be changed."""
    manifests = [obj.manifest for obj in desired]
    last = set()
    for obj in desired:
        if obj.checks_changes:
            live = client.find(client.resources.find(obj.key.group_kind, split(obj.manifest["apiVersion"])[1]), obj.key)
            why = obj.change_error(live, manifests)
            if live and not why:
                why = obj.change_error_of_made(last_look.made_of(client, obj, live))
            if why:
                raise InvalidRequest(f"{obj.key}: {why}")
            if live and obj.is_changed_last(live):
                last.add(obj.key)
    return last
