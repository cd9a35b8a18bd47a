# SPDX-License-Identifier: Apache-2.0
"""Lives in which everything goes wrong that may; `python -m tests.simulation --minutes 60` goes on for an hour."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import pytest

from tests.fake_api.objects import Object
from tests.simulation.features import ALL, UNSEEN
from tests.simulation.life import Life, Outcome

BLOCKS, LIVES = 10, 120
"""Blocks of seeds, which run beside each other, and lives in each."""
CRASHED = 8
"""Lives that are led once for each of their requests, with a crash there."""


def life(seed: int, features: frozenset[str] = ALL) -> Outcome:
    return Life(str(seed), features).run()


def faultless(grown: Outcome) -> dict[str, Object]:
    """What the instance has when nothing goes wrong."""
    return Life("faultless", frozenset()).instantiate(grown.objects).applied if grown.objects else {}


def shown(seed: int, outcome: Outcome) -> str:
    trace = "\n".join(f"{when:10.3f} {what}" for when, what in outcome.trace)
    return f"seed {seed}: {'; '.join(outcome.violations)}\n{trace}"


def digest(outcome: Outcome) -> str:
    return hashlib.sha256(repr(outcome.trace).encode()).hexdigest()


@pytest.mark.parametrize("block", range(BLOCKS))
def test_nothing_is_lost_and_nothing_taken(block: int) -> None:
    for seed in range(block * LIVES, (block + 1) * LIVES):
        outcome = life(seed)
        assert not outcome.violations, shown(seed, outcome)


@pytest.mark.parametrize("block", range(BLOCKS // 2))
def test_an_instance_has_what_a_life_without_faults_gives_it(block: int) -> None:
    for seed in range(block * LIVES, (block + 1) * LIVES):
        grown = Life(f"grown {seed}", UNSEEN).grow()
        assert not grown.violations, shown(seed, grown)
        assert grown.applied == faultless(grown), shown(seed, grown)


@pytest.mark.parametrize("seed", range(CRASHED))
def test_a_crash_at_any_request_loses_nothing_and_leaves_nothing(seed: int) -> None:
    for index in range(Life(f"crash {seed}", frozenset()).run().requests):
        outcome = Life(f"crash {seed}", frozenset(), crashes_at=index).run()
        assert not outcome.violations, shown(seed, outcome)


@pytest.mark.parametrize("seed", range(CRASHED))
def test_after_a_crash_at_any_request_an_instance_has_what_it_has_without(seed: int) -> None:
    for index in range(Life(f"crash {seed}", frozenset()).grow().requests):
        grown = Life(f"crash {seed}", frozenset(), crashes_at=index).grow()
        assert not grown.violations, shown(seed, grown)
        assert grown.applied == faultless(grown), shown(seed, grown)


def test_a_seed_replays_its_life_in_any_process() -> None:
    seeds = range(12)
    here = [digest(life(seed)) for seed in seeds]
    program = f"from tests.simulation.test_lives import *; print(*[digest(life(seed)) for seed in {seeds!r}])"
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        there = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
        assert there.stdout.split() == here
    assert len(set(here)) == len(here)
