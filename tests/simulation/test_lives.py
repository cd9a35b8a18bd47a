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
SINCE = {"immutable fields", "owners", "late collector", "kept"}
"""Kinds of trouble that came later than the lives of those seeds."""
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


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(5002510, id="objects made after a rollback that a deleted inventory could not warn"),
        pytest.param(8001299, id="a Namespace made after a rollback that a deleted inventory could not warn"),
        pytest.param(6001605, id="the end of a Job seen by a worker that could not record it"),
        pytest.param(6006774, id="a CRD that is established later than eight tries take"),
        pytest.param(9008523, id="objects deleted while the last write of a run was refused for minutes"),
        pytest.param(9015191, id="a Namespace deleted while the response to the last request did not come"),
        pytest.param(9010028, id="a Job run again by the retry of an instantiate that was undone"),
        pytest.param(40000490, id="an object with the instance's label that was adopted after the inventory was lost"),
        pytest.param(8801190, id="a rollback that leaves what others have created an object with since"),
        pytest.param(42070, id="an object made again before an inventory was made and deleted within a rollback"),
        pytest.param(5004065, id="more refusals than tries, each of which names one object"),
    ],
)
def test_what_no_worker_can_know_is_no_violation(seed: int) -> None:
    outcome = life(seed, ALL - SINCE)
    assert not outcome.violations, shown(seed, outcome)


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(4100306, id="a CRD deleted, and made again, while the stream of its kind was silent"),
        pytest.param(4203817, id="a write of a worker whose inventory a user had deleted, after the terminate of another"),
        pytest.param(4104446, id="the end of a Job that is shown after a change has replaced it"),
        pytest.param(4102737, id="a rollback that took a newer Job for the finished one that it had replaced"),
    ],
)
def test_what_lives_have_found_stays_mended(seed: int) -> None:
    outcome = life(seed)
    assert not outcome.violations, shown(seed, outcome)


@pytest.mark.parametrize("seed", [pytest.param(81028, id="a Namespace left because its kind was not served at this moment")])
def test_what_brief_lives_have_found_stays_mended(seed: int) -> None:
    outcome = Life.of(seed, ALL).run()
    assert not outcome.violations, shown(seed, outcome)
