# SPDX-License-Identifier: Apache-2.0
"""
Whether an object is already as its manifest wants it, by what a watch has reported, without a request.

Its applier owns exactly the fields of the manifest, with the same values, in the same version of the kind. What cannot be said
so counts as a difference, such as a quantity that the server writes in another form: that costs a request, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable

from k8s_cr_driver.objects.derived import stale_fields
from k8s_cr_driver.objects.fields import mapping
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.objects.managed_fields import appliers_of, holds
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.writes.context import WriteContext, marked

_IDENTITY = ("name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields")


def differs(context: WriteContext, obj: CustomResource, live: Object | None) -> bool:
    """
    Whether a write of the object may change anything.

    `live`: the object as it is, None if there is none.
    """
    if live is None:
        return True
    applied = appliers_of(live, context.manager)
    if len(applied) != 1 or {applied[0].get("apiVersion"), live.get("apiVersion")} != {obj.manifest["apiVersion"]}:
        return True
    manifest = marked(context, obj, live).manifest
    fields, wanted = mapping(applied[0], "fieldsV1"), _without(manifest, ("apiVersion", "kind", "status"))
    wanted["metadata"] = _without(manifest["metadata"], _IDENTITY)
    return any(stale_fields(live, obj.manifest)) or not holds(fields, wanted, live)


def _without(value: Object, names: Iterable[str]) -> Object:
    return {name: one for name, one in value.items() if name not in names}
