# SPDX-License-Identifier: Apache-2.0
"""`python -m sample_packages -o DIR [NAME...]`: make CSAR files of the sample packages, all of them by default."""

import shutil
import tempfile
from pathlib import Path

import click

from k8s_cr_driver.cli.failures import Command
from k8s_cr_driver.package import csar, tosca_meta
from sample_packages import balancers as outside
from sample_packages import infrastructure, upstream
from sample_packages import sender as credential_sender

FOLDERS = {path.name: path for path in sorted(Path(__file__).parent.iterdir()) if (path / tosca_meta.TOSCA_META).is_file()}


def _provider(_context: click.Context, _parameter: click.Parameter, chosen: str) -> str:
    if chosen not in infrastructure.PROVIDERS and not Path(chosen).is_file():
        raise click.BadParameter(f"{chosen} is neither {' nor '.join(infrastructure.PROVIDERS)} nor a file")
    return chosen


@click.command(cls=Command)
@click.option("-o", "--output", default=".", type=click.Path(file_okay=False, path_type=Path), help="Where to put them.")
@click.option(
    "--infrastructure", "provider", default=infrastructure.DEFAULT, metavar="NAME|FILE", show_default=True, callback=_provider,
    help=f"The provider of {infrastructure.SAMPLE}: {', '.join(infrastructure.PROVIDERS)}, or a file of manifests.",
)  # fmt: skip
@click.option(
    "--sender", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
    help="Settings of the credential sender that packages of workload clusters are to have.",
)  # fmt: skip
@click.option(
    "--balancers", is_flag=True, help=f"HAProxy and keepalived of {outside.SAMPLE} are on two servers outside the masters.",
)  # fmt: skip
@click.argument("names", nargs=-1, type=click.Choice(list(FOLDERS)))
def main(output: Path, provider: str, sender: Path | None, balancers: bool, names: tuple[str, ...]) -> None:
    """Make NAME.csar of each sample package that is named, or of all."""
    for name in names or FOLDERS:
        click.echo(make(name, output, provider, sender, balancers=balancers))


def make(
    name: str, output: Path, provider: str = infrastructure.DEFAULT, sender: Path | None = None, *, balancers: bool = False
) -> Path:
    """Make one package and return its CSAR file.

    `provider` is that of a management cluster, `sender` the settings of the credential sender of a workload cluster, and
    `balancers` gives a cluster of several masters load balancers outside them.
    """
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work, name)
        shutil.copytree(FOLDERS[name], folder)
        upstream.add(name, folder, provider)
        if sender and name in credential_sender.SAMPLES:
            credential_sender.add(folder, sender)
        if balancers and name == outside.SAMPLE:
            outside.add(folder)
        return csar.build(folder, output / f"{name}.csar")


if __name__ == "__main__":
    main()
