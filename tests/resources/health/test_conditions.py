# SPDX-License-Identifier: Apache-2.0
"""What a set of conditions says about the object as a whole."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_cr_driver.resources.health import State, assess
from tests.resources.health.objects import CONDITIONS, Json, condition, conditions, crd, custom

READY, WAITING, SUSPENDED, FAILED = State.READY, State.WAITING, State.SUSPENDED, State.FAILED


@pytest.mark.parametrize(
    ("status", "state"),
    [
        pytest.param(conditions("Ready"), READY, id="ready"),
        pytest.param(conditions(Ready="False"), WAITING, id="not-ready"),
        pytest.param(conditions(Ready="Unknown"), WAITING, id="unknown"),
        pytest.param(conditions(Ready="probably"), WAITING, id="neither-true-nor-false"),
        pytest.param(conditions("Ready", InfrastructureReady="False"), READY, id="the-sum-outweighs-a-part"),
        pytest.param(conditions("InfrastructureReady", BootstrapReady="False"), WAITING, id="every-part-without-a-sum"),
        pytest.param(conditions("InfrastructureReady", "BootstrapReady"), READY, id="all-parts"),
        pytest.param(conditions("Ready", Synced="False"), WAITING, id="one-side-of-the-whole"),
        pytest.param(conditions("Accepted", "Programmed", ResolvedRefs="False"), WAITING, id="a-side-does-not-sum-up"),
        pytest.param(conditions("Launched", "Registered"), WAITING, id="stages-are-no-end"),
        pytest.param(conditions("PhaseOfTheMoon"), WAITING, id="a-type-that-says-nothing"),
        pytest.param(conditions("Ready", Stalled="False", Degraded="False", Progressing="False"), READY, id="no-alarm"),
        pytest.param(conditions("Ready", "Degraded"), WAITING, id="degraded"),
        pytest.param(conditions("NotReady"), WAITING, id="negated"),
        pytest.param(conditions("NoErrors", "AllReplicasReady"), READY, id="negated-trouble"),
        pytest.param(conditions("AllReplicasReady", NoErrors="False"), WAITING, id="negated-trouble-that-is-there"),
        pytest.param(conditions("AllReplicasReady", NoWarnings="False"), READY, id="warnings"),
        pytest.param(conditions("Ready", "Reconciling"), WAITING, id="at-work"),
        pytest.param(conditions("Ready", "Warning"), READY, id="a-warning"),
        pytest.param(conditions("Stalled", Ready="False"), FAILED, id="stalled"),
        pytest.param(conditions("Failed"), FAILED, id="failed"),
        pytest.param(conditions("FetchFailed", Ready="False"), WAITING, id="a-failed-step-is-tried-again"),
        pytest.param(conditions("Paused", Ready="False"), SUSPENDED, id="paused"),
        pytest.param(conditions("example.com/app-ready"), READY, id="with-a-domain"),
        pytest.param({"conditions": [], "phase": "Running"}, READY, id="none"),
    ],
)
def test_conditions(status: Json, state: State) -> None:
    assert assess(custom(status), None).state is state


CLUSTER_API = ("Paused", "Deleting", "RollingOut", "ScalingUp", "ScalingDown", "Remediating")


def test_cluster_api_conditions_that_are_false_on_a_healthy_object() -> None:
    healthy = conditions("Available", **dict.fromkeys(CLUSTER_API, "False"))
    assert assess(custom(healthy), None).state is READY


@pytest.mark.parametrize("busy", ["Deleting", "RollingOut", "ScalingUp", "ScalingDown", "Remediating"])
def test_cluster_api_object_at_work_is_not_ready_though_available(busy: str) -> None:
    assert assess(custom(conditions("Available", busy, Paused="False")), None).state is WAITING


def test_conditions_of_a_deprecated_contract_are_left_out() -> None:
    status = {**conditions("Available"), "deprecated": {"v1beta1": conditions(Ready="False")}}
    assert assess(custom(status), None).state is READY


def test_progress_that_has_come_to_its_end_is_no_progress() -> None:
    done = condition("Progressing", "True", "NewReplicaSetAvailable")
    assert assess(custom({"conditions": [condition("Available"), done]}), None).state is READY


def test_own_phase_objects_to_a_ready_condition() -> None:
    assert assess(custom({**conditions("Ready"), "phase": "Provisioning"}), None).state is WAITING


@pytest.mark.parametrize(
    ("reason", "state"),
    [
        ("ReconcileError", WAITING),
        ("UnrecoverableError", FAILED),
        ("NotTerminal", WAITING),
        ("SecretNotFoundTerminal", FAILED),
        ("NotSupportedFatal", FAILED),
        ("Stalled", FAILED),
        ("ReconcilePaused", SUSPENDED),
    ],
)
def test_reason_distinguishes_a_passing_error_from_a_final_one(reason: str, state: State) -> None:
    assert assess(custom({"conditions": [condition("Ready", "False", reason)]}), None).state is state


@pytest.mark.parametrize(
    ("parts", "state"),
    [
        ([conditions("Accepted"), conditions("Accepted")], READY),
        ([conditions("Accepted"), conditions(Accepted="False")], WAITING),
    ],
)
def test_conditions_of_parts_must_all_be_well(parts: list[Json], state: State) -> None:
    assert assess(custom({"parents": parts}), None).state is state


def test_false_condition_explains_with_reason_and_message() -> None:
    status = {
        "conditions": [
            condition("Ready", "False"),
            condition("InfrastructureReady", "False", "QuotaExceeded", "no volume left in region one"),
            condition("BootstrapReady", "Unknown", "Waiting"),
        ]
    }
    health = assess(custom(status), None)
    assert health.reason == "QuotaExceeded"
    assert health.message.startswith("InfrastructureReady is False (QuotaExceeded): no volume left in region one")


def test_message_is_one_line_of_limited_length() -> None:
    health = assess(custom({"conditions": [condition("Ready", "False", "Broken", "line\n" * 1000)]}), None)
    assert len(health.message) == 400
    assert "\n" not in health.message


def alarms(*types: str, **more: Any) -> Json:
    return {"conditions": [condition(kind, "False", **more) for kind in types]}


@pytest.mark.parametrize(
    ("status", "state"),
    [
        pytest.param(alarms("Conflict", "Failed", observedGeneration=1), READY, id="at-this-generation"),
        pytest.param(alarms("Conflict", observedGeneration=0), WAITING, id="at-an-older-one"),
        pytest.param(alarms("Conflict"), WAITING, id="at-none"),
        pytest.param({**alarms("Conflict"), "observedGeneration": 1}, READY, id="status-at-this-one"),
        pytest.param({**alarms("Conflict", observedGeneration=1), "phase": "Frobnicated"}, WAITING, id="a-phase-beside"),
        pytest.param(alarms("Progressing", observedGeneration=1), WAITING, id="only-not-at-work"),
        pytest.param(alarms("Paused", observedGeneration=1), WAITING, id="only-not-paused"),
        pytest.param(alarms("Backup", "Conflict", observedGeneration=1), WAITING, id="a-fact-beside"),
        pytest.param(alarms("Degraded", reason="CheckFailed", observedGeneration=1), WAITING, id="not-known-to-be-false"),
        pytest.param(alarms("MissingPeer", reason="MissingPeer", observedGeneration=1), READY, id="reason-repeats-the-type"),
        pytest.param(alarms("Syncing", reason="WaitingForSchedule", observedGeneration=1), READY, id="until-its-time"),
    ],
)
def test_alarms_alone_that_are_false(status: Json, state: State) -> None:
    assert assess(custom(status), None).state is state


def test_alarms_alone_suffice_without_a_generation_where_the_crd_has_nothing_else_to_come() -> None:
    assert assess(custom(alarms("Conflict")), crd(CONDITIONS)).state is READY
    more = {"type": "object", "properties": {"conditions": {}, "phase": {"type": "string"}}}
    assert assess(custom(alarms("Conflict")), crd(more)).state is WAITING


@pytest.mark.parametrize(("message", "state"), [("254", READY), ("254 addresses", WAITING), ("", WAITING)])
def test_condition_that_is_a_counter_says_nothing(message: str, state: State) -> None:
    counter = condition("AddressesAvailable", "Unknown", "noreason", message)
    assert assess(custom({"conditions": [condition("Ready"), counter]}), None).state is READY
    beside = condition("PoolConflict", "False", observedGeneration=1)
    assert assess(custom({"conditions": [beside, counter]}), None).state is state


@pytest.mark.parametrize(
    ("types", "state", "trouble"),
    [
        ([condition("FullyApplied"), condition("Scheduled", "False", "SchedulingFailed")], WAITING, True),
        ([condition("FullyApplied"), condition("Scheduled", "False", "Over")], READY, False),
        ([condition("Done"), condition("Started", "False")], READY, False),
        ([condition("Ready"), condition("Scheduled", "False", "SchedulingFailed")], READY, False),
    ],
)
def test_stage_that_failed_beside_a_part_that_is_done(types: list[Json], state: State, trouble: bool) -> None:
    health = assess(custom({"conditions": types}), None)
    assert (health.state, health.trouble) == (state, trouble)


@pytest.mark.parametrize(
    ("one", "state"),
    [
        pytest.param(condition("Stopped", "True", "InstallationCompleted"), READY, id="at-its-end"),
        pytest.param(condition("Stopped", "True", "ByUser"), WAITING, id="before"),
        pytest.param(condition("Disabled", "False", "CheckEnabled"), READY, id="not-off"),
        pytest.param(condition("Synchronizing", "False", "WaitingForManual"), SUSPENDED, id="by-a-user"),
        pytest.param(condition("ProposalReady", "True"), SUSPENDED, id="a-proposal"),
    ],
)
def test_what_has_stopped_or_waits_for_a_user(one: Json, state: State) -> None:
    assert assess(custom({"conditions": [condition("InstallationCompleted"), one]}), None).state is state


def test_cause_is_the_worst_condition_of_now() -> None:
    old = condition("Ready", "False", "Frobnicated", "as of before", observedGeneration=1)
    work = condition("PodsReady", "False", "Starting", "two of three", observedGeneration=2)
    worst = condition("VolumeReady", "False", "QuotaExceeded", "no room", observedGeneration=2)
    assert assess(custom({"conditions": [old, work, worst]}, generation=2), None).reason == "QuotaExceeded"
    assert assess(custom({"conditions": [old, work]}, generation=2), None).reason == "Starting"
