# SPDX-License-Identifier: Apache-2.0
"""What waits is in progress or in trouble; what was refused has failed."""

from __future__ import annotations

import pytest

from k8s_cr_driver.resources.health import Health, State, assess
from tests.resources.health.objects import Json, condition, custom

PROGRESS, TROUBLE, FAILED = (State.WAITING, False), (State.WAITING, True), (State.FAILED, True)


def face(health: Health) -> tuple[State, bool]:
    return health.state, health.trouble


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        pytest.param(condition("Ready", "False", "ImagePullFailed"), TROUBLE, id="word-in-the-reason"),
        pytest.param(condition("Ready", "False", "Creating"), PROGRESS, id="work-in-the-reason"),
        pytest.param(condition("Ready", "False", "Migrating", "Error: checksum mismatch"), TROUBLE, id="word-in-the-message"),
        pytest.param(condition("Ready", "False", "WaitingForOwner", "owner not found"), PROGRESS, id="waits-for-others"),
        pytest.param(condition("Ready", "False", "X", "Waiting for 3 pods"), PROGRESS, id="message-waits"),
        pytest.param(condition("Ready", "False"), PROGRESS, id="no-word"),
        pytest.param(condition("Ready", "False", "NoEndpoints"), TROUBLE, id="stands-still-without-work"),
        pytest.param(condition("Ready", "Unknown", "NoEndpoints"), PROGRESS, id="unknown"),
        pytest.param(condition("Ready", "Unknown", "TriggerError"), TROUBLE, id="unknown-for-an-error"),
        pytest.param(condition("Ready", "False", "X", severity="Info"), TROUBLE, id="unexplained-but-mild"),
        pytest.param(condition("Ready", "False", "Deleting", severity="Error"), TROUBLE, id="severe"),
        pytest.param(condition("PodsReady", "False", "NotAllPodsReady", "1/3 are"), PROGRESS, id="a-part"),
        pytest.param(condition("Degraded"), TROUBLE, id="alarm"),
        pytest.param(condition("NotReady", "True", "Creating"), PROGRESS, id="negated-at-work"),
        pytest.param(condition("Ready", "False", "InvalidSpec"), FAILED, id="refused"),
        pytest.param(condition("Accepted", "False", "Rejected"), FAILED, id="rejected"),
        pytest.param(condition("Ready", "False", "ConfigError"), FAILED, id="configuration"),
        pytest.param(condition("Ready", "False", "InvalidSecretRef"), TROUBLE, id="what-it-points-at-may-come"),
        pytest.param(condition("Ready", "False", "InvalidSpec", observedGeneration=1), PROGRESS, id="of-an-older-spec"),
    ],
)
def test_one_condition(one: Json, expected: tuple[State, bool]) -> None:
    assert face(assess(custom({"conditions": [one]}, generation=2), None)) == expected


def test_work_under_way_explains_a_summary_that_is_not_well() -> None:
    idle = condition("Ready", "False", "DoesNotExist")
    assert face(assess(custom({"conditions": [idle]}), None)) == TROUBLE
    assert face(assess(custom({"conditions": [idle, condition("Issuing")]}), None)) == PROGRESS
    assert face(assess(custom({"conditions": [idle], "phase": "Provisioning"}), None)) == PROGRESS


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"phase": "Provisioning"}, PROGRESS),
        ({"phase": "CrashLoopBackOff"}, TROUBLE),
        ({"phase": "Pending", "message": "failed to pull the image"}, TROUBLE),
        ({"ready": False}, PROGRESS),
        ({"ready": False, "errorMessage": "quota exceeded"}, TROUBLE),
        ({"state": "Rejected"}, FAILED),
        ({"children": {"state": "Rejected"}}, TROUBLE),
        ({"phase": "Unknown"}, PROGRESS),
        ({"health": "red"}, TROUBLE),
        ({"health": "yellow"}, PROGRESS),
    ],
)
def test_words_flags_and_errors(status: Json, expected: tuple[State, bool]) -> None:
    assert face(assess(custom(status), None)) == expected


@pytest.mark.parametrize(
    ("kind", "status", "trouble"),
    [
        ("Pod", {"containerStatuses": [{"name": "a", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}, True),
        ("Pod", {"conditions": [condition("Ready", "False", "ContainersNotReady")]}, False),
        ("Pod", {"conditions": [condition("PodScheduled", "False", "Unschedulable")]}, True),
        ("Node", {"conditions": [condition("Ready", "False", "KubeletNotReady", "container runtime is down: error")]}, True),
    ],
)
def test_built_in_kinds(kind: str, status: Json, trouble: bool) -> None:
    live = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "o"}, "status": status}
    assert face(assess(live, None)) == (State.WAITING, trouble)


def test_deployment_past_its_deadline_is_in_trouble() -> None:
    late = condition("Progressing", "False", "ProgressDeadlineExceeded")
    status = {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "conditions": [late]}
    live = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"generation": 1}, "status": status}
    assert face(assess(live, None)) == TROUBLE
