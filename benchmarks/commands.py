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
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.cli.packages import write_package

ROOT = Path(__file__).parents[1]
RUNS = 9


class Case(NamedTuple):
    """A command, the variables of its environment, and the seconds that it may take."""

    name: str
    arguments: list[str]
    goal: float
    variables: Mapping[str, str] = {}


CRD = """\
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: tabsNUMBER.example.com
  annotations:
    k8s-cr-driver/ready-when: stored
spec:
  group: example.com
  scope: Namespaced
  names: {plural: tabsNUMBER, singular: tabNUMBER, kind: TabNUMBER}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
"""
FIELD = f"""\
          fieldNUMBER:
            description: >-
              {" ".join(["What the controller does with the value, in the words of a project."] * 6)}
            type: string
"""
OBJECT = "---\napiVersion: example.com/v1\nkind: TabKIND\nmetadata: {name: tabNUMBER}\nfield0: a\n"
COMPLETION = {"_K8S_CR_COMPLETE": "bash_complete", "COMP_WORDS": "k8s-cr va", "COMP_CWORD": "1"}
PACKAGE = str(ROOT / "doc/source/tutorial/package")
CASES = [
    Case("k8s-cr --help", ["--help"], 0.2),
    Case("completion of a command", [], 0.2, COMPLETION),
    Case("k8s-cr validate of the tutorial's package", ["validate", PACKAGE, "--param", "NAME=nightly"], 0.4),
]


def large_package(folder: Path, crds: int = 472, objects: int = 266, size: int = 31_000_000) -> Path:
    """A package of that many CRDs, and two objects of each of the first, whose manifests have about `size` bytes."""
    fields = max(1, size // crds // len(FIELD))
    schema = "".join(FIELD.replace("NUMBER", str(number)) for number in range(fields))
    made = write_package(folder, [])
    with (made / "Files/kubernetes/all.yaml").open("w") as file:
        file.writelines(CRD.replace("NUMBER", str(number)) + schema for number in range(crds))
        file.writelines(OBJECT.replace("NUMBER", str(number)).replace("KIND", str(number // 2)) for number in range(objects))
    return made


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
    with tempfile.TemporaryDirectory() as folder:
        large = str(large_package(Path(folder, "large")))
        for case in (*CASES, Case("k8s-cr validate of 472 CRDs, 31 MB", ["validate", large], 5)):
            seconds(case)
            taken, worked = zip(*(seconds(case) for _ in range(runs)), strict=True)
            figures = (statistics.median(taken), min(taken), max(taken), case.goal, statistics.median(worked))
            print(f"{case.name:<45}" + "".join(f"{figure:8.3f}" for figure in figures), flush=True)


if __name__ == "__main__":
    main()
