# SPDX-License-Identifier: Apache-2.0
"""How often readiness is judged right, and how fast, on objects whose health is known.

    python -m tests.resources.health.figures FILE

FILE holds one case a line, or a JSON list of cases: `object`, and its health as `expected` or `status`: Healthy, Progressing,
Degraded or Suspended (others are left out). `status_fields`, if it is there, are those that its CRD declares.
No rule may name a group or a kind, so the figures are also shown by
folds of API groups: a rule that was found in one fold has to hold in the others.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from k8s_cr_driver.resources.health import Health, State, assess

FOLDS = 3
_STATES = {State.READY: "Healthy", State.SUSPENDED: "Suspended", State.FAILED: "Degraded", State.WAITING: "Progressing"}


class Case(NamedTuple):
    """An object and its health."""

    expected: str
    live: dict[str, Any]
    crd: dict[str, Any] | None = None

    @property
    def fold(self) -> int:
        group = str(self.live.get("apiVersion")).rpartition("/")[0]
        return zlib.crc32(group.encode()) % FOLDS

    def seconds(self) -> float:
        """The CPU time of one judgement: the best of five."""
        return min(_timed(self) for _ in range(5))


class Figures(NamedTuple):
    """`agreement`: right about ready or not; `exact`: right about the state; `false_ready`: of what is not ready."""

    cases: int
    agreement: float
    exact: float
    false_ready: float

    def __str__(self) -> str:
        return (
            f"{self.cases:4} cases: agreement {self.agreement:.1%}, exact {self.exact:.1%}, "
            f"false ready {self.false_ready:.1%} of what is not ready"
        )


def cases(path: Path) -> list[Case]:
    """The cases of a file."""
    content = path.read_text()
    read = json.loads(content) if content.startswith("[") else [json.loads(line) for line in content.splitlines()]
    every = [Case(one.get("expected") or one["status"], one["object"], crd_of(one)) for one in read]
    return [case for case in every if case.expected in _STATES.values()]


def crd_of(case: dict[str, Any]) -> dict[str, Any] | None:
    """The CRD that declares the fields of the case's status; None if the case does not name them."""
    if "status_fields" not in case:
        return None
    schema = {"properties": {"spec": {}, "status": {"properties": case["status_fields"]}}}
    version = str(case["object"]["apiVersion"]).rpartition("/")[2]
    return {"spec": {"versions": [{"name": version, "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}}]}}


def said(health: Health) -> str:
    """The state in the words of the cases: what waits in trouble is degraded."""
    return "Degraded" if health.trouble else _STATES[health.state]


def figures(judged: Sequence[Case]) -> Figures:
    """The figures of some cases."""
    pairs = [(case.expected, said(assess(case.live, case.crd))) for case in judged]
    not_ready = [got for expected, got in pairs if expected != "Healthy"]
    agreed = sum((expected == "Healthy") == (got == "Healthy") for expected, got in pairs)
    exact = sum(expected == got for expected, got in pairs)
    return Figures(len(pairs), agreed / len(pairs), exact / len(pairs), not_ready.count("Healthy") / len(not_ready))


def _timed(case: Case) -> float:
    started = time.perf_counter()
    assess(case.live, case.crd)
    return time.perf_counter() - started


def main() -> None:
    """Shows the figures of a file."""
    every = cases(Path(sys.argv[1]))
    lines = [f"all     {figures(every)}"]
    lines += [f"fold {fold}  {figures([case for case in every if case.fold == fold])}" for fold in range(FOLDS)]
    lines += [f"median  {statistics.median(case.seconds() for case in every) * 1e6:.0f} microseconds"]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
