# SPDX-License-Identifier: Apache-2.0
"""What the API server refuses of built-in kinds besides their schemas, as far as it can be seen without a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from k8s_cr_driver.objects.fields import entries, field, mapping, text, texts
from k8s_cr_driver.objects.keys import GroupKind, Object, key_of, kind_of

DATA_LIMIT = 1024 * 1024
"""Bytes of the data of a ConfigMap or Secret (`MaxSecretSize` in k8s.io/api/core/v1)."""
_SELECTING = {GroupKind("apps", kind) for kind in ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet")}
_RESTARTED = _SELECTING | {GroupKind("", "ReplicationController")}


def problems(objects: Iterable[Object]) -> list[str]:
    """A sentence for each mistake."""
    return [f"{key_of(obj)}: {problem}" for obj in objects for rule in _RULES for problem in rule(obj)]


def _selector(obj: Object) -> Iterator[str]:
    """The Pods of a workload must be those that it selects."""
    if kind_of(obj) not in _SELECTING:
        return
    selector, labels = mapping(obj, "spec", "selector"), mapping(obj, "spec", "template", "metadata", "labels")
    for name, value in mapping(selector, "matchLabels").items():
        if name not in labels or labels[name] != value:
            has = "has another value" if name in labels else "is missing"
            yield (
                f"spec.selector.matchLabels.{name}: {has} in spec.template.metadata.labels; write the same label there, or the "
                "Pods are none of this object"
            )
    for one in entries(selector, "matchExpressions"):
        if not _is_met(one, labels):
            yield (
                f"spec.selector.matchExpressions: {text(one, 'key')} {text(one, 'operator')} does not fit "
                "spec.template.metadata.labels; write labels that it selects"
            )


def _is_met(expression: Mapping[str, Any], labels: Mapping[str, Any]) -> bool:
    key, values = text(expression, "key"), texts(expression, "values")
    match expression.get("operator"):
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    return True


def _restart_policy(obj: Object) -> Iterator[str]:
    policy = field(obj, "spec", "template", "spec", "restartPolicy")
    if kind_of(obj) in _RESTARTED and policy not in (None, "", "Always"):
        yield "spec.template.spec.restartPolicy: must be Always in this kind; leave it out, or write a Job"
    if kind_of(obj) == GroupKind("batch", "Job") and policy in (None, "", "Always"):
        yield "spec.template.spec.restartPolicy: must be Never or OnFailure in a Job; write one of them"


def _size(obj: Object) -> Iterator[str]:
    if kind_of(obj) not in (GroupKind("", "ConfigMap"), GroupKind("", "Secret")):
        return
    texts_of = [value for part in ("data", "binaryData") for value in mapping(obj, part).values() if isinstance(value, str)]
    is_encoded = kind_of(obj).kind == "Secret"
    total = sum(len(value) * 3 // 4 if is_encoded else len(value.encode()) for value in texts_of)
    if total > DATA_LIMIT:
        yield f"data: has {total:,} bytes, and the API server takes {DATA_LIMIT:,}; divide it, or mount it from a volume"


_RULES: tuple[Callable[[Object], Iterator[str]], ...] = (_selector, _restart_policy, _size)
