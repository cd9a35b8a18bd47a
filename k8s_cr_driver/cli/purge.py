# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr purge`: deletes an instance that Tacker no longer has, as terminate does."""

from __future__ import annotations

import functools
import time
from collections import Counter
from collections.abc import Collection

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from k8s_cr_driver.cli.cluster import Cluster, Instance, Kubeconfig, named, on_cluster
from k8s_cr_driver.cli.output import ask, counted, echo
from k8s_cr_driver.cli.planning import trial_of
from k8s_cr_driver.engine.run.operation import Operation
from k8s_cr_driver.engine.run.reconcile import Prune, reconcile
from k8s_cr_driver.journal.inventory import Inventory
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.objects.keys import ObjectKey
from k8s_cr_driver.plan.actions import Do
from k8s_cr_driver.vnf.planned import planned
from k8s_cr_driver.writes.context import WriteContext


@click.command(
    epilog="""
    \b
    Examples:
      k8s-cr purge 8f0e2ef0-5d8a-4a43-a1f0-000000000001
      k8s-cr purge 8f0e2ef0-5d8a-4a43-a1f0-000000000001 --yes --timeout 60
    """
)
@click.argument("id", metavar="INSTANCE", callback=named)
@on_cluster
@click.option("--inventory-namespace", default="", metavar="NAMESPACE", help="Where the inventory is; else it is looked for.")
@click.option("--timeout", type=click.FloatRange(min=1), default=600.0, show_default=True, help="Seconds to wait.")
@click.option("--delete-guests", is_flag=True, help="Delete Namespaces and CRDs with objects of others in them, too.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def purge(kubeconfig: Kubeconfig, id: str, inventory_namespace: str, timeout: float, delete_guests: bool, yes: bool) -> None:
    """Remove INSTANCE from the cluster.

    Lists what is deleted, and what is released and why; deletes all its objects, then its inventory. For instances that Tacker
    no longer has; terminate the others. An operation of Tacker's on INSTANCE stops.
    """
    with Cluster(kubeconfig, functools.partial(Connection, deadline=time.monotonic() + timeout)) as cluster:
        instance = cluster.instance(id, inventory_namespace)
        actions = planned(trial_of(cluster, instance, delete_guests=delete_guests), [], cluster.members([instance])[id])
        for action in actions:
            echo(str(action))
        echo(f"delete  ConfigMap {instance.namespace}/{instance.live['metadata']['name']} (the inventory)")
        if not yes:
            ask(f"Remove VNF instance {id}?", "Nothing was removed")
    with Cluster(kubeconfig) as cluster:  # the answer may take any time
        prune = Prune(delete_guests=delete_guests)
        _remove(cluster, instance, timeout, prune, [action.key for action in actions])
    removed = Counter(action.do for action in actions)
    deleted = counted(removed[Do.DELETE], "object")
    click.echo(f"Removed VNF instance {id}: {deleted} deleted, {removed[Do.RELEASE]} released", err=True)


def _remove(cluster: Cluster, instance: Instance, timeout: float, prune: Prune, keys: Collection[ObjectKey]) -> None:
    """Shows progress on standard error: a bar on a terminal, else a line for each deleted object.

    What stays is a warning of the engine's, which the tool prints as any other.
    """
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("Removing", total=len(keys))

        def heard(key: ObjectKey, state: str, _: str) -> None:
            if state in ("deleted", "left") and key in keys:
                bar.advance(task)
                if bar.disable and state == "deleted":
                    echo(f"deleted {key}", err=True)

        operation = Operation("purge", instance.id, timeout, progress=heard)
        target = WriteContext(cluster.client, Inventory(cluster.connection, instance.namespace, instance.id))
        reconcile(operation, target, [], prune=prune)
