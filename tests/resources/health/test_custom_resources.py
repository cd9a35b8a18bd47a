# SPDX-License-Identifier: Apache-2.0
"""A custom resource of any kind is ready only when something says so."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from k8s_cr_driver.resources.health import State, assess
from k8s_cr_driver.resources.registry import resource_for
from tests.resources.health.objects import ANY_FIELDS, CONDITIONS, Json, condition, conditions, crd, custom

READY, WAITING, SUSPENDED, FAILED = State.READY, State.WAITING, State.SUSPENDED, State.FAILED
STORED = {"k8s-cr-driver/ready-when": "stored"}


@pytest.mark.parametrize(
    ("declared", "state"),
    [
        pytest.param(None, READY, id="none"),
        pytest.param({"type": "object"}, READY, id="scaffolded-without-fields"),
        pytest.param(CONDITIONS, WAITING, id="with-fields"),
        pytest.param(ANY_FIELDS, WAITING, id="any-fields"),
        pytest.param({"type": "object", "additionalProperties": {"type": "string"}}, WAITING, id="a-map"),
    ],
)
def test_object_without_a_status_is_ready_only_if_its_crd_declares_none(declared: Json | None, state: State) -> None:
    assert assess(custom(), crd(declared)).state is state


def test_object_without_a_status_waits_when_the_crd_is_not_known() -> None:
    assert assess(custom(), None).state is WAITING


def test_object_without_a_status_waits_when_the_crd_does_not_describe_its_version() -> None:
    assert assess({**custom(), "apiVersion": "example.com/v7"}, crd(None)).state is WAITING


def test_untyped_crd_with_a_status_subresource_lets_a_status_come() -> None:
    version = {"name": "v1", "schema": {"openAPIV3Schema": ANY_FIELDS}, "subresources": {"status": {}}}
    assert assess(custom(), {"spec": {"versions": [version]}}).state is WAITING
    del version["subresources"]
    assert assess(custom(), {"spec": {"versions": [version]}}).state is READY


@pytest.mark.parametrize(
    ("status", "rule"),
    [
        (None, "stored"),
        ({"value": 1}, "stored"),
        ({"conditions": [{"type": "PhaseOfTheMoon", "status": "True"}]}, "condition=PhaseOfTheMoon"),
        ({"conditions": [{"type": "PhaseOfTheMoon", "status": "False"}]}, "stored"),
        ({"other": "Odd", "phase": "Frobnicated"}, "jsonpath={.status.phase}=Frobnicated"),
        ({"phase": "Frobnicated: in 3 of 4 places"}, "stored"),
        ({"frobnicated": True}, "jsonpath={.status.frobnicated}=true"),
        ({"lifecycle": "SERVING", "url": "http://x", "replica": "a-1"}, "jsonpath={.status.lifecycle}=SERVING"),
        ({"lifecycle": "SERVING", "owner": "Alice"}, "stored"),
        ({"cluster": {"status": "FROBBED", "members": 3}}, "jsonpath={.status.cluster.status}=FROBBED"),
        ({"cluster": {"status": "it's odd"}}, "stored"),
        (
            {"shards": [{"state": "frobbed"}] * 2},
            "\"cel: size(status.shards) > 0 && status.shards.all(one, one.state == 'frobbed')\"",
        ),
        ({"shards": [{"state": "frobbed"}, {"state": "odd"}]}, "stored"),
        ({"shards": [{"state": "frobbed"}, "odd"]}, "stored"),
        ({"sh-ards": [{"state": "frobbed"}]}, "stored"),
    ],
)
def test_the_wait_for_a_word_on_readiness_names_the_annotation_that_would_end_it(status: Json | None, rule: str) -> None:
    assert assess(custom(status), None).message.endswith(f"k8s-cr-driver/ready-when: {rule}")
    ruled = custom(status, annotations=yaml.safe_load(f"k8s-cr-driver/ready-when: {rule}"))
    assert resource_for(ruled).health(ruled).state is READY


@pytest.mark.parametrize(
    ("live", "definition"),
    [
        pytest.param(custom(annotations=STORED), crd(CONDITIONS), id="on-the-object"),
        pytest.param(custom(), crd(CONDITIONS, annotations=STORED), id="on-the-crd"),
        pytest.param(custom(conditions(Ready="False"), annotations=STORED), None, id="against-its-status"),
    ],
)
def test_annotation_makes_being_stored_enough(live: Json, definition: Json | None) -> None:
    assert assess(live, definition).state is READY


def test_deletion_outweighs_everything_and_names_the_finalizers() -> None:
    dying: Json = {
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "finalizers": ["example.com/hold"],
        "annotations": STORED,
    }
    health = assess(custom(conditions("Ready"), **dying), crd(CONDITIONS))
    assert (health.state, health.reason) == (WAITING, "Terminating")
    assert "example.com/hold" in health.message


@pytest.mark.parametrize(
    "spec",
    [{"paused": True}, {"suspend": True}, {"disabled": True}, {"running": False}, {"runStrategy": "Halted"}],
)
def test_object_that_its_spec_keeps_at_rest_is_settled_without_a_status(spec: Json) -> None:
    health = assess(custom(spec=spec), crd(CONDITIONS))
    assert health.state is SUSPENDED
    assert health.settled


def test_object_that_an_annotation_holds_is_settled_whatever_its_status_says() -> None:
    assert assess(custom(conditions(Ready="False"), annotations={"example.com/paused": "true"}), None).settled
    assert not assess(custom(conditions(Ready="False"), annotations={"example.com/paused": "false"}), None).settled


@pytest.mark.parametrize(
    ("counts", "settled"),
    [
        ({"replicas": 4, "readyReplicas": 4, "updatedReplicas": 1}, False),
        ({"replicas": 6, "readyReplicas": 3, "updatedReplicas": 4}, False),
        ({"replicas": 4, "readyReplicas": 4, "updatedReplicas": 4}, True),
        ({"replicas": 0, "readyReplicas": 0, "updatedReplicas": 0}, True),  # as one that is stopped
        ({}, True),
    ],
)
def test_what_its_controller_pauses_in_the_middle_of_a_change_is_not_settled(counts: Json, settled: bool) -> None:
    paused = [condition("Progressing", "Unknown", "RolloutPaused"), condition("Paused"), condition("Available")]
    live = custom({"conditions": paused, **counts}, spec={"replicas": 4})
    health = assess(live, crd(CONDITIONS))
    assert (health.state, health.settled) == (SUSPENDED, settled)
    assert settled or "updatedReplicas is 1 of 4" in health.message or "readyReplicas is 3 of 4" in health.message
    by_spec = custom({"conditions": paused, **counts}, spec={"replicas": 4, "paused": True})
    assert assess(by_spec, crd(CONDITIONS)).settled


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ({"phase": "Running"}, READY),
        ({"state": "HEALTH_OK"}, READY),
        ({"agent": {"status": "Running (3/3/3)"}}, READY),
        ({"health": "green"}, READY),
        ({"applicationState": {"state": "RUNNING"}}, READY),
        ({"phase": "Cluster in healthy state"}, READY),
        ({"ready": True}, READY),
        ({"phase": "Provisioning"}, WAITING),
        ({"phase": "DEPLOYED_NOT_READY"}, WAITING),
        ({"phase": "OutOfSync"}, WAITING),
        ({"phase": "Reticulating splines"}, WAITING),
        ({"phase": "Another tenant already exists in the namespace"}, WAITING),
        ({"state": "ConfigError"}, FAILED),
        ({"state": 3}, WAITING),
        ({"ready": False}, WAITING),
        ({"phase": "Running", "errorMessage": "quota exceeded"}, WAITING),
        ({"phase": "Deployed", "jobStatus": {"state": "RESTARTING"}}, WAITING),
        ({"phase": "Deployed", "members": [{"state": "Running"}, {"state": "Crashed"}]}, WAITING),
        ({"phase": "Deployed", "phaseTransitions": [{"phase": "Pending"}]}, READY),
        ({"phase": "Deployed", "desiredState": "Updating", "lastState": "Error"}, READY),
        ({"members": [{"state": "Running"}]}, WAITING),
        ({"phase": "Paused"}, SUSPENDED),
        ({"phase": "Stopped"}, WAITING),
        ({"phase": "Failed"}, FAILED),
        ({"children": {"phase": "Failed"}}, WAITING),
        ({"lastOperation": {"state": "Processing"}}, WAITING),
    ],
)
def test_phases_states_flags_and_errors_are_understood(status: Json, state: State) -> None:
    assert assess(custom(status), None).state is state


def test_running_is_not_the_end_of_what_has_an_end() -> None:
    ends = {"type": "object", "properties": {"phase": {}, "finishedAt": {}}}
    assert assess(custom({"phase": "Running"}), crd(ends)).state is WAITING
    assert assess(custom({"phase": "Succeeded", "finishedAt": "2026-01-01T00:00:00Z"}), crd(ends)).state is READY


COUNTING = {"type": "object", "properties": {"replicas": {}, "readyReplicas": {}}}
SIZE_ONLY = {"type": "object", "properties": {"replicas": {}}}


@pytest.mark.parametrize(
    ("wanted", "status", "declared", "state"),
    [
        (3, {"replicas": 3, "readyReplicas": 3}, COUNTING, READY),
        (3, {"replicas": 3, "readyReplicas": 2}, COUNTING, WAITING),
        (3, {"replicas": 3}, COUNTING, WAITING),
        (2, {"replicas": 3, "readyReplicas": 3}, COUNTING, WAITING),
        (0, {"observedGeneration": 1}, COUNTING, READY),
        (3, {"replicas": 3}, SIZE_ONLY, READY),
        (3, {"replicas": 2}, SIZE_ONLY, WAITING),
        (None, {"ready": 6, "size": 9}, None, WAITING),
        (None, {"tasksReady": "3/3"}, None, READY),
        (None, {"tasksReady": "2/3"}, None, WAITING),
        (3, {"phase": "Running", "readyReplicas": 1}, None, WAITING),
    ],
)
def test_counts_of_replicas_decide_where_nothing_sums_up(
    wanted: int | None, status: Json, declared: Json | None, state: State
) -> None:
    spec = {} if wanted is None else {"replicas": wanted}
    assert assess(custom(status, spec), crd(declared) if declared else None).state is state


def test_conditions_that_sum_up_outweigh_counts() -> None:
    live = custom({**conditions("Ready"), "replicas": 5, "readyReplicas": 2}, {"replicas": 5})
    assert assess(live, None).state is READY


@pytest.mark.parametrize(
    ("declared", "state"),
    [
        pytest.param({"type": "object", "properties": {"value": {}}}, READY, id="nothing-to-come"),
        pytest.param({"type": "object", "properties": {"value": {}, "phase": {}}}, WAITING, id="a-phase-to-come"),
        pytest.param(
            {"type": "object", "properties": {"parents": {"items": {"properties": {"conditions": {}}}}}},
            WAITING,
            id="conditions-of-parts-to-come",
        ),
        pytest.param(ANY_FIELDS, WAITING, id="anything-may-come"),
    ],
)
def test_status_without_a_word_on_readiness_is_judged_by_what_its_schema_has(declared: Json, state: State) -> None:
    assert assess(custom({"value": "42"}), crd(declared)).state is state


def test_template_with_a_merely_informative_status_is_ready_when_stored() -> None:
    capacity: Any = {"type": "object", "properties": {"capacity": {}}}
    blueprint = {"type": "object", "properties": {"template": {}}}
    assert assess(custom(), crd(capacity, blueprint)).state is READY
    assert assess(custom(), crd(capacity)).state is WAITING
    assert assess(custom(), crd(CONDITIONS, blueprint)).state is WAITING


@pytest.mark.parametrize(
    ("spec", "status", "state"),
    [
        ({"replicas": 2}, {"scale": {"replicas": 2, "statusReplicas": "2/2"}}, READY),
        ({"replicas": 2}, {"scale": {"replicas": 2, "statusReplicas": "0/2"}}, WAITING),
        ({}, {"scale": {"replicas": 0, "statusReplicas": "0/0"}}, READY),
        ({}, {"loader": {"availableNumber": 1, "desiredNumber": 2}}, WAITING),
        ({}, {"loader": {"availableNumber": 2, "desiredNumber": 2}}, READY),
        ({}, {"sets": [{"replicas": 2, "readyReplicas": 0}], **conditions("HelperReady")}, WAITING),
        ({}, {"sets": [{"replicas": 2, "readyReplicas": 2}]}, WAITING),
        ({}, {"lastScale": {"statusReplicas": "2/2"}}, WAITING),
        ({}, {"board": {"available": "True"}, "keyspaces": {"a": {"desiredShards": 2, "readyShards": 1}}}, WAITING),
        ({}, {"board": {"available": "True"}, "keyspaces": {"a": {"desiredShards": 2, "readyShards": 2}}}, READY),
        ({}, {"board": {"available": "True"}, "keyspaces": {"a": {"ready": "1/2"}, "b": {"ready": "2/2"}}}, WAITING),
        ({}, {"board": {"available": "True"}, "previousSets": {"a": {"ready": "1/2"}}}, READY),
    ],
)
def test_counts_in_the_parts_of_a_status(spec: Json, status: Json, state: State) -> None:
    assert assess(custom(status, spec), None).state is state


@pytest.mark.parametrize(("spec", "state"), [({}, READY), ({"replicas": 1}, WAITING)])
def test_written_status_suffices_where_only_counts_could_come_and_none_is_asked_for(spec: Json, state: State) -> None:
    fields = {"version": {"type": "string"}, "scale": {"properties": {"replicas": {"type": "integer"}}}}
    assert assess(custom({"version": "1"}, spec), crd({"type": "object", "properties": fields})).state is state


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ({"status": "Firewall Rules applied"}, READY),
        ({"status": "All of the Firewall Rules applied"}, READY),
        ({"status": "Firewall Rules not applied cleanly, please check logs"}, WAITING),
        ({"status": "Firewall Rules will be applied"}, WAITING),
        ({"status": "2 of 3 Firewall Rules applied"}, WAITING),
        ({"status": "Failed before Firewall Rules applied"}, WAITING),
        ({"status": "Only some Firewall Rules applied"}, WAITING),
        ({"byPod": [{"enforced": True}, {"enforced": True}]}, READY),
        ({"byPod": [{"enforced": True}, {"enforced": False}]}, WAITING),
        ({"enforced": True}, READY),
        ({"pool_status": "Online"}, READY),
        ({"phase": "Running", "drainProgress": 40}, WAITING),
        ({"phase": "Running", "drainProgress": 100}, READY),
        ({"phase": "Bound", "progress": "35.1%"}, WAITING),
        ({"phase": "Bound", "progress": "100.0%"}, READY),
        ({"phase": "Bound", "progress": "N/A"}, READY),
        ({"phase": "Ready", "nodes": [{"state": "SHUTDOWN", "stateGoal": "SHUTDOWN"}]}, READY),
        ({"phase": "Ready", "nodes": [{"state": "stopped", "desiredState": "stopped"}]}, READY),
        ({"phase": "Ready", "nodes": [{"state": "stopped", "desiredState": "running"}]}, WAITING),
        ({"phase": "Ready", "nodes": [{"state": "failed", "desiredState": "failed"}]}, WAITING),
        ({"phase": "WaitForFirstConsumer"}, SUSPENDED),
        ({"phase": "CompletedWithErrors"}, FAILED),
        ({"phase": "PartiallyFailed"}, WAITING),
        ({"phase": "PartiallyFailed", "completionTimestamp": "2026-01-01T00:00:00Z"}, FAILED),
        ({"phase": "WaitingForPluginsPartiallyFailed", "completionTimestamp": "2026-01-01T00:00:00Z"}, WAITING),
        ({"steps": [{"phase": "PartiallyFailed"}], "completionTime": "2026-01-01T00:00:00Z"}, WAITING),
    ],
)
def test_verdicts_progress_wishes_and_ends_in_part(status: Json, state: State) -> None:
    assert assess(custom(status), None).state is state


def test_end_in_part_is_final_where_the_crd_has_other_phases_for_work() -> None:
    def ends(*phases: str) -> Json:
        return {"type": "object", "properties": {"phase": {"enum": [*phases]}, "finishedAt": {}}}

    assert assess(custom({"phase": "PartiallyFailed"}), crd(ends("InProgress", "PartiallyFailed", "Failed"))).state is FAILED
    assert assess(custom({"phase": "PartiallyFailed"}), crd(ends("PartiallyFailed", "Failed"))).state is WAITING


@pytest.mark.parametrize(
    ("spec", "status", "metadata", "state"),
    [
        ({"runStrategy": "Manual"}, {"printableStatus": "Stopped", **conditions(Ready="False")}, {}, SUSPENDED),
        ({"runStrategy": "Manual"}, {"printableStatus": "Starting", **conditions(Ready="False")}, {}, WAITING),
        ({"runStrategy": "Always"}, {"printableStatus": "Stopped", **conditions(Ready="False")}, {}, WAITING),
        ({"enable": False}, conditions("Validated"), {}, SUSPENDED),
        ({"nodeID": ""}, {"state": "detached", "robustness": "unknown"}, {}, SUSPENDED),
        ({"nodeID": "a"}, {"state": "detached", "robustness": "unknown"}, {}, WAITING),
        ({"nodeID": ""}, {"state": "detached", "robustness": "faulted"}, {}, WAITING),
        ({}, {"state": "detached"}, {"annotations": {"example.com/detached": ""}}, SUSPENDED),
    ],
)
def test_what_only_a_user_starts_or_attaches_is_at_rest(spec: Json, status: Json, metadata: Json, state: State) -> None:
    assert assess(custom(status, spec, **metadata), None).state is state
