# SPDX-License-Identifier: Apache-2.0
"""A status counts only if it speaks of the spec that is stored now."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_cr_driver.resources.health import State, assess
from tests.resources.health.objects import Json, condition, conditions, custom, wrote

READY, WAITING = State.READY, State.WAITING
OPERATOR = "widget-operator"
DRIVER = "k8s-cr-driver-1"


@pytest.mark.parametrize(
    ("observed", "state"), [(2, READY), (1, WAITING), (0, WAITING), ("1", WAITING), ("2", READY), (None, READY)]
)
def test_status_for_an_older_generation_waits(observed: Any, state: State) -> None:
    status = {**conditions("Ready"), "observedGeneration": observed}
    assert assess(custom(status, generation=2), None).state is state


def test_old_failure_is_not_taken_for_the_state_of_the_new_spec() -> None:
    health = assess(custom({**conditions("Stalled"), "observedGeneration": 1}, generation=2), None)
    assert (health.state, health.reason) == (WAITING, "SpecNotObserved")


@pytest.mark.parametrize(("observed", "state"), [(2, READY), (1, WAITING)])
def test_condition_for_an_older_generation_waits(observed: int, state: State) -> None:
    status = {"conditions": [condition("Ready", observedGeneration=observed)]}
    assert assess(custom(status, generation=2), None).state is state


def test_old_alarm_does_not_outlive_the_spec_that_raised_it() -> None:
    old = condition("Stalled", observedGeneration=1)
    status = {"conditions": [condition("Ready", observedGeneration=2), old]}
    assert assess(custom(status, generation=2), None).state is READY


def written(status_at: str, spec_at: str) -> list[Json]:
    return [
        wrote(DRIVER, spec_at, "f:metadata", "f:spec", operation="Apply"),
        wrote(OPERATOR, status_at, "f:status", subresource="status"),
    ]


@pytest.mark.parametrize(
    ("status_at", "spec_at", "state"),
    [
        pytest.param("2026-01-01T00:00:05Z", "2026-01-01T00:00:01Z", READY, id="after"),
        pytest.param("2026-01-01T00:00:05Z", "2026-01-01T00:00:05Z", READY, id="within-the-same-second"),
        pytest.param("2026-01-01T00:00:05Z", "2026-01-01T00:00:09Z", WAITING, id="before"),
    ],
)
def test_without_observed_generation_the_last_writers_tell(status_at: str, spec_at: str, state: State) -> None:
    assert assess(custom(conditions("Ready"), generation=2, managedFields=written(status_at, spec_at)), None).state is state


def test_label_applied_to_a_spec_that_was_never_changed_asks_nothing_of_the_controller() -> None:
    fields = written("2026-01-01T00:00:05Z", "2026-01-01T00:00:09Z")
    assert assess(custom(conditions("Ready"), generation=1, managedFields=fields), None).state is READY


def test_observed_generation_outweighs_the_times_of_writing() -> None:
    fields = written("2026-01-01T00:00:01Z", "2026-01-01T00:00:09Z")
    status = {**conditions("Ready"), "observedGeneration": 2}
    assert assess(custom(status, generation=2, managedFields=fields), None).state is READY


def test_new_label_asks_nothing_of_the_controller() -> None:
    fields = [
        *written("2026-01-01T00:00:05Z", "2026-01-01T00:00:01Z"),
        wrote("kubectl-label", "2026-01-01T00:00:09Z", "f:metadata"),
    ]
    assert assess(custom(conditions("Ready"), generation=2, managedFields=fields), None).state is READY


def test_controller_that_fills_in_the_spec_after_the_status_is_not_behind() -> None:
    fields = [
        *written("2026-01-01T00:00:05Z", "2026-01-01T00:00:01Z"),
        wrote(OPERATOR, "2026-01-01T00:00:09Z", "f:spec"),
    ]
    assert assess(custom(conditions("Ready"), generation=2, managedFields=fields), None).state is READY


@pytest.mark.parametrize("fields", [("f:spec",), ("f:spec", "f:status")])
def test_status_that_only_a_manifest_or_a_default_has_set_waits(fields: tuple[str, ...]) -> None:
    created = wrote(DRIVER, "2026-01-01T00:00:01Z", *fields, operation="Apply")
    health = assess(custom(conditions("Ready"), managedFields=[created]), None)
    assert (health.state, health.reason) == (WAITING, "StatusNotWritten")


AT_ONCE = {"managedFields": written("2026-01-01T00:00:05Z", "2026-01-01T00:00:05Z"), "generation": 2}


def test_within_one_second_the_status_that_our_change_got_back_is_older() -> None:
    live = custom(conditions("Ready"), **AT_ONCE)
    health = assess(live, None, old_status=conditions("Ready"))
    assert (health.state, health.reason) == (WAITING, "StatusOlderThanSpec")
    assert assess(live, None, old_status={**conditions("Ready"), "note": "of before"}).state is READY
    assert assess(live, None).state is READY


def test_without_managed_fields_the_status_that_our_change_got_back_is_older() -> None:
    assert assess(custom(conditions("Ready"), generation=2), None, old_status=conditions("Ready")).state is WAITING


def test_observed_generation_outweighs_a_status_that_has_not_changed() -> None:
    status = {**conditions("Ready"), "observedGeneration": 2}
    assert assess(custom(status, generation=2), None, old_status=status).state is READY
