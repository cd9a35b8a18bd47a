# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.simulation --minutes M --seed S`: lives in a row, and the seeds of those that break an invariant."""

from __future__ import annotations

import argparse
import itertools
import math
import random
import time

from tests.simulation.features import ALL
from tests.simulation.life import Life


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lives", type=int, help="at most so many")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no life after that time")
    parser.add_argument("--seed", type=int, help="the first life's; the others count on from there. A random one without it")
    parser.add_argument("--feature", action="append", default=[], help="kinds of trouble; all without any")
    parser.add_argument("--trace", action="store_true", help="print the trace of each life that breaks an invariant")
    asked = parser.parse_args()
    features = frozenset(asked.feature) if asked.feature else ALL
    assert features <= ALL, f"unknown: {', '.join(features - ALL)}"
    if asked.lives is None and asked.minutes == math.inf:
        parser.error("--lives or --minutes is needed")
    first = random.randrange(10**9) if asked.seed is None else asked.seed
    print(f"first seed: {first}", flush=True)
    began, ends, lives, requests, bad = time.process_time(), time.monotonic() + 60 * asked.minutes, 0, 0, 0
    for seed in itertools.islice(itertools.count(first), asked.lives):
        if time.monotonic() >= ends:
            break
        lives += 1
        outcome = Life(str(seed), features).run()
        requests += outcome.requests
        if outcome.violations:
            bad += 1
            print(f"seed {seed}: {'; '.join(outcome.violations)}", flush=True)
            if asked.trace:
                print("\n".join(f"{when:10.3f} {what}" for when, what in outcome.trace))
    seconds = time.process_time() - began
    print(f"{lives} lives, {requests} requests, {bad} bad; {lives / seconds:.0f} lives a second of CPU")
    return bool(bad)


if __name__ == "__main__":
    raise SystemExit(main())
