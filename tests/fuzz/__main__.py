# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.fuzz --minutes M`: rounds over all subjects, and the smallest input of each defect."""

from __future__ import annotations

import argparse
import time
import traceback

from tests.fuzz.oracle import run
from tests.fuzz.subjects import SUBJECTS

ROUND = 100


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, required=True, help="begin no round after that time")
    parser.add_argument("--subject", action="append", choices=SUBJECTS, help="all without any")
    asked = parser.parse_args()
    ends, rounds, bad = time.monotonic() + 60 * asked.minutes, 0, 0
    while time.monotonic() < ends:
        rounds += 1
        for name in asked.subject or SUBJECTS:
            try:
                run(name, ROUND, random=True)
            except Exception:
                bad += 1
                print(f"{name}:\n{traceback.format_exc()[-3000:]}", flush=True)
    print(f"{rounds} rounds of {ROUND} inputs of each subject, {bad} bad")
    return bool(bad)


if __name__ == "__main__":
    raise SystemExit(main())
