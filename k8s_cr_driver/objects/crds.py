# SPDX-License-Identifier: Apache-2.0
"""What a CustomResourceDefinition says of its kind."""

from __future__ import annotations

from collections.abc import Iterable

from k8s_cr_driver.objects.fields import field
from k8s_cr_driver.objects.keys import CRD, GroupKind, Object, kind_of


def defined_by(crd: Object) -> GroupKind:
    """The kind that a CustomResourceDefinition defines."""
    return GroupKind(str(field(crd, "spec", "group")), str(field(crd, "spec", "names", "kind")))


def crds_of(objects: Iterable[Object]) -> dict[GroupKind, Object]:
    """The CustomResourceDefinitions among `objects`, by the kind that each defines."""
    return {defined_by(obj): obj for obj in objects if kind_of(obj) == CRD}
