# SPDX-License-Identifier: Apache-2.0
"""
Charts -> packages that Tacker accepts: `k8s-cr init`, `k8s-cr package` and Tacker's onboarding, of each chart, without an edit.

`charts.tsv` has the charts that the figures in the documents are of: a name, the repository, the commit and the folder in it.
Their folders are fetched beside the project, each with its dependencies in its `charts`, and are given as FOLDER; `helm` is on
PATH. Prints a table with the percentage, and of each refusal the lines that say why.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from tests.cli.onboarding import onboard

_TOOL = (sys.executable, "-c", "from k8s_cr_driver.cli import main; main()")
_SHOWN = 5
"""Lines of a refusal."""


class Outcome(NamedTuple):
    chart: str
    refused_by: str
    """`init`, `package` or `onboarding`; empty for a package that is accepted."""
    why: Sequence[str]
    seconds: float


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.charts", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="the folder of a chart")
    parser.add_argument("--least", type=float, default=95, metavar="PERCENT", help="exit with 1 below (%(default)s)")
    options = parser.parse_args()
    outcomes = [measure(folder) for folder in options.folders]
    accepted = 100 * sum(not one.refused_by for one in outcomes) / len(outcomes)
    show(outcomes, accepted)
    sys.exit(accepted < options.least)


def measure(chart: Path) -> Outcome:
    """How far a chart comes."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="charts-") as temporary:
        refused_by, why = _refusal(chart, Path(temporary))
    return Outcome(chart.name, refused_by, why, time.perf_counter() - started)


def _refusal(chart: Path, home: Path) -> tuple[str, Sequence[str]]:
    """The first step that fails, and what it says; ("", ()) if none does."""
    folder, csar = home / chart.name, home / "package.csar"
    steps: Sequence[tuple[str, Callable[[], Sequence[str]]]] = (
        ("init", lambda: _run("init", str(folder), "--from", str(chart))),
        ("package", lambda: _run("package", str(folder), "-o", str(csar))),
        ("onboarding", lambda: _onboarded(csar, home)),
    )
    return next(((name, why) for name, step in steps if (why := step())), ("", ()))


def _run(*arguments: str) -> Sequence[str]:
    """What a command that fails prints besides its table and its warnings."""
    done = subprocess.run([*_TOOL, *arguments], capture_output=True, text=True, check=False)
    if not done.returncode:
        return ()
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith(("error", "Error", "Traceback"))]
    return lines or (done.stderr.splitlines() or [f"exit code {done.returncode}"])[-_SHOWN:]


def _onboarded(csar: Path, home: Path) -> Sequence[str]:
    try:
        onboard(csar, home)
    except Exception as error:  # Tacker's own, and those of its parser
        return [f"{type(error).__name__}: {error}"]
    return ()


def show(outcomes: Sequence[Outcome], accepted: float) -> None:
    table = Table(title=f"{len(outcomes)} charts, {accepted:.1f} % accepted by Tacker's onboarding without an edit")
    for heading in ("chart", "refused by", "seconds"):
        table.add_column(heading, justify="right" if heading == "seconds" else "left")
    for one in outcomes:
        table.add_row(one.chart, one.refused_by, f"{one.seconds:.1f}")
    console = Console()
    console.print(table)
    for one in outcomes:
        for line in one.why[:_SHOWN]:
            console.print(f"{one.chart}: {line}", markup=False, soft_wrap=True)


if __name__ == "__main__":
    main()
