# SPDX-License-Identifier: Apache-2.0
"""What a change of a CRD takes from the objects that exist: a table of schemas, and one of objects."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from k8s_cr_driver.objects.fields import shown
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.package.crd_changes import losses, narrowed
from tests.instance import crontab_crd, obj

TEXT: Object = {"type": "string"}
OPEN: Object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
MAP: Object = {"type": "array", "x-kubernetes-list-type": "map", "items": OPEN}


def fields(**properties: Any) -> Object:
    return {"type": "object", "properties": properties}


def crd(*versions: tuple[str, Object], **spec: Any) -> Object:
    """Its versions have these schemas of `spec`; the last one is stored."""
    made = crontab_crd()
    [entry] = made["spec"]["versions"]
    entries = [copy.deepcopy(entry) for _ in versions]
    for one, (name, schema) in zip(entries, versions, strict=True):
        one |= {"name": name, "storage": name == versions[-1][0]}
        one["schema"]["openAPIV3Schema"]["properties"]["spec"] = schema
    made["spec"] |= {"versions": entries, **spec}
    return made


def of(schema: Object) -> Object:
    return crd(("v1", schema))


def tab(version: str = "v1", **spec: Any) -> Object:
    return obj(f"stable.example.com/{version}", "CronTab", "tab", "default", spec=spec)


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        (fields(a=TEXT), fields(a=TEXT, b=TEXT), []),
        (fields(a=TEXT), OPEN, []),
        (fields(a=TEXT), {"type": "object", "additionalProperties": TEXT}, []),
        (fields(a={"type": "integer"}), fields(a={"type": "number"}), []),
        (fields(a=TEXT), fields(a={"x-kubernetes-int-or-string": True}), []),
        (fields(a={"type": "string", "maxLength": 3}), fields(a={"type": "string", "maxLength": 4}), []),
        (fields(a={"enum": ["x"]}), fields(a={"enum": ["x", "y"]}), []),
        (fields(a=TEXT, b=TEXT), fields(a=TEXT), ["spec.b (v1) is not in the schema"]),
        (fields(a=fields(b=TEXT)), fields(a=fields()), ["spec.a.b (v1) is not in the schema"]),
        (
            fields(a={"type": "array", "items": fields(b=TEXT)}),
            fields(a={"type": "array", "items": fields()}),
            ["spec.a[*].b (v1) is not in the schema"],
        ),
        (
            fields(a={"type": "object", "additionalProperties": fields(b=TEXT)}),
            fields(a={"type": "object", "additionalProperties": fields()}),
            ["spec.a[*].b (v1) is not in the schema"],
        ),
        (
            fields(a={"type": "object", "additionalProperties": TEXT}),
            fields(a=fields()),
            ["spec.a[*] (v1) is not in the schema"],
        ),
        (OPEN, fields(), ["spec (v1) keeps no unknown fields"]),
        (fields(a=TEXT), fields(a={"type": "integer"}), ["spec.a (v1) must be integer, and was string"]),
        (fields(a={}), fields(a=TEXT), ["spec.a (v1) must be string, and was of any type"]),
        (fields(a={"type": "number"}), fields(a={"type": "integer"}), ["spec.a (v1) must be integer, and was number"]),
        (fields(a={**TEXT, "nullable": True}), fields(a=TEXT), ["spec.a (v1) may not be null"]),
        (fields(a=TEXT), fields(a={**TEXT, "maxLength": 3}), ["spec.a (v1) has another maxLength"]),
        (fields(a={"minimum": 1}), fields(a={"minimum": 2}), ["spec.a (v1) has another minimum"]),
        (fields(a=TEXT), fields(a=TEXT, b={**TEXT, "default": "x"}), []),
        (fields(a=TEXT), fields(a={**TEXT, "default": "x"}), ["spec.a (v1) has another default"]),
        (fields(a={**TEXT, "default": "x"}), fields(a=TEXT), ["spec.a (v1) has another default"]),
        (fields(a=TEXT), fields(a={**TEXT, "pattern": "^a"}), ["spec.a (v1) has another pattern"]),
        (fields(a={"enum": ["x", "y"]}), fields(a={"enum": ["x"]}), ["spec.a (v1) allows fewer values"]),
        (fields(a=TEXT), {**fields(a=TEXT), "required": ["a"]}, ["spec (v1) has more required fields"]),
        (
            fields(a=TEXT),
            {**fields(a=TEXT), "x-kubernetes-validations": [{"rule": "self.a != ''"}]},
            ["spec (v1) has other x-kubernetes-validations"],
        ),
        (OPEN, {**OPEN, "properties": {"a": fields(b=TEXT)}}, ["spec.a (v1) was of any form"]),
        ({**OPEN, "properties": {"a": TEXT}}, {**OPEN, "properties": {"a": TEXT}}, []),
        (
            fields(a={**OPEN, "x-kubernetes-embedded-resource": True}),
            fields(a=OPEN),
            ["spec.a (v1) has another x-kubernetes-embedded-resource"],
        ),
        (
            fields(a=OPEN),
            fields(a={**OPEN, "x-kubernetes-embedded-resource": True}),
            ["spec.a (v1) has another x-kubernetes-embedded-resource"],
        ),
        (
            fields(a={**MAP, "x-kubernetes-list-map-keys": ["a", "b"]}),
            fields(a={**MAP, "x-kubernetes-list-map-keys": ["a"]}),
            ["spec.a (v1) has another x-kubernetes-list-map-keys"],
        ),
    ],
)
def test_what_a_schema_has_less(old: Object, new: Object, found: list[str]) -> None:
    assert list(map(str, narrowed(of(old), of(new)))) == found


def test_a_version_that_is_not_served_and_a_subresource_that_is_missing_are_less() -> None:
    old, new = crd(("v1", OPEN), ("v2", OPEN)), crd(("v2", OPEN))
    old["spec"]["versions"][1]["subresources"] = {"status": {}}
    assert list(map(str, narrowed(old, new))) == ["subresources.status (v2) is missing", "version v1 is not served any more"]
    unserved = copy.deepcopy(old)
    unserved["spec"]["versions"][0]["served"] = False
    assert list(map(str, narrowed(old, unserved))) == ["version v1 is not served any more"]


def test_a_version_that_no_webhook_converts_any_more_has_what_the_stored_one_has() -> None:
    versions = ("v1", fields(a=TEXT, b=TEXT)), ("v2", fields(b=TEXT))
    old, new = crd(*versions, conversion={"strategy": "Webhook"}), crd(*versions)
    assert list(map(str, narrowed(old, new))) == ["spec.a (v1) is not in the schema of the stored version"]
    assert narrowed(old, old) == narrowed(new, old) == []


def test_a_status_that_becomes_a_subresource_is_another_write() -> None:
    old, new = of(OPEN), of(OPEN)
    old["spec"]["versions"][0]["subresources"], new["spec"]["versions"][0]["subresources"] = {}, {"status": {}}
    [found] = narrowed(old, new)
    assert str(found).startswith("subresources.status (v1) is new")


@pytest.mark.parametrize(
    ("old", "new", "live", "found"),
    [
        (of(fields(a=TEXT, b=TEXT)), of(fields(a=TEXT)), tab(a="1"), []),
        (of(fields(a=TEXT, b=TEXT)), of(fields(a=TEXT)), tab(a="1", b="2"), [("spec.b", "drop")]),
        (of(fields(a=TEXT)), of(fields(a={"type": "integer"})), tab(a="1"), [("spec.a", "refuse")]),
        (of(fields(a=TEXT)), of(fields(a={**TEXT, "pattern": "^a"})), tab(a="a"), []),
        (of(fields(a=TEXT)), of(fields(a={**TEXT, "pattern": "^a"})), tab(a="b"), [("spec.a", "refuse")]),
        (of(fields(a=TEXT)), of({**fields(a=TEXT), "required": ["a"]}), tab(), [("spec.a", "refuse")]),
        (of(fields(a=TEXT)), of({**fields(a={**TEXT, "default": "x"}), "required": ["a"]}), tab(), []),
        (of(fields(a={**TEXT, "pattern": "^a"})), of(fields(a={**TEXT, "pattern": "^a"})), tab(a="b"), []),
        (crd(("v1", OPEN), ("v2", OPEN)), crd(("v2", OPEN)), tab(a="1"), [("", "not serve")]),
        (crd(("v1", OPEN), ("v2", OPEN)), crd(("v2", OPEN)), tab("v2", a="1"), []),
        # Without a webhook for conversion the object is stored as v2 at its next write
        (crd(("v1", fields(a=TEXT))), crd(("v1", fields(a=TEXT)), ("v2", fields(b=TEXT))), tab(a="1"), [("spec.a", "drop")]),
        (
            crd(("v1", fields(a=TEXT))),
            crd(("v1", fields(a=TEXT)), ("v2", fields(b=TEXT)), conversion={"strategy": "Webhook"}),
            tab(a="1"),
            [],
        ),
        # Below a node that keeps unknown fields the schema prunes what it describes
        (of(OPEN), of({**OPEN, "properties": {"a": fields(b=TEXT)}}), tab(a={"b": "1", "c": "2"}), [("spec.a.c", "drop")]),
        (of(OPEN), of({**OPEN, "properties": {"a": fields(b=TEXT)}}), tab(d={"c": "2"}), []),
        (
            of(fields(a={**MAP, "x-kubernetes-list-map-keys": ["a", "b"]})),
            of(fields(a={**MAP, "x-kubernetes-list-map-keys": ["a"]})),
            tab(a=[{"a": "1", "b": "1"}, {"a": "1", "b": "2"}]),
            [("spec.a[1]", "refuse")],
        ),
        # What the webhook has converted from the stored version is read from it as it is
        (
            crd(("v1", fields(a=TEXT)), ("v2", fields(b=TEXT)), conversion={"strategy": "Webhook"}),
            crd(("v1", fields(a=TEXT)), ("v2", fields(b=TEXT)), conversion={"strategy": "None"}),
            tab(a="1"),
            [("spec.a", "drop")],
        ),
    ],
)
def test_what_an_object_loses(old: Object, new: Object, live: Object, found: list[tuple[str, str]]) -> None:
    assert [(shown(one.path), one.effect) for one in losses(old, new, [live])] == found


def test_an_object_that_is_written_in_another_version_does_not_lose_the_one_in_which_it_is_read() -> None:
    live = tab(a="1")
    live["metadata"]["managedFields"] = [{"manager": "kubectl", "apiVersion": "stable.example.com/v2"}]
    assert losses(crd(("v1", OPEN), ("v2", OPEN)), crd(("v2", OPEN)), [live]) == []
