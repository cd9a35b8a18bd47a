# SPDX-License-Identifier: Apache-2.0
"""States are ordered, and answers can be compared and shown."""

from __future__ import annotations

import pytest

from k8s_cr_driver.resources.health import Health, State


def test_the_worst_state_comes_first() -> None:
    shuffled = [State.READY, State.WAITING, State.SUSPENDED, State.FAILED]
    assert sorted(shuffled) == [State.FAILED, State.WAITING, State.SUSPENDED, State.READY]
    assert min(shuffled) is State.FAILED


@pytest.mark.parametrize(
    ("state", "settled"),
    [(State.READY, True), (State.SUSPENDED, True), (State.WAITING, False), (State.FAILED, False)],
)
def test_a_wait_ends_well_with_ready_and_with_suspended(state: State, settled: bool) -> None:
    assert Health(state).settled is settled


def test_trouble_sorts_before_work_in_progress() -> None:
    failed, troubled, waiting = Health(State.FAILED), Health(State.WAITING, trouble=True), Health(State.WAITING)
    shuffled = [Health(State.READY), waiting, troubled, Health(State.SUSPENDED), failed]
    assert sorted(shuffled, key=lambda health: health.badness)[:3] == [failed, troubled, waiting]


def test_what_failed_is_in_trouble() -> None:
    assert Health(State.FAILED).trouble


@pytest.mark.parametrize("reason", ["line\n" * 100, "x" * 5000, " \t\n"])
def test_reason_is_one_line_of_limited_length(reason: str) -> None:
    line = Health(State.WAITING, reason).reason
    assert len(line) <= 200
    assert "\n" not in line
