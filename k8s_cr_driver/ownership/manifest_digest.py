# SPDX-License-Identifier: Apache-2.0
"""
Of which manifest an object is, if it may be replaced: a digest says so, in an annotation that is applied with the manifest.

Without it, two things look the same: a change of a field that never changes, and a webhook that has set such a field when
the object was created. The first is to replace the object; the second would do so in every operation, without any effect.
"""

from __future__ import annotations

import hashlib
import json

from k8s_cr_driver.objects.dependencies import DEPENDS_ON
from k8s_cr_driver.objects.keys import Object, annotations_of
from k8s_cr_driver.ownership.labels import SHARED, manager
from k8s_cr_driver.ownership.managed_fields import managers_of
from k8s_cr_driver.resources.base import CustomResource

MANIFEST = "k8s-cr-driver/manifest"
"""Annotation with the digest of the manifest that was applied last."""


def digest_of(manifest: Object) -> str:
    """What the object waits for may be renamed, which changes nothing in it."""
    if DEPENDS_ON in annotations_of(manifest):
        annotations = {name: value for name, value in annotations_of(manifest).items() if name != DEPENDS_ON}
        manifest = {**manifest, "metadata": {**manifest["metadata"], "annotations": annotations}}
    return plain_digest(manifest)


def plain_digest(manifest: Object) -> str:
    """Of all of it."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()[:16]


def noted_digest(obj: CustomResource) -> str:
    """The value of the annotation; "" for an object that is never replaced."""
    return digest_of(obj.manifest) if obj.replace_strategy() and obj.key.group_kind not in SHARED else ""


def is_of_manifest(live: Object, manifest: Object, instance: str) -> bool | None:
    """Whether the instance has applied this manifest last; None if the object does not say: others may copy the annotation."""
    is_own = manager(instance) in managers_of(live, ("metadata", "annotations", MANIFEST))
    return annotations_of(live).get(MANIFEST) == digest_of(manifest) if is_own else None
