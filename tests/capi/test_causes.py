# SPDX-License-Identifier: Apache-2.0
"""Why a workload cluster is not ready, or not deleted: the deepest cause is the first line."""

from __future__ import annotations

import pytest

from k8s_cr_driver.capi.contract import CONTROL_PLANE_GROUP, GROUP, PAUSED
from k8s_cr_driver.engine.report import progress_log
from k8s_cr_driver.engine.report.not_ready import NotReady
from k8s_cr_driver.objects.keys import GroupKind, Object
from k8s_cr_driver.resources.health import silence
from k8s_cr_driver.resources.registry import resource_for
from tests.capi.clusters import CLUSTERS, CONTROL_PLANES, DEPLOYMENTS, MACHINES, cluster, crd
from tests.fake_api import FakeApi
from tests.instance import Instance, controlled_by, obj

INFRASTRUCTURE = f"infrastructure.{GROUP}"
DEV_MACHINES = GroupKind(INFRASTRUCTURE, "DevMachine")


def reference(kind: GroupKind, name: str) -> dict[str, str]:
    return {"apiGroup": kind.group, "kind": kind.kind, "name": name}


def plain() -> list[Object]:
    """A Cluster, its control plane, and workers, which wait for it."""
    control_plane = {"controlPlaneRef": reference(CONTROL_PLANES, "blue-cp")}
    return [
        obj(f"{GROUP}/v1", "Cluster", "blue", "default", spec=control_plane),
        obj(f"{CONTROL_PLANE_GROUP}/v1", "KubeadmControlPlane", "blue-cp", "default", spec={"replicas": 1}),
        obj(f"{GROUP}/v1", "MachineDeployment", "blue-workers", "default", spec={"replicas": 0, "clusterName": "blue"}),
    ]


def run_controllers(api: FakeApi) -> None:
    """All but that of the infrastructure: the DevMachine gets no status."""
    for kind in (CLUSTERS, CONTROL_PLANES, DEPLOYMENTS, MACHINES, DEV_MACHINES):
        api.put(crd(kind, status={}))

    def waits(live: Object) -> None:
        if "status" not in live and "deletionTimestamp" not in live["metadata"]:
            condition = {"type": "Available", "status": "False", "reason": "NotAvailable", "message": "waits for others"}
            api.set_status(live["kind"], "default", live["metadata"]["name"], {"conditions": [condition]})

    def make(live: Object) -> None:
        waits(live)
        if api.find("Machine", "default", "blue-cp-1") is None:
            api.put(obj(f"{INFRASTRUCTURE}/v1", "DevMachine", "blue-cp-1", "default", spec={}))
            spec = {"clusterName": "blue", "infrastructureRef": reference(DEV_MACHINES, "blue-cp-1")}
            machine = obj(f"{GROUP}/v1", "Machine", "blue-cp-1", "default", spec=spec)
            machine["metadata"]["labels"] = {"cluster.x-k8s.io/control-plane-name": "blue-cp"}
            machine["metadata"]["ownerReferences"] = [controlled_by(live)]
            api.put({**machine, "status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Waits"}]}})

    api.react("Cluster", waits)
    api.react("MachineDeployment", waits)
    api.react("KubeadmControlPlane", make)


@pytest.mark.parametrize("patience", [0.0, 30.0])
def test_the_machine_that_a_cluster_waits_for_is_reported_before_what_waits(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, patience: float
) -> None:
    monkeypatch.setattr(silence, "PATIENCE", patience)
    run_controllers(api)
    with pytest.raises(NotReady) as error:
        Instance(api.url, seconds=2).reconcile(plain())
    assert [report.key.kind for report in error.value.reports] == [
        "DevMachine", "Machine", "KubeadmControlPlane", "Cluster", "MachineDeployment"
    ]  # fmt: skip
    deepest = error.value.reports[0]
    assert deepest.reason == ("NoStatus" if patience else "NobodyActs")
    assert patience or "does the controller of infrastructure.cluster.x-k8s.io run?" in deepest.message


def test_the_log_names_the_deepest_cause_while_the_run_waits(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(silence, "PATIENCE", 0.0)
    monkeypatch.setattr(progress_log, "FIRST_LINE", 0.3)
    caplog.set_level("INFO")
    run_controllers(api)
    with pytest.raises(NotReady):
        Instance(api.url, seconds=2).reconcile(plain())
    named = [one.getMessage() for one in caplog.records if "the first cause" in one.getMessage()]
    assert any(f"DevMachine.{INFRASTRUCTURE} default/blue-cp-1: Waiting (NobodyActs)" in line for line in named)
    assert len(named) <= 3  # 0.3 s, 0.9 s and perhaps 2.1 s: a long wait sends few requests


DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["dev"]}


def dev_machine(written: str, **metadata: object) -> Object:
    made = obj(f"{INFRASTRUCTURE}/v1", "DevMachine", "blue", "default", status={"ready": True})
    made["metadata"] |= {"managedFields": [{"manager": "provider", "time": written}], **metadata}
    return made


