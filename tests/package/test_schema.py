# SPDX-License-Identifier: Apache-2.0
"""Custom resources are checked against their package's own CRDs as the API server would, and without showing values."""

from __future__ import annotations

import copy
import time
import tracemalloc
from typing import Any

import pytest

from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.objects.crds import crds_of
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.package import patterns, schema, validation
from k8s_cr_driver.package.schema import check
from tests.instance import crontab, crontab_crd, obj

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
    "kept": {
        "type": "array",
        "x-kubernetes-preserve-unknown-fields": True,
        "items": {"type": "object", "properties": {"id": {"type": "string"}}},
    },
    "address": {
        "type": "object",
        "properties": {"type": {"type": "string", "default": "IP"}, "value": {"type": "string"}},
        "oneOf": [
            {"properties": {"type": {"enum": ["IP"]}, "value": {"pattern": "^[0-9.]+$"}}},
            {"properties": {"type": {"not": {"enum": ["IP"]}}}},
        ],
        "minProperties": 2,
        "maxProperties": 2,
    },
    "optional": {
        "type": "object",
        "nullable": True,
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
    },
    "step": {"type": "number", "multipleOf": 0.1},
    "never": {"type": "number", "multipleOf": 0},
    "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}},
    "ports": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["port", "protocol"],
        "items": {
            "type": "object",
            "required": ["port"],
            "properties": {"port": {"type": "integer"}, "protocol": {"type": "string", "default": "UDP"}},
        },
    },
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
        {"ratio": 1, "color": "Red", "name": "abc", "go": "Go"},
        {"mode": None, "note": None, "color": None, "labels": {"a": None}},
        {"port": 80},
        {"port": "80%"},
        {"free": {"a": "x", "b": {"c": [1]}}},
        {"labels": {"any": "x"}},
        {"template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": "b"}}, "spec": {"a": "x"}}},
        {"list": [{"name": "a"}, {"name": "b"}]},
        {"either": {"a": "x"}},
        {"kept": [{"id": "x", "unknown": {"a": 1}}]},
        {"address": {"value": "10.0.0.1"}},
        {"address": {"type": "Name", "value": "a"}},
        {"optional": None},
        {"step": 0.3},
        {"step": 1.1},
        {"set": [1, 2]},
        {"ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}]},
        {"unknown": None},
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
        ({"ratio": 0}, "spec.ratio: must be more than 0"),
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
        ({"list": [{"name": "hunter2"}, {"name": "hunter2"}]}, r"spec.list\[1\]: another entry of this list has the same name"),
        ({"list": [{}]}, r"spec.list\[0\].name: is missing and required"),
        ({"list": []}, "spec.list: must have at least 1 entries"),
        ({"colour": "Red"}, "spec.colour: unknown field, .*; did you mean color?"),
        ({"empty": {"a": 1}}, "spec.empty.a: unknown field, .*; known are none"),
        (
            {"either": {}},
            "spec.either: fits none of the forms that the schema allows; spec.either.a is missing.*; spec.either.b is",
        ),
        ({"either": {"a": "x", "b": "y"}}, "spec.either: fits more than one of the forms"),
        ({"kept": [{"id": 1}]}, r"spec.kept\[0\].id: is an integer, must be string"),
        ({"address": {"value": "a"}}, r"spec.address: fits none of the forms .*; spec.address.value must match \^\[0-9"),
        ({"address": {}}, "spec.address: must have at least 2 fields"),
        ({"optional": {}}, "spec.optional: fits none of the forms"),
        ({"step": 0.35}, "spec.step: must be a multiple of 0.1"),
        ({"never": 1}, "spec.never: must be a multiple of 0"),
        ({"set": [1, 2, 1]}, r"spec.set\[2\]: another entry of this list is the same"),
        (
            {"ports": [{"port": 1}, {"port": 1, "protocol": "UDP"}]},
            r"spec.ports\[1\]: another entry of this list has the same port, protocol",
        ),
        ({"go": "1"}, r"spec.go: must match \^\[\[:alpha:\]\]"),
    ],
)
def test_what_it_does_not_allow_is_reported_by_field(spec: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidPackage, match=words) as caught:
        check([tab(**spec), CRD])
    assert "hunter2" not in str(caught.value)


def test_all_violations_are_reported_up_to_ten() -> None:
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
    hook: Object = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "hook"},
        "webhooks": [{"name": "hook", "rules": [{"apiGroups": ["example.com"], "resources": ["tabs"]}]}],
    }
    incomplete = tab()
    del incomplete["spec"]["count"]
    check([CRD, incomplete, hook])
    hook["webhooks"][0]["rules"][0]["resources"] = ["others", "tabs/status"]
    for objects in ([CRD, incomplete], [CRD, incomplete, hook]):
        with pytest.raises(InvalidPackage, match=r"spec.count: is missing"):
            check(objects)


def test_a_name_that_no_custom_resource_can_have_is_reported() -> None:
    named = tab()
    named["metadata"]["name"] = "No_Name"
    with pytest.raises(InvalidPackage, match=r"metadata.name: No_Name is no name of a Tab; write lower-case letters"):
        check([CRD, named])


