# SPDX-License-Identifier: Apache-2.0
"""
Shared objects, Namespaces and CRDs, that another instance has brought: this one adds its label to them and nothing else.

So no instance changes the schema, the conversion webhook or the labels that others rely on. When the instance that has
brought the object leaves, its fields go to another user: a release would remove them.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping
from typing import Any

from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.objects.fields import entries, mapping
from k8s_cr_driver.objects.keys import Object, bare, key_of, kind_of
from k8s_cr_driver.ownership.labels import SHARED, is_created, is_released, manager, used_by, users
from k8s_cr_driver.ownership.managed_fields import union


def is_co_user(live: Object, instance: str) -> bool:
    """Whether the object is shared, others use it or have made it, and the instance has applied no more than its label."""
    is_theirs = bool(users(live) - {instance}) or not (is_created(live) or is_released(live))
    return kind_of(live) in SHARED and is_theirs and not has_applied(live, instance)


def has_applied(live: Object, instance: str) -> bool:
    """Whether the instance has applied more of a shared object than its own label."""
    own: Object = {"f:metadata": {"f:labels": {f"f:{used_by(instance)}": {}}}}
    return any(_fields(entry) not in ({}, own) for entry in _applied(live, instance))


def join(client: Client, instance: str, resource: Resource, live: Object) -> Object:
    """Adds the label of this instance; ApiError 409 if the object has changed since it was read."""
    metadata = {name: live["metadata"][name] for name in ("uid", "resourceVersion")}
    body = bare(key_of(live), resource.api_version, **metadata, labels={used_by(instance): ""})
    return client.apply(resource, body, manager(instance), force=False)


def hand_over(client: Client, instance: str, heir: str, resource: Resource, live: Object) -> None:
    """Removes the label of `instance`, and makes what it has applied the fields of `heir`; ApiError 409 as `join`."""
    label, seen = used_by(instance), live["metadata"]["resourceVersion"]
    both = [*_applied(live, instance), *_applied(live, heir)]
    fields = copy.deepcopy(functools.reduce(union, map(_fields, both)))
    mapping(fields, "f:metadata", "f:labels").pop(f"f:{label}", None)
    entry = {**both[0], "manager": manager(heir), "fieldsV1": fields}
    others = [one for one in entries(live, "metadata", "managedFields") if one not in both]
    owned = [entry, *others]
    client.patch_metadata(resource, live, manager(heir), resourceVersion=seen, labels={label: None}, managedFields=owned)


def _applied(live: Object, instance: str) -> list[Object]:
    """The entries of what the instance has applied; an applier has one for each API version."""
    name = manager(instance)
    found = entries(live, "metadata", "managedFields")
    return [one for one in found if (one.get("manager"), one.get("operation")) == (name, "Apply")]


def _fields(entry: Mapping[str, Any]) -> dict[str, Any]:
    return mapping(entry, "fieldsV1")
