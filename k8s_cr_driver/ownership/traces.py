# SPDX-License-Identifier: Apache-2.0
"""
Whether an instance has objects of a kind, where no inventory says so.

An inventory that was deleted is created again from Tacker's record, which is that of the last operation that succeeded: it
does not name the kinds of what a failed one has written.
"""

from __future__ import annotations

from collections.abc import Collection

from k8s_cr_driver.errors import ApiError
from k8s_cr_driver.kube.connection import METADATA_LIST
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.ownership.write import WriteContext, selector


def has_objects(context: WriteContext, resource: Resource, namespaces: Collection[str]) -> bool | None:
    """
    Whether objects of a kind have the instance's label, None if that cannot be listed.

    For an account that may not list all namespaces, in these.
    """
    if "list" not in resource.verbs:
        return None
    found = _has_in(context, resource, "")
    if found is not None or not resource.namespaced:
        return found
    each = [_has_in(context, resource, namespace) for namespace in sorted(namespaces)]
    return None if set(each) <= {None} else any(each)


def _has_in(context: WriteContext, resource: Resource, namespace: str) -> bool | None:
    """None if the account may not list the kind there."""
    own = selector(context.instance, resource.group_kind)
    try:
        return bool(context.client.list_if_served(resource, namespace, own, METADATA_LIST))
    except ApiError as error:
        if error.status not in (403, 405):
            raise
        return None