@pytest.mark.parametrize(
    ("live", "reason"),
    [
        (dev_machine("2025-12-31T23:59:00Z", **DELETED), silence.NOBODY_ACTS),
        (dev_machine("2026-01-01T00:00:01Z", **DELETED), "Terminating"),
        (dev_machine("2025-12-31T23:59:00Z", **DELETED | {"finalizers": ["foregroundDeletion"]}), "Terminating"),
    ],
)
def test_nobody_acts_on_what_has_finalizers_and_no_write_since_its_deletion(live: Object, reason: str) -> None:
    assert silence.unless_silent(live, resource_for(live).health(live)).reason == reason


ACTED = {"manager": "provider", "operation": "Update", "time": "2025-12-31T23:50:00Z"}


@pytest.mark.parametrize(
    ("entry", "acted"),
    [
        ({**ACTED, "subresource": "status"}, True),
        ({**ACTED, "operation": "Apply", "subresource": "status"}, True),
        ({**ACTED, "fieldsV1": {"f:status": {"f:ready": {}}}}, True),
        ({**ACTED, "fieldsV1": {"f:metadata": {"f:finalizers": {".": {}}}}}, True),
        ({**ACTED, "operation": "Apply", "fieldsV1": {"f:metadata": {"f:finalizers": {".": {}}}}}, False),
        ({**ACTED, "fieldsV1": {"f:spec": {}}}, False),
        ({**ACTED, "subresource": "status", "time": "the password"}, False),
        ({**ACTED, "subresource": "status", "time": None}, False),
    ],
)
def test_what_a_controller_has_acted_on_may_miss_what_it_needs(entry: Object, acted: bool) -> None:
    """Its last write is named, and the question whether it runs stays."""
    live = dev_machine("2025-12-31T23:59:00Z", **DELETED)
    live["metadata"]["managedFields"] += [{**entry, "time": "2025-12-30T00:00:00Z"}, entry]
    said = silence.remedy(live, resource_for(live).health(live))
    assert ("acted until 2025-12-31T23:50:00Z: what it needs may have been deleted" in said) is acted
    assert f"does the controller of {INFRASTRUCTURE} run?" in said
    assert "password" not in said


def test_what_a_controller_says_of_a_deletion_is_shown() -> None:
    live = dev_machine("2025-12-31T23:59:00Z", **DELETED)
    of_deletion = {"type": "Ready", "status": "False", "reason": "DeletionBlocked", "message": "still used by 2 volumes"}
    live["status"]["conditions"] = [{**of_deletion, "lastTransitionTime": live["metadata"]["deletionTimestamp"]}]
    health = silence.unless_silent(live, resource_for(live).health(live))
    assert (health.reason, "still used by 2 volumes" in health.message) == ("DeletionBlocked", True)
    live["status"]["conditions"][0]["lastTransitionTime"] = "2025-12-31T23:59:00Z"
    assert silence.unless_silent(live, resource_for(live).health(live)).reason == silence.NOBODY_ACTS


def paused(spec: Object, annotations: dict[str, str], condition: str = "False") -> Object:
    live = cluster()
    live["metadata"]["annotations"] = annotations
    live["spec"] |= spec
    conditions = [{"type": type_, "status": status} for type_, status in (("Available", "True"), ("Paused", condition))]
    return {**live, "status": {"conditions": conditions}}


@pytest.mark.parametrize(
    ("live", "reason"),
    [
        (paused({"paused": True}, {}), "Paused"),
        (paused({}, {PAUSED: ""}), "Paused"),
        (paused({}, {}, "True"), "Paused"),
        (paused({}, {}), "Available"),
    ],
)
def test_a_cluster_that_somebody_has_paused_is_not_ready(live: Object, reason: str) -> None:
    assert resource_for(cluster()).health(live).reason == reason


def test_what_a_pause_has_left_half_done_is_no_cause_of_it(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody acts on the DevMachine, because its Cluster and all that belongs to it is paused."""
    monkeypatch.setattr(silence, "PATIENCE", 0.0)
    run_controllers(api)

    def pause(live: Object) -> None:
        condition = {"type": "Paused", "status": "True", "reason": "Paused"}
        if live.get("status") != {"conditions": [condition]}:
            api.set_status(live["kind"], "default", live["metadata"]["name"], {"conditions": [condition]})

    for kind in ("Cluster", "KubeadmControlPlane", "MachineDeployment"):
        api.react(kind, pause)
    with pytest.raises(NotReady) as error:
        Instance(api.url, seconds=2).reconcile(plain())
    assert {report.reason for report in error.value.reports} == {"Paused"}


def test_a_package_that_asks_for_a_pause_gets_it_but_a_paused_cluster_is_not_deleted() -> None:
    live = paused({"paused": True}, {})
    assert resource_for(live).health(live).settled
    live["metadata"] |= DELETED
    assert resource_for(live).health(live).reason == "Paused"


@pytest.mark.parametrize("name", ["", "of-others/status"])
def test_a_reference_to_no_object_asks_for_nothing_else(api: FakeApi, name: str) -> None:
    """A path without a name is that of all DevMachines."""
    for kind in (MACHINES, DEV_MACHINES):
        api.put(crd(kind, status={}))
    api.put(obj(f"{INFRASTRUCTURE}/v1", "DevMachine", "of-others", "default", spec={}))
    machine = obj(f"{GROUP}/v1", "Machine", "m", "default", spec={"infrastructureRef": reference(DEV_MACHINES, name)})
    with pytest.raises(NotReady):
        Instance(api.url, seconds=2).reconcile([machine])
    assert not [request for request in api.requests if "/devmachines" in request.path]
