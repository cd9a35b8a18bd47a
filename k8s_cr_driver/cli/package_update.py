# SPDX-License-Identifier: Apache-2.0
"""What a change from one package to another cannot apply, as far as the packages show."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from k8s_cr_driver.objects import crds
from k8s_cr_driver.objects.crds import crds_of
from k8s_cr_driver.objects.fields import field
from k8s_cr_driver.objects.immutable import REPLACE, changed_fields, is_replaced
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, key_of, kind_of
from k8s_cr_driver.objects.marks import SHARED
from k8s_cr_driver.objects.quantities import is_less
from k8s_cr_driver.package.crd_changes import narrowed
from k8s_cr_driver.scaffold.model import enumerated

_CLAIM, _STORAGE = GroupKind("", "PersistentVolumeClaim"), ("spec", "resources", "requests", "storage")
_NEVER_REPLACED = "or rename the object: its kind is never replaced"
_REPLACED = f'rename the object, or annotate it with {REPLACE}: "true"'


def immutable_changes(old: Sequence[Object], new: Sequence[Object]) -> Iterator[str]:
    """A sentence for each field that the cluster will not let change, where the objects may not be replaced."""
    before: dict[ObjectKey, Object] = {key_of(obj): obj for obj in old}
    found: dict[tuple[str, str], list[ObjectKey]] = defaultdict(list)
    for obj in new:
        key = key_of(obj)
        was = before.get(key)
        is_shared = key.group_kind in SHARED
        if was is None or (is_replaced(obj) and not is_shared):
            continue
        for path in changed_fields(was, obj):
            found[path, _NEVER_REPLACED if is_shared else _REPLACED].append(key)
    for (path, remedy), keys in found.items():
        yield f"{enumerated(keys)}: {path} is immutable and changes. Keep it, {remedy}"


def narrower_crds(old: Sequence[Object], new: Sequence[Object]) -> Iterator[str]:
    """A sentence for each part of a CRD that the new package does not have: objects of others may need it."""
    before = crds_of(old)
    for kind, crd in crds_of(new).items():
        for less in narrowed(before[kind], crd) if kind in before else ():
            yield f"{key_of(crd)}: {less}. A change is refused while objects of others need it, or other instances use the CRD"


def shrinking_claims(old: Sequence[Object], new: Sequence[Object]) -> Iterator[str]:
    """A sentence for each claim that asks for less than before."""
    before = {key_of(obj): field(obj, *_STORAGE) for obj in old if kind_of(obj) == _CLAIM}
    for obj in new:
        had, wants = before.get(key_of(obj)), field(obj, *_STORAGE)
        if kind_of(obj) == _CLAIM and is_less(wants, had):
            change = f"{'.'.join(_STORAGE)} is {wants} and was {had}"
            yield f"{key_of(obj)}: {change}. A volume never shrinks: keep it, or rename the object"


def lost_versions(old: Sequence[Object], new: Sequence[Object]) -> Iterator[str]:
    """A sentence for each CRD that loses versions in which a cluster may have stored objects."""
    after = crds_of(new)
    for kind, crd in crds_of(old).items():
        if kind in after and (lost := crds.lost_versions(crd, after[kind])):
            yield (
                f"{key_of(crd)}: version {enumerated(lost)} vanishes. A cluster that has stored objects in it refuses that "
                "(status.storedVersions). Keep it with served: false until all of them are migrated"
            )
