# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr package`: a folder becomes a CSAR."""

from __future__ import annotations

from pathlib import Path

import click

from k8s_cr_driver.cli.findings import Findings
from k8s_cr_driver.cli.inspection import inspect
from k8s_cr_driver.cli.package_request import Wish, with_wish
from k8s_cr_driver.package.csar import write


@click.command(
    epilog="""
    \b
    Example:
      k8s-cr package sample_packages/crontab -o crontab.csar
    """
)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The CSAR file.")
@with_wish
def package(folder: Path, output: Path, wish: Wish) -> None:
    """Check FOLDER, as `validate` does, and write a CSAR file of it."""
    if output.resolve().is_relative_to(folder.resolve()):
        raise click.UsageError(f"--output {output}: is in FOLDER, so the next CSAR would contain it; write it elsewhere")
    if output.exists() and not output.is_file():
        raise click.UsageError(f"--output {output}: is no file, and would be replaced by one; name another")
    if not output.parent.is_dir():
        raise click.UsageError(f"--output {output}: there is no folder {output.parent}; make it, or name another")
    click.echo(f"Checking {folder}", err=True)
    findings = Findings()
    inspect(folder, wish, findings)
    findings.show()
    if findings.problems:
        raise click.exceptions.Exit(1)
    write(folder, output.resolve())
    click.echo(f"Wrote {output}, {output.stat().st_size / 1000:,.0f} kB", err=True)
