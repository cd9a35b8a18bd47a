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
