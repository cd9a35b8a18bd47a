# SPDX-License-Identifier: Apache-2.0
"""What the API server refuses of a CustomResourceDefinition."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from k8s_cr_driver.package import crd_rules
from tests.instance import crontab_crd, obj

VERSION = ("spec", "versions", 0)
SCHEMA = (*VERSION, "schema", "openAPIV3Schema")
SPEC = (*SCHEMA, "properties", "spec")
VALIDATIONS = (*SPEC, "x-kubernetes-validations")


def changed(path: tuple[Any, ...], value: Any) -> Any:
    crd = copy.deepcopy(crontab_crd())
    *way, last = path
    part: Any = crd
    for step in way:
        part = part[step]
    part[last] = value
    return crd


def rule(text: str) -> Any:
    return changed(VALIDATIONS, [{"rule": text}])


@pytest.mark.parametrize(
    ("crd", "problem"),
    [
        (crontab_crd(), ""),
        (obj("v1", "ConfigMap", "a"), ""),
        (changed(("metadata", "name"), "cron.stable.example.com"), "metadata.name: must be crontabs.stable.example.com"),
        (changed(("spec", "group"), "stable"), "spec.group: 'stable' must be a domain"),
        (changed(("spec", "names", "plural"), "CronTabs"), "spec.names.plural: 'CronTabs' must be lower-case"),
        (changed(("spec", "scope"), "Namespace"), "spec.scope: must be Namespaced or Cluster"),
        (changed((*VERSION, "storage"), False), "exactly one version must have storage: true, and none has"),
        (changed(("spec", "versions"), [*crontab_crd()["spec"]["versions"]] * 2), "is there twice"),
        (changed((*VERSION, "served"), False), "none has served: true"),
        (changed((*VERSION, "schema"), {}), "openAPIV3Schema: is missing and required"),
        (changed((*SCHEMA, "type"), "array"), "type: must be object at the root"),
        (
            changed((*SPEC, "properties", "a"), {"description": "x"}),
            "properties.a.type: is missing, and a schema is structural",
        ),
        (changed((*SPEC, "properties", "a"), {"x-kubernetes-preserve-unknown-fields": True}), ""),
        (changed((*SPEC, "properties", "a"), {"type": "array"}), "properties.a.items: is missing"),
        (changed((*SPEC, "properties", "a"), {"type": "string", "$ref": "#/x"}), "properties.a.$ref: is not possible"),
        (
            changed((*SPEC, "properties", "a"), {"type": "string", "anyOf": [{"type": "string"}]}),
            "anyOf[0].type: is not possible",
        ),
        (changed((*SPEC, "properties", "a"), {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "string"}]}), ""),
        (
            changed(
                (*SPEC, "properties", "a"),
                {
                    "type": "array",
                    "items": {"type": "object", "properties": {"name": {"type": "string"}}},
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                },
            ),
            "name must be required in an entry",
        ),
        (rule("self.cronSpec.size() > 0 && !self.cronSpec.contains('x')"), ""),
        (rule("self.cronSpec.size( > 0"), "rule: does not compile as CEL"),
        (rule("self.cronSpec.matches(r'^\\d+$')"), ""),
        (rule('self.cronSpec.matches("""a"b""")'), ""),
        (rule("self.`cronSpec`.size() > 0"), ""),
        (rule("self.cronSpec == 'a' || " * 200 + "true"), ""),
        (rule("(" * 80 + "true" + ")" * 80), ""),
        (rule("self.cronSpek.size() > 0"), "rule: does not compile as CEL: column 6: the schema has no field cronSpek here"),
        (
            changed(VALIDATIONS, [{"rule": "self.cronSpec != ''", "messageExpression": "self.cronSpek"}]),
            "[0].messageExpression: does not compile as CEL: column 6",
        ),
        (changed(VALIDATIONS, [{"rule": "oldSelf.value().a", "optionalOldSelf": True, "messageExpression": 3}]), ""),
        (rule(""), "rule: is missing and required"),
    ],
)
def test_rules_of_definitions(crd: Any, problem: str) -> None:
    found = crd_rules.problems([crd])
    assert (any(problem in one for one in found)) if problem else not found
