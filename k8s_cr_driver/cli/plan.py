# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr plan`: what an operation would do to each object, with the digest by which a request names this plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from k8s_cr_driver.cli.cluster import Kubeconfig
from k8s_cr_driver.cli.output import echo, output_option, print_json
from k8s_cr_driver.cli.planning import of_operation, plan_for
from k8s_cr_driver.plan.actions import Do


@click.command(
    epilog="""
    \b
    Examples:
      k8s-cr plan crontab.csar
      k8s-cr plan new.csar --instance 8f0e2ef0-5d8a-4a43-a1f0-000000000001 -o json | jq -r .digest
    """
)
@of_operation
@output_option()
def plan(kubeconfig: Kubeconfig, path: Path, output: str, **options: Any) -> None:
    """Print what PACKAGE would do on a cluster, and the digest of that. Nothing is written.

    Each object is created, applied, replaced, deleted, released or left. A request with additionalParams plan: DIGEST does
    just that, or writes nothing. Give the same parameters, namespace and files as in the request. Exits with 1 if the cluster
    would refuse an object.
    """
    found, _ = plan_for(kubeconfig, path, **options)
    if output == "json":
        actions = [{"object": str(one.key), "action": one.do.value, "why": one.why} for one in found.actions]
        print_json({"digest": found.digest, "actions": actions})
    else:
        for action in found.actions:
            echo(str(action))
        echo(f"plan {found.digest}")
    if any(one.do in (Do.CONFLICT, Do.REFUSE) for one in found.actions):
        raise click.exceptions.Exit(1)
