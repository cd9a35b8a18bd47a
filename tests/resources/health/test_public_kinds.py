# SPDX-License-Identifier: Apache-2.0
"""States that public API references document, of kinds that no rule names, are judged as their authors mean them."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_cr_driver.resources.health import Health, State, assess
from tests.resources.health.objects import Json, condition

READY, PROGRESS, TROUBLE, FAILED, SUSPENDED = "ready", "in progress", "in trouble", "failed", "suspended"


def face(health: Health) -> str:
    """The state, and of what waits which of its two faces."""
    if health.state is State.WAITING:
        return TROUBLE if health.trouble else PROGRESS
    return health.state.value.lower()


def said(*conditions: tuple[str, ...], **more: Any) -> Json:
    """A status of conditions, each (type, status, reason, message), and of other fields."""
    return {"conditions": [condition(*one) for one in conditions], **more}


TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"

# kind, what its status holds, what that means by the kind's own reference
BY_CONDITIONS: list[tuple[str, Json, str]] = [
    ("cert-manager Certificate", said(("Ready", TRUE, "Ready", "Certificate is up to date")), READY),
    ("cert-manager Certificate", said(("Issuing", TRUE, "DoesNotExist"), ("Ready", FALSE, "DoesNotExist")), PROGRESS),
    ("cert-manager CertificateRequest", said(("Ready", FALSE, "Pending", "Waiting on certificate issuance")), PROGRESS),
    ("cert-manager CertificateRequest", said(("Approved", TRUE), ("Ready", FALSE, "Failed", "request failed")), TROUBLE),
    ("cert-manager CertificateRequest", said(("Denied", TRUE, "policy"), ("Ready", FALSE, "Denied")), TROUBLE),
    ("cert-manager ClusterIssuer", said(("Ready", TRUE, "ACMEAccountRegistered")), READY),
    ("cert-manager ClusterIssuer", said(("Ready", FALSE, "ErrRegisterACMEAccount")), TROUBLE),
    ("external-secrets ExternalSecret", said(("Ready", TRUE, "SecretSynced", "secret synced")), READY),
    ("external-secrets ExternalSecret", said(("Ready", FALSE, "SecretSyncedError", "could not get secret")), TROUBLE),
    ("external-secrets SecretStore", said(("Ready", TRUE, "Valid", "store validated"), capabilities="ReadWrite"), READY),
    ("external-secrets SecretStore", said(("Ready", FALSE, "InvalidProviderConfig")), FAILED),
    ("Flux Kustomization", said(("Ready", FALSE, "BuildFailed", "kustomize build failed")), TROUBLE),
    ("Flux Kustomization", said(("Reconciling", TRUE, "Progressing"), ("Ready", UNKNOWN, "Progressing")), PROGRESS),
    ("Flux Kustomization", said(("Ready", TRUE, "ReconciliationSucceeded"), ("Healthy", TRUE, "Succeeded")), READY),
    ("Flux Kustomization", said(("Ready", TRUE, "ReconciliationSucceeded"), ("Healthy", FALSE, "HealthCheckFailed")), TROUBLE),
    ("Flux Receiver", said(("Ready", FALSE, "TokenNotFound", "unable to read token")), TROUBLE),
    ("Crossplane package", said(("Installed", TRUE, "ActiveRevision"), ("Healthy", TRUE, "HealthyRevision")), READY),
    ("Crossplane package", said(("Installed", TRUE, "ActiveRevision"), ("Healthy", FALSE, "UnhealthyRevision")), TROUBLE),
    ("Crossplane package", said(("Installed", FALSE, "UnpackingPackage", "cannot unpack package")), TROUBLE),
    ("Crossplane composite", said(("Synced", TRUE, "ReconcileSuccess"), ("Ready", FALSE, "Creating")), PROGRESS),
    ("Crossplane composite", said(("Synced", FALSE, "ReconcilePaused"), ("Ready", TRUE, "Available")), SUSPENDED),
    ("Crossplane definition", said(("Established", TRUE, "WatchingCompositeResource"), ("Offered", TRUE)), READY),
    ("Argo Rollout", said(("InvalidSpec", TRUE, "InvalidSpec", "The Rollout is invalid"), phase="Degraded"), FAILED),
    ("Argo Rollout", said(("Available", TRUE, "AvailableReason"), ("Progressing", FALSE, "ProgressDeadlineExceeded")), TROUBLE),
    ("Argo Rollout", said(("Healthy", FALSE), ("Progressing", FALSE, "RolloutAborted"), phase="Degraded"), FAILED),
    ("Argo ApplicationSet", said(("ErrorOccurred", FALSE), ("ParametersGenerated", TRUE), ("ResourcesUpToDate", TRUE)), READY),
    ("Argo ApplicationSet", said(("ErrorOccurred", TRUE, "ParamsError"), ("ResourcesUpToDate", FALSE)), FAILED),
    ("Tekton PipelineRun", said(("Succeeded", UNKNOWN, "Running", "Tasks Completed: 1")), PROGRESS),
    ("Tekton PipelineRun", said(("Succeeded", FALSE, "PipelineRunTimeout")), TROUBLE),
    ("Tekton PipelineRun", said(("Succeeded", FALSE, "Cancelled", "PipelineRun was cancelled")), TROUBLE),
    ("Tekton TaskRun", said(("Succeeded", TRUE, "Succeeded", "All Steps have completed")), READY),
    ("Knative Route", said(("Ready", FALSE, "RevisionMissing"), ("AllTrafficAssigned", FALSE, "RevisionMissing")), TROUBLE),
    ("Knative Route", said(("Ready", UNKNOWN, "IngressNotConfigured"), ("IngressReady", UNKNOWN)), PROGRESS),
    ("KServe InferenceService", said(("PredictorReady", TRUE), ("IngressReady", TRUE), ("Ready", TRUE)), READY),
    ("Kubeflow training job", said(("Created", TRUE, "JobCreated"), ("Running", TRUE, "JobRunning")), PROGRESS),
    ("Kubeflow training job", said(("Created", TRUE, "JobCreated"), ("Succeeded", TRUE, "JobSucceeded")), READY),
    ("Kubeflow training job", said(("Created", TRUE, "JobCreated"), ("Failed", TRUE, "JobFailed")), FAILED),
    ("JobSet", said(("Completed", TRUE, "AllJobsCompleted")), READY),
    ("JobSet", said(("Suspended", TRUE, "SuspendedJobs")), SUSPENDED),
    ("LeaderWorkerSet", said(("Available", TRUE, "AllGroupsReady"), ("UpdateInProgress", TRUE, "GroupsUpdating")), PROGRESS),
    ("Kueue ClusterQueue", said(("Active", TRUE, "Ready", "Can admit new workloads")), READY),
    ("Gateway API TCPRoute", {"parents": [said(("Accepted", FALSE, "NotAllowedByListeners"))]}, TROUBLE),
    ("Gateway API TCPRoute", {"parents": [said(("Accepted", TRUE, "Accepted"), ("ResolvedRefs", TRUE))]}, READY),
    ("Gateway API TCPRoute", {"parents": [said(("Accepted", TRUE), ("ResolvedRefs", FALSE, "BackendNotFound"))]}, TROUBLE),
    ("Kuadrant AuthPolicy", said(("Accepted", TRUE, "Accepted"), ("Enforced", TRUE, "Enforced")), READY),
    ("OpenShift Route", {"ingress": [said(("Admitted", TRUE))]}, READY),
    ("OpenShift Route", {"ingress": [said(("Admitted", FALSE, "HostAlreadyClaimed"))]}, TROUBLE),
    ("OpenShift MachineConfigPool", said(("Updated", TRUE), ("Updating", FALSE), ("Degraded", FALSE)), READY),
    ("OpenShift MachineConfigPool", said(("Updated", FALSE), ("Updating", TRUE), ("NodeDegraded", FALSE)), PROGRESS),
    ("OpenShift MachineConfigPool", said(("Updated", FALSE), ("Updating", TRUE), ("RenderDegraded", TRUE)), TROUBLE),
    ("OpenShift ClusterOperator", said(("Available", TRUE, "AsExpected"), ("Progressing", FALSE, "AsExpected")), READY),
    ("Open Cluster Management cluster", said(("HubAcceptedManagedCluster", TRUE), ("ManagedClusterJoined", TRUE)), READY),
    ("Azure resource", said(("Ready", FALSE, "WaitingForOwner", "Owner resource does not exist")), PROGRESS),
    ("ACK resource", said(("ACK.ResourceSynced", TRUE)), READY),
    ("ACK resource", said(("ACK.ResourceSynced", FALSE), ("ACK.Recoverable", TRUE)), TROUBLE),
    ("ACK resource", said(("ACK.ResourceSynced", TRUE), ("ACK.Terminal", TRUE)), FAILED),
    ("Config Connector resource", said(("Ready", FALSE, "UpdateFailed", "Update call failed")), TROUBLE),
    ("Config Connector resource", said(("Ready", FALSE, "Updating", "Update in progress")), PROGRESS),
    ("Config Connector resource", said(("Ready", FALSE, "DependencyNotFound")), TROUBLE),
    ("Keycloak", said(("Ready", TRUE), ("HasErrors", FALSE), ("RollingUpdate", FALSE)), READY),
    ("Keycloak", said(("Ready", TRUE), ("HasErrors", FALSE), ("RollingUpdate", TRUE)), PROGRESS),
    ("Keycloak", said(("Ready", FALSE), ("HasErrors", TRUE)), TROUBLE),
    ("Infinispan", said(("WellFormed", TRUE), ("Stopping", FALSE), ("Upgrade", FALSE)), READY),
    ("Strimzi rebalance", said(("PendingProposal", TRUE)), PROGRESS),
    ("Helm-based operator", said(("Initialized", TRUE), ("Deployed", TRUE, "InstallSuccessful")), READY),
    ("Helm-based operator", said(("Initialized", TRUE), ("Irreconcilable", TRUE, "ReconcileError")), TROUBLE),
    ("Ansible-based operator", said(("Running", TRUE, "Running"), ("Failure", TRUE, "Failed")), TROUBLE),
    ("Ansible-based operator", said(("Running", TRUE, "Successful"), ("Successful", TRUE, "Successful")), READY),
    ("Prometheus", said(("Available", "Degraded", "SomePodsNotReady"), ("Reconciled", TRUE)), TROUBLE),
    ("Prometheus", said(("Available", TRUE), ("Reconciled", TRUE)), READY),
    ("Vault secret", said(("SecretSynced", TRUE, "SecretSynced")), READY),
    ("Cilium network policy", said(("Valid", TRUE)), READY),
    ("Cilium network policy", said(("Valid", FALSE, "InvalidPolicy")), FAILED),
    ("ECK Elasticsearch", said(("ReconciliationComplete", TRUE), health="green", phase="Ready"), READY),
    ("ECK Elasticsearch", said(("ReconciliationComplete", FALSE), health="yellow", phase="ApplyingChanges"), PROGRESS),
    ("ECK Elasticsearch", said(("ReconciliationComplete", FALSE), health="unknown", phase="Invalid"), FAILED),
    ("ZooKeeper", said(("PodsReady", FALSE), ("Upgrading", FALSE), readyReplicas=1, replicas=3), PROGRESS),
    ("Ray cluster", said(("HeadPodReady", TRUE), ("RayClusterProvisioned", TRUE), state="ready"), READY),
    ("Ray cluster", said(("HeadPodReady", FALSE), ("ReplicaFailure", TRUE, "FailedCreateHeadPod"), state=""), TROUBLE),
    ("Chaos experiment", said(("AllInjected", FALSE), ("Selected", TRUE), ("Paused", FALSE)), PROGRESS),
    ("KubeVirt", said(("Available", FALSE, "DeploymentInProgress"), ("Progressing", TRUE), phase="Deploying"), PROGRESS),
    ("Ory client", said(("Ready", FALSE), reconciliationError={"statusCode": "UPSERT_FAILED"}), TROUBLE),
    ("Cassandra datacenter", said(("Ready", TRUE), ("Stopped", FALSE), ("ScalingUp", FALSE)), READY),
    ("Cassandra datacenter", said(("Ready", TRUE), ("ScalingUp", TRUE)), PROGRESS),
    ("ScyllaDB", said(("Available", TRUE), ("Progressing", FALSE), ("Degraded", FALSE)), READY),
    ("Grafana dashboard", said(("DashboardSynchronized", FALSE, "ApplyFailed")), TROUBLE),
]

BY_WORDS: list[tuple[str, Json, str]] = [
    ("cert-manager Order", {"state": "pending"}, PROGRESS),
    ("cert-manager Order", {"state": "valid"}, READY),
    ("cert-manager Order", {"state": "invalid"}, FAILED),
    ("cert-manager Order", {"state": "errored"}, TROUBLE),
    ("Argo Application", {"health": {"status": "Healthy"}, "sync": {"status": "Synced"}}, READY),
    ("Argo Application", {"health": {"status": "Healthy"}, "sync": {"status": "OutOfSync"}}, PROGRESS),
    ("Argo Application", {"health": {"status": "Degraded"}, "sync": {"status": "Synced"}}, TROUBLE),
    ("Argo AnalysisRun", {"phase": "Inconclusive"}, PROGRESS),
    ("Argo Workflow", {"phase": "Error", "message": "task failed"}, TROUBLE),
    ("Argo Workflow", {"phase": "Running", "startedAt": "2026-01-01T00:00:00Z", "finishedAt": None}, PROGRESS),
    ("Velero Backup", {"phase": "InProgress"}, PROGRESS),
    ("Velero Backup", {"phase": "PartiallyFailed"}, TROUBLE),
    ("Velero Backup", {"phase": "FailedValidation"}, FAILED),
    ("Velero Backup", {"phase": "Completed"}, READY),
    ("Velero location", {"phase": "Unavailable"}, TROUBLE),
    ("Velero Schedule", {"phase": "Enabled"}, READY),
    ("OLM ClusterServiceVersion", {"phase": "InstallReady"}, PROGRESS),
    ("OLM ClusterServiceVersion", {"phase": "Succeeded", "reason": "InstallSucceeded"}, READY),
    ("OLM ClusterServiceVersion", {"phase": "Replacing"}, PROGRESS),
    ("OLM InstallPlan", {"phase": "RequiresApproval"}, PROGRESS),
    ("OLM InstallPlan", {"phase": "Complete"}, READY),
    ("KubeVirt migration", {"phase": "TargetReady"}, READY),
    ("KubeVirt migration", {"phase": "PreparingTarget"}, PROGRESS),
    ("KubeVirt machine", {"printableStatus": "CrashLoopBackOff"}, TROUBLE),
    ("KubeVirt machine", {"printableStatus": "ErrorUnschedulable"}, TROUBLE),
    ("KubeVirt machine", {"printableStatus": "WaitingForVolumeBinding"}, PROGRESS),
    ("Rook block pool", {"phase": "Failure"}, TROUBLE),
    ("VolumeSnapshot", {"readyToUse": False}, PROGRESS),
    ("VolumeSnapshot", {"readyToUse": True, "restoreSize": "1Gi"}, READY),
    ("VolumeSnapshot", {"readyToUse": False, "error": {"message": "no such driver"}}, TROUBLE),
    ("Bucket (COSI)", {"bucketReady": True, "bucketID": "b"}, READY),
    ("Vault connection", {"valid": False, "error": "InvalidConnection"}, TROUBLE),
    ("MongoDB community", {"phase": "Pending", "message": "ReplicaSet is not yet ready"}, PROGRESS),
    ("MongoDB community", {"phase": "Failed", "message": "invalid version"}, FAILED),
    ("Zalando postgresql", {"PostgresClusterStatus": "Running"}, READY),
    ("Zalando postgresql", {"PostgresClusterStatus": "CreateFailed"}, TROUBLE),
    ("Longhorn volume", {"state": "attached", "robustness": "healthy"}, READY),
    ("Longhorn volume", {"state": "attached", "robustness": "degraded"}, TROUBLE),
    ("Metal3 host", {"operationalStatus": "OK", "provisioning": {"state": "provisioned"}, "errorMessage": ""}, READY),
    ("Metal3 host", {"operationalStatus": "error", "errorType": "registration error"}, TROUBLE),
    ("Metal3 host", {"operationalStatus": "OK", "provisioning": {"state": "inspecting"}}, PROGRESS),
    ("Volcano job", {"state": {"phase": "Aborted"}}, TROUBLE),
    ("Volcano queue", {"state": "Open"}, READY),
    ("Camel integration", {"phase": "Building Kit"}, PROGRESS),
    ("SR-IOV node state", {"syncStatus": "InProgress"}, PROGRESS),
    ("SR-IOV node state", {"syncStatus": "Succeeded"}, READY),
    ("Grafana", {"stage": "complete", "stageStatus": "success"}, READY),
    ("Grafana", {"stage": "deployment", "stageStatus": "failed"}, TROUBLE),
    ("KubeBlocks cluster", {"phase": "Abnormal"}, TROUBLE),
    ("GPU policy", {"state": "notReady"}, PROGRESS),
    ("Antrea policy", {"phase": "Realized"}, READY),
    ("Datadog agent", {"agent": {"state": "Running", "status": "Running (2/2/2)"}}, READY),
    ("OpenKruise daemon", {"desiredNumberScheduled": 3, "numberReady": 2}, PROGRESS),
    ("disruption budget", {"currentHealthy": 1, "desiredHealthy": 1, "disruptionsAllowed": 0}, READY),
    ("disruption budget", {"currentHealthy": 0, "desiredHealthy": 1, "disruptionsAllowed": 0}, PROGRESS),
    ("NetApp backend", {"phase": "Lost", "message": "backend is gone"}, TROUBLE),
    ("AWS stack", {"stackStatus": "ROLLBACK_COMPLETE"}, TROUBLE),
    ("AWS stack", {"stackStatus": "UPDATE_COMPLETE"}, READY),
    ("Ray job", {"jobStatus": "SUCCEEDED", "jobDeploymentStatus": "Complete"}, READY),
    ("Backup of CloudNativePG", {"phase": "walArchivingFailing"}, TROUBLE),
    ("Shared volume", {"upToDate": False}, PROGRESS),
]


@pytest.mark.parametrize(("kind", "status", "expected"), BY_CONDITIONS + BY_WORDS)
def test_documented_state_is_judged_as_it_is_meant(kind: str, status: Json, expected: str) -> None:
    live = {"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": "w", "generation": 1}, "status": status}
    assert face(assess(live, None)) == expected
