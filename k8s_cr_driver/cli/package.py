"""`k8s-cr package`: a folder becomes a CSAR."""

from __future__ import annotations

from pathlib import Path

import click

from k8s_cr_driver import package as packages
from k8s_cr_driver.cli import author
from k8s_cr_driver.cli.validate import Findings, inspect


@click.command(
    epilog="""
    \b
    Example:
      k8s-cr package sample_packages/crontab -o crontab.csar
    """
)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The CSAR file.")
def package(folder: Path, output: Path) -> None:
    """Check FOLDER, as `validate` does, and make a CSAR file of it."""
    click.echo(f"Checking {folder}", err=True)
    findings = Findings(packages.check(folder))
    if not findings.problems:
        inspect(folder, author.sufficient(folder, {}), (), "default", findings)
    if findings.problems:
        findings.show()
        raise click.exceptions.Exit(1)
    packages.write(folder, output)
    click.echo(f"Wrote {output}, {output.stat().st_size:,} bytes", err=True)
