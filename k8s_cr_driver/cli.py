"""`k8s-cr`: the tool of package authors and operators."""

from __future__ import annotations

from pathlib import Path

import click

from k8s_cr_driver import package
from k8s_cr_driver.errors import InvalidPackage


@click.group()
def main() -> None:
    """Work with VNF packages whose resources are Kubernetes objects of any kind."""


@main.command("package")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The CSAR file.")
def package_command(folder: Path, output: Path) -> None:
    """Check FOLDER and make a CSAR file of it.

    Exits with 1 if something is wrong with the package, having told what, and with 2 if the command is.
    """
    click.echo(f"Checking {folder}", err=True)
    try:
        package.build(folder, output)
    except InvalidPackage as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"Wrote {output}, {output.stat().st_size:,} bytes", err=True)
