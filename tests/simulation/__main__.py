# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.simulation --minutes M --seed S`: lives in a row, and the seeds of those that break an invariant."""

from __future__ import annotations

import argparse
import gc
import itertools
import math
import os
import random
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace

from tests.simulation.features import ALL
from tests.simulation.life import Life, surroundings


@dataclass(frozen=True)
class Share:
    """The lives of one process: every `step`th seed from `first`, at most so many `lives`, none begun after `until`."""

    first: int
    step: int
    lives: int | None
    until: float
    features: frozenset[str]
    is_traced: bool


@dataclass
class Tally:
    lives: int = 0
    requests: int = 0
    bad: int = 0
    cpu: float = 0.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lives", type=int, help="at most so many")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no life after that time")
    parser.add_argument("--seed", type=int, help="the first life's; the others count on from there. A random one without it")
    parser.add_argument("--feature", action="append", default=[], help="kinds of trouble; all without any")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="so many lives at once; one for each core")
    parser.add_argument("--trace", action="store_true", help="print the trace of each life that breaks an invariant")
    asked = parser.parse_args()
    features = frozenset(asked.feature) if asked.feature else ALL
    assert features <= ALL, f"unknown: {', '.join(features - ALL)}"
    if asked.lives is None and asked.minutes == math.inf:
        parser.error("--lives or --minutes is needed")
    first = random.randrange(10**9) if asked.seed is None else asked.seed
    print(f"first seed: {first}", flush=True)
    began, processes = time.time(), min(asked.processes, asked.lives or asked.processes)
    share = Share(first, processes, None, began + 60 * asked.minutes, features, asked.trace)
    return _report(_tallies(share, asked.lives), time.time() - began)


def _tallies(share: Share, lives: int | None) -> list[Tally]:
    count = share.step
    each = [None if lives is None else (lives - number + count - 1) // count for number in range(count)]
    shares = [replace(share, first=share.first + number, lives=each[number]) for number in range(count)]
    if count == 1:
        return [run(shares[0])]
    with ProcessPoolExecutor(count) as pool:
        return list(pool.map(run, shares))


def run(share: Share) -> Tally:
    with surroundings():
        return _lives(share)


def _lives(share: Share) -> Tally:
    tally, began = Tally(), time.process_time()
    for seed in itertools.islice(itertools.count(share.first, share.step), share.lives):
        if time.time() >= share.until:
            break
        gc.collect(0)  # what the last life has left, which is all that is young now
        outcome = Life.of(seed, share.features).run()
        tally.lives += 1
        tally.requests += outcome.requests
        if outcome.violations:
            tally.bad += 1
            trace = [f"{when:10.3f} {what}" for when, what in outcome.trace] if share.is_traced else []
            print("\n".join([f"seed {seed}: {'; '.join(outcome.violations)}", *trace]), flush=True)
    tally.cpu = time.process_time() - began
    return tally


def _report(tallies: list[Tally], seconds: float) -> int:
    lives, requests, bad = (sum(getattr(one, name) for one in tallies) for name in ("lives", "requests", "bad"))
    each = lives / sum(one.cpu for one in tallies)
    print(f"{lives} lives, {requests} requests, {bad} bad; {lives / seconds:.0f} lives a second, {each:.0f} a second of CPU")
    return bool(bad)


if __name__ == "__main__":
    raise SystemExit(main())
