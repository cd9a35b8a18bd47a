# SPDX-License-Identifier: Apache-2.0
"""
Of which manifest a Pod or Job is: a digest says so, in an annotation that is applied with the manifest.

Both are replaced without being asked for when an immutable field changes. Without the digest, two things look the same: such
a change, and a webhook that has set such a field when the object was created. The second would be replaced in every
operation, without any effect. Of other kinds, fields may become immutable later, as those of a ConfigMap do.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from typing import Any

from k8s_cr_driver.objects.dependencies import DEPENDS_ON
from k8s_cr_driver.objects.fields import entries, field, text
from k8s_cr_driver.objects.immutable import concerns
from k8s_cr_driver.objects.keys import GroupKind, Object, annotations_of, kind_of, labels
from k8s_cr_driver.objects.managed_fields import managers_of
from k8s_cr_driver.objects.marks import INSTANCE_LABEL, manager
from k8s_cr_driver.resources.base import PODS, CustomResource

MANIFEST = "k8s-cr-driver/manifest"
"""Annotation with the digest of the manifest that was applied last."""
_KINDS = (PODS, GroupKind("batch", "Job"))


def digest_of(manifest: Object) -> str:
    """
    What the object waits for may be renamed, which changes nothing in it.

    Tacker's record has the objects of VDUs with the instance's label, which a manifest never has.
    """
    metadata = dict(manifest["metadata"])
    if DEPENDS_ON in annotations_of(manifest):
        metadata["annotations"] = {name: value for name, value in metadata["annotations"].items() if name != DEPENDS_ON}
    metadata["labels"] = {name: value for name, value in labels(manifest).items() if name != INSTANCE_LABEL}
    if not metadata["labels"]:
        del metadata["labels"]
    return plain_digest({**manifest, "metadata": metadata})


def plain_digest(manifest: Object) -> str:
    """Of all of it."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()[:16]


def noted_digest(obj: CustomResource) -> str:
    """The value of the annotation; "" for other kinds."""
    return digest_of(obj.manifest) if obj.key.group_kind in _KINDS else ""


def is_of_manifest(live: Object, manifest: Object, instance: str) -> bool | None:
    """Whether the instance has applied this manifest last; None if the object does not say: others may copy the annotation."""
    is_own = manager(instance) in managers_of(live, ("metadata", "annotations", MANIFEST))
    return annotations_of(live).get(MANIFEST) == digest_of(manifest) if is_own else None


def is_webhooks_doing(live: Object, manifest: Object, instance: str, refused: Collection[str]) -> bool:
    """
    Whether the object differs from the same manifest by nothing but the `refused` fields, which a webhook has set then.

    What may change, and is not as the manifest says, others have changed since.
    """
    if kind_of(live) not in _KINDS or not refused or not is_of_manifest(live, manifest, instance):
        return False
    is_marked = labels(manifest).items() <= labels(live).items()
    is_annotated = annotations_of(manifest).items() <= annotations_of(live).items()
    if _is_changed_by_others(live, instance):
        return False
    spec, now = manifest.get("spec"), live.get("spec")
    is_same_image = kind_of(live) != PODS or _images(manifest).items() <= _images(live).items()
    return is_marked and is_annotated and is_same_image and _is_within(spec, now, "spec", refused)


def _is_changed_by_others(live: Object, instance: str) -> bool:
    """Whether others own what its containers are: they have resized a Pod, say."""
    path = ("f:template",) if kind_of(live) != PODS else ("f:containers",)
    others = (one for one in entries(live, "metadata", "managedFields") if one.get("manager") != manager(instance))
    return any(field(one, "fieldsV1", "f:spec", *path) is not None for one in others)


def _images(pod: Object) -> dict[tuple[str, str], str]:
    """Of a Pod's containers, which may change: a refusal of its spec does not name them."""
    lists = ("containers", "initContainers")
    return {(name, text(one, "name")): text(one, "image") for name in lists for one in entries(pod, "spec", name)}


def _is_within(manifest: Any, live: Any, path: str, refused: Collection[str]) -> bool:
    """Whether all that the manifest sets is so, but for the refused fields and what is in them."""
    if any(concerns(where, path) for where in refused):
        return True
    if isinstance(manifest, dict) and isinstance(live, dict):
        return all(_is_within(value, live.get(name), f"{path}.{name}", refused) for name, value in manifest.items())
    return bool(manifest == live)
