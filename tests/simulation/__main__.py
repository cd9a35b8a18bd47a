# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.simulation --lives N --seed S`: lives one after another, and of each that breaks an invariant its trace."""

from __future__ import annotations

import argparse
import time

from tests.simulation.features import ALL
from tests.simulation.life import Life


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lives", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0, help="the first life's; the others count on from there")
    parser.add_argument("--feature", action="append", default=[], help="kinds of trouble; all without any")
    parser.add_argument("--trace", action="store_true", help="print the trace of each life that breaks an invariant")
    asked = parser.parse_args()
    features = frozenset(asked.feature) if asked.feature else ALL
    assert features <= ALL, f"unknown: {', '.join(features - ALL)}"
    began, requests, bad = time.process_time(), 0, 0
    for seed in range(asked.seed, asked.seed + asked.lives):
        outcome = Life(str(seed), features).run()
        requests += outcome.requests
        if outcome.violations:
            bad += 1
            print(f"seed {seed}: {'; '.join(outcome.violations)}", flush=True)
            if asked.trace:
                print("\n".join(f"{when:10.3f} {what}" for when, what in outcome.trace))
    seconds = time.process_time() - began
    print(f"{asked.lives} lives, {requests} requests, {bad} bad; {asked.lives / seconds:.0f} lives a second of CPU")
    return bool(bad)


if __name__ == "__main__":
    raise SystemExit(main())
