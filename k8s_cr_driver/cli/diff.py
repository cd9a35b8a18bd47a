# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr diff`: what an operation would create, change and delete, without doing it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from k8s_cr_driver.cli import package_input
from k8s_cr_driver.cli.cluster import Cluster, Kubeconfig, named, on_cluster
from k8s_cr_driver.cli.dry_run import Outcome, outcomes_of
from k8s_cr_driver.cli.output import echo, output_option, print_json
from k8s_cr_driver.kube.dry_run import DryRun

_SIGNS = {
    "created": ("+", "green"),
    "changed": ("~", "yellow"),
    "replaced": ("±", "yellow"),
    "deleted": ("-", "red"),
    "released": ("-", "cyan"),
    "conflict": ("!", "red"),
    "refused": ("!", "red"),
}

_AS_BEFORE = "the same"
"""Stands for a message that is that of the line before."""


@click.command(
    epilog="""
    \b
    Examples:
      k8s-cr diff crontab.csar
      k8s-cr diff new.csar --instance 8f0e2ef0-5d8a-4a43-a1f0-000000000001 --param WORKERS=3
      k8s-cr diff . --instance $ID > /dev/null && echo "no differences"
    """
)
@click.argument("path", metavar="PACKAGE", type=package_input.PackagePath())
@on_cluster
@click.option(
    "--instance", "id", metavar="ID", callback=named, help="Its change to PACKAGE, counts kept; else a new instance."
)
@click.option("--inventory-namespace", default="", metavar="NAMESPACE", help="Where the inventory is; else it is looked for.")
@package_input.with_parameters
@package_input.with_namespace
@output_option()
def diff(
    kubeconfig: Kubeconfig,
    path: Path,
    id: str | None,
    inventory_namespace: str,
    files: Sequence[str],
    given: Mapping[str, str],
    all_hooks: bool,
    namespace: str | None,
    output: str,
) -> None:
    """Show what PACKAGE would change on a cluster. Nothing is written.

    It lists the objects to create, change, replace, delete and release, and conflicts. Give the same parameters,
    namespace and files as in the request: only Tacker knows those of earlier requests. Without --instance, counts are
    those of the manifests. Exits with 1 if there is any difference.
    """
    with package_input.opened(path) as folder, Cluster(kubeconfig, DryRun) as cluster:
        instance = cluster.instance(id, inventory_namespace) if id else None
        desired = package_input.load(folder, given, files, all_hooks=all_hooks)
        outcomes = outcomes_of(cluster, instance, folder, desired, namespace or package_input.requested(folder))
    differences = [one for one in outcomes if one.verdict != "unchanged"]
    if output == "json":
        print_json([one.as_json() for one in outcomes])
    else:
        before = ""
        for one in differences:
            _print(one, _AS_BEFORE if one.message == before else one.message)
            before = one.message
    counts = Counter(one.verdict for one in outcomes)
    click.echo(", ".join(f"{count} {verdict}" for verdict, count in counts.items()) or "nothing", err=True)
    if differences:
        raise click.exceptions.Exit(1)


def _print(outcome: Outcome, message: str) -> None:
    sign, colour = _SIGNS[outcome.verdict]
    explained = f": {message}" if outcome.message else ""
    echo(f"{sign} {outcome.verdict} {outcome.key}{explained}", colour=colour)
    for change in outcome.changes:
        echo(f"    {change}")
