# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr instances`: the VNF instances of a cluster, by their inventories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import click

from k8s_cr_driver.cli.cluster import Cluster, Instance, Kubeconfig, on_cluster
from k8s_cr_driver.cli.output import age, output_option, print_json, print_table
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey

KINDS = 4
"""Kinds in the table, those with the most objects; JSON has all."""


@click.command(
    epilog="""
    \b
    Examples:
      k8s-cr instances
      k8s-cr instances --kubeconfig edge.conf -o json | jq -r '.[].id'
    """
)
@on_cluster
@click.option("--inventory-namespace", default="", metavar="NAMESPACE", help="Only inventories in it; else in all.")
@output_option()
def instances(kubeconfig: Kubeconfig, inventory_namespace: str, output: str) -> None:
    """List the VNF instances of a cluster.

    With their age, last operation, objects by kind, namespaces, and the objects that they have adopted.
    """
    with Cluster(kubeconfig) as cluster:
        found = cluster.instances(inventory_namespace)
        members = cluster.members(found, lenient=True)
    rows = [_described(one, members[one.id]) for one in found]
    if output == "json":
        print_json(rows)
    elif rows:
        print_table(("instance", "age", "last operation", "objects", "namespaces", "adopted"), [_row(one) for one in rows])
    else:
        click.echo("There are no instances", err=True)


def _described(instance: Instance, members: Mapping[ObjectKey, Object]) -> dict[str, Any]:
    metadata, content = instance.live["metadata"], instance.content
    times = [str(entry.get("time") or "") for entry in metadata.get("managedFields") or []]
    return {
        "id": instance.id,
        "inventoryNamespace": instance.namespace,
        "created": metadata.get("creationTimestamp"),
        "operation": content.operation,
        "operationTime": max(times, default=""),
        "objects": dict(sorted(Counter(str(key.group_kind) for key in members).items())),
        "namespaces": sorted(content.namespaces),
        "adopted": sorted(map(str, content.adopted)),
    }


def _row(row: Mapping[str, Any]) -> tuple[str, ...]:
    counts = Counter(row["objects"])
    most = [f"{count} {GroupKind.parse(kind).kind}" for kind, count in counts.most_common(KINDS)]
    more = [f"{counts.total() - sum(count for _, count in counts.most_common(KINDS))} more"] if len(counts) > KINDS else []
    operation = f"{row['operation']} ({age(row['operationTime'])} ago)" if row["operationTime"] else row["operation"]
    return (
        row["id"],
        age(row["created"]),
        operation,
        ", ".join(most + more) or "none",
        ", ".join(row["namespaces"]),
        ", ".join(row["adopted"]),
    )
