# SPDX-License-Identifier: Apache-2.0
"""The comparison with the API server's own check: which objects it derives, and how it names what the check misses."""

from __future__ import annotations

import copy

import pytest

from functional_tests.schema_check.comparison import NOT_LISTED, missed
from functional_tests.schema_check.variants import changed, made
from k8s_cr_driver.package import schema
from tests.instance import crontab, crontab_crd


def test_derived_objects_are_the_same_in_each_run_and_leave_the_published_one() -> None:
    published = crontab("one")
    published["spec"] = {"cronSpec": "* * * * *", "replicas": 2, "list": [{"a": 1}]}
    before = copy.deepcopy(published)
    derived = list(changed(published, 20))
    assert derived == list(changed(published, 20))
    assert published == before
    assert sum(one != published for one in derived) > 10
    assert all(one["metadata"] == published["metadata"] for one in derived)


def test_an_object_without_contents_has_no_variants() -> None:
    assert list(changed({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}, 3)) == []


def test_made_objects_have_what_the_schema_requires() -> None:
    crd = crontab_crd()
    node = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    node["required"], node["properties"]["spec"]["required"] = ["spec"], ["replicas", "places"]
    place = {"type": "object", "required": ["zone"], "properties": {"zone": {"type": "string", "enum": ["a", "b"]}}}
    fields = {"replicas": {"type": "integer"}, "places": {"type": "array", "minItems": 2, "items": place}}
    node["properties"]["spec"]["properties"] |= fields
    objects = list(made(crd, 4))
    assert len(objects) == 4 and all(len(one["spec"]["places"]) == 2 for one in objects)
    for one in objects:
        schema.check([crd, one])


@pytest.mark.parametrize(
    ("faults", "expected"),
    [
        (['spec.at: Invalid value: "x": spec.at in body must be of type date-time: "x"'], "formats"),
        (['"spec.a" must validate one and only one schema (oneOf)', "spec.a in body must be of type ipv4"], "formats"),
        (['"spec.a" must validate one and only one schema (oneOf)'], NOT_LISTED),
        (["spec.a in body must be of type ipv4", "spec.b: Required value"], NOT_LISTED),
        (["spec.value.a.b"], "unknown fields below additionalProperties: true"),
        (["spec.replicsa"], NOT_LISTED),
    ],
)
def test_a_miss_has_the_class_of_its_faults(faults: list[str], expected: str) -> None:
    assert missed(faults) == expected
