# SPDX-License-Identifier: Apache-2.0
"""Immutable fields are compared as the API server compares them: by value, and after its defaults."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from k8s_cr_driver.objects.immutable import changed_fields
from k8s_cr_driver.objects.keys import Object
from tests.instance import obj

CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
TEMPLATES = "spec.volumeClaimTemplates"


def template(storage: Any = "1Gi", metadata: Any = None, **more: Any) -> dict[str, Any]:
    spec = copy.deepcopy(CLAIM)
    spec["resources"]["requests"]["storage"] = storage  # type: ignore[call-overload,index]
    of_spec = more.pop("spec", {})
    return {"metadata": {"name": "data", **(metadata or {})}, "spec": {**spec, **of_spec}, **more}


def stateful(*templates: Any) -> Object:
    return obj("apps/v1", "StatefulSet", "db", spec={"serviceName": "db", "volumeClaimTemplates": list(templates)})


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (template(apiVersion="v1", kind="PersistentVolumeClaim"), []),
        (template(status={"phase": "Pending"}), []),
        (template(metadata={"creationTimestamp": None, "labels": {}}), []),
        (template(spec={"volumeMode": "Filesystem"}), []),
        (template("1024Mi"), []),
        (template(1024**3), []),
        (template("1.0Gi"), []),
        (template("1G"), [TEMPLATES]),
        (template("2Gi"), [TEMPLATES]),
        (template(spec={"volumeMode": "Block"}), [TEMPLATES]),
        (template(spec={"storageClassName": ""}), [TEMPLATES]),
        (template(metadata={"labels": {"a": "b"}}), [TEMPLATES]),
        ("no template", [TEMPLATES]),
    ],
)
def test_a_claim_template_that_is_spelled_out(changed: Any, expected: list[str]) -> None:
    assert changed_fields(stateful(template()), stateful(changed)) == expected
    assert changed_fields(stateful(changed), stateful(template())) == expected


def test_another_number_of_templates_is_a_change() -> None:
    assert changed_fields(stateful(template()), stateful(template(), template(metadata={"name": "b"}))) == [TEMPLATES]


@pytest.mark.parametrize(
    ("kind", "before", "after", "expected"),
    [
        (
            "PersistentVolumeClaim",
            {"resources": {"limits": {"storage": "1Gi"}}},
            {"resources": {"limits": {"storage": "1024Mi"}}},
            [],
        ),
        (
            "PersistentVolumeClaim",
            {"resources": {"limits": {"storage": "x"}}},
            {"resources": {"limits": {"storage": "y"}}},
            ["spec.resources.limits"],
        ),
        ("PersistentVolume", {"hostPath": {"path": "/a"}}, {"hostPath": {"path": "/a", "type": ""}}, []),
        ("PersistentVolume", {"hostPath": {"path": "/a"}}, {"hostPath": {"path": "/b"}}, ["spec.hostPath"]),
        ("PersistentVolume", {"iscsi": {"iqn": "a"}}, {"iscsi": {"iqn": "a", "iscsiInterface": "default"}}, []),
    ],
)
def test_of_other_kinds(kind: str, before: Any, after: Any, expected: list[str]) -> None:
    assert changed_fields(obj("v1", kind, "a", spec=before), obj("v1", kind, "a", spec=after)) == expected


@pytest.mark.parametrize("added", [{"matchExpressions": None}, {"matchLabels": {"a": "b"}}])
def test_what_is_empty_is_as_if_not_given(added: Any) -> None:
    before, after = ({"selector": {"matchLabels": {"a": "b"}, **more}} for more in ({}, added))
    assert changed_fields(obj("apps/v1", "Deployment", "a", spec=before), obj("apps/v1", "Deployment", "a", spec=after)) == []
