# SPDX-License-Identifier: Apache-2.0
"""
Charts -> packages that Tacker accepts: `k8s-cr init`, `k8s-cr package` and Tacker's onboarding, of each chart, without an edit.

`charts.tsv` has the charts that the figures in the documents are of: a name, the repository, the commit and the folder in it.
Their folders are fetched beside the project, each with its dependencies in its `charts`, and are given as FOLDER; `helm` is on
PATH. Prints a table with the percentage, and of each refusal the lines that say why.

With --kubeconfig `k8s-cr run` instantiates and removes on that cluster what each package has without images, and the table
says what is left then. Nobody else may change the cluster meanwhile.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks.without_images import Tried, refusal, try_out
from tests.cli.onboarding import onboard

_SHOWN = 5
"""Lines of a refusal."""


class Outcome(NamedTuple):
    chart: str
    refused_by: str
    """`init`, `package` or `onboarding`; empty for a package that is accepted."""
    why: Sequence[str]
    seconds: float
    tried: Tried | None = None
    """On a cluster, if there is one and the chart is accepted."""

    @property
    def is_good(self) -> bool:
        """Accepted, and on a cluster instantiated and removed too."""
        return not self.refused_by and not (self.tried and self.tried.failed)

    @property
    def left(self) -> Sequence[str]:
        return self.tried.left if self.tried else ()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.charts", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="the folder of a chart")
    parser.add_argument("--least", type=float, default=95, metavar="PERCENT", help="exit with 1 below (%(default)s)")
    parser.add_argument("--kubeconfig", type=Path, metavar="FILE", help="a cluster; exit with 1 if anything is left on it")
    options = parser.parse_args()
    outcomes = [measure(folder, options.kubeconfig) for folder in options.folders]
    show(outcomes)
    sys.exit(percentage(outcomes) < options.least or any(one.left for one in outcomes))


def measure(chart: Path, kubeconfig: Path | None = None) -> Outcome:
    """How far a chart comes."""
    with tempfile.TemporaryDirectory(prefix="charts-") as temporary:
        started = time.perf_counter()
        refused_by, why = _refusal(chart, Path(temporary))
        seconds = time.perf_counter() - started
        tried = try_out(Path(temporary) / chart.name, kubeconfig) if kubeconfig and not refused_by else None
    return Outcome(chart.name, refused_by, why, seconds, tried)


def _refusal(chart: Path, home: Path) -> tuple[str, Sequence[str]]:
    """The first step that fails, and what it says; ("", ()) if none does."""
    folder, csar = home / chart.name, home / "package.csar"
    steps: Sequence[tuple[str, Callable[[], Sequence[str]]]] = (
        ("init", lambda: refusal("init", str(folder), "--from", str(chart))),
        ("package", lambda: refusal("package", str(folder), "-o", str(csar))),
        ("onboarding", lambda: _onboarded(csar, home)),
    )
    return next(((name, why) for name, step in steps if (why := step())), ("", ()))


def _onboarded(csar: Path, home: Path) -> Sequence[str]:
    try:
        onboard(csar, home)
    except Exception as error:  # Tacker's own, and those of its parser
        return [f"{type(error).__name__}: {error}"]
    return ()


def percentage(outcomes: Sequence[Outcome]) -> float:
    """How many are good."""
    return 100 * sum(one.is_good for one in outcomes) / len(outcomes)


def show(outcomes: Sequence[Outcome]) -> None:
    on_cluster = any(one.tried for one in outcomes)
    more = ", instantiated and removed without images" if on_cluster else ""
    title = f"{len(outcomes)} charts, {percentage(outcomes):.1f} % accepted by Tacker's onboarding without an edit{more}"
    table = Table(title=title)
    for heading in ("chart", "refused by", "seconds", *(("objects", "of", "left") if on_cluster else ())):
        table.add_column(heading, justify="left" if heading in ("chart", "refused by") else "right")
    for one in outcomes:
        table.add_row(one.chart, one.refused_by, f"{one.seconds:.1f}", *_counts(one.tried))
    console = Console()
    console.print(table)
    for one in outcomes:
        why = [*one.why, *(one.tried.failed if one.tried else ())]
        for line in (*why[:_SHOWN], *(f"left: {name}" for name in one.left)):
            console.print(f"{one.chart}: {line}", markup=False, soft_wrap=True)


def _counts(tried: Tried | None) -> Sequence[str]:
    if tried is None:
        return ()
    return f"{tried.objects}{' failed' if tried.failed else ''}", str(tried.of), str(len(tried.left))


if __name__ == "__main__":
    main()
