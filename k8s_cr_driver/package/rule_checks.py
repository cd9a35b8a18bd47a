# SPDX-License-Identifier: Apache-2.0
"""What is suspicious about the readiness rules of a package, although they can be read."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence

from k8s_cr_driver.objects import rule_files, rule_texts
from k8s_cr_driver.objects.crds import crds_of, defined_by
from k8s_cr_driver.objects.fields import similar
from k8s_cr_driver.objects.keys import CRD, NAMESPACE, GroupKind, Object, annotations_of, key_of, kind_of
from k8s_cr_driver.objects.rule_fields import unknown_field, unknown_field_of_cel

_ANNOTATIONS = (rule_texts.READY_WHEN, rule_texts.FAILED_WHEN, rule_texts.SUSPENDED_WHEN)

SHARED = frozenset({NAMESPACE, CRD})
"""Kinds whose objects instances share: what one of them has in an annotation would be of all."""
Sourced = Mapping[GroupKind, tuple[rule_files.KindRules, str]]
"""The rules of each kind, and the entry that has them: its file and document, or parameter, and its place there."""


def warnings(rules: Sourced, objects: Sequence[Object]) -> Iterator[str]:
    """Those `of_kinds`, for rules of a package, and a sentence for each annotation with a field that its kind does not have."""
    for kind in rules.keys() & SHARED:
        yield f"{rules[kind][1]} ({kind}): its rules are ignored, because other instances may share the object"
    yield from of_kinds(rules, objects, crds_of(objects))
    yield from of_annotations(objects, crds_of(objects))


def of_kinds(rules: Sourced, objects: Sequence[Object], crds: Mapping[GroupKind, Object]) -> Iterator[str]:
    """A sentence for each kind with rules that no object has, and for each rule with a field that its kind does not have."""
    kinds = {kind_of(obj) for obj in objects}
    for kind, (written, source) in rules.items():
        if kind not in kinds:
            near = _near(kind, kinds)
            hint = f"; did you mean {near}?" if near else ""
            yield f"{source} ({kind}): there are rules for it, and no object is of that kind{hint}"
            continue
        for name in rule_files.EXPRESSIONS:
            if name in written and (wrong := unknown_field_of_cel(written[name], crds.get(kind))):
                yield f"{source} ({kind}).{name}: {wrong}"


def of_annotations(objects: Sequence[Object], crds: Mapping[GroupKind, Object]) -> Iterator[str]:
    """A sentence for each annotation of an object, or of a CRD among them, that is such a rule."""

    @functools.cache
    def wrong(kind: GroupKind, written: str) -> str:
        return unknown_field(written, crds.get(kind))

    for obj in objects:
        kind = defined_by(obj) if kind_of(obj) == CRD else kind_of(obj)
        for name in _ANNOTATIONS:
            written = annotations_of(obj).get(name, rule_texts.STORED)
            if written != rule_texts.STORED and (problem := wrong(kind, written)):
                yield f"{key_of(obj)}: metadata.annotations.{name}: {problem}"


def _near(kind: GroupKind, kinds: set[GroupKind]) -> str:
    same = sorted(str(one) for one in kinds if one.kind == kind.kind)
    return same[0] if same else similar(str(kind), sorted(map(str, kinds)), cutoff=0.8)
