# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr plan`: what an operation would do to each object, with the digest by which a request names this plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from k8s_cr_driver.cli import package_input
from k8s_cr_driver.cli.cluster import Cluster, Kubeconfig, named, on_cluster
from k8s_cr_driver.cli.output import echo, output_option, print_json
from k8s_cr_driver.cli.planning import plan_of
from k8s_cr_driver.kube.dry_run import DryRun
from k8s_cr_driver.plan.actions import Do


@click.command(
    epilog="""
    \b
    Examples:
      k8s-cr plan crontab.csar
      k8s-cr plan new.csar --instance 8f0e2ef0-5d8a-4a43-a1f0-000000000001 -o json | jq -r .digest
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
def plan(
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
    """Print what PACKAGE would do on a cluster, and the digest of that. Nothing is written.

    Each object is created, applied, replaced, deleted, released or left. A request with additionalParams plan: DIGEST does
    just that, or writes nothing. Give the same parameters, namespace and files as in the request. Exits with 1 if the cluster
    would refuse an object.
    """
    with package_input.opened(path) as folder, Cluster(kubeconfig, DryRun) as cluster:
        instance = cluster.instance(id, inventory_namespace) if id else None
        desired = package_input.load(folder, given, files, all_hooks=all_hooks)
        found = plan_of(cluster, instance, folder, desired, namespace or package_input.requested(folder))
    if output == "json":
        actions = [{"object": str(one.key), "action": one.do.value, "why": one.why} for one in found.actions]
        print_json({"digest": found.digest, "actions": actions})
    else:
        for action in found.actions:
            echo(str(action))
        echo(f"plan {found.digest}")
    if any(one.do in (Do.CONFLICT, Do.REFUSE) for one in found.actions):
        raise click.exceptions.Exit(1)
