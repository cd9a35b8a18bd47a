# SPDX-License-Identifier: Apache-2.0
"""The line that an error prints is met by the object as it is, and by none that has failed."""

from __future__ import annotations

import collections
from pathlib import Path

import pytest
import yaml

from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.objects.rule_texts import READY_WHEN, rule
from k8s_cr_driver.resources import suggested
from k8s_cr_driver.resources.health.custom import assess_custom
from k8s_cr_driver.resources.health.model import READINESS_UNKNOWN
from k8s_cr_driver.resources.registry import resource_for
from tests.resources.health import figures
from tests.resources.health.objects import Json, condition, conditions, custom

DATA = Path(__file__).parent / "health/data/judged_before.jsonl"


def line(live: Object) -> str:
    return suggested.line(resource_for(live), live)


@pytest.mark.parametrize(
    ("status", "written"),
    [
        ({"phase": "Stopped"}, "jsonpath={.status.phase}=Stopped"),
        ({"state": "DETACHED"}, "jsonpath={.status.state}=DETACHED"),
        ({"phase": "Standby", "pods": "1/3"}, "jsonpath={.status.phase}=Standby"),
        ({"phase": "Standby", **conditions(Ready="False")}, "jsonpath={.status.phase}=Standby"),
        # Work under way is none's aim, and a step on the way is passed by what fails afterwards
        ({"phase": "Provisioning"}, ""),
        ({"phase": "Pending"}, ""),
        (conditions("Scheduled", Ready="False"), ""),
        # What sounds well beside an objection is there as well when the object has failed
        ({"phase": "Running", **conditions(Ready="False")}, ""),
        (conditions("Ready", "Progressing"), ""),
        # Trouble, wherever it is said
        ({"phase": "Error"}, ""),
        ({"phase": "Stopped", "error": "boom"}, ""),
        ({"phase": "Stopped", "message": "cannot connect"}, ""),
        ({"phase": "Stopped", "reason": "CrashLoopBackOff"}, ""),
        ({"phase": "Standby", "conditions": [condition("Ready", "False", "", "image not found")]}, ""),
        # Its message has a line, or it is ready or failed
        ({"phase": "Odd"}, ""),
        ({"phase": "Ready"}, ""),
        ({"phase": "Failed"}, ""),
        ({"phase": "it is: at rest, stopped"}, ""),
        (None, ""),
    ],
)
def test_line_of_a_status(status: Json | None, written: str) -> None:
    assert line(custom(status)) == (written and f"{READY_WHEN}: {written}")


def test_line_makes_the_object_ready_or_there_is_none() -> None:
    live = custom({"phase": "Stopped"})
    [(name, value)] = yaml.safe_load(line(live)).items()
    ruled = custom({"phase": "Stopped"}, annotations={name: value})
    assert resource_for(ruled).health(ruled).settled
    assert line(ruled) == ""
    assert line(custom({"phase": "Stopped", "observedGeneration": 1}, generation=2)) == ""
    assert line({**live, "apiVersion": "v1", "kind": "Pod"}) == ""


@pytest.mark.parametrize(
    "status",
    [
        {"lifecycle": "LOST"},
        {"phase": "Odd", "message": "child 'x' failed"},
        {"lifecycle": "SERVING", "lastMessage": "x", "message": "timed out"},
        conditions("Registered"),
        conditions("Managed"),
        {"shards": [{"phase": "odd"}], "reason": "QuorumLost"},
    ],
)
def test_silent_status_that_speaks_of_trouble_or_of_facts_has_no_line(status: Json) -> None:
    health = assess_custom(custom(status), None, None)
    if health.reason == READINESS_UNKNOWN:
        assert "if it is, annotate it" not in health.message


def test_no_line_of_any_object_is_met_by_one_of_its_kind_that_has_failed() -> None:
    kinds: dict[str, list[figures.Case]] = collections.defaultdict(list)
    for case in figures.cases(DATA):
        kinds[case.live["kind"]].append(case)
    for case in (one for several in kinds.values() for one in several):
        if written := line(case.live):
            asked = rule(yaml.safe_load(written)[READY_WHEN])
            degraded = [one for one in kinds[case.live["kind"]] if one.expected == "Degraded"]
            assert not any(asked.ask(one.live).met for one in degraded), written
