# SPDX-License-Identifier: Apache-2.0
"""Work that has ended has failed or is done for good, and what a controller says of it is shown once and whole."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_cr_driver.resources.health import State, assess
from k8s_cr_driver.resources.registry import resource_for
from tests.resources.health.objects import Json, condition, conditions, custom

READY, WAITING, SUSPENDED, FAILED = State.READY, State.WAITING, State.SUSPENDED, State.FAILED
END = "2026-01-01T00:00:00Z"
ENDS = ("completionTime", "completionTimestamp", "completedAt", "finishedAt", "finishTime", "endTime")


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("word", ["Error", "Failed", "Errored", "DeployFailed", "Aborted", "TimedOut", "BUILD_ERROR"])
def test_phase_of_an_error_with_a_completion_time_is_final(word: str, end: str) -> None:
    assert assess(custom({"phase": word, end: END}), None).state is FAILED
    assert assess(custom({"phase": word, end: None}), None).state is (FAILED if word == "Failed" else WAITING)


@pytest.mark.parametrize(
    "word", ["Degraded", "RetryAfterError", "FinalizingFailed", "ErrorRetrying", "NotFailed", "Running"]
)
def test_phase_that_names_no_bad_end_is_not_final_by_a_completion_time(word: str) -> None:
    assert assess(custom({"phase": word, "completionTime": END}), None).state is not FAILED


def test_bad_end_of_a_part_is_none_of_the_whole() -> None:
    part = {"phase": "Error", "completionTime": END}
    assert assess(custom({"steps": [part], "completionTime": END}), None).state is WAITING


@pytest.mark.parametrize(
    ("status", "message"),
    [
        ({"phase": "Failed", "error": "boom"}, "phase is Failed; error is boom"),
        ({"phase": "Failed", "errorMessage": "boom", "message": "it ended"}, "phase is Failed: it ended; errorMessage is boom"),
        ({"phase": "Failed", "message": "boom", "error": "boom"}, "phase is Failed: boom"),
        ({"phase": "Failed", "errors": [{"message": "boom"}, {"message": "bang"}]}, "phase is Failed; errors is boom, bang"),
        ({"phase": "Failed", "errors": ["boom"]}, "phase is Failed; errors is boom"),
        ({"phase": "Failed", "error": {"code": 5, "message": "boom"}}, "phase is Failed; error is boom"),
        ({"phase": "Failed", "error": {"code": 5, "reason": "Boom"}}, "phase is Failed; error is Boom"),
        ({"phase": "Failed", "error": False, "lastError": "of before"}, "phase is Failed"),
        ({"phase": "Error", "failureMessage": "boom"}, "phase is Error; failureMessage is boom"),
        ({"failureReason": "Bad", "failureMessage": "boom"}, "failureReason is Bad; failureMessage is boom"),
        (
            {"phase": "Failed", "conditions": [condition("Ready", "False", "", "boom")]},
            "phase is Failed; Ready is False: boom",
        ),
        (
            {**conditions("Failed"), "message": "boom", "error": "bang"},
            "Failed is True; message is boom; error is bang",
        ),
    ],
)
def test_text_of_the_error_is_shown(status: Json, message: str) -> None:
    health = assess(custom(status), None)
    assert health.trouble and health.message == message


ALARM = condition("MetricsError", "True", "", "unable to emit")


@pytest.mark.parametrize(
    ("status", "state"),
    [
        pytest.param({"phase": "Succeeded", "finishedAt": END, "conditions": [ALARM]}, READY, id="phase"),
        pytest.param({"completionTime": END, "conditions": [condition("Completed"), ALARM]}, READY, id="condition"),
        pytest.param({"phase": "Succeeded", "conditions": [ALARM]}, WAITING, id="no-end"),
        pytest.param({"phase": "Running", "finishedAt": END, "conditions": [ALARM]}, WAITING, id="at-work"),
        pytest.param({"phase": "Succeeded", "finishedAt": END, "conditions": [condition("Degraded")]}, WAITING, id="of-all"),
        pytest.param({"phase": "Succeeded", "finishedAt": END, "conditions": [condition("RunFailed")]}, WAITING, id="failed"),
        pytest.param({"phase": "Succeeded", "finishedAt": END, "conditions": [condition("Failed")]}, FAILED, id="final"),
        pytest.param({"phase": "Error", "finishedAt": END, "conditions": [ALARM]}, FAILED, id="ended-badly"),
    ],
)
def test_alarm_of_a_part_says_nothing_of_work_that_is_done(status: Json, state: State) -> None:
    assert assess(custom(status), None).state is state


@pytest.mark.parametrize(
    ("rule", "status", "times"),
    [
        ("cel: status.health == 'OK'", {"health": "HEALTH_ERR"}, 1),
        ("cel: status.ceph.health == 'OK'", {"ceph": {"health": "HEALTH_ERR"}}, 1),
        ("cel: status.ceph.health == 'OK'", {"ceph": {"health": "HEALTH_ERR", "message": "2 lost"}}, 1),
        ("jsonpath={.status.health}=HEALTH_OK", {"health": "HEALTH_ERR"}, 1),
        ("condition=Ready", {"conditions": [condition("Ready", "False", "", "HEALTH_ERR")]}, 1),
        ("cel: status.on", {"on": False, "health": "HEALTH_ERR"}, 1),
        ("cel: status.phase == 'Up'", {"phase": "Odd", "message": "HEALTH_ERR"}, 1),
    ],
)
def test_what_a_rule_has_seen_stands_once_in_its_message(rule: str, status: Json, times: int) -> None:
    given: dict[str, Any] = {"annotations": {"k8s-cr-driver/ready-when": rule}}
    health = resource_for(custom()).health(custom(status, **given))
    assert health.state is WAITING and health.message.count("HEALTH_ERR") == times
    assert ("2 lost" in health.message) == ("2 lost" in str(status))


@pytest.mark.parametrize("rule", ["cel: status.health == 'HEALTH_ERR'", "jsonpath={.status.health}=HEALTH_ERR"])
def test_what_a_rule_of_failure_has_seen_stands_once(rule: str) -> None:
    given: dict[str, Any] = {"annotations": {"k8s-cr-driver/failed-when": rule}}
    health = resource_for(custom()).health(custom({"health": "HEALTH_ERR", "error": "2 lost"}, **given))
    assert health.state is FAILED and health.message.count("HEALTH_ERR") == 2  # in the rule, and what it has seen
    assert health.message.endswith("error is 2 lost")
