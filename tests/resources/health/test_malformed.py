# SPDX-License-Identifier: Apache-2.0
"""A cluster may lie: whatever an object holds, it is judged and not tripped over."""

from __future__ import annotations

import time
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k8s_cr_driver.resources.health import Health, State, assess
from k8s_cr_driver.resources.health.at_rest import held_in_admission
from k8s_cr_driver.resources.health.builtin import RULES
from tests.resources.health.objects import custom

NAMES = [
    "metadata",
    "spec",
    "status",
    "conditions",
    "type",
    "reason",
    "message",
    "observedGeneration",
    "generation",
    "managedFields",
    "fieldsV1",
    "f:status",
    "f:spec",
    "time",
    "manager",
    "operation",
    "deletionTimestamp",
    "finalizers",
    "annotations",
    "paused",
    "phase",
    "state",
    "health",
    "ready",
    "replicas",
    "readyReplicas",
    "parents",
    "versions",
    "name",
    "schema",
    "openAPIV3Schema",
    "properties",
    "subresources",
    "items",
    "containerStatuses",
    "waiting",
    "loadBalancer",
    "ingress",
    "k8s-cr-driver/ready-when",
    "example.com/paused",
    "size",
    "error",
    "rollingUpdate",
    "updateStrategy",
    "severity",
    "errors",
    "upToDate",
    "readyNodes",
    "totalNodes",
    "partition",
    "example.com/reconcile",
]
WORDS = ["True", "False", "Ready", "Failed", "Stalled", "Paused", "Pending", "v1", "1/2", "1", "2026-01-01T00:00:00Z"]
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.sampled_from(WORDS)
keys = st.sampled_from(NAMES) | st.text(max_size=5)
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=6), max_leaves=40
)
json_objects = st.dictionaries(keys, json_values, max_size=8)


@given(live=json_objects, crd=st.none() | json_objects, old_status=json_values)
def test_any_object_is_judged(live: dict[str, Any], crd: dict[str, Any] | None, old_status: Any) -> None:
    health = assess({**live, "apiVersion": "example.com/v1", "kind": "Widget"}, crd, old_status)
    assert isinstance(health, Health)
    assert len(health.message) <= 400
    assert len(health.reason) <= 200
    assert "\n" not in health.reason


@given(live=json_objects, kind=st.sampled_from(sorted(RULES)))
def test_any_object_of_a_built_in_kind_is_judged(live: dict[str, Any], kind: tuple[str, str]) -> None:
    group, name = kind
    health = assess({**live, "apiVersion": f"{group}/v1" if group else "v1", "kind": name}, None)
    assert isinstance(health, Health)


@given(status=json_values, broken=st.sampled_from(["apiVersion", "kind", "metadata", "spec"]), value=json_values)
def test_one_broken_field_does_not_matter(status: Any, broken: str, value: Any) -> None:
    assert isinstance(assess({**custom(status), broken: value}, None), Health)


@given(words=st.lists(st.sampled_from(["Ready", "Available", "Healthy"]), min_size=1, unique=True), more=json_objects)
def test_no_other_field_makes_an_object_ready_that_says_it_is_not(words: list[str], more: dict[str, Any]) -> None:
    status = {**more, "conditions": [{"type": word, "status": "False"} for word in words]}
    live = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {}, "spec": {}, "status": status}
    assert assess(live, None).state is not State.READY


@pytest.mark.parametrize("status", [[], "Ready", 1, True, {"conditions": {"type": "Ready"}}, {"conditions": ["Ready"]}])
def test_status_of_a_wrong_type_never_makes_ready(status: Any) -> None:
    assert assess(custom(status), None).state is State.WAITING


MANY = 20_000


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({"conditions": [{"type": "Ready", "status": "False"}] * MANY}, id="conditions"),
        pytest.param({"conditions": [{"type": f"P{n}Ready", "status": "False"} for n in range(MANY)]}, id="types"),
        pytest.param(
            {"conditions": [{"type": "Ready", "status": "False", "message": str(n)} for n in range(MANY)]}, id="messages"
        ),
        pytest.param({"members": [{"phase": "Failed", "ready": False}] * MANY}, id="parts"),
        pytest.param({f"member{n}Ready": False for n in range(MANY)}, id="flags"),
        pytest.param({"parents": [{"conditions": [{"type": "Accepted", "status": "False"}]}] * MANY}, id="lists"),
        pytest.param({"phase": "a" * MANY * 10, "error": "e" * MANY * 10, "x" * MANY * 10: "y"}, id="words"),
    ],
)
def test_time_is_linear_in_the_size_of_the_status(status: dict[str, Any]) -> None:
    """Quadratic, each would take far longer; the limit leaves a slow machine much room."""
    started = time.process_time()
    assess(custom(status), None)
    assert time.process_time() - started < 5


def test_long_words_that_a_cluster_writes_are_not_kept() -> None:
    """What is judged of a word is kept for the whole life of the process."""
    tracemalloc.start()
    for number in range(50):
        long = f"Ready{number}" + "x" * 100_000
        failed = {"type": long, "status": "False", "reason": f"Not{long}", "message": "m"}
        paused = {"metadata": {"name": "a", "annotations": {f"example.com/{long}": "true"}}}
        assess(custom(status={f"ready{long}": 1, long: "x", "phase": long}) | paused, None)
        assess(custom(status={"conditions": [failed]}), None)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 1024 * 1024


def test_who_has_written_the_fields_of_a_spec_is_found_in_linear_time() -> None:
    """Each field was looked for in the entries of all managers: 4,000 of both took 20 seconds, at each event."""
    entry = {"manager": "somebody", "fieldsV1": {"f:spec": {"f:other": {}}}}
    spec = {f"a{number}": "Paused" for number in range(10_000)}
    last = {"manager": "somebody", "fieldsV1": {"f:spec": {f"f:{name}": {} for name in spec}}}
    versions = [{"name": f"v{number}"} for number in range(10_000)]
    live = {"apiVersion": "a/v1", "metadata": {"managedFields": [entry] * 3_000 + [last]}, "spec": spec}
    began = time.thread_time()
    assert held_in_admission(live, {}, {"spec": {"versions": versions}}) == ""
    assert time.thread_time() - began < 2
