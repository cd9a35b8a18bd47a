# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr confirm`: an operator lets a VIM of the receiver lead to another cluster."""

from __future__ import annotations

from pathlib import Path

import click

from k8s_cr_driver.cli.output import confirmed, echo
from k8s_cr_driver.credentials.store import Store, Stored


@click.command(
    epilog="""
    \b
    Examples:
      k8s-cr confirm --folder /var/lib/k8s-cr
      k8s-cr confirm --folder /var/lib/k8s-cr 8f0e2ef0-5d8a-4a43-a1f0-000000000001_default_red
    """
)
@click.argument("names", metavar="[CLUSTER]...", nargs=-1)
@click.option(
    "--folder", required=True, type=click.Path(exists=True, file_okay=False, path_type=Path), help="That of the receiver."
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def confirm(names: tuple[str, ...], folder: Path, yes: bool) -> None:
    """Let the VIM of a CLUSTER have another URL or CA.

    A receiver with --register-vim does not change these by itself: whoever has the senders' key could lead the VIM's users to a
    cluster of his own. Without CLUSTER lists the changes that wait. Run it as the receiver's user, or as root.
    """
    store = Store(folder)
    held = {one.name: one for one in store.clusters() if one.is_held}
    if unknown := [name for name in names if name not in held]:
        raise click.UsageError(f"{unknown[0]}: no change of it waits; see: k8s-cr confirm --folder {folder}")
    for name in names or sorted(held):
        echo(_shown(held[name]))
        if names and (yes or confirmed("Is this the cluster that the VIM is to lead to?", "--yes does without")):
            store.confirm(held[name])
            echo(f"{name}: confirmed; the receiver changes VIM {held[name].vim} now", err=True)
        elif names:
            raise click.exceptions.Exit(1)


def _shown(one: Stored) -> str:
    former = one.vim_identity or "what an earlier version has registered"
    return f"{one.name}  VIM {one.vim}: from {former} to {one.identity}"
