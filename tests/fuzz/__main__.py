# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.fuzz --minutes M`: rounds over all subjects, and the smallest input of each defect.

A round takes about a second, so that all subjects get their share of the time. A subject that has a defect is left out from
then on: each later round would find the same one, and reduce its input again.
"""

from __future__ import annotations

import argparse
import time
import traceback
from collections.abc import Iterator

from tests.fuzz.oracle import run
from tests.fuzz.subjects import SUBJECTS

INPUTS = 5
"""Of each subject in a round."""
SHOWN_EVERY = 500
"""Rounds between two lines of progress."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, required=True, help="begin no round after that time")
    parser.add_argument("--subject", action="append", choices=SUBJECTS, help="all without any")
    asked = parser.parse_args()
    subjects = asked.subject or list(SUBJECTS)
    ends, rounds, bad = time.monotonic() + 60 * asked.minutes, 0, set[str]()
    while time.monotonic() < ends and len(bad) < len(subjects):
        rounds += 1
        bad.update(_round([one for one in subjects if one not in bad]))
        if rounds % SHOWN_EVERY == 0:
            print(f"{rounds} rounds", flush=True)
    print(f"{rounds} rounds of {INPUTS} inputs of each subject; defects in: {', '.join(sorted(bad)) or 'none'}")
    return bool(bad)


def _round(subjects: list[str]) -> Iterator[str]:
    """The subjects in which it finds a defect."""
    for name in subjects:
        try:
            run(name, INPUTS, random=True)
        except Exception:
            print(f"{name}:\n{traceback.format_exc()[-3000:]}", flush=True)
            yield name


if __name__ == "__main__":
    raise SystemExit(main())
