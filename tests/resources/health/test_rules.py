# SPDX-License-Identifier: Apache-2.0
"""The rules of users decide before those of the kind, and freshness holds whatever they say."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from k8s_cr_driver.resources.health import Health, State
from k8s_cr_driver.resources.registry import resource_for
from tests.resources.health import figures
from tests.resources.health.objects import CONDITIONS, Json, condition, conditions, crd, custom, wrote

DATA = Path(__file__).parent / "data"
READY, WAITING, SUSPENDED, FAILED = State.READY, State.WAITING, State.SUSPENDED, State.FAILED
PREFIX = "k8s-cr-driver/"


def judged(status: Json | None, definition: Json | None = None, old_status: Any = None, **annotations: str) -> Health:
    given = {PREFIX + name.replace("_", "-"): value for name, value in annotations.items()}
    live = custom(status, annotations=given)
    obj = resource_for(live, definition)
    obj.old_status = old_status
    return obj.health(live)


@pytest.mark.parametrize(
    ("status", "annotations", "state"),
    [
        ({"phase": "Frobnicated"}, {"ready_when": "jsonpath={.status.phase}=Frobnicated"}, READY),
        ({"phase": "Ready"}, {"ready_when": "jsonpath={.status.phase}=Frobnicated"}, WAITING),
        ({"phase": "Failed"}, {"ready_when": "jsonpath={.status.phase}=Frobnicated"}, WAITING),
        (conditions("Odd", Ready="False"), {"ready_when": "condition=Odd"}, READY),
        ({"n": 3}, {"ready_when": "cel: status.n > 2"}, READY),
        ({"n": 1}, {"ready_when": "cel: status.n > 2"}, WAITING),
        (None, {"ready_when": "condition=Odd"}, WAITING),
        ({"n": 1}, {"ready_when": "cel: status.n > 2", "failed_when": "cel: status.n == 1"}, FAILED),
        ({"n": 3}, {"ready_when": "cel: status.n > 2", "failed_when": "cel: status.n == 1"}, READY),
        ({"n": 0}, {"ready_when": "cel: status.n > 2", "suspended_when": "cel: status.n == 0"}, SUSPENDED),
        (conditions("Ready"), {"failed_when": "condition=Broken"}, READY),
        (conditions("Ready", "Broken"), {"failed_when": "condition=Broken"}, FAILED),
        (conditions(Ready="False"), {"suspended_when": "condition=Ready=False"}, SUSPENDED),
        (conditions("Ready"), {"ready_when": "cel: ("}, READY),
        (conditions("Broken"), {"ready_when": "stored", "failed_when": "condition=Broken"}, FAILED),
        (conditions("Idle"), {"ready_when": "stored", "suspended_when": "condition=Idle"}, SUSPENDED),
        (conditions("Odd"), {"ready_when": "stored", "failed_when": "condition=Broken"}, READY),
        (None, {"ready_when": "stored", "failed_when": "condition=Broken"}, READY),
        ({"observedGeneration": 0, "broken": True}, {"ready_when": "stored", "failed_when": "cel: status.broken"}, READY),
        (conditions("Broken"), {"ready_when": "stored", "failed_when": "cel: ("}, READY),
    ],
)
def test_annotations_of_an_object_decide(status: Json | None, annotations: dict[str, str], state: State) -> None:
    assert judged(status, **annotations).state is state


TOO_MUCH = "status.items.all(a, status.items.all(b, a == b || true))"
DEEP = "status.deep == status.deep"


@pytest.mark.parametrize("veto", [TOO_MUCH, DEEP])
@pytest.mark.parametrize("name", ["failed_when", "suspended_when", "ready_when"])
def test_a_rule_that_takes_too_long_leaves_nothing_to_the_rules_after_it(veto: str, name: str) -> None:
    deep: Any = 0
    for _ in range(3000):
        deep = [deep]
    status = {"phase": "Ready", "items": list(range(1000)), "deep": deep}
    health = judged(status, **{"ready_when": "jsonpath={.status.phase}=Ready", name: f"cel: {veto}"})
    assert (health.state, health.reason, health.trouble) == (WAITING, "RuleNotKnown", True)
    assert veto in health.message and ("20,000 steps" in health.message or "too deeply" in health.message)


def test_verdict_names_its_source_and_the_field_that_decided() -> None:
    health = judged({"phase": "Up"}, ready_when="jsonpath={.status.phase}=Up")
    assert (health.source, health.field) == ("annotation of the object", "status.phase")
    waits = judged({"phase": "Failed"}, ready_when="jsonpath={.status.phase}=Up")
    assert "jsonpath={.status.phase}=Up is not met: it is Failed" in waits.message and waits.trouble


FAILS, IS_UP = {"failed_when": "cel: has(status.phase)"}, {"ready_when": "cel: status.phase == 'Up'"}


@pytest.mark.parametrize(
    ("rules", "phase", "said"),
    [
        (FAILS, "Failed", ": it is true; phase is Failed: child 'x' failed"),
        (IS_UP, "Failed", ": status.phase is Failed; child 'x' failed"),
        (FAILS, "Odd", ": it is true; child 'x' failed"),
        (IS_UP, "Odd", ": status.phase is Odd; child 'x' failed"),
        (FAILS, "Ready", ": it is true"),
    ],
)
def test_message_of_the_controller_is_kept(rules: dict[str, str], phase: str, said: str) -> None:
    assert judged({"phase": phase, "message": "child 'x' failed"}, **rules).message.endswith(said)


@pytest.mark.parametrize("annotations", [{}, {"ready_when": "cel: status.phase == 'Up'"}])
def test_field_of_a_status_that_is_too_old_is_named(annotations: dict[str, str]) -> None:
    health = judged({"phase": "Up", "observedGeneration": 0}, **annotations)
    assert (health.state, health.field) == (WAITING, "status.observedGeneration")


def test_annotation_of_the_crd_holds_for_objects_that_have_none() -> None:
    definition = crd(CONDITIONS, annotations={PREFIX + "ready-when": "condition=Odd"})
    assert judged(conditions("Odd"), definition).source == "annotation of the CRD"
    assert judged(conditions("Odd"), definition).state is READY
    assert judged(conditions("Odd"), definition, ready_when="condition=Even").state is WAITING


@pytest.mark.parametrize("rule", ["stored", "condition=Odd", "cel: has(self.status.odd)"])
def test_annotation_of_a_crd_says_nothing_of_the_crd_itself(rule: str) -> None:
    live = crd(CONDITIONS, annotations={PREFIX + "ready-when": rule})
    live |= {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    assert resource_for(live).health(live).state is WAITING
    live["status"] = conditions("Established", "NamesAccepted")
    assert resource_for(live).health(live).state is READY


STALE = {"conditions": [condition("Odd")], "observedGeneration": 1}


@pytest.mark.parametrize(
    ("status", "old", "managed", "state"),
    [
        pytest.param(STALE, None, [], WAITING, id="observed-before"),
        pytest.param({**STALE, "observedGeneration": 2}, None, [], READY, id="observed"),
        pytest.param(conditions("Odd"), conditions("Odd"), [], WAITING, id="as-before-our-change"),
        pytest.param(
            conditions("Odd"),
            None,
            [wrote("ours", "2026-01-01T00:00:02Z", "f:spec"), wrote("it", "2026-01-01T00:00:01Z", "f:status")],
            WAITING,
            id="written-before-the-spec",
        ),
    ],
)
def test_rule_says_nothing_of_an_older_spec_unless_it_says_so(
    status: Json, old: Any, managed: list[Json], state: State
) -> None:
    annotations = {PREFIX + "ready-when": "condition=Odd"}
    for ignores, expected in (({}, state), ({PREFIX + "ignore-generation": "true"}, READY)):
        live = custom(status, generation=2, managedFields=managed, annotations=annotations | ignores)
        obj = resource_for(live)
        obj.old_status = old
        assert obj.health(live).state is expected


def test_rule_that_reads_no_status_needs_none() -> None:
    live = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "generation": 2}, "data": {"a": "1"}}
    for wanted, state in (("1", READY), ("2", WAITING)):
        live["metadata"] = {"name": "c", "annotations": {PREFIX + "ready-when": f"jsonpath={{.data.a}}={wanted}"}}
        assert resource_for(live).health(live).state is state


def test_rule_decides_before_the_class_of_a_kind_and_a_deletion_before_the_rule() -> None:
    live: Json = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {}, "status": {"x": 1}}
    live["metadata"]["annotations"] = {PREFIX + "ready-when": "cel: status.x == 1"}
    assert resource_for(live).health(live).state is READY
    live["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert resource_for(live).health(live).reason == "Terminating"


def seconds(judge: Callable[[Json], Health], live: Json) -> float:
    best = float("inf")
    for _ in range(5):
        started = time.thread_time()
        judge(live)
        best = min(best, time.thread_time() - started)
    return best


def test_rules_cost_at_most_60_microseconds_more_at_the_median() -> None:
    written = "cel: has(self.status.conditions) && self.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')"
    given = {"annotations": {PREFIX + "ready-when": written, PREFIX + "failed-when": "jsonpath={.status.phase}=Lost"}}
    more = []
    for case in figures.cases(DATA / "judged_before.jsonl"):
        ruled = {**case.live, "metadata": {**case.live["metadata"], **given}}
        obj, other = resource_for(case.live), resource_for(ruled)
        more.append(seconds(other.health, ruled) - seconds(obj.health, case.live))
    assert statistics.median(more) < 60e-6
