# SPDX-License-Identifier: Apache-2.0
"""The plan of a package for a cluster, as `k8s-cr` sees it: with the counts that are there, and without Tacker."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import click

from k8s_cr_driver.cli import package_input
from k8s_cr_driver.cli.cluster import Cluster, Instance, Kubeconfig, named, on_cluster
from k8s_cr_driver.cli.descendants import crd_of
from k8s_cr_driver.cli.package_request import Wish, with_wish
from k8s_cr_driver.engine.report.not_ready import NotReady
from k8s_cr_driver.engine.watch import discovery_gaps
from k8s_cr_driver.errors import Refused
from k8s_cr_driver.journal.inventory import Inventory
from k8s_cr_driver.kube.dry_run import DryRun
from k8s_cr_driver.objects import dependencies
from k8s_cr_driver.objects.api_groups import is_builtin
from k8s_cr_driver.objects.crds import crds_of
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, kind_of
from k8s_cr_driver.package import manifests, schema, vnfd
from k8s_cr_driver.plan.actions import Action
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.registry import resource_for
from k8s_cr_driver.vnf import planned, rotation, vdus
from k8s_cr_driver.writes.context import WriteContext

_NOBODY = "00000000-0000-0000-0000-000000000000"
"""Stands for an instance that does not exist yet."""


def of_operation(command: Callable[..., None]) -> Callable[..., None]:
    """The options by which an instantiate, or a change of an instance, is described; their values are those of `plan_for`."""
    for option in (
        with_wish,
        click.option(
            "--inventory-namespace", default="", metavar="NAMESPACE", help="Where the inventory is; else it is looked for."
        ),
        click.option(
            "--instance", "id", metavar="ID", callback=named, help="Its change to PACKAGE, counts kept; else a new instance."
        ),
        on_cluster,
        click.argument("path", metavar="PACKAGE", type=package_input.PackagePath()),
    ):
        command = option(command)
    return command


class Plan(NamedTuple):
    """What an operation would do, and the digest by which a request names it."""

    actions: list[Action]
    digest: str


def plan_for(
    kubeconfig: Kubeconfig, path: Path, *, id: str | None, inventory_namespace: str, wish: Wish
) -> tuple[Plan, Instance | None]:
    """The plan of the operation that the options describe, and the instance that it changes; None for a new one.

    Raises InvalidPackage and InvalidRequest, and NotReady where the server of an API that is needed is down.
    """
    with package_input.opened(path) as folder, Cluster(kubeconfig, DryRun) as cluster:
        instance, wish = cluster.instance(id, inventory_namespace) if id else None, wish.in_package(folder)
        desired = wish.objects(folder)
        if down := discovery_gaps.reports(cluster.resources, manifests.foreign_kinds(desired)):
            raise NotReady("Kinds that are needed are unavailable:", down)
        manifests.place(desired, cluster.resources.scope_of, wish.place(folder))
        crds = crds_of(desired)
        schema.remove_nulls(desired, lambda kind: crds.get(kind) or crd_of(cluster, kind, {}))
        schema.check(desired)
        dependencies.check(desired)
        if instance:
            rotation.rotate(desired, rotation.Lives(cluster.client, instance.id))
        else:
            rotation.mark(desired)
        wanted = [_resource(cluster, obj, crds) for obj in desired]
        counted = _counted(folder, wanted) if instance else {}
        live = cluster.members([instance])[instance.id] if instance else {}
        actions = planned.planned(trial_of(cluster, instance), wanted, live, counted)
    return Plan(actions, planned.digest_of(actions, wanted)), instance


def trial_of(cluster: Cluster, instance: Instance | None, *, delete_guests: bool = False) -> WriteContext:
    """Writes nothing; `cluster` is on a DryRun, or nothing is written."""
    namespace, id = (instance.namespace, instance.id) if instance else ("default", _NOBODY)
    inventory = Inventory(cluster.connection, namespace, id)
    if instance:
        inventory.content = instance.content
    return WriteContext(cluster.client, inventory, is_trial=True, delete_guests=delete_guests)


def _resource(cluster: Cluster, obj: Object, crds: Mapping[GroupKind, Object]) -> CustomResource:
    """The object with the CRD that names the path of its count."""
    sent = resource_for(obj, crds.get(kind_of(obj)))
    resource = cluster.resources.find(sent.key.group_kind)
    if sent.crd is None and not is_builtin(sent.key.group_kind) and resource is not None and "scale" in resource.subresources:
        return type(sent)(obj, crd_of(cluster, sent.key.group_kind, {}))
    return sent


def _counted(folder: Path, wanted: Sequence[CustomResource]) -> dict[ObjectKey, dict[str, CustomResource]]:
    """The VDUs of each object in one of the flavours, which keep their counts; `validate` reports bad flavours."""
    found: dict[ObjectKey, dict[str, CustomResource]] = defaultdict(dict)
    for template in vnfd.flavours(folder).values():
        with contextlib.suppress(Refused):
            for obj in vdus.assign(wanted, vnfd.vdu_nodes(template), partial=True).values():
                found[obj.key][obj.part] = obj
    return found
