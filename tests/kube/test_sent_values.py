# SPDX-License-Identifier: Apache-2.0
"""The error of a write has no value of the manifest, whatever the server or a webhook says, and still what names things."""

from __future__ import annotations

import base64

import pytest

from k8s_cr_driver.errors import ApiError
from k8s_cr_driver.kube.sent_values import without_sent
from k8s_cr_driver.objects.keys import Object
from tests.instance import crontab, obj

CANARY = "hunter2x"


def message(manifest: Object, text: str) -> str:
    return without_sent(ApiError("PATCH /x", 422, "Invalid", text, [("a", "spec.a", text)]), manifest).message


@pytest.mark.parametrize(
    "text",
    [
        f"denied the request: snmp community {CANARY} is not allowed",
        f"spec.auth: the password must not be {CANARY}",
        f"a text around{CANARY}of it",
    ],
)
def test_a_value_of_a_custom_resource_is_removed(text: str) -> None:
    manifest = {**crontab("tab"), "spec": {"auth": [{"community": CANARY}]}}
    assert CANARY not in message(manifest, text)
    error = without_sent(ApiError("PATCH /x", 422, "Invalid", text, [("a", "spec.a", text)]), manifest)
    assert CANARY not in str(error) and CANARY not in str(error.causes)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("Secret", {"stringData": {"a": CANARY}}),
        ("Secret", {"data": {"a": base64.b64encode(CANARY.encode()).decode()}}),
        ("ConfigMap", {"data": {"a": CANARY}}),
        ("Pod", {"spec": {"containers": [{"name": "c", "env": [{"name": "A", "value": CANARY}]}]}}),
        ("Pod", {"spec": {"containers": [{"name": "c", "args": ["--psk", CANARY]}]}}),
    ],
)
def test_a_value_of_a_built_in_kind_is_removed_where_it_may_be_secret(kind: str, fields: Object) -> None:
    assert CANARY not in message(obj("v1", kind, "a", "default", **fields), f"{CANARY} is wrong")


def test_the_longest_value_is_removed_first() -> None:
    manifest = {**crontab("tab"), "spec": {"a": "hunter", "b": CANARY}}
    assert message(manifest, f"{CANARY} is wrong") == "[value removed] is wrong"


@pytest.mark.parametrize(
    ("manifest", "text"),
    [
        ({**crontab("tab"), "spec": {"secretRef": {"name": "credentials"}, "a": "abcd"}}, "credentials abcd not found"),
        (obj("v1", "Pod", "a", "default", spec={"serviceAccountName": "worker"}), 'serviceaccount "worker" not found'),
        (obj("rbac.authorization.k8s.io/v1", "Role", "a", "default", rules=[{"verbs": ["create"]}]), "Verbs: [create]"),
    ],
)
def test_what_names_things_stays(manifest: Object, text: str) -> None:
    assert message(manifest, text) == text


def test_the_error_of_a_crd_is_the_servers() -> None:
    """Its schema has fields of any name, and their values are words such as "required"."""
    manifest = obj("apiextensions.k8s.io/v1", "CustomResourceDefinition", "bars.example.com")
    manifest["spec"] = {"schema": {"properties": {"value": {"required": ["source", "value"]}}}}
    text = 'CustomResourceDefinition "bars.example.com" is invalid: required value: must not be empty for specified source'
    assert message(manifest, text) == text
