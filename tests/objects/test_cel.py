# SPDX-License-Identifier: Apache-2.0
"""Expressions of CEL have the values that its specification gives, errors with columns, and a limited cost."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import pytest

from k8s_cr_driver.objects.cel import CostError, EvaluationError, ExpressionError, Program

LIVE: dict[str, Any] = {
    "kind": "Widget",
    "metadata": {"generation": 2, "labels": {"a/b": "c"}},
    "spec": {"replicas": 3, "ratio": 0.5},
    "status": {
        "phase": "Ready",
        "count": 3,
        "on": True,
        "none": None,
        "conditions": [{"type": "Ready", "status": "True"}, {"type": "Synced", "status": "False"}],
    },
}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("self.status.phase == 'Ready'", True),
        ('status.phase != "Ready"', False),
        ("status.count == spec.replicas && status.count >= 3.0", True),
        ("1 + 2 * 3 - 4 / 2", 5),
        ("-7 / 2", -3),
        ("-7 % 2", -1),
        ("7 % -2", 1),
        ("1.0 / 4.0", 0.25),
        ("!true || 1 < 2", True),
        ("status.on ? 'a' + 'b' : 'c'", "ab"),
        ("true == 1", False),
        ("1 == 1.0", True),
        ("[1, 'a'] == [1, 'a'] && {'a': [1]} == {'a': [1]}", True),
        ("{'a': 1} == {'b': 1} || [1] == [1, 2] || [1] == 1", False),
        ("status.none == null", True),
        ("metadata.labels['a/b'] == 'c' && 'a/b' in metadata.labels", True),
        ("2 in [1, 2] && !(3 in [1, 2])", True),
        ("has(status.phase) && !has(status.absent)", True),
        ("status.absent == 1 || true", True),
        ("has(status) && !has(absent)", True),
        ("true || status.absent == 1", True),
        ("status.absent == 1 && false", False),
        ("status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')", True),
        ("status.conditions.all(c, c.status == 'True')", False),
        ("status.conditions.filter(c, c.type == 'Ready').all(c, c.status == 'True')", True),
        ("status.conditions.exists_one(c, c.type == 'Ready')", True),
        ("status.conditions.map(c, c.type).join(',')", "Ready,Synced"),
        ("status.conditions.map(c, c.status == 'True', c.type)", ["Ready"]),
        ("metadata.labels.all(name, name.contains('/'))", True),
        ("[[1], [2]].all(a, a.all(a, a > 0))", True),
        ("[{}, {'a': 1}].exists(one, one.a == 1)", True),
        ("[{'a': 1}, {}].all(one, one.a == 2)", False),
        ("status.conditions[1].type", "Synced"),
        ("size(status.conditions) + status.phase.size() + size({'a': 1})", 8),
        ("status.phase.startsWith('Re') && status.phase.endsWith('dy') && status.phase.matches('^R[a-z]+$')", True),
        ("' aB '.trim().lowerAscii() + 'a'.upperAscii()", "abA"),
        ("'a,b'.split(',') == ['a', 'b'] && 'aXb'.replace('X', '-') == 'a-b' && 'abc'.indexOf('c') == 2", True),
        ("status.?absent.?more.orValue('none')", "none"),
        ("status.?phase.orValue('none')", "Ready"),
        ("status.conditions[?7].hasValue() || status.conditions[?0].type.value() != 'Ready'", False),
        ("int('42') + int(2.9) == 44 && string(1) == '1' && double('0.5') == spec.ratio && string(true) == 'true'", True),
        (r"'\u0041\n' == 'A' + '\n' && r'\d' == '\\d' && '\x41' == 'A'", True),
        ("// a comment\n 0x10 + 1u", 17),
        ("-9223372036854775808 < 0", True),
        ("string(1.0) + string(0.5) + string(-2.0)", "10.5-2"),
        ("status.?phase == self.?status.?phase && status.?absent == status.?more && status.?phase != status.?absent", True),
        ("double('1e3') == 1000.0 && double('-.5') < 0.0 && int('-42') == -42", True),
    ],
)
def test_value_of_an_expression(expression: str, value: Any) -> None:
    found = Program(expression).evaluate(LIVE)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("status.absent", "there is no status.absent"),
        ("nothing.at.all", "there is no nothing in the object; write 'nothing' if it is a text"),
        ("status.phase.more", "more is asked of string"),
        ("has(status.absent.more)", "there is no status.absent"),
        ("status.conditions[9]", r"there is no \[9\]"),
        ("1 + 'a'", "string is no number"),
        ("true + 1", "bool is no number"),
        ("1 / 0", "divides by zero"),
        ("9223372036854775807 + 1", "larger than 64 bits"),
        ("'a' < 1", "string is no number"),
        ("!1", "int is not true or false"),
        ("1 && true", "int is not true or false"),
        ("status.absent || false", "there is no status.absent"),
        ("status.phase.all(c, c)", "all is asked of string"),
        ("1 in 'a'", "in is asked of string"),
        ("[1].map(x, x.a)", "a is asked of int"),
        ("int('x')", "no whole number"),
        ("int('1_0')", "no whole number"),
        ("int(' 42 ')", "no whole number"),
        ("int(true)", "bool is no whole number"),
        ("uint(-1)", "less than 0"),
        ("double('1_0')", "string is no number"),
        ("double(false)", "bool is no number"),
        ("metadata.labels[status.phase]", "there is no such entry$"),
        ("string([1])", "has no text"),
        ("status.?absent.value()", "not there"),
        ("'a'.matches(status.phase + '(')", "is not understood"),
        ("{[1]: 1}", "a key of a map"),
    ],
)
def test_expression_without_a_value_says_why(expression: str, problem: str) -> None:
    with pytest.raises(EvaluationError, match=problem):
        Program(expression).evaluate(LIVE)


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("status.phase ==", "column 16: a value is expected, and the end is there"),
        ("status.phase = 'a'", "column 14: '=' is not understood"),
        ("a b", "column 3: b is not expected here"),
        ("(1", r"column 3: \) is expected, and the end is there"),
        ("[1 2]", "column 4: , is expected"),
        ("a.", "column 3: a name is expected"),
        ("'abc", "column 1: .* is not understood"),
        (r"'\q'", "column 1: .*q is no escape"),
        (r"'\ud800'", "column 1: .* is no character"),
        ("1 + frob(2)", "column 5: there is no function frob"),
        ("'a'.size(1)", "column 5: size takes 0 arguments"),
        ("startsWith('a', 'b')", "column 1: startsWith is written after its value"),
        ("has(1)", "column 1: has\\(\\) takes one field"),
        ("[1].all(1, true)", "column 5: all takes a name and an expression"),
        ("a.matches('(')", "column 11: the pattern"),
        ("99999999999999999999", "column 1: 99999999999999999999 is no number of 64 bits"),
        ("a" * 2049, "it has 2049 characters"),
        ("(" * 200 + "1" + ")" * 200, "within each other"),
        ("-" * 2000 + "a", "within each other"),
        ("1" + "+1" * 900, "within each other"),
        ("[" + "1," * 900 + "1]", "more than 400 parts"),
        ("", "column 1: a value is expected"),
    ],
)
def test_text_that_is_no_expression_is_refused_with_its_column(expression: str, problem: str) -> None:
    with pytest.raises(ExpressionError, match=problem):
        Program(expression)


def nested(macro: str, depth: int, source: str = "status.items") -> str:
    names = [f"v{level}" for level in range(depth)]
    return "".join(f"{source}.{macro}({name}, " for name in names) + "true" + ")" * depth


HOSTILE = [
    *(nested(macro, depth) for macro in ("all", "map", "filter", "exists_one") for depth in range(2, 14)),
    *(nested("map", depth, "[0, 1]") for depth in range(15, 20)),
    *("['ab']" + ".map(a, a + a)" * count + ".size() == 1" for count in range(20, 31)),
    *("[[0, 1]]" + ".map(a, a + a)" * count + ".size() == 1" for count in range(20, 31)),
    *(f"status.items.all(i, {test})" for test in ("status == status", "status.items == status.items", "i in status.items")),
    *(
        f"status.items.all(i, status.text.{call})"
        for call in ("contains('ab')", "startsWith(status.text)", "matches('(a*)*b')")
    ),
    *(f"status.items.map(i, status.text.{call}).size() > 0" for call in ("split('')", "replace('a', status.text)", "trim()")),
    *(
        f"status.text.matches('{pattern}')"
        for pattern in ("(a*)*b", "(a|a)*b", "(a|aa)+$", "(.*)(.*)(.*)x", "^(([a-z])+.)+[A-Z]$")
    ),
    *(f"status.short.matches('{pattern}')" for pattern in ("(a?){30}a{30}", "(a*)*b", "((a+)+)+b", "(a|a?)+b", ".*.*.*.*.*b")),
    *(f"status.items.exists(i, 'a'.matches(string(i.n) + '{end}'))" for end in ("x{500}", "(y{30}){30}", "[^a]{999}")),
    "status.items.map(i, status.items).map(j, j.map(k, k)).size() == 0",
    "status.items.all(i, status.items.map(j, j.text).join(i.text) != '')",
    "status.deep == status.deep",
]


def processor_seconds(expression: str, live: Any) -> float:
    started = time.thread_time()
    with contextlib.suppress(ExpressionError, EvaluationError):
        Program(expression).evaluate(live)
    return time.thread_time() - started


def test_hostile_expressions_end_within_50_ms_of_processor_time() -> None:
    deep: Any = 0
    for _ in range(5000):
        deep = [deep]
    items = [{"n": n, "text": "x" * 500} for n in range(2000)]
    live = {"status": {"items": items, "text": "a" * 1_000_000, "short": "a" * 3000, "deep": deep}}
    assert len(HOSTILE) >= 100
    for expression in HOSTILE:
        assert min(processor_seconds(expression, live) for _ in range(2)) < 0.05, expression


def test_a_cost_that_is_too_high_is_not_absorbed_by_a_logical_operator() -> None:
    items = {"items": list(range(1000))}
    with pytest.raises(CostError):
        Program("items.all(a, items.all(b, a + b >= 0)) || true").evaluate(items)
    with pytest.raises(CostError):
        Program("[1].exists(x, items.all(a, items.all(b, a + b >= 0)) || true)").evaluate(items)


@pytest.mark.parametrize(
    ("expression", "field"),
    [
        ("self.status.phase == 'Ready'", "status.phase"),
        ("1 < size(status.conditions.filter(c, c.type == 'Ready'))", "status.conditions"),
        ("has(status.phase)", "status.phase"),
        ("true", ""),
    ],
)
def test_first_field_of_an_expression(expression: str, field: str) -> None:
    assert Program(expression).field == field


@pytest.mark.parametrize("pattern", ["((a{0,30}){0,30})b", "((a{0,5}){0,5}){0,5}b"])
def test_a_pattern_pays_for_its_size_with_each_character(pattern: str) -> None:
    """RE2 never goes back, but it may look at all parts of a pattern for each character: seconds, without the deadline."""
    live = {"status": {"text": "a" * 70_000}}
    with pytest.raises(EvaluationError, match="steps"):
        Program(f"status.text.matches('{pattern}')").evaluate(live)
    assert Program("status.text.matches('a+$')").evaluate(live) is True
    assert Program(f"status.text.matches('{pattern}')").evaluate({"status": {"text": "aab"}}) is True
