# SPDX-License-Identifier: Apache-2.0
"""Lives in which everything goes wrong that may; `python -m tests.simulation --minutes 60` goes on for an hour."""

from __future__ import annotations

import hashlib
import marshal
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.fake_api.objects import Object
from tests.simulation.caches import Line
from tests.simulation.client import Client
from tests.simulation.entries import Actor
from tests.simulation.features import ALL, UNSEEN
from tests.simulation.life import Life, Outcome
from tests.simulation.servers import Sent, Servers

BLOCKS, LIVES = 10, 200
"""Blocks of seeds, which run beside each other, and lives in each."""
GROWN = 120
"""Of those that are compared with a life without faults."""
CRASHED = 8
"""Lives that are led once for each of their requests, with a crash there."""


def life(seed: int, features: frozenset[str] = ALL) -> Outcome:
    return Life(str(seed), features).run()


def faultless(grown: Outcome) -> dict[str, Object]:
    """What the instance has when nothing goes wrong, but for Jobs that have completed and gone: nobody runs them again."""
    found = Life("faultless", frozenset()).instantiate(grown.objects).applied if grown.objects else {}
    return {name: live for name, live in found.items() if name in grown.applied or name not in grown.completed}


def shown(seed: int, outcome: Outcome) -> str:
    trace = "\n".join(f"{when:10.3f} {what}" for when, what in outcome.trace)
    return f"seed {seed}: {'; '.join(outcome.violations)}\n{trace}"


def digest(outcome: Outcome) -> str:
    return hashlib.sha256(repr(outcome.trace).encode()).hexdigest()


@pytest.mark.parametrize("block", range(BLOCKS))
def test_nothing_is_lost_and_nothing_taken(block: int) -> None:
    for seed in range(block * LIVES, (block + 1) * LIVES):
        outcome = Life.of(seed, ALL).run()
        assert not outcome.violations, shown(seed, outcome)


@pytest.mark.parametrize("block", range(BLOCKS // 2))
def test_an_instance_has_what_a_life_without_faults_gives_it(block: int) -> None:
    for seed in range(block * GROWN, (block + 1) * GROWN):
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


def test_nobody_writes_into_what_was_sent_or_received(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulation passes bodies, responses and events on as they are."""
    passed: list[tuple[str, Any, bytes]] = []
    send, execute, of = Client._send, Servers.execute, Line.of

    def note(what: str, value: Any) -> None:
        passed.append((what, value, marshal.dumps(value, 2)))

    def posted(client: Client, sent: Sent, patience: float) -> Any:
        note(f"the body of {sent}", sent.body)
        return send(client, sent, patience)

    def executed(servers: Servers, sent: Sent, actor: Actor) -> None:
        execute(servers, sent, actor)
        if isinstance(sent.answer, dict):
            note(f"the answer to {sent}", sent.answer)

    def line(event: Object) -> Line:
        note(f"an event {event['type']}", event)
        return of(event)

    monkeypatch.setattr(Client, "_send", posted)
    monkeypatch.setattr(Servers, "execute", executed)
    monkeypatch.setattr(Line, "of", line)
    for seed in range(40):
        life(seed)
    assert len(passed) > 1000
    assert not [what for what, value, before in passed if marshal.dumps(value, 2) != before]


def test_each_of_many_lives_frees_the_memory_of_the_one_before() -> None:
    program = (
        "import gc, math; from tests.simulation.__main__ import *; from tests.simulation.servers import Servers; gc.disable();"
        "run(Share(0, 1, 5, math.inf, ALL, False));"
        "print(sum(isinstance(one, Servers) for one in gc.get_objects()))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n", "only the last life is left"
