# SPDX-License-Identifier: Apache-2.0
"""What contradicts "ready" vetoes it, however loudly another field says it."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_cr_driver.resources.health import State, assess
from tests.resources.health.objects import Json, condition, conditions, custom

READY, WAITING, SUSPENDED, FAILED = State.READY, State.WAITING, State.SUSPENDED, State.FAILED


def beside_ready(*others: Json, **more: Any) -> Json:
    return {"conditions": [condition("Available", reason="AsExpected"), *others], **more}


@pytest.mark.parametrize(
    ("other", "state", "trouble"),
    [
        pytest.param(condition("Progressing", "False", "ProgressDeadlineExceeded"), WAITING, True, id="given-up"),
        pytest.param(condition("Progressing", "False", "UpdateAborted"), FAILED, True, id="aborted"),
        pytest.param(condition("Progressing", "True", "UpdateAborted"), WAITING, True, id="aborted-and-at-work"),
        pytest.param(condition("Progressing", "False", "NotAborted"), READY, False, id="not-aborted"),
        pytest.param(condition("Progressing", "False", "NoFatalErrors"), READY, False, id="nothing-fatal"),
        pytest.param(condition("Connected", "False", "RequestAborted"), READY, False, id="part-aborted"),
        pytest.param(condition("Progressing", "Unknown"), WAITING, False, id="not-known"),
        pytest.param(condition("Progressing", "Unknown", "DeploymentPaused"), SUSPENDED, False, id="paused"),
        pytest.param(condition("Progressing", "False", "AsExpected"), READY, False, id="done"),
        pytest.param(condition("Progressing", "True", "NewReplicaSetAvailable"), READY, False, id="ended-well"),
        pytest.param(condition("RollingOut", "False", "NotRollingOut"), READY, False, id="negated-work"),
        pytest.param(condition("Reconciling", "False", "NoErrors"), READY, False, id="negated-trouble"),
        pytest.param(condition("UpdateInProgress"), WAITING, False, id="update"),
        pytest.param(condition("RollingUpdate"), WAITING, False, id="verb-in-front"),
        pytest.param(condition("Errored"), WAITING, True, id="errored"),
        pytest.param(condition("Terminated"), WAITING, False, id="ended"),
        pytest.param(condition("Synced", "True", "ReconcileError"), WAITING, True, id="side-with-an-error"),
    ],
)
def test_condition_beside_one_that_sums_up(other: Json, state: State, trouble: bool) -> None:
    health = assess(custom(beside_ready(other)), None)
    assert (health.state, health.trouble) == (state, trouble)


@pytest.mark.parametrize(
    ("reason", "state"),
    [
        ("ReconcileError", WAITING),
        ("Pending", WAITING),
        ("Creating", WAITING),
        ("NotReady", WAITING),
        ("Unsynced", WAITING),
        ("OutOfSync", WAITING),
        ("Terminated", WAITING),
        ("ClusterUnhealthy", WAITING),
        ("MinimumReplicasAvailable", READY),
        ("NoErrors", READY),
        ("WatchingResources", READY),
        ("UpdateSucceeded", READY),
        ("NotRequired", READY),
        ("ACMEAccountRegistered", READY),
    ],
)
def test_reason_of_a_true_summary(reason: str, state: State) -> None:
    assert assess(custom({"conditions": [condition("Ready", "True", reason)]}), None).state is state


@pytest.mark.parametrize(
    ("counts", "state"),
    [
        ({"replicas": 3, "updatedReplicas": 2, "availableReplicas": 3}, WAITING),
        ({"replicas": 3, "upToDateReplicas": 0}, WAITING),
        ({"replicas": 3, "readyReplicas": 3, "upToDateNodes": 1}, WAITING),
        ({"replicas": 4, "updatedReplicas": 3}, WAITING),
        ({"replicas": 3, "readyReplicas": 0}, WAITING),
        ({"replicas": 3, "updatedReplicas": 3, "availableReplicas": 2}, READY),
        ({"replicas": 3, "updatedReplicas": None}, READY),
    ],
)
def test_counts_beside_available(counts: Json, state: State) -> None:
    assert assess(custom(beside_ready(**counts), {"replicas": 3}), None).state is state


def test_replicas_that_a_partition_holds_back_are_not_missing() -> None:
    status = beside_ready(replicas=3, updatedReplicas=1)
    assert assess(custom(status, {"replicas": 3, "updateStrategy": {"partition": 2}}), None).state is READY
    assert assess(custom(status, {"replicas": 3, "updateStrategy": {"partition": 1}}), None).state is WAITING


@pytest.mark.parametrize(
    ("more", "state"),
    [
        ({"error": {"message": "no such image"}}, WAITING),
        ({"errorMessage": "quota exceeded"}, WAITING),
        ({"errors": []}, READY),
        ({"error": ""}, READY),
        ({"lastError": "of yesterday"}, READY),
        ({"members": [{"name": "a", "phase": "Running"}, {"name": "b", "phase": "Failed"}]}, WAITING),
        ({"backup": {"phase": "Failed"}}, READY),
    ],
)
def test_other_fields_beside_a_condition_that_sums_up(more: Json, state: State) -> None:
    assert assess(custom({**conditions("Ready"), **more}), None).state is state


@pytest.mark.parametrize("missing", ["kind", "apiVersion"])
def test_object_of_no_known_kind_is_not_ready(missing: str) -> None:
    live = custom(conditions("Ready"), annotations={"k8s-cr-driver/ready-when": "stored"})
    del live[missing]
    assert assess(live, None).state is WAITING


@pytest.mark.parametrize(("there", "state"), [(2, READY), (3, WAITING)])
def test_counts_of_several_parts_are_no_surplus(there: int, state: State) -> None:
    """An operator's `replicas` may be those of each shard."""
    counts = {"replicas": there, "updatedReplicas": there, "availableReplicas": there}
    live = custom(beside_ready(**counts)) | {"spec": {"replicas": 1, "shards": 2}}
    assert assess(live, None).state is state
