"""Custom resources are checked against their package's own CRDs as the API server would, and without showing values."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.package.schema import check

PROPERTIES: dict[str, Any] = {
    "count": {"type": "integer", "minimum": 1, "maximum": 5},
    "ratio": {"type": "number", "minimum": 0, "exclusiveMinimum": True},
    "color": {"type": "string", "enum": ["Red", "Green"]},
    "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 4},
    "go": {"type": "string", "pattern": "^[[:alpha:]]+$"},
    "mode": {"type": "string", "default": "x"},
    "note": {"type": "string", "nullable": True},
    "port": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"a": {"type": "string"}}},
    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    "template": {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}},
    },
    "list": {
        "type": "array",
        "minItems": 1,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
    },
    "empty": {"type": "object"},
    "either": {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
    },
}
CRD: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "tabs.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Tab", "plural": "tabs"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "required": ["spec"],
                        "properties": {
                            "metadata": {"type": "object"},
                            "spec": {"type": "object", "required": ["count", "mode"], "properties": PROPERTIES},
                        },
                    }
                },
            },
            {"name": "v1alpha1", "served": False, "schema": {"openAPIV3Schema": {"type": "object"}}},
        ],
    },
}


def tab(version: str = "v1", **spec: Any) -> Object:
    metadata = {"name": "one", "namespace": "blue", "labels": {"a": "b"}}
    return {"apiVersion": f"example.com/{version}", "kind": "Tab", "metadata": metadata, "spec": {"count": 1, **spec}}


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"ratio": 1, "color": "Red", "name": "abc", "go": "1"},
        {"mode": None, "note": None, "color": None, "labels": {"a": None}},
        {"port": 80},
        {"port": "80%"},
        {"free": {"a": "x", "b": {"c": [1]}}},
        {"labels": {"any": "x"}},
        {"template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": "b"}}, "spec": {"a": "x"}}},
        {"list": [{"name": "a"}, {"name": "b"}]},
        {"either": {"a": "x"}},
    ],
)
def test_what_the_schema_allows_passes(spec: dict[str, Any]) -> None:
    check([CRD, tab(**spec)])


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"count": "hunter2"}, "Tab.example.com blue/one: spec.count: is text, must be integer"),
        ({"count": 0}, "spec.count: must be at least 1"),
        ({"count": 6}, "spec.count: must be at most 5"),
        ({"ratio": 0}, "spec.ratio: must be at least 0"),
        ({"color": "red"}, "spec.color: must be one of Red, Green; did you mean Red?"),
        ({"name": "Abc"}, r"spec.name: must match \^\[a-z\]\+\$"),
        ({"name": "abcde"}, "spec.name: must have at most 4 characters"),
        ({"mode": 1}, "spec.mode: is an integer, must be string"),
        ({"count": None}, "spec.count: is missing and required"),
        ({"list": [None]}, r"spec.list\[0\]: is null, must be object"),
        ({"port": True}, r"spec.port: is a boolean, must be integer or string"),
        ({"free": {"a": 1}}, "spec.free.a: is an integer, must be string"),
        ({"labels": {"any": 1}}, "spec.labels.any: is an integer, must be string"),
        (
            {"template": {"spec": {"b": "x"}}},
            "spec.template.spec.b: unknown field, which the API server would drop; known are a",
        ),
        ({"list": [{"name": "a"}, {"name": "a"}]}, r"spec.list\[1\]: another entry of this list has name a, too"),
        ({"list": [{}]}, r"spec.list\[0\].name: is missing and required"),
        ({"list": []}, "spec.list: must have at least 1 entries"),
        ({"colour": "Red"}, "spec.colour: unknown field, .*; did you mean color?"),
        ({"empty": {"a": 1}}, "spec.empty.a: unknown field, .*; known are none"),
        (
            {"either": {}},
            "spec.either: fits none of the forms that the schema allows; spec.either.a is missing.*; spec.either.b is",
        ),
        ({"either": {"a": "x", "b": "y"}}, "spec.either: fits more than one of the forms"),
    ],
)
def test_what_it_does_not_allow_is_told_by_field(spec: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidPackage, match=words) as caught:
        check([tab(**spec), CRD])
    assert "hunter2" not in str(caught.value)


def test_all_violations_are_told_up_to_ten() -> None:
    with pytest.raises(InvalidPackage) as caught:
        check([CRD, tab(count="x", ratio="x"), tab(**{f"unknown{number}": 1 for number in range(20)})])
    _, *lines = str(caught.value).splitlines()
    assert len(lines) == 11
    assert lines[0].startswith("Tab.example.com blue/one: spec.count")
    assert lines[-1] == "... and more"


def test_a_missing_part_is_named() -> None:
    broken = tab()
    del broken["spec"]
    with pytest.raises(InvalidPackage, match="blue/one: spec: is missing and required"):
        check([CRD, broken])


@pytest.mark.parametrize("version", ["v2", "v1alpha1"])
def test_versions_that_are_not_served_are_refused(version: str) -> None:
    with pytest.raises(InvalidPackage, match=r"apiVersion: its CustomResourceDefinition serves only example.com/v1"):
        check([CRD, tab(version)])


def test_required_fields_that_a_webhook_of_the_package_may_set_are_not_asked_for() -> None:
    hook = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "hook"},
        "webhooks": [{"name": "hook", "rules": [{"apiGroups": ["example.com"], "resources": ["tabs"]}]}],
    }
    incomplete = tab()
    del incomplete["spec"]["count"]
    check([CRD, incomplete, hook])
    with pytest.raises(InvalidPackage, match=r"spec.count: is missing"):
        check([CRD, incomplete])


def test_kinds_that_the_package_does_not_define_are_left_to_the_api_server() -> None:
    check([tab(count="x"), {**tab(), "apiVersion": "other.com/v1"}])


@pytest.mark.parametrize(
    "schema",
    [
        None,
        {},
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        {"type": "nonsense"},
        {"properties": {"spec": 5}},
    ],
)
def test_a_schema_that_says_nothing_or_nonsense_refuses_nothing(schema: Any) -> None:
    crd = copy.deepcopy(CRD)
    crd["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": schema}
    check([crd, tab(anything=1)])
