# SPDX-License-Identifier: Apache-2.0
"""Applies objects as a dry run before a heal deletes them, or their VNFCs: a refusal is reported while all still run.

The real apply comes after the deletion. So what only that can show, as a webhook that accepts no dry runs, is left to it.
"""

from __future__ import annotations

import functools
from collections.abc import Collection

from k8s_cr_driver.engine.run.nodes import Desired
from k8s_cr_driver.errors import ApiError, Contended, DriverError, Refused, passes
from k8s_cr_driver.objects.keys import GroupKind, ObjectKey, split
from k8s_cr_driver.objects.marks import is_managed, is_optional
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.vnf.rotation import Persist
from k8s_cr_driver.writes.context import WriteContext
from k8s_cr_driver.writes.create_or_apply import refusal, trial_of
from k8s_cr_driver.writes.replacement import not_created
from k8s_cr_driver.writes.write_errors import NotReplaced


def check(
    context: WriteContext,
    wanted: Collection[CustomResource],
    persist: Persist = lambda request: request(),
    *,
    recreated: Collection[ObjectKey] = (),
    redefined: Collection[GroupKind] = (),
) -> None:
    """Raises Refused (and its subclasses) for the first of the instance's objects that the server would refuse.

    Of optional ones the run decides. Those of the keys `recreated` will be deleted, and created again. The CRDs of the kinds
    `redefined` may change before.
    `persist` makes the requests: no error repeats those for the objects before it.
    """
    if not wanted:
        return
    tried = trial(context, persist)
    for obj in wanted:
        if is_optional(obj.manifest) and obj.key not in recreated:
            continue
        why = persist(functools.partial(_tried, tried, obj, is_recreated=obj.key in recreated))
        if why and not (type(why) in (Refused, NotReplaced) and obj.key.group_kind in redefined):
            raise why


def trial(context: WriteContext, persist: Persist) -> WriteContext:
    """The context with which nothing is stored, and with the inventory as it is."""
    tried = trial_of(context)
    tried.inventory.content = persist(tried.inventory.read) or tried.inventory.content
    return tried


def _tried(trial: WriteContext, obj: CustomResource, *, is_recreated: bool) -> DriverError | None:
    """Why the server would refuse the object. Of others' objects the run decides."""
    resource = trial.resources.find(obj.key.group_kind, split(obj.manifest["apiVersion"])[1])
    live = trial.client.find(resource, obj.key) if resource and "patch" in resource.verbs else None
    if resource is None or live is None or not (is_recreated or is_managed(live, trial.instance)):
        return None
    if is_recreated:
        why = not_created(trial, obj, resource, live)
        if isinstance(why, ApiError) and why.status == 409:
            raise Contended(str(why))
        why = None if isinstance(why, ApiError) and why.status in (403, 404, 410) else why
    else:
        why = refusal(trial, obj, resource, live, finished=Desired(obj, resource).has_ended(trial.inventory, live))
    if why is not None and passes(why):
        raise why
    return why
