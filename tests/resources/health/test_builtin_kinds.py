# SPDX-License-Identifier: Apache-2.0
"""The kinds that are built into Kubernetes have rules of their own."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_cr_driver.objects.api_groups import GROUPS
from k8s_cr_driver.resources.health import Health, State, assess
from k8s_cr_driver.resources.health.builtin import RULES
from tests.resources.health.objects import Json, condition

READY, WAITING, SUSPENDED, FAILED = State.READY, State.WAITING, State.SUSPENDED, State.FAILED


def judged(kind: str, spec: Json | None = None, status: Json | None = None, **metadata: Any) -> Health:
    group = next((group for group, known in RULES if known == kind), "")
    live: Json = {
        "apiVersion": f"{group}/v1" if group else "v1",
        "kind": kind,
        "metadata": {"name": "o", "generation": 2, **metadata},
        "spec": spec or {},
    }
    return assess(live if status is None else {**live, "status": status}, None)


def counted(**counts: Any) -> Json:
    return {"observedGeneration": 2, **counts}


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController"])
def test_workload_that_its_controller_has_not_seen_waits(kind: str) -> None:
    full = {"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1}
    assert judged(kind).state is WAITING
    assert judged(kind, status=full).state is WAITING
    assert judged(kind, status={**full, "observedGeneration": 1}).state is WAITING
    assert judged(kind, status=counted(**full)).state is READY


@pytest.mark.parametrize(
    ("counts", "state"),
    [
        ({"replicas": 3, "updatedReplicas": 3, "availableReplicas": 3}, READY),
        ({"replicas": 3, "updatedReplicas": 3, "availableReplicas": 2}, WAITING),
        ({"replicas": 4, "updatedReplicas": 3, "availableReplicas": 4}, WAITING),
        ({"replicas": 3, "updatedReplicas": 1, "availableReplicas": 3}, WAITING),
        ({}, WAITING),
    ],
)
def test_deployment_is_ready_when_only_available_replicas_of_the_latest_template_are_left(counts: Json, state: State) -> None:
    assert judged("Deployment", {"replicas": 3}, counted(**counts)).state is state


def test_deployment_past_its_progress_deadline_waits_and_says_so() -> None:
    late = condition("Progressing", "False", "ProgressDeadlineExceeded", "ReplicaSet has timed out progressing")
    health = judged("Deployment", {"replicas": 1}, counted(replicas=1, updatedReplicas=1, conditions=[late]))
    assert (health.state, health.reason) == (WAITING, "ProgressDeadlineExceeded")
    assert "0 of 1 replicas are available" in health.message


def test_deployment_without_replicas_is_ready() -> None:
    assert judged("Deployment", {"replicas": 0}, counted()).state is READY


def test_paused_deployment_is_settled() -> None:
    assert judged("Deployment", {"paused": True}).state is SUSPENDED


def test_a_paused_deployment_that_is_scaled_waits_for_its_replicas() -> None:
    scaled = {"paused": True, "replicas": 3}
    assert judged("Deployment", scaled, counted(replicas=1, unavailableReplicas=2)).reason == "Unavailable"
    assert judged("Deployment", scaled, counted(replicas=3, updatedReplicas=0)).state is SUSPENDED
    assert judged("Deployment", scaled, counted(observedGeneration=0)).state is WAITING
    assert judged("Deployment", scaled, counted(replicas=1, updatedReplicas=1)).reason == "Replicas"
    assert judged("Deployment", scaled, counted(replicas=4, updatedReplicas=4)).reason == "Replicas"
    assert judged("Deployment", scaled, counted(replicas=4, updatedReplicas=1)).state is SUSPENDED, "in the middle of a rollout"
    assert judged("Deployment", scaled, counted(replicas=4)).reason == "Replicas", "its template has changed"
    assert judged("Deployment", scaled, counted()).state is SUSPENDED, "created so"
    revision = {"deployment.kubernetes.io/revision": "1"}
    assert judged("Deployment", scaled, counted(), annotations=revision).reason == "Replicas", "it had none"


@pytest.mark.parametrize(("surge", "most"), [(1, 4), ("25%", 4), ("34%", 5), ("x%", 3), (None, 3)])
def test_a_paused_deployment_of_two_former_templates_keeps_the_surge_of_its_rollout(surge: object, most: int) -> None:
    """Its controller scales no ReplicaSet of these while they have no more Pods than a rollout may."""
    spec = {"paused": True, "replicas": 3, "strategy": {"rollingUpdate": {"maxSurge": surge}}}
    assert judged("Deployment", spec, counted(replicas=most)).state is SUSPENDED
    assert judged("Deployment", spec, counted(replicas=most + 1)).reason == "Replicas"


def test_a_revision_that_a_manifest_has_says_nothing_of_a_paused_deployment() -> None:
    annotation = {"deployment.kubernetes.io/revision": "4"}
    fields = {"f:metadata": {"f:annotations": {f"f:{name}": {} for name in annotation}}}
    applied = [{"manager": "k8s-cr-driver-blue", "operation": "Apply", "fieldsV1": fields}]
    paused = {"paused": True, "replicas": 3}
    assert judged("Deployment", paused, counted(), annotations=annotation, managedFields=applied).state is SUSPENDED


def test_replica_set_that_may_not_make_pods_says_why() -> None:
    denied = condition("ReplicaFailure", "True", "FailedCreate", "exceeded quota")
    health = judged("ReplicaSet", {"replicas": 2}, counted(conditions=[denied]))
    assert (health.state, health.reason) == (WAITING, "FailedCreate")


FULL = {"replicas": 3, "readyReplicas": 3, "availableReplicas": 3}
ROLLING = {**FULL, "currentRevision": "a", "updateRevision": "b"}


@pytest.mark.parametrize(
    ("strategy", "counts", "state"),
    [
        ({}, {**FULL, "currentRevision": "b", "updateRevision": "b"}, READY),
        ({}, {**ROLLING, "updatedReplicas": 1}, WAITING),
        ({"rollingUpdate": {"partition": 2}}, {**ROLLING, "updatedReplicas": 1}, READY),
        ({"type": "OnDelete"}, ROLLING, READY),
        ({}, {**FULL, "availableReplicas": 2}, WAITING),
        ({}, {**FULL, "replicas": 4}, WAITING),
    ],
)
def test_stateful_set(strategy: Json, counts: Json, state: State) -> None:
    assert judged("StatefulSet", {"replicas": 3, "updateStrategy": strategy}, counted(**counts)).state is state


@pytest.mark.parametrize(
    ("strategy", "counts", "state"),
    [
        ("RollingUpdate", {"desiredNumberScheduled": 2, "updatedNumberScheduled": 2, "numberAvailable": 2}, READY),
        ("RollingUpdate", {"desiredNumberScheduled": 2, "updatedNumberScheduled": 1, "numberAvailable": 2}, WAITING),
        ("OnDelete", {"desiredNumberScheduled": 2, "updatedNumberScheduled": 1, "numberAvailable": 2}, READY),
        ("RollingUpdate", {"desiredNumberScheduled": 2, "updatedNumberScheduled": 2, "numberAvailable": 1}, WAITING),
        ("RollingUpdate", {"desiredNumberScheduled": 0}, READY),
    ],
)
def test_daemon_set(strategy: str, counts: Json, state: State) -> None:
    assert judged("DaemonSet", {"updateStrategy": {"type": strategy}}, counted(**counts)).state is state


@pytest.mark.parametrize(
    ("spec", "status", "state"),
    [
        ({}, None, WAITING),
        ({}, {"active": 1}, WAITING),
        ({}, {"conditions": [condition("SuccessCriteriaMet")]}, WAITING),
        ({}, {"conditions": [condition("FailureTarget")]}, WAITING),
        ({}, {"conditions": [condition("Complete")]}, READY),
        ({}, {"conditions": [condition("Failed", reason="BackoffLimitExceeded")]}, FAILED),
        ({"suspend": True}, {"conditions": [condition("Suspended")]}, SUSPENDED),
    ],
)
def test_job(spec: Json, status: Json | None, state: State) -> None:
    assert judged("Job", spec, status).state is state


def test_cron_job_does_not_wait_for_its_jobs() -> None:
    assert judged("CronJob").state is READY
    assert judged("CronJob", {"suspend": True}).state is SUSPENDED


def container(name: str, **state: Json) -> Json:
    return {"name": name, "state": state}


@pytest.mark.parametrize(
    ("status", "state", "reason"),
    [
        pytest.param({"phase": "Running", "conditions": [condition("Ready")]}, READY, "Ready", id="ready"),
        pytest.param({"phase": "Succeeded"}, READY, "Succeeded", id="succeeded"),
        pytest.param({"phase": "Failed", "reason": "Evicted"}, FAILED, "Evicted", id="evicted"),
        pytest.param(
            {"phase": "Failed", "containerStatuses": [container("a", terminated={"exitCode": 3, "reason": "Error"})]},
            FAILED,
            "Error",
            id="exited",
        ),
        pytest.param(
            {"phase": "Running", "containerStatuses": [container("a", waiting={"reason": "CrashLoopBackOff"})]},
            WAITING,
            "CrashLoopBackOff",
            id="crash-loop",
        ),
        pytest.param(
            {"phase": "Pending", "initContainerStatuses": [container("a", waiting={"reason": "ImagePullBackOff"})]},
            WAITING,
            "ImagePullBackOff",
            id="image-of-an-init-container",
        ),
        pytest.param(
            {
                "phase": "Pending",
                "containerStatuses": [container("a", waiting={"reason": "ContainerCreating"})],
                "conditions": [condition("Ready", "False", "ContainersNotReady")],
            },
            WAITING,
            "ContainersNotReady",
            id="starting",
        ),
        pytest.param(
            {"phase": "Pending", "conditions": [condition("PodScheduled", "False", "Unschedulable", "0/3 nodes")]},
            WAITING,
            "Unschedulable",
            id="no-node",
        ),
        pytest.param({}, WAITING, "NoStatus", id="new"),
    ],
)
def test_pod(status: Json, state: State, reason: str) -> None:
    health = judged("Pod", status=status)
    assert (health.state, health.reason) == (state, reason)


def test_pod_names_the_container_and_its_last_exit() -> None:
    crashed = {"name": "db", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    crashed["lastState"] = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    message = judged("Pod", status={"phase": "Running", "containerStatuses": [crashed]}).message
    assert message == "container db: CrashLoopBackOff: last exit code 137 OOMKilled"


@pytest.mark.parametrize(
    ("spec", "status", "state"),
    [
        ({"type": "ClusterIP"}, None, READY),
        ({"type": "LoadBalancer"}, {"loadBalancer": {}}, WAITING),
        ({"type": "LoadBalancer"}, {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}, READY),
    ],
)
def test_service_of_type_load_balancer_needs_an_address(spec: Json, status: Json | None, state: State) -> None:
    assert judged("Service", spec, status).state is state


ASKED_FOR = {"volume.kubernetes.io/storage-provisioner": "csi.example.com"}


@pytest.mark.parametrize(
    ("spec", "phase", "annotations", "state"),
    [
        pytest.param({}, "Bound", {}, READY, id="bound"),
        pytest.param({}, "Lost", {}, FAILED, id="lost"),
        pytest.param({}, "", {}, WAITING, id="new"),
        pytest.param({"storageClassName": "csi"}, "Pending", ASKED_FOR, WAITING, id="being-provisioned"),
        pytest.param({"storageClassName": "csi"}, "Pending", {}, SUSPENDED, id="waits-for-its-first-pod"),
        pytest.param({"storageClassName": ""}, "Pending", {}, WAITING, id="only-an-existing-volume-will-do"),
        pytest.param({"volumeName": "v"}, "Pending", {}, WAITING, id="one-volume-will-do"),
    ],
)
def test_volume_claim(spec: Json, phase: str, annotations: Json, state: State) -> None:
    assert judged("PersistentVolumeClaim", spec, {"phase": phase}, annotations=annotations).state is state


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ([condition("NamesAccepted"), condition("Established")], READY),
        ([condition("NamesAccepted"), condition("Established", "False", "Installing")], WAITING),
        ([condition("NamesAccepted", "False", "ListKindConflict"), condition("Established", "False")], FAILED),
        ([], WAITING),
    ],
)
def test_definition_is_ready_when_its_kinds_are_served(status: list[Json], state: State) -> None:
    assert judged("CustomResourceDefinition", status={"conditions": status}).state is state


@pytest.mark.parametrize(
    ("kind", "status", "state"),
    [
        ("Namespace", {"phase": "Active"}, READY),
        ("Namespace", {"phase": "Terminating"}, WAITING),
        ("PersistentVolume", {"phase": "Available"}, READY),
        ("PersistentVolume", {"phase": "Pending"}, WAITING),
        ("PersistentVolume", {"phase": "Failed"}, FAILED),
        ("Node", {"conditions": [condition("Ready")]}, READY),
        ("Node", {"conditions": [condition("Ready", "Unknown", "NodeStatusUnknown")]}, WAITING),
        ("APIService", {"conditions": [condition("Available")]}, READY),
        ("APIService", {"conditions": [condition("Available", "False", "MissingEndpoints")]}, WAITING),
        ("HorizontalPodAutoscaler", {"conditions": [condition("AbleToScale", "False", "FailedGetScale")]}, READY),
        ("PodDisruptionBudget", None, WAITING),
        ("PodDisruptionBudget", {"observedGeneration": 1}, WAITING),
        (
            "PodDisruptionBudget",
            {"observedGeneration": 2, "conditions": [condition("DisruptionAllowed", "False", "InsufficientPods")]},
            READY,
        ),
        (
            "PodDisruptionBudget",
            {"observedGeneration": 2, "conditions": [condition("DisruptionAllowed", "False", "SyncFailed")]},
            WAITING,
        ),
        ("CertificateSigningRequest", None, WAITING),
        ("CertificateSigningRequest", {"conditions": [condition("Approved")]}, WAITING),
        ("CertificateSigningRequest", {"conditions": [condition("Approved")], "certificate": "LS0t"}, READY),
        ("CertificateSigningRequest", {"conditions": [condition("Denied")]}, FAILED),
    ],
)
def test_other_kinds(kind: str, status: Json | None, state: State) -> None:
    assert judged(kind, status=status).state is state


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("v1", "ConfigMap"),
        ("v1", "Secret"),
        ("rbac.authorization.k8s.io/v1", "Role"),
        ("networking.k8s.io/v1", "Ingress"),
    ],
)
def test_built_in_kind_without_a_rule_is_ready_when_stored(version: str, kind: str) -> None:
    assert assess({"apiVersion": version, "kind": kind, "metadata": {"name": "o"}}, None).state is READY


def test_every_rule_belongs_to_a_built_in_group() -> None:
    assert {group for group, _ in RULES} <= GROUPS


def test_built_in_kind_obeys_the_common_rules_too() -> None:
    assert judged("ConfigMap", deletionTimestamp="2026-01-01T00:00:00Z").state is WAITING
    assert judged("Pod", annotations={"k8s-cr-driver/ready-when": "stored"}).state is READY
