# SPDX-License-Identifier: Apache-2.0
"""`python -m sample_packages -o DIR [NAME...]`: make CSAR files of the sample packages, all of them by default."""

import shutil
import tempfile
from pathlib import Path

import click

from k8s_cr_driver.package import csar, tosca_meta
from sample_packages import upstream

FOLDERS = {path.name: path for path in sorted(Path(__file__).parent.iterdir()) if (path / tosca_meta.TOSCA_META).is_file()}


@click.command()
@click.option(
    "-o", "--output", default=".", type=click.Path(file_okay=False, path_type=Path), help="Where to put them."
)
@click.argument("names", nargs=-1, type=click.Choice(list(FOLDERS)))
def main(output: Path, names: tuple[str, ...]) -> None:
    """Make NAME.csar of each sample package that is named, or of all."""
    for name in names or FOLDERS:
        click.echo(make(name, output))


def make(name: str, output: Path) -> Path:
    """Make one package and return its CSAR file."""
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work, name)
        shutil.copytree(FOLDERS[name], folder)
        upstream.add(name, folder / tosca_meta.MANIFESTS)
        return csar.build(folder, output / f"{name}.csar")


if __name__ == "__main__":
    main()
