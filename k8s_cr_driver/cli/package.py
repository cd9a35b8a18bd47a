"""`k8s-cr package`: a folder becomes a CSAR."""

from __future__ import annotations

from pathlib import Path

import click

from k8s_cr_driver import package as packages


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
    """Check FOLDER and make a CSAR file of it."""
    click.echo(f"Checking {folder}", err=True)
    packages.build(folder, output)
    click.echo(f"Wrote {output}, {output.stat().st_size:,} bytes", err=True)
