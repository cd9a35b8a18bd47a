# SPDX-License-Identifier: Apache-2.0
"""Where and as whom a run writes, and how the objects of its instance are marked and found."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field

from k8s_cr_driver.errors import ApiError
from k8s_cr_driver.journal.inventory import Inventory
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.discovery import Resource, Resources
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, annotations_of, kind_of, labels
from k8s_cr_driver.objects.marks import (
    ADOPTED,
    CREATED_BY_US,
    INSTANCE_LABEL,
    PART_OF_LABEL,
    RELEASED_BY,
    SHARED,
    is_created,
    manager,
    used_by,
)
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.writes.manifest_digest import MANIFEST, noted_digest


@dataclass(frozen=True)
class WriteContext:
    """Where and as whom objects are written; one per run, used by all its threads."""

    client: Client
    inventory: Inventory
    force: bool = False
    adopt: bool = False
    adopts_crds: bool = True
    """Whether `adopt` holds for CRDs, and a CRD that another instance has left may be taken: not by a tenant."""
    makes: frozenset[str] = frozenset()
    """Namespaces that the instance may use because nobody had made them: those that others have made since are refused."""
    keep_autoscaled: bool = True
    """Leave a replica count to the autoscaler that owns it; False in SCALE, which then fails and names it."""
    autoscalers: Mapping[ObjectKey, str] = field(default_factory=dict)
    """In SCALE, which autoscaler scales an object, as errors name it."""
    yields: bool = False
    """A rollback: it takes over fields that others have set since, and yields to others what they use or have made."""
    keeps_versions: bool = False
    """Keep the versions of a CRD in which objects may be stored: all but a change of package, which is refused instead."""
    delete_guests: bool = False
    """Delete Namespaces and CRDs of this instance together with objects of others in them or of them."""
    narrows_crds: bool = False
    """A change of package that may make a CRD narrower though objects of users lose by it."""
    is_trial: bool = False
    """Nothing is stored, so nothing is logged as done."""

    @property
    def connection(self) -> Connection:
        return self.client.connection

    @property
    def resources(self) -> Resources:
        return self.client.resources

    @functools.cached_property
    def instance(self) -> str:
        return self.inventory.instance

    @functools.cached_property
    def manager(self) -> str:
        return manager(self.inventory.instance)


def selector(instance: str, kind: GroupKind) -> str:
    """The label selector that finds an instance's objects of a kind."""
    return used_by(instance) if kind in SHARED else f"{INSTANCE_LABEL}={instance}"


def is_selected(instance: str, live: Object) -> bool:
    """Whether that label selector finds the object."""
    if kind_of(live) in SHARED:
        return used_by(instance) in labels(live)
    return labels(live).get(INSTANCE_LABEL) == instance


def with_owner_labels(
    context: WriteContext, obj: CustomResource, *, made: bool, adopted: bool = False, released: str = ""
) -> CustomResource:
    """
    The object with the labels of its owner, and with the annotation that we have `made` it, or `adopted`; a Pod
    or Job with that of its manifest.

    `released`: the value of RELEASED_BY of a shared object that we have taken back: whose field it is has brought the object.
    """
    metadata = dict(obj.manifest["metadata"])
    noted = {CREATED_BY_US: "true" if made else "", ADOPTED: "true" if adopted else "", RELEASED_BY: released}
    noted[MANIFEST] = "" if adopted else noted_digest(obj)
    marks = {name: value for name, value in noted.items() if value}
    if obj.key.group_kind in SHARED:
        own_labels = {used_by(context.instance): ""}
    else:
        own_labels = {INSTANCE_LABEL: context.instance, PART_OF_LABEL: context.inventory.applyset}
    if marks:
        metadata["annotations"] = {**annotations_of(obj.manifest), **marks}
    metadata["labels"] = {**labels(obj.manifest), **own_labels}
    return obj.with_manifest({**obj.manifest, "metadata": metadata})


def marked(context: WriteContext, obj: CustomResource, live: Object) -> CustomResource:
    """The object with the labels and annotations that it has when it is applied to `live`."""
    is_adopted, is_shared = context.inventory.content.is_adopted(live), obj.key.group_kind in SHARED
    released = annotations_of(live).get(RELEASED_BY, "") if is_shared and not is_adopted else ""
    is_noted = is_adopted and not is_shared  # others may make a shared one theirs: its own marks say who has created it
    return with_owner_labels(context, obj, made=is_created(live), adopted=is_noted, released=released)


def by_uid(live: Object) -> Object:
    """The object as the precondition of a deletion by its uid alone: others may have changed it since it was read."""
    return {**live, "metadata": {name: value for name, value in live["metadata"].items() if name != "resourceVersion"}}


def has_gone(context: WriteContext, key: ObjectKey, resource: Resource, uid: str) -> bool:
    """Whether the object of that uid no longer exists; another one may have its name."""
    try:
        live = context.client.read(resource, key)
    except ApiError as error:
        if error.status != 404:
            raise
        return True
    return bool(live["metadata"]["uid"] != uid)
