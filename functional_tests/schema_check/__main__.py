# SPDX-License-Identifier: Apache-2.0
"""`python -m functional_tests.schema_check [MODULE...]`: the figures of the comparison with the API server's own check."""

import sys
from collections import Counter

import click
from rich.console import Console
from rich.table import Table

from .comparison import Figures, compare
from .oracle import Oracle
from .published import PUBLISHED, published


@click.command(help="Compare the check with the API server's own on what MODULES have published (all projects by default).")
@click.argument("modules", nargs=-1, metavar="[MODULE@VERSION]...")
def main(modules: tuple[str, ...]) -> None:
    with Oracle() as oracle:
        found = compare(oracle, published(modules or PUBLISHED))
    table = Table("Module", "CRDs", "Objects", "Derived", "False errors", "Created only", "Misses")
    for module in modules or PUBLISHED:
        table.add_row(module, *_cells(found.get(module, Figures())))
    table.add_row("all", *_cells(_sum(list(found.values()))))
    Console(width=200).print(table)
    false = [error for figures in found.values() for error in figures.false]
    for error in false:
        click.echo(error)
    sys.exit(1 if false else 0)


def _cells(figures: Figures) -> list[str]:
    counts = (figures.definitions, figures.published, figures.derived, len(figures.false), figures.created_only)
    return [*map("{:,}".format, counts), ", ".join(f"{count} {name}" for name, count in figures.misses.most_common())]


def _sum(every: list[Figures]) -> Figures:
    return Figures(
        sum(one.definitions for one in every),
        sum(one.published for one in every),
        sum(one.derived for one in every),
        sum(one.created_only for one in every),
        [error for one in every for error in one.false],
        sum((one.misses for one in every), Counter()),
    )


if __name__ == "__main__":
    main()
