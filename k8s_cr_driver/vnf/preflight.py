# SPDX-License-Identifier: Apache-2.0
"""Applies objects as a dry run before a heal deletes them, or their VNFCs: a refusal is reported while all still run.

The real apply comes after the deletion. So what only that can show, as a webhook that accepts no dry runs, is left to it.
"""

from __future__ import annotations

import functools
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from k8s_cr_driver.engine.nodes import Desired
from k8s_cr_driver.errors import ApiError, Contended, DriverError, Refused, passes
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.connection import Connection, as_dry_run
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, split
from k8s_cr_driver.ownership.context import WriteContext
from k8s_cr_driver.ownership.labels import is_managed
from k8s_cr_driver.ownership.replacement import not_created
from k8s_cr_driver.ownership.write import LeftToOthers, write
from k8s_cr_driver.ownership.write_errors import Immutable, NoDryRun, NotReplaced
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.vnf.rotation import Persist


class _DryRun(Connection):
    """Sends writes over another connection, on which nothing is stored (Kubernetes API concepts, "Dry-run")."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def request(self, method: str, path: str, **options: Any) -> Object:
        """As `Connection.request`."""
        return self._connection.request(method, path, **as_dry_run(method, options))


def check(
    context: WriteContext,
    wanted: Collection[CustomResource],
    persist: Persist = lambda request: request(),
    *,
    recreated: Collection[ObjectKey] = (),
    redefined: Collection[GroupKind] = (),
) -> None:
    """Raises Refused (and its subclasses) for the first of the instance's objects that the server would refuse.

    Those of the keys `recreated` will be deleted, and created again. The CRDs of the kinds `redefined` may change before.
    `persist` makes the requests: no error repeats those for the objects before it.
    """
    if not wanted:
        return
    tried = trial(context, persist)
    for obj in wanted:
        refusal = persist(functools.partial(_tried, tried, obj, is_recreated=obj.key in recreated))
        if refusal and not (type(refusal) in (Refused, NotReplaced) and obj.key.group_kind in redefined):
            raise refusal


def trial(context: WriteContext, persist: Persist) -> WriteContext:
    """The context with which nothing is stored, and with the inventory as it is."""
    client, inventory = Client(_DryRun(context.connection), context.resources), context.inventory.trial()
    inventory.content = persist(inventory.read) or inventory.content
    return replace(context, client=client, inventory=inventory, is_trial=True)


def _tried(trial: WriteContext, obj: CustomResource, *, is_recreated: bool) -> DriverError | None:
    """Why the server would refuse the object. Of others' objects the run decides."""
    resource = trial.resources.find(obj.key.group_kind, split(obj.manifest["apiVersion"])[1])
    live = trial.client.find(resource, obj.key) if resource and "patch" in resource.verbs else None
    if resource is None or live is None or not (is_recreated or is_managed(live, trial.instance)):
        return None
    refusal = _refusal(trial, obj, resource, live, is_recreated=is_recreated)
    if refusal is not None and passes(refusal):
        raise refusal
    return refusal


def _refusal(
    trial: WriteContext, obj: CustomResource, resource: Resource, live: Object, *, is_recreated: bool
) -> DriverError | None:
    try:
        if is_recreated:
            refusal = not_created(trial, obj, resource, live)
        else:
            write(trial, obj, resource, live, finished=Desired(obj, resource).has_ended(trial.inventory, live))
            refusal = None
    except (Immutable, LeftToOthers, NoDryRun):
        return None
    except DriverError as error:
        refusal = error
    if isinstance(refusal, ApiError) and refusal.status == 409 and is_recreated:
        return Contended(str(refusal))
    # The engine repeats such a write until the deadline.
    is_repeated = isinstance(refusal, ApiError) and refusal.status in (403, 404, 409, 410)
    return None if is_repeated else refusal