def test_kinds_that_the_package_does_not_define_are_left_to_the_api_server() -> None:
    check([tab(count="x"), {**tab(), "apiVersion": "other.com/v1"}])


@pytest.mark.parametrize(
    "nonsense",
    [
        None,
        {},
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        {"type": "nonsense"},
        {"type": []},
        {"properties": {"spec": 5}},
    ],
)
def test_a_schema_that_says_nothing_or_nonsense_refuses_nothing(nonsense: Any) -> None:
    crd = copy.deepcopy(CRD)
    crd["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": nonsense}
    check([crd, tab(anything=1)])


def with_schema(node: Any) -> Object:
    """The definition with `node` as the only field of its spec, `value`."""
    crd = copy.deepcopy(CRD)
    spec = {"type": "object", "properties": {"count": {"type": "integer"}, "value": node}}
    crd["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return crd


@pytest.mark.parametrize("pattern", ["(?=a)b", r"(a)\1", "a{1001}", "(", "[b-a]"])
def test_a_pattern_that_go_does_not_take_is_an_error_of_its_definition(pattern: str) -> None:
    words = r"CustomResourceDefinition.* tabs.example.com: spec.versions\[0\].schema.*value.pattern: is no regular expression"
    with pytest.raises(InvalidPackage, match=words):
        check([with_schema({"type": "string", "pattern": pattern})])


def test_a_field_with_the_name_pattern_is_no_pattern() -> None:
    check([with_schema({"type": "object", "properties": {"pattern": {"type": "string", "default": "("}}})])
    check([with_schema({"type": "object", "x-kubernetes-preserve-unknown-fields": True, "default": {"pattern": "("}})])


def test_a_pattern_that_backtracks_takes_no_time() -> None:
    crd = with_schema({"type": "string", "pattern": "^([0-9]+,?)+$"})
    started = time.thread_time()
    with pytest.raises(InvalidPackage, match=r"spec.value: must match"):
        check([crd, tab(value="1" * 100_000 + "x")])
    assert time.thread_time() - started < 1


@pytest.mark.parametrize(
    "branch",
    [{"$ref": "http://127.0.0.1:1/"}, {"patternProperties": {"^a$": {"type": "object"}}}, {"dependencies": {"a": ["b"]}}],
)
def test_keywords_that_no_definition_may_have_are_left_to_the_api_server(branch: dict[str, Any]) -> None:
    crd = with_schema({"type": "object", "additionalProperties": {"type": "string"}, "anyOf": [branch]})
    check([crd, tab(value={"a": "x"})])


def test_what_takes_long_is_left_to_the_api_server(monkeypatch: pytest.MonkeyPatch) -> None:
    crd = with_schema({"type": "array", "items": {"type": "string", "allOf": [{"minLength": 1}] * 100}})
    monkeypatch.setattr(schema, "STEPS", 1000)
    check([crd, tab(value=["a"] * 20 + [""])])


def test_a_deep_object_of_a_deep_schema_is_checked() -> None:
    node: Any = {"type": "string"}
    value: Any = 1
    for _ in range(180):
        node, value = {"type": "object", "additionalProperties": node}, {"a": value}
    with pytest.raises(InvalidPackage, match=r"a\.a: is an integer, must be string"):
        check([with_schema(node), tab(value=value)])


@pytest.mark.parametrize("number", [10**4000, -(10**400), 1e308])
def test_numbers_of_any_size_are_compared(number: float) -> None:
    check([with_schema({"type": "number", "multipleOf": 0.7, "minimum": -(10**500)}), tab(value=number)])


@pytest.mark.parametrize(
    "hook",
    [
        {"kind": "MutatingWebhookConfiguration", "webhooks": [{"rules": [{"apiGroups": ["*"]}]}]},
        {"kind": "MutatingAdmissionPolicy", "spec": {"matchConstraints": {"resourceRules": [{"apiGroups": ["example.com"]}]}}},
    ],
)
def test_what_admission_of_the_package_may_add_is_not_asked_for(hook: Object) -> None:
    hook = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": "hook"}, **hook}
    check([CRD, tab(either={}, address={}), hook])
    with pytest.raises(InvalidPackage, match=r"spec.either: fits none"):
        check([CRD, tab(either={})])


def test_the_rules_of_webhooks_are_read_once_whatever_they_are_for(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []
    texts = schema.texts
    monkeypatch.setattr(schema, "texts", lambda value, name: read.append(value) or texts(value, name))
    rules = [{"apiGroups": ["other.example.com"], "resources": [f"tubs{number}"]} for number in range(50)]
    hook = obj("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "a", webhooks=[{"rules": rules}])
    check([CRD, crontab_crd(), hook, *(tab(count=1, mode="x") for _ in range(20)), *(crontab(f"t{i}") for i in range(20))])
    assert len(read) == 2 * len(rules)


def with_patterns(count: int) -> list[Object]:
    """A CRD of `count` patterns, and a custom resource that has a value for each."""
    crd = crontab_crd()
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"] = {f"a{number}": {"type": "string", "pattern": f"^b{number}$"} for number in range(count)}
    return [crd, {**crontab("one"), "spec": {f"a{number}": "c" for number in range(count)}}]


def test_no_more_patterns_of_a_package_are_compiled_than_take_some_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    compile_ = patterns.re2.compile

    def counted(pattern: str, options: Any) -> Any:
        compiled.append(pattern)
        return compile_(pattern, options)

    monkeypatch.setattr(patterns.re2, "compile", counted)
    monkeypatch.setattr(schema, "PATTERNS", 20)
    monkeypatch.setattr(schema, "STEPS", 30 * validation.STEPS_OF_PATTERN)
    patterns._compiled.cache_clear()
    with pytest.raises(InvalidPackage, match="must match"):  # what exceeds the budget is left to the API server
        check(with_patterns(100))
    assert 20 <= len(compiled) < 60


def test_nulls_in_many_fields_beside_a_schema_of_many_take_little_memory() -> None:
    crd, one = crontab_crd(), crontab("one")
    known = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    known.update({f"known{number}": {} for number in range(3_000)})
    one["spec"].update({f"unknown{number}": None for number in range(3_000)})
    tracemalloc.start()
    schema.remove_nulls([one], crds_of([crd]).get)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert one["spec"] == crontab("one")["spec"]
    assert peak < 20 * 2**20


def test_no_more_characters_of_patterns_are_compiled_than_take_some_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """RE2 takes up to 0.1 s for one of 2,000: 4,000 of them took minutes."""
    crd, one = with_patterns(1_000)
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    for number, entry in enumerate(spec["properties"].values()):
        entry["pattern"] = f"^c{number}?" + "b?" * 900 + "$"
    compiled: list[str] = []
    short = patterns.re2.compile("b")
    monkeypatch.setattr(patterns.re2, "compile", lambda pattern, _: compiled.append(pattern) or short)
    with pytest.raises(InvalidPackage, match="must match"):
        check([crd, one])
    patterns._compiled_long.cache_clear()
    assert len(compiled) > 100
    assert sum(map(len, compiled)) < 500_000


def alike(last: range) -> list[Object]:
    """Mappings that differ in their last field."""
    return [dict.fromkeys(map(str, range(100)), 0) | {"99": number} for number in last]


KEYS = [f"key{number}" for number in range(4_000)]


@pytest.mark.parametrize(
    ("node", "value"),
    [
        (
            {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["id", *KEYS],
                "items": {"type": "object", "properties": {"id": {"type": "integer"}}},
            },
            [{"id": number} for number in range(10_000)],
        ),
        (
            {
                "type": "array",
                "items": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": True,
                    "not": {"enum": alike(range(1, 1001))},
                },
            },
            alike(range(-1000, 0)),
        ),
        ({"type": "array", "items": {"type": "integer", "anyOf": [0] * 10_000, "allOf": [0] * 10_000}}, [0] * 10_000),
    ],
    ids=["merge keys", "an enum of mappings", "what is no schema"],
)
def test_lists_of_a_schema_are_counted(node: Object, value: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it was looked through for each value, whatever the limit of steps: 500,000 values took an hour."""
    monkeypatch.setattr(schema, "STEPS", schema.STEPS // 20)
    started = time.thread_time()
    check([with_schema(node), tab(value=value)])
    assert time.thread_time() - started < 2


def test_a_large_value_that_fits_no_form_is_not_written_for_each() -> None:
    """Its text was made for each form, to look for a similar one."""
    forms = [{"enum": [number]} for number in range(400)]
    crd = with_schema({"type": "object", "x-kubernetes-preserve-unknown-fields": True, "anyOf": forms})
    started = time.thread_time()
    with pytest.raises(InvalidPackage, match=r"value: fits none of the forms .*must be one of 0; .*must be one of 3$"):
        check([crd, tab(value={"a": "x" * 5_000_000})])
    assert time.thread_time() - started < 1


def test_a_webhook_for_many_groups_and_resources_takes_little_memory() -> None:
    """Each of 5,000 groups was kept with each of 5,000 resources, in a gigabyte."""
    crds = []
    for number in range(1_000):
        crds.append({**CRD, "metadata": {"name": f"tabs{number}"}})
        crds[-1]["spec"] = {"group": f"{number}.com", "names": {"kind": f"Tab{number}", "plural": f"tabs{number}"}}
    rule = {
        "apiGroups": [f"{number}.com" for number in range(1_000)],
        "resources": [f"tabs{number}" for number in range(1_000)],
    }
    hook = obj("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "a", webhooks=[{"rules": [rule]}])
    tracemalloc.start()
    try:
        check([*crds, hook])
        assert tracemalloc.get_traced_memory()[1] < 5 * 1024**2
    finally:
        tracemalloc.stop()


def test_a_multiple_of_almost_nothing_is_left_to_the_api_server() -> None:
    check([with_schema({"type": "number", "multipleOf": 5e-324}), tab(value=0)])
