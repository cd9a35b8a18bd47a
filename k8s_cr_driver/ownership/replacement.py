# SPDX-License-Identifier: Apache-2.0
"""
Whether an object may be deleted to be created again: a change of it touches a field that never changes, or a heal wants it.

What the API server would not create must not be deleted. So its creation is tried first, as a dry run under another name. An
update shows less: it skips fields that never change, and values of custom resources that were wrong before (KEP-4008).
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

from k8s_cr_driver.errors import ApiError, DriverError, Said, passes
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.objects.fields import entries, field, sequence
from k8s_cr_driver.objects.keys import Object, ObjectKey, is_of_every_namespace
from k8s_cr_driver.ownership.context import WriteContext, with_owner_labels
from k8s_cr_driver.ownership.labels import is_created
from k8s_cr_driver.ownership.write_errors import Immutable, NotReplaced, may_pass, other_faults
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.registry import resource_for

_OF_ONE = ("globalDefault",)
"""Fields that one object of a cluster may have, which is the live one: PriorityClass."""
_UNTRIED = frozenset({Said.NO_DRY_RUN, Said.NO_PATCH})
"""Nobody knows whether the object would be created: a webhook takes no dry runs, or RBAC allows the object's name alone."""
_REQUESTS = ("resources", "requests", "limits")


def refused(context: WriteContext, obj: CustomResource, resource: Resource, refusal: Immutable) -> DriverError | None:
    """The error if the object of an Immutable change is not to be replaced, ApiError if that is not known yet."""
    live = refusal.live
    if context.inventory.content.is_adopted(live):
        return NotReplaced(f"{refusal.what}. It was adopted, so it is never deleted, nor replaced. Leave the field as it is.")
    # A rollback must be able to undo what only the new manifest allowed.
    if is_of_every_namespace(obj.key) or not (obj.replace_strategy() or resource_for(live).replace_strategy()):
        return NotReplaced(str(refusal))
    return not_created(context, obj, resource, live, refusal.error)


def not_created(
    context: WriteContext, obj: CustomResource, resource: Resource, live: Object, update: ApiError | None = None
) -> DriverError | None:
    """Why the API server would not create the object in place of `live`, if it would not; `update`: its refusal of a change."""
    manifest = with_owner_labels(context, obj, made=is_created(live)).manifest
    name = f"{obj.key.name[:40].rstrip('-.')}-{secrets.token_hex(4)}"
    allowed = {key: value for key, value in manifest.items() if key not in _OF_ONE}
    trial = {**allowed, "metadata": {**manifest["metadata"], "name": name}}
    try:
        made = context.client.create(resource, trial, context.manager, dry_run=True)
    except ApiError as error:
        if Said.UNDECLARED not in error.said and (passes(error) or (error.status == 403 and may_pass(error))):
            return error
        if _is_of_trial(error, manifest, live):
            return None
        if error.said & _UNTRIED and Said.DENIED not in error.said:
            is_faulty = update is not None and other_faults(update, manifest, live)
            return NotReplaced(f"{obj.key}: {update.message}") if update and is_faulty else None
        return NotReplaced(f"{obj.key}: {error.message}. So it is not replaced.")
    return _stored(context, resource, obj.key, made)


def _stored(context: WriteContext, resource: Resource, key: ObjectKey, made: Object) -> DriverError | None:
    """An aggregated API may not know dry runs: then the trial is deleted again, as any other would be stored, too."""
    trial = ObjectKey(key.group, key.kind, key.namespace, made["metadata"]["name"])
    if not made["metadata"].get("resourceVersion") or context.client.find(resource, trial) is None:
        return None
    context.inventory.fence.before_write()
    context.client.delete(resource, made, propagation="Background")
    return NotReplaced(f"{key}: the API server stores dry runs of {resource.plural}. So it is not replaced.")


def _is_of_trial(error: ApiError, manifest: Object, live: Object) -> bool:
    """Whether a trial was refused for nothing but its name, or for what the live object uses, which is deleted first."""
    if Said.DENIED in error.said:
        return False
    if error.status == 403 and Said.QUOTA in error.said:
        return all(value == before for value, before in _requested(manifest, live))
    if error.status == 422:
        faults = [(where, Said.of(what)) for _, where, what in error.causes] or [("", error.said)]
        named = all(where == "metadata.name" or Said.ALLOCATED in said for where, said in faults)
        return named and _allocated(manifest) <= _allocated(live)
    return error.status == 409


def _requested(manifest: Any, live: Any) -> Iterator[tuple[object, object]]:
    """What a manifest requests of a quota, each with what the live object requests there."""
    if isinstance(manifest, dict):
        for name, value in manifest.items():
            before = live.get(name) if isinstance(live, dict) else None
            if name in _REQUESTS:
                yield value, before
            else:
                yield from _requested(value, before)
    elif isinstance(manifest, list):
        others = live if isinstance(live, list) else []
        for number, value in enumerate(manifest):
            yield from _requested(value, others[number] if number < len(others) else None)


def _allocated(service: Object) -> set[str]:
    """The addresses and ports of a Service, of which each exists once."""
    found = [field(service, "spec", name) for name in ("clusterIP", "healthCheckNodePort")]
    found += [*sequence(service, "spec", "clusterIPs"), *(port.get("nodePort") for port in entries(service, "spec", "ports"))]
    return {str(one) for one in found if one} - {"None"}
