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

from k8s_cr_driver.objects.dependencies import DEPENDS_ON
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
    stable = json.dumps({**manifest, "metadata": metadata}, sort_keys=True)
    return hashlib.sha256(stable.encode()).hexdigest()[:16]


def noted_digest(obj: CustomResource) -> str:
    """The value of the annotation; "" for other kinds."""
    return digest_of(obj.manifest) if obj.key.group_kind in _KINDS else ""


def is_of_manifest(live: Object, manifest: Object, instance: str) -> bool | None:
    """Whether the instance has applied this manifest last; None if the object does not say: others may copy the annotation."""
    is_own = manager(instance) in managers_of(live, ("metadata", "annotations", MANIFEST))
    return annotations_of(live).get(MANIFEST) == digest_of(manifest) if is_own else None


def is_webhooks_doing(live: Object, manifest: Object, instance: str) -> bool:
    """
    Whether the object has been created of this manifest: what of it never changes, and is not so, a webhook has set then.

    The API server reports what others have set since as a conflict, before it looks at fields that never change.
    """
    is_marked = all(of(manifest).items() <= of(live).items() for of in (labels, annotations_of))
    return kind_of(live) in _KINDS and is_marked and bool(is_of_manifest(live, manifest, instance))
