# SPDX-License-Identifier: Apache-2.0
"""`python -m functional_tests [--all] [FAMILY...]`: run families of functional tests side by side on one test bed."""

import sys

import click
import pytest

from .families import FAMILIES, FOLDER, PORTABLE
from .testbed import bed

# Of 2 processors: the tests wait more than they work.
PROCESSES = 4


@click.command(help=f"Run FAMILIES ({', '.join(FAMILIES)}); by default those that need no cloud.")
@click.option("--all", "everything", is_flag=True, help="Run every family.")
@bed.CLUSTER_OPTION
@click.argument("names", metavar="[FAMILY]...", nargs=-1, type=click.Choice(list(FAMILIES)))
def main(everything: bool, cluster: str, names: tuple[str, ...]) -> None:
    usual = [name for name, family in FAMILIES.items() if not family.needs_cloud] if bed.is_own(cluster) else PORTABLE
    chosen = names or (list(FAMILIES) if everything else usual)
    # A module is run by one process, which onboards its packages once.
    side_by_side = [f"--numprocesses={PROCESSES}", "--dist=loadscope", "--no-loadscope-reorder"]
    options = ["--durations=20", "--tb=short", "-rfEs", f"--cluster={cluster}"]
    sys.exit(pytest.main([*side_by_side, *options, *(str(FOLDER / name) for name in chosen)]))


if __name__ == "__main__":
    main()
