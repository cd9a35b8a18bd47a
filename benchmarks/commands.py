# SPDX-License-Identifier: Apache-2.0
"""`python -m benchmarks.commands`: how long a user waits for `k8s-cr` itself, as whole processes, beside the goals.

The last column is the median of the CPU time, which other jobs of the machine change less.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
RUNS = 9


class Case(NamedTuple):
    """A command, the variables of its environment, and the seconds that it may take."""

    name: str
    arguments: list[str]
    goal: float
    variables: Mapping[str, str] = {}


COMPLETION = {"_K8S_CR_COMPLETE": "bash_complete", "COMP_WORDS": "k8s-cr va", "COMP_CWORD": "1"}
PACKAGE = str(ROOT / "doc/source/tutorial/package")
CASES = [
    Case("k8s-cr --help", ["--help"], 0.2),
    Case("completion of a command", [], 0.2, COMPLETION),
    Case("k8s-cr validate of the tutorial's package", ["validate", PACKAGE, "--param", "NAME=nightly"], 0.4),
]


def seconds(case: Case) -> tuple[float, float]:
    """(what a clock shows, what the processor did for it) of one run, which must succeed."""
    program = Path(sys.executable).with_name("k8s-cr")
    environment = {**os.environ, **case.variables, "PYTHONDONTWRITEBYTECODE": ""}  # modules are compiled once
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([program, *case.arguments], env=environment, capture_output=True, check=True)
    ended, after = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended - began, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help="of each command, after one that does not count")
    runs = parser.parse_args().runs
    print(f"{'seconds, median of ' + str(runs):<45}{'median':>8}{'least':>8}{'most':>8}{'goal':>8}{'CPU':>8}")
    for case in CASES:
        seconds(case)
        taken, worked = zip(*(seconds(case) for _ in range(runs)), strict=True)
        figures = (statistics.median(taken), min(taken), max(taken), case.goal, statistics.median(worked))
        print(f"{case.name:<45}" + "".join(f"{figure:8.3f}" for figure in figures))


if __name__ == "__main__":
    main()
