# SPDX-License-Identifier: Apache-2.0
"""What a set of conditions says about the object as a whole."""

from __future__ import annotations

import pytest

from k8s_cr_driver.resources.health import State, assess
from tests.resources.health.objects import Json, condition, conditions, custom

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
