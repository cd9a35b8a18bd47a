# SPDX-License-Identifier: Apache-2.0
"""
The labels, annotations and field managers by which an object is recognized as an instance's.

The label finds objects; the field manager proves that this instance has applied them, because a controller may copy
labels to the objects it creates. A shared object carries one label for each instance that uses it.
"""

from __future__ import annotations

import datetime

from k8s_cr_driver.objects.fields import entries, field, mapping
from k8s_cr_driver.objects.keys import CRD, NAMESPACE, Object, annotations_of, kind_of, labels
from k8s_cr_driver.objects.managed_fields import is_applier
from k8s_cr_driver.objects.times import moment

INSTANCE_LABEL = "tacker_vnf_instance_id"
"""Tacker's in-tree driver sets the same label."""
PART_OF_LABEL = "applyset.kubernetes.io/part-of"
SHARED = frozenset({NAMESPACE, CRD})
"""Kinds that several instances may bring; see USED_BY."""
USED_BY = "used-by.k8s-cr-driver"
"""Prefix of the labels that shared objects carry, one for each instance that uses them."""
CREATED_BY_US = "k8s-cr-driver/made"
"""Annotation of an object that one of our instances has created: on a shared object, which its last user deletes only then,
and on one that was adopted and has been deleted and created again since."""
ADOPTED = "k8s-cr-driver/adopted"
"""Annotation of an object that others have created and an instance has adopted: it says so when the inventory is lost."""
CREATION_TAKES = datetime.timedelta(seconds=60)
"""The most by which an object is younger than the apply that has created it: admission webhooks are asked in between."""

CLAIMED = "k8s-cr-driver/claimed"
"""Annotation of an object of which the instance owns but this and the label: without the label its field manager remains."""

KEEP = "k8s-cr-driver/keep"
"""Annotation `k8s-cr-driver/keep: "true"`: terminate and prune release the object and do not delete it."""
OPTIONAL = "k8s-cr-driver/optional"
"""Annotation `k8s-cr-driver/optional: "true"`: no operation waits for the object longer than for the others."""
KEPT_BY = "kept-by-k8s-cr-driver"
"""The field manager of the fields of a released object that is kept, or shared; their values stay."""
KEEPS = "keeps.k8s-cr-driver"
"""Prefix of the annotations of a Namespace in which instances have released objects that stay, one for each instance."""
RELEASED_BY = "k8s-cr-driver/released-by"
"""Annotation of an object that an instance has released and that must not be deleted: its Namespace stays, too.
Instances may use a shared object with it as one of theirs, but they do not delete it."""


def has_been_adopted(live: Object) -> bool:
    """Whether an instance has applied that it has adopted the object. A copied annotation alone does not say so."""
    is_marked = annotations_of(live).get(ADOPTED) == "true" and kind_of(live) not in SHARED
    return is_marked and any(
        str(entry.get("manager")).startswith(manager(""))
        and field(entry, "fieldsV1", "f:metadata", "f:annotations", f"f:{ADOPTED}") is not None
        for entry in entries(live, "metadata", "managedFields")
    )


def is_kept(live: Object) -> bool:
    return annotations_of(live).get(KEEP) == "true"


def is_optional(manifest: Object) -> bool:
    """Whether an operation is complete without the object: it is applied, and reported if it is not ready."""
    return annotations_of(manifest).get(OPTIONAL) == "true"


def manager(instance: str) -> str:
    """The field manager of an instance's objects."""
    return f"k8s-cr-driver-{instance}"


def used_by(instance: str) -> str:
    """The label that a shared object carries for this instance."""
    return f"{USED_BY}/{instance}"


def users(live: Object) -> set[str]:
    """The instances that use a shared object."""
    return {label.partition("/")[2] for label in labels(live) if label.startswith(f"{USED_BY}/")}


def is_created(live: Object) -> bool:
    """Whether one of our instances has created the object; see CREATED_BY_US. A copied annotation alone does not say so."""
    return annotations_of(live).get(CREATED_BY_US) == "true" and bool(appliers(live))


def is_released(live: Object) -> bool:
    """Whether an instance has released the object; see RELEASED_BY."""
    return RELEASED_BY in annotations_of(live)


def is_managed(live: Object, instance: str) -> bool:
    """Whether this instance's field manager has applied the object; a copied label alone does not make it ours."""
    return instance in appliers(live)


def appliers(live: Object) -> set[str]:
    """The instances whose field managers own fields of the object."""
    entries, ours = (live.get("metadata") or {}).get("managedFields") or [], manager("")
    managers = (str(entry.get("manager")) for entry in entries)
    return {name.removeprefix(ours) for name in managers if name.startswith(ours)}


def has_applied(live: Object, instance: str) -> bool:
    """Whether the instance has applied more of a shared object than its label, and that it is to be kept."""
    return any(_is_more_than_marks(entry, instance) for entry in entries(live, "metadata", "managedFields"))


def bringers(live: Object) -> set[str]:
    """The instances that have applied more than their marks of a shared object."""
    return {instance for instance in appliers(live) if has_applied(live, instance)}


def _is_more_than_marks(entry: Object, instance: str) -> bool:
    if not is_applier(entry, manager(instance)):
        return False
    fields = mapping(entry, "fieldsV1")
    metadata = mapping(fields, "f:metadata")
    labelled, annotated = mapping(metadata, "f:labels"), mapping(metadata, "f:annotations")
    others = [*fields.keys() - {"f:metadata"}, *metadata.keys() - {"f:labels", "f:annotations"}]
    others += [*labelled.keys() - {f"f:{used_by(instance)}"}, *annotated.keys() - {f"f:{KEEP}"}]
    return any(name != "." for name in others)


def is_copy(live: Object, instance: str) -> bool:
    """
    Whether this instance's field manager has not applied the object since it exists.

    A backup that is restored, and an export that is created under another name, have the labels and perhaps the
    `managedFields` of the original, with the times of these.
    """
    return is_older_than(live, manager(instance))


def is_older_than(live: Object, name: str) -> bool:
    """Whether no entry of the field manager of that name is as young as the object."""
    metadata = live["metadata"]
    times = [one.get("time") for one in metadata.get("managedFields") or [] if one.get("manager") == name]
    try:
        created, *applied = [moment(one) for one in (metadata.get("creationTimestamp"), *times)]
        return all(created - one > CREATION_TAKES for one in applied)
    except ValueError:
        return True  # no API server writes such a time
