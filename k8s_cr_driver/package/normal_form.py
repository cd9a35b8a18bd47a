# SPDX-License-Identifier: Apache-2.0
"""
The form in which a manifest is applied: without what only a server or a controller writes, a Secret without `stringData`.

`kubectl apply` takes more than a server-side apply does, and packages hold what authors have exported from a cluster.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.objects import rule_texts
from k8s_cr_driver.objects.fields import type_name
from k8s_cr_driver.objects.keys import GroupKind, Object, annotations_of, kind_of
from k8s_cr_driver.objects.rule_texts import (
    FAILED_WHEN,
    IGNORE_GENERATION,
    LEAST,
    MOST,
    NO_ACTIVITY,
    READY_WHEN,
    SUSPENDED_WHEN,
    no_activity_seconds,
)

_SERVER_METADATA = (
    "managedFields",
    "resourceVersion",
    "uid",
    "generation",
    "selfLink",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_ANNOTATIONS = {
    "k8s-cr-driver/keep": ("true", "false"),
    "k8s-cr-driver/replace": ("true", "false"),
    "k8s-cr-driver/external-etcd": ("true", "false"),
    "k8s-cr-driver/unreachable": ("true", "false"),
    "k8s-cr-driver/optional": ("true", "false"),
    IGNORE_GENERATION: ("true", "false"),
}
"""The values of the driver's own annotations: another one would have no effect, and nobody would know why."""

_SECRET, _CONFIG_MAP = GroupKind("", "Secret"), GroupKind("", "ConfigMap")
_CLUSTER_ROLE = GroupKind("rbac.authorization.k8s.io", "ClusterRole")


def bring(obj: Object) -> None:
    """Brings a manifest into this form, in place. Raises InvalidPackage that names the field, and no value."""
    _drop_server_fields(obj)
    _drop_null_texts(obj)
    _drop_aggregated_rules(obj)
    _check_texts(obj)
    if kind_of(obj) == _SECRET:
        _encode_string_data(obj)


def _drop_server_fields(obj: Object) -> None:
    """
    Remove what only a server writes; manifests exported from a cluster hold it.

    The API server refuses managedFields in an apply, takes uid and resourceVersion for preconditions, and ignores a
    status, or in a kind without the subresource would have us own what a controller writes.
    """
    obj.pop("status", None)
    for field in _SERVER_METADATA:
        obj["metadata"].pop(field, None)
    annotations = obj["metadata"].get("annotations")
    if isinstance(annotations, dict):
        annotations.pop(_LAST_APPLIED, None)


def _drop_null_texts(obj: Object) -> None:
    """As `kubectl apply` does: to a server-side apply a null is an empty text."""
    for _, value in _texts(obj):
        if isinstance(value, dict):
            for name in [name for name, text in value.items() if text is None]:
                del value[name]


def _drop_aggregated_rules(obj: Object) -> None:
    """The rules of an aggregated ClusterRole are a controller's, which owns them as soon as it has filled them in."""
    if kind_of(obj) == _CLUSTER_ROLE and obj.get("aggregationRule"):
        obj.pop("rules", None)


def _texts(obj: Object) -> list[tuple[str, Any]]:
    """(field, value) of the fields that hold mappings of texts: YAML turns unquoted values into numbers and booleans."""
    holders = [(f"metadata.{field}", obj["metadata"].get(field)) for field in ("labels", "annotations")]
    if kind_of(obj) in (_SECRET, _CONFIG_MAP):
        holders += [(field, obj.get(field)) for field in ("data", "stringData", "binaryData")]
    return holders


def _check_texts(obj: Object) -> None:
    """Labels, annotations and data are text: YAML makes numbers and booleans of what is not in quotes."""
    for field, value in _texts(obj):
        if value is None:
            continue
        if not isinstance(value, dict):
            raise InvalidPackage(f"{field}: must be a mapping of texts")
        for name, text in value.items():
            if not isinstance(text, str):
                raise InvalidPackage(f"{field}.{name}: is {type_name(text)}, must be text; write the value in quotes")
    check_annotations(obj)


def check_annotations(obj: Object) -> None:
    """Raise InvalidPackage for an annotation of the driver whose value it cannot read; names the annotation and the remedy."""
    for name, values in _ANNOTATIONS.items():
        if annotations_of(obj).get(name, values[0]) not in values:
            raise InvalidPackage(f"metadata.annotations.{name}: must be {' or '.join(values)}")
    given = annotations_of(obj).get(NO_ACTIVITY)
    if given is not None and no_activity_seconds(given) is None:
        raise InvalidPackage(f"metadata.annotations.{NO_ACTIVITY}: must be seconds, from {LEAST} to {MOST} (a week)")
    for name in (READY_WHEN, FAILED_WHEN, SUSPENDED_WHEN):
        if (text := annotations_of(obj).get(name)) is None:
            continue
        if not isinstance(text, str):
            raise InvalidPackage(f"metadata.annotations.{name}: is {type_name(text)}, must be text; write the value in quotes")
        if problem := rule_texts.check(name, text):
            wanted = "must be stored or a rule" if name == READY_WHEN else "must be a rule"
            raise InvalidPackage(f"metadata.annotations.{name}: {wanted}: {problem}")


def _encode_string_data(obj: Object) -> None:
    """Move a Secret's stringData into its data: a key that is removed from stringData would stay in data."""
    for name, text in (obj.get("data") or {}).items():
        if not _is_base64(text):
            raise InvalidPackage(f"data.{name}: is not base64; write the plain text under stringData")
    plain = obj.pop("stringData", None) or {}
    if plain:
        encoded = {name: base64.b64encode(text.encode()).decode() for name, text in plain.items()}
        obj["data"] = {**(obj.get("data") or {}), **encoded}


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(re.sub(r"[\r\n]", "", text), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True
