# SPDX-License-Identifier: Apache-2.0
"""What authors write in annotations is asked of objects as `kubectl wait` asks it."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_cr_driver.objects.cel import ExpressionError
from k8s_cr_driver.objects.rule_texts import READY_WHEN, check, rule

LIVE: dict[str, Any] = {
    "metadata": {"generation": 2},
    "spec": {"count": 3},
    "status": {
        "phase": "Serving",
        "a.b": "c",
        "on": True,
        "number": 3,
        "whole": 1.0,
        "padded": " up ",
        "nothing": None,
        "parts": [{"name": "one", "state": "up"}, {"name": "two", "state": "down"}],
        "conditions": [
            {"type": "Ready", "status": "True"},
            {"type": "Synced", "status": "False", "reason": "X", "message": "not yet"},
            {"type": "Old", "status": "True", "observedGeneration": 1},
        ],
    },
}


@pytest.mark.parametrize(
    ("written", "met"),
    [
        ("condition=Ready", True),
        ("condition=ready", True),
        ("condition=Ready=True", True),
        ("condition=Ready=false", False),
        ("condition=Synced", False),
        ("condition=Synced=False", True),
        ("condition=Old", False),
        ("condition=Absent", False),
        ("jsonpath={.status.phase}=Serving", True),
        ("jsonpath='{.status.phase}'=Serving", None),
        ('jsonpath={.status.phase}="Serving"', True),
        ("jsonpath=.status.phase=Serving", True),
        ("jsonpath={.status.phase}=serving", False),
        ("jsonpath={$.status.phase}", True),
        ("jsonpath={.status.absent}", False),
        ("jsonpath={.status.nothing}", False),
        ("jsonpath={.status.on}=true", True),
        ("jsonpath={.status.number}=3", True),
        ("jsonpath={.status.whole}=1", True),
        ("jsonpath={.status.padded}=up", True),
        ("jsonpath={.status.parts}=x", False),
        (r"jsonpath={.status.a\.b}=c", True),
        ("jsonpath={.status['a.b']}=c", True),
        ("jsonpath={.status.parts[0].state}=up", True),
        ("jsonpath={.status.parts[-1].state}=down", True),
        ("jsonpath={.status.parts[7].state}=down", False),
        ('jsonpath={.status.parts[?(@.name=="two")].state}=down', True),
        ("jsonpath={.status.conditions[?(@.type=='Ready')].status}=True", True),
        ("jsonpath={.status.parts[?(@.name!='two')].state}=up", True),
        ("jsonpath={.status.parts[*].state}=up", False),
        ("cel: status.phase == 'Serving'", True),
        ("cel:self.status.number == self.spec.count", True),
        ("cel: status.absent == 1", False),
        ("cel: status.number", False),
    ],
)
def test_rule_of_an_annotation(written: str, met: bool | None) -> None:
    if met is None:
        with pytest.raises(ExpressionError):
            rule(written)
    else:
        assert rule(written).ask(LIVE).met is met


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("Ready", "write condition="),
        ("condition=", "column 11"),
        ("condition=Ready=Yes", "column 17: a condition is True, False or Unknown"),
        ("cel: status.phase = 'Up'", "column 19: '=' is not understood; write == to compare"),
        ("jsonpath={.a", "column 13: } is expected"),
        ("jsonpath={.a}==x", "column 15: one = compares"),
        ("jsonpath=.a==x", "column 13: one = compares"),
        ("jsonpath={.a..b}", r"'jsonpath=\{.a..b\}': column 13: '..b' is no field"),
        ("jsonpath={.a[1:2]}=x", "is no field of a JSONPath"),
        ("jsonpath={.a=x", "is no field|= is expected|expected at the end"),
        ("jsonpath={.a}x", "= is expected after the path"),
        ("cel: status.phase ==", "'cel: status.phase ==': column 21: a value is expected"),
        ("cel: frob(1)", "column 6: there is no function frob"),
    ],
)
def test_text_that_is_no_rule_is_refused_with_its_column(written: str, problem: str) -> None:
    with pytest.raises(ExpressionError, match=problem):
        rule(written)


@pytest.mark.parametrize("name", ["password", "rootPassword", "api_key", "clientSecret", "token"])
@pytest.mark.parametrize("written", ["jsonpath={{.status.inner.{0}}}=x", "cel: size(status.inner.{0}) > 20"])
def test_outcome_shows_no_value_of_a_field_that_names_a_secret(written: str, name: str) -> None:
    found = rule(written.format(name)).ask({"status": {"inner": {name: "hunter2"}}})
    assert not found.met and "hunter2" not in f"{found}" and "is not shown" in found.seen


def test_outcome_names_the_field_and_what_is_there() -> None:
    assert rule("jsonpath={.status.nothing}").ask(LIVE)[1:3] == ("status.nothing", "it is null")
    assert rule("jsonpath={.status.phase}=Up").ask(LIVE)[1:3] == ("status.phase", "it is Serving")
    assert rule("condition=Synced").ask(LIVE)[1:3] == ("status.conditions[Synced]", "it is False: not yet")
    assert rule("condition=Old").ask(LIVE)[2] == "it speaks of generation 1, the latest is 2"
    assert rule("cel: status.absent == 1").ask(LIVE)[1:3] == ("status.absent", "there is no status.absent")


@pytest.mark.parametrize(
    ("expression", "field", "seen"),
    [
        ("status.number == 3 && self.status.phase == 'Up'", "status.phase", "status.phase is Serving"),
        ("status.phase == 'Up' || status.on == false", "status.phase", "status.phase is Serving, status.on is true"),
        ("!(status.phase.startsWith('Serv'))", "status.phase", "status.phase is Serving"),
        ("size(status.parts) > 2", "status.parts", "status.parts has 2 entries"),
        ("status.parts.all(p, p.state == 'up')", "status.parts[1].state", "status.parts[1].state is down"),
        ("status.parts.exists(p, p.state == spec.count)", "status.parts", "status.parts has 2 entries, spec.count is 3"),
        ("{'a': 1}.all(k, k == 'b')", "", "it is false"),
        ("status['a.b'] == 'd'", "status['a.b']", "status['a.b'] is c"),
        ("status.number == spec.count && has(status.done)", "status.done", "status.done is not there"),
        ("status.?done.orValue(false)", "status.done", "status.done is not there"),
        ("status.on && status.absent == 1", "status.absent", "there is no status.absent"),
        ("status.number > 3 && status.absent == 1", "status.number", "status.number is 3"),
        ("false", "", "it is false"),
    ],
)
def test_expression_that_is_not_met_names_the_fields_of_its_part(expression: str, field: str, seen: str) -> None:
    assert rule(f"cel: {expression}").ask(LIVE)[:3] == (False, field, seen)


def test_only_readiness_can_be_stored() -> None:
    assert check(READY_WHEN, "stored") == ""
    assert ": write condition=" in check("k8s-cr-driver/failed-when", "stored")


PARTS = {
    "spec": {"parts": [{"name": "a"}, {"name": "b"}], "size": 3},
    "status": {"parts": {"a": {"ready": 2, "want": 2}, "b": {"ready": 1, "want": 2}}},
}
READY = "status.parts[p].ready == status.parts[p].want"


@pytest.mark.parametrize(
    ("expression", "field", "seen"),
    [
        (
            f"status.parts.all(p, {READY})",
            "status.parts['b'].ready",
            "status.parts['b'].ready is 1, status.parts['b'].want is 2",
        ),
        (
            f"spec.parts.all(one, has(one.name) && {READY.replace('[p]', '[one.name]')})",
            "status.parts['b'].ready",
            "status.parts['b'].ready is 1, status.parts['b'].want is 2",
        ),
        ("status.parts.all(p, p.startsWith('a'))", "a key of status.parts", "a key of status.parts is b"),
        ("status.parts[spec.parts[1].name].ready > 1", "status.parts['b'].ready", "status.parts['b'].ready is 1"),
        ("status.parts.all(p, status.parts.all(q, p == q))", "a key of status.parts", "a key of status.parts is b"),
        ("spec.size == '3'", "spec.size", "spec.size is 3; a text is compared with a number"),
        ("kind == Widget", "kind", "there is no Widget in the object; write 'Widget' if it is a text"),
    ],
)  # fmt: skip
def test_what_is_unmet_is_named_with_its_value_where_an_index_is_computed(expression: str, field: str, seen: str) -> None:
    assert rule(f"cel: {expression}").ask({"kind": "Gadget", **PARTS})[:3] == (False, field, seen)


def test_a_text_without_its_end_is_named() -> None:
    found = check(READY_WHEN, "cel: status.phase == 'Lost")
    assert found.endswith("column 22: \"'\" is not understood: no ' ends the text that begins here")
