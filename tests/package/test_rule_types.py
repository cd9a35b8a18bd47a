# SPDX-License-Identifier: Apache-2.0
"""Rules in CEL of a CustomResourceDefinition against the schema that they stand in."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_cr_driver.objects.cel import syntax
from k8s_cr_driver.package import rule_types

TEXT, INTEGER = {"type": "string"}, {"type": "integer"}
POINT = {"type": "object", "properties": {"x": INTEGER, "name": TEXT}}
SCHEMA: Any = {
    "type": "object",
    "properties": {
        "replicas": INTEGER,
        "most": {"type": "integer", "format": "int32"},
        "share": {"type": "number"},
        "paused": {"type": "boolean"},
        "schedule": {**TEXT, "enum": ["a"]},
        "since": {**TEXT, "format": "date-time"},
        "port": {"x-kubernetes-int-or-string": True, "type": ""},
        "namespace": TEXT,
        "dash-ed": TEXT,
        "two__lines": TEXT,
        "point": POINT,
        "points": {"type": "array", "items": POINT},
        "labels": {"type": "object", "additionalProperties": TEXT},
        "byName": {"type": "object", "additionalProperties": POINT},
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"x": INTEGER}},
        "empty": {"type": "object"},
        "pod": {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": POINT}},
    },
}


@pytest.mark.parametrize(
    "rule",
    [
        "self.replicas <= self.most && self.replicas > self.share",
        "self.schedule == 'a' || self.paused",
        "has(self.point) ? self.point.x == 1 : !self.paused",
        "self.__namespace__ == 'a' && self.dash__dash__ed == 'b' && self.two__underscores__lines == ''",
        "self.points.all(p, p.x < 3 && p.name != '') && self.points.exists(i, p, i < p.x)",
        "self.points.filter(p, p.x > 1).map(p, p.name).exists(n, n == 'a')",
        "self.points.map(p, p.x > 1, p.name).size() == 2",
        "self.labels.all(key, self.labels[key] == key && key.startsWith('a'))",
        "self.labels.exists(key, value, key == value) && self.labels.anything == 'a'",
        "self.byName.all(name, self.byName[name].x > 0) && self.byName.one.x == 1",
        "self.points[0].x == 1 && self.?point.?name.orValue('') == 'a'",
        "self.?point.optMap(p, p.x > 1).orValue(true)",
        "cel.bind(p, self.point, p.x == 1) && math.greatest(self.replicas, 3) > 1 && !optional.none().hasValue()",
        "self.port == 80 || self.port == 'http' || type(self.port) == string",
        "self.open.whatever.more == 1 && self.empty.a == 2 && self.pod.metadata.labels.a == 'b'",
        "self.since < timestamp('2026-01-01T00:00:00Z')",
        "self == oldSelf && oldSelf.replicas == self.replicas",
        "self.metadata.name == 'a' && self.kind == 'b' && self.apiVersion == 'c'",
        "[1, 2].exists(n, n == self.replicas) && {'a': 1}.a == 1 && size(self.points) in [1, 2]",
        "self.replicas in [1, 2] && string(self.replicas) == '1' && null == self.point",
        "quantity(self.schedule).isGreaterThan(quantity('1')) && self.schedule.newFunction(self.most) == dyn(3)",
    ],
)
def test_a_good_rule_is_not_refused(rule: str) -> None:
    rule_types.check(syntax.parse(rule), SCHEMA)


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("self.replica > 1", "column 6: the schema has no field replica here; did you mean replicas?"),
        ("has(self.pointt)", "column 10: the schema has no field pointt here; did you mean point?"),
        ("self.paused && self.point.y == 1", "column 27: the schema has no field y here"),
        ("self.?points[?0].?nam.hasValue()", "column 19: the schema has no field nam here; did you mean name?"),
        ("self.points.all(p, p.y > 1)", "column 22: the schema has no field y here"),
        ("self.points.exists(i, p, p.y > i)", "column 28: the schema has no field y here"),
        ("self.byName.all(n, self.byName[n].y > 1)", "column 35: the schema has no field y here"),
        ("oldSelf.replica > 1", "column 9: the schema has no field replica here; did you mean replicas?"),
        ("cel.bind(p, self.point, p.y == 1)", "column 27: the schema has no field y here"),
        ("math.greatest(self.replica, 1) > 1", "column 20: the schema has no field replica here; did you mean replicas?"),
        ("replicas > 1", "column 1: there is no replicas; write self.replicas"),
        ("slef.replicas > 1", "column 1: there is no slef; did you mean self?"),
        ("self.points.all(p, q.x > 1)", "column 20: there is no q"),
        ("self.schedule.length > 1", "column 15: length is asked of string, which has no fields"),
        ("self.replicas == '1'", "column 15: == compares integer with string, which is never possible"),
        ("self.schedule > 3", "column 15: > compares string with integer, which is never possible"),
        ("size(self.points) == '1'", "column 19: == compares integer with string, which is never possible"),
        ("self.replicas && self.paused", "column 5: integer stands where true or false must be"),
        ("!self.schedule", "column 6: string stands where true or false must be"),
        ("self.schedule ? true : false", "column 5: string stands where true or false must be"),
        ("self.replicas", "column 5: the result is integer, and must be boolean"),
    ],
)
def test_what_never_fits_is_found_with_its_column(rule: str, problem: str) -> None:
    with pytest.raises(syntax.ExpressionError) as caught:
        rule_types.check(syntax.parse(rule), SCHEMA)
    assert str(caught.value) == problem


def test_the_result_of_a_message_is_text() -> None:
    rule_types.check(syntax.parse("'at most ' + string(self.most)"), SCHEMA, wanted="string")
    rule_types.check(syntax.parse("self.schedule"), SCHEMA, wanted="string")
    with pytest.raises(syntax.ExpressionError, match="the result is integer, and must be string"):
        rule_types.check(syntax.parse("self.most"), SCHEMA, wanted="string")


def test_an_optional_former_value_has_no_fields_to_know() -> None:
    rule_types.check(syntax.parse("oldSelf.hasValue() && oldSelf.value().most == 1"), SCHEMA, optional_old=True)


@pytest.mark.parametrize("odd", [None, [], "a", 3, {"a": []}])
@pytest.mark.parametrize("keyword", ["type", "format", "properties", "items", "additionalProperties", "required"])
def test_a_malformed_schema_is_no_traceback(keyword: str, odd: Any) -> None:
    schema = {**SCHEMA, "properties": {**SCHEMA["properties"], "point": {**POINT, keyword: odd}}}
    for rule in ("self.point.x == 1", "self.point[0] == 'a'", "self.point.all(p, p == 1)"):
        try:
            rule_types.check(syntax.parse(rule), schema)
        except syntax.ExpressionError as error:
            assert "column" in str(error)
