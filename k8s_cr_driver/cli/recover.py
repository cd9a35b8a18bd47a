# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr recover`: writes the inventory of an instance again that somebody has deleted, and of which Tacker has no copy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import click

from k8s_cr_driver.cli import package_input, run_package
from k8s_cr_driver.cli.cluster import Cluster, Kubeconfig, named, on_cluster
from k8s_cr_driver.cli.output import ask, counted, echo
from k8s_cr_driver.cli.package_request import Wish, with_wish
from k8s_cr_driver.journal.inventory import Inventory
from k8s_cr_driver.journal.stored_form import INVENTORY_LABEL
from k8s_cr_driver.objects.keys import NAMESPACE, GroupKind, Object, ObjectKey, key_of, kind_of, labels
from k8s_cr_driver.objects.marks import has_been_adopted, is_managed
from k8s_cr_driver.package import manifests
from k8s_cr_driver.plan.actions import marked_by
from k8s_cr_driver.resources.registry import resource_for


@click.command(
    epilog="""
    \b
    Examples:
      k8s-cr recover 8f0e2ef0-5d8a-4a43-a1f0-000000000001 crontab.csar
      k8s-cr recover 8f0e2ef0-5d8a-4a43-a1f0-000000000001 crontab.csar --namespace edge --yes
    """
)
@click.argument("id", metavar="INSTANCE", callback=named)
@click.argument("path", metavar="PACKAGE", type=package_input.PackagePath())
@on_cluster
@with_wish
@click.option("--inventory-namespace", default="default", show_default=True, metavar="NAMESPACE", help="Where it is written.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def recover(kubeconfig: Kubeconfig, id: str, path: Path, wish: Wish, inventory_namespace: str, yes: bool) -> None:
    """Write the inventory of INSTANCE again, from the labels of its objects.

    For an inventory that somebody has deleted, and of which Tacker has no copy. Lists the objects of the kinds of PACKAGE that
    have the label of INSTANCE, and asks. Those that others have labelled are left out. No operation may be running.
    """
    with package_input.opened(path) as folder:
        wish = wish.in_package(folder)
        desired, place, product = wish.objects(folder), wish.place(folder), run_package.product_of(folder)
    with Cluster(kubeconfig) as cluster:
        if existing := cluster.instances(id=id):
            raise click.UsageError(f"VNF instance {id} has its inventory, in namespace {existing[0].namespace}")
        manifests.place(desired, cluster.resources.scope_of, place)
        found = _labelled(cluster, id, desired)
        wanted = {key_of(obj) for obj in desired}
        members = {key: live for key, live in found.items() if key in wanted or is_managed(live, id)}
        for key in sorted(found):
            echo(f"member  {key}" if key in members else f"left    {key} (others have given it the label)")
        if not members:
            raise click.UsageError(f"no object of these kinds has the label of VNF instance {id}; see --namespace")
        if not yes:
            ask(f"Write an inventory with {counted(len(members), 'object')}?", "Nothing was written")
        _write(Inventory(cluster.connection, inventory_namespace, id), members, f"recovery of {' '.join(product)}")
    click.echo(f"Wrote the inventory of VNF instance {id}: {counted(len(members), 'object')}", err=True)


def _labelled(cluster: Cluster, id: str, desired: Sequence[Object]) -> dict[ObjectKey, Object]:
    """The metadata of all that has the label, of these kinds and of what their controllers leave."""
    left = {kind for obj in desired if (kind := resource_for(obj).orphaned)}
    kinds: set[GroupKind] = {kind_of(obj) for obj in desired} | left
    places = _namespaces(map(key_of, desired))
    lives = cluster.lists(sorted(kinds), places)
    return {key_of(live): live for live in lives if id in marked_by(live) and INVENTORY_LABEL not in labels(live)}


def _namespaces(keys: Iterable[ObjectKey]) -> frozenset[str]:
    return frozenset(key.name if key.group_kind == NAMESPACE else key.namespace for key in keys) - {""}


def _write(inventory: Inventory, members: Mapping[ObjectKey, Object], operation: str) -> None:
    kinds = {key.group_kind for key in members}
    inventory.claim(operation, kinds, _namespaces(members), create=True, members=members)
    for key in members:
        inventory.wrote(key)
    inventory.adopt({key: str(live["metadata"]["uid"]) for key, live in members.items() if has_been_adopted(live)})
    inventory.release()
