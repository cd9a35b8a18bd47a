# SPDX-License-Identifier: Apache-2.0
"""Fields that a kind does not have are found in rules, and fields that it may have are none of these."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_cr_driver.objects.rule_fields import unknown_field, unknown_field_of_cel

TEXT: dict[str, Any] = {"type": "string"}
ENTRY = {"type": "object", "properties": {"type": TEXT, "status": TEXT}}
STATUS = {
    "phase": TEXT,
    "ready": {"type": "integer"},
    "conditions": {"type": "array", "items": ENTRY},
    "shards": {"type": "object", "additionalProperties": {"type": "object", "properties": {"up": {"type": "boolean"}}}},
    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"known": TEXT}},
    "untyped": {},
    "percent": {"x-kubernetes-int-or-string": True},
}
PARTS = {"spec": {"type": "object", "properties": {"replicas": {"type": "integer"}}}, "status": STATUS}


def crd(*statuses: Any) -> dict[str, Any]:
    """A CRD with a version for each of these mappings of fields; one that is None has no schema."""
    versions = []
    for number, fields in enumerate(statuses):
        status = {"type": "object", "properties": fields}
        schema = {"type": "object", "properties": {"spec": PARTS["spec"], "status": status}}
        versions.append({"name": f"v{number}", "served": True, "schema": {"openAPIV3Schema": schema} if fields else {}})
    return {"spec": {"versions": versions}}


WIDGET = crd(STATUS)


@pytest.mark.parametrize(
    "expression",
    [
        "self.status.phase == 'Up' && self.metadata.generation == 1 && kind != ''",
        "has(status.phase) && status.?phase.orValue('') == spec.replicas",
        "metadata.labels['a/b'] == 'c' && metadata.?annotations[?'x'].hasValue()",
        "status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')",
        "status.conditions.filter(c, c.type == 'Ready').all(c, c.status == 'True')",
        "status.conditions.map(c, c.type).exists(any, any.more.than == 1)",
        "status.conditions[0].type == 'Ready'",
        "status.shards.all(name, status.shards[name].up)",
        "status.shards.blue.up && status.shards['red'].up",
        "status.free.anything.at.all == 1 && status.untyped.anything == 1 && status.percent == 1",
        "true",
    ],
)
def test_fields_of_the_kind(expression: str) -> None:
    assert unknown_field_of_cel(expression, WIDGET) == ""
    assert unknown_field(f"cel: {expression}", WIDGET) == ""


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("self.status.phse == 'Up'", "column 13: status.phse: there is no such field in the kind; did you mean status.phase?"),
        ("stats.phase == 'Up'", "column 1: stats: there is no such field in the kind; did you mean status?"),
        ("phase == 'Up'", "column 1: phase: there is no such field in the kind"),
        ("true && has(status.redy)", "column 20: status.redy: there is no such field in the kind; did you mean status.ready?"),
        ("status.?phse.orValue('') == ''", "column 8: status.phse: there is no such field"),
        ("status.conditions.exists(c, c.typ == 'Ready')", "column 31: status.conditions[0].typ: there is no such field"),
        ("status.conditions.filter(c, c.type == 'a').all(c, c.state == '')", "status.conditions[0].state: there is no such"),
        ("status.conditions.type == 'Ready'", "column 19: status.conditions: is a list; name an entry, or use exists or all"),
        ("status.shards.blue.upp", "there is no such field in the kind; did you mean status.shards.blue.up?"),
        ("status.phase.more == 1", "status.phase.more: there is no such field"),
        ("metadata.generatoin == 1", "did you mean metadata.generation?"),
        ("size(status.conditions.filter(c, status.phse == '')) == 0", "status.phse: there is no such field"),
        ("status.shards.all(name, status.shrds[name].up)", "did you mean status.shards?"),
    ],
)
def test_field_that_the_kind_does_not_have(expression: str, problem: str) -> None:
    assert problem in unknown_field_of_cel(expression, WIDGET)


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("jsonpath={.status.phase}=Up", ""),
        ("jsonpath={.status.conditions[?(@.type=='Ready')].status}=True", ""),
        ("jsonpath={.status.conditions[*].state}=True", "status.conditions[0].state: there is no such field"),
        ("jsonpath={.status.phse}=Up", "did you mean status.phase?"),
        ("jsonpath={.status['phse']}=Up", "did you mean status.phase?"),
        ("cel: status.phse == ''", "column 13: status.phse"),
        ("condition=Odd", ""),
    ],
)
def test_other_forms_of_rules(written: str, problem: str) -> None:
    found = unknown_field(written, WIDGET)
    assert problem in found and bool(problem) == bool(found)


def test_field_of_another_version_and_of_a_version_without_a_schema() -> None:
    assert unknown_field_of_cel("status.old == ''", crd({"old": TEXT}, STATUS)) == ""
    assert "status.older" in unknown_field_of_cel("status.older == ''", crd({"old": TEXT}, STATUS))
    assert unknown_field_of_cel("status.anything == ''", crd(STATUS, None)) == ""


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("status.anything.at.all && data.a == ''", ""),
        ("statu.phase == ''", "did you mean status?"),
        ("self.sttus.phase == ''", "did you mean status?"),
        ("metadata.lables.a == ''", "did you mean metadata.labels?"),
        ("state.phase == ''", ""),
    ],
)
def test_kind_whose_crd_is_not_known(expression: str, problem: str) -> None:
    found = unknown_field_of_cel(expression, None)
    assert problem in found and bool(problem) == bool(found)
