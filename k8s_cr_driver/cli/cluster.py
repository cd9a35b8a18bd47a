# SPDX-License-Identifier: Apache-2.0
"""A cluster as the commands see it: read by lists only, with the inventories of its instances.

Lists request metadata only, so that no Secret's data is read, and run by namespace where RBAC demands it.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from k8s_cr_driver.cli.output import Command, echo
from k8s_cr_driver.engine.report.clouds import Clouds
from k8s_cr_driver.engine.report.not_ready import Report
from k8s_cr_driver.engine.watch import discovery_gaps
from k8s_cr_driver.errors import ApiError, Concern, ConnectionFailed, InvalidRequest, TransportError
from k8s_cr_driver.journal.stored_form import INVENTORY_LABEL, SPOILED, InventoryContent, is_inventory, parse
from k8s_cr_driver.kube import kubeconfig as kubeconfigs
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.connection import METADATA_LIST, Connection
from k8s_cr_driver.kube.discovery import Resource, Resources, discover
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, key_of, labels
from k8s_cr_driver.objects.marks import appliers
from k8s_cr_driver.plan.actions import is_member, marked_by
from k8s_cr_driver.redaction import redact

CONFIG_MAPS = GroupKind("", "ConfigMap")
THREADS = 8
_ID = re.compile(r"[A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?", re.ASCII)
_REMEDIES = {
    Concern.CA: "Give the CA as certificate-authority-data in the kubeconfig.",
    Concern.CREDENTIALS: "Check token, or client-certificate-data and client-key-data, in the kubeconfig.",
}


def with_remedy(error: InvalidRequest | ConnectionFailed) -> str:
    """The text of an error, with the keys of a kubeconfig that it is about."""
    remedy = _REMEDIES.get(error.concern) if error.concern else None
    return f"{error} {remedy}" if remedy else str(error)


def never(url: str) -> bool:
    del url
    return False


@dataclass(frozen=True)
class Kubeconfig:
    """The kubeconfig that the command line names; read when it is needed."""

    path: str | None
    context: str | None

    def endpoint(self) -> Endpoint:
        """Raises UsageError for a file that is not there, is not whole, or names what is not in the file itself."""
        path = self.path or os.environ.get("KUBECONFIG", "").partition(os.pathsep)[0]
        file = Path(path) if path else Path.home() / ".kube/config"
        try:
            return kubeconfigs.endpoint(file, self.context)
        except OSError as error:
            raise click.UsageError(f"{file}: {error.strerror}; give --kubeconfig FILE") from None
        except InvalidRequest as error:
            raise click.UsageError(str(error)) from None


def named(context: click.Context, parameter: click.Parameter, id: str | None) -> str | None:
    """A callback that refuses an empty id, such as an unset shell variable."""
    if id is not None and not id.strip():
        raise click.BadParameter("is empty; see: k8s-cr instances", context, parameter)
    return id


def on_cluster(command: Command) -> Command:
    """Adds the options that name a cluster; the command gets them as `kubeconfig`."""

    @click.option("--kubeconfig", metavar="FILE", help="The cluster; else $KUBECONFIG, else ~/.kube/config.")
    @click.option("--context", metavar="NAME", help="A context of the kubeconfig; else its current one.")
    @functools.wraps(command)
    def wrapped(*args: Any, kubeconfig: str | None, context: str | None, **options: Any) -> Any:
        return command(*args, kubeconfig=Kubeconfig(kubeconfig, context), **options)

    return wrapped  # type: ignore[return-value]


@dataclass(frozen=True)
class Instance:
    """One inventory that was found."""

    id: str
    namespace: str
    live: Object
    content: InventoryContent


class Cluster:
    """A context manager; `resources` are the kinds that the cluster serves."""

    def __init__(
        self,
        kubeconfig: Kubeconfig,
        connect: Callable[[Endpoint], Connection] = Connection,
        consent: Callable[[str], bool] = never,
    ) -> None:
        """`consent`: whether this host may connect to a URL that an object of the cluster names, and send credentials of it."""
        try:
            self.connection = connect(replace(kubeconfig.endpoint(), consent=consent))
        except InvalidRequest as error:
            raise click.UsageError(with_remedy(error)) from None
        self.resources: Resources
        self._reported: set[Report] = set()

    def __enter__(self) -> Cluster:
        self.connection.__enter__()
        self.discover()
        return self

    def __exit__(self, *error: Any) -> None:
        self.connection.__exit__(*error)

    def discover(self) -> None:
        """Runs discovery."""
        try:
            self.resources = discover(self.connection)
        except ConnectionFailed as error:
            raise ConnectionFailed(with_remedy(error)) from None

    @property
    def client(self) -> Client:
        return Client(self.connection, self.resources)

    @functools.cached_property
    def clouds(self) -> Clouds:
        """One for all looks of a command."""
        return Clouds(self.client)

    def instances(self, namespace: str = "", id: str = "") -> list[Instance]:
        """The inventories in `namespace`, or in all; of one instance, or of all."""
        resource = self.resources.find(CONFIG_MAPS)
        assert resource is not None, "every cluster has ConfigMaps"
        selector = f"{INVENTORY_LABEL}={id}" if id else INVENTORY_LABEL
        try:
            found = self.client.list(resource, namespace, selector)
        except ApiError as error:
            if error.status == 403 and not namespace:
                raise click.UsageError(f"{error}. Name one namespace with --inventory-namespace.") from None
            raise
        instances = []
        inventories = filter(is_inventory, found)
        for live in sorted(inventories, key=lambda live: str(live["metadata"].get("creationTimestamp"))):
            try:
                content = parse(live)
            except TransportError as error:
                if id:
                    raise type(error)(f"{error}. {SPOILED}") from None
                # Anybody who may write ConfigMaps may write such a one.
                echo(f"Left out: {redact(str(error))}. {SPOILED}", err=True)
            else:
                instances.append(Instance(labels(live)[INVENTORY_LABEL], live["metadata"]["namespace"], live, content))
        return instances

    def instance(self, id: str, namespace: str = "") -> Instance:
        """The inventory of one instance; a usage error if there is none, or more than one."""
        found = self.instances(namespace, id) if _ID.fullmatch(id) else []  # else it would be no label's value
        if not found:
            remedy = "see: k8s-cr instances. If somebody has deleted it: k8s-cr recover INSTANCE PACKAGE"
            raise click.UsageError(f"VNF instance {id} has no inventory on this cluster; {remedy}")
        if len(found) > 1:
            places = ", ".join(one.namespace for one in found)
            raise click.UsageError(f"VNF instance {id} has inventories in {places}; choose one with --inventory-namespace")
        return found[0]

    def members(self, instances: Iterable[Instance], *, lenient: bool = False) -> dict[str, dict[ObjectKey, Object]]:
        """The metadata of the objects of each instance, by one LIST for each kind. Warns of kinds that cannot be listed."""
        several = list(instances)
        found: dict[str, dict[ObjectKey, Object]] = {one.id: {} for one in several}
        kinds = {kind for one in several for kind in one.content.kinds}
        namespaces = {name for one in several for name in one.content.namespaces}
        for report in discovery_gaps.reports(self.resources, ((kind, "") for kind in kinds)):
            if report not in self._reported:
                self._reported.add(report)
                echo(f"Incomplete: {report}", err=True)
        by_id = {one.id: one for one in several}
        for live in self.lists(sorted(kinds), namespaces, lenient=lenient):
            key = key_of(live)
            for id in (appliers(live) | marked_by(live)) & found.keys():
                if INVENTORY_LABEL not in labels(live) and is_member(by_id[id].content, id, live):
                    found[id][key] = live
        return found

    def lists(
        self, kinds: Iterable[GroupKind], namespaces: Iterable[str], *, metadata_only: bool = True, lenient: bool = False
    ) -> list[Object]:
        """The objects of those kinds; of namespaced kinds those in `namespaces`.

        Skips kinds that cannot be listed, and those that RBAC forbids; `lenient`: also those for which the API server fails, as
        it does while the webhook is down that converts them.
        """
        places = sorted(namespaces)
        asked = [
            (resource, namespace)
            for resource in map(self.resources.find, kinds)
            if resource is not None and "list" in resource.verbs
            for namespace in (places if resource.namespaced else [""])
        ]

        def ask(one: tuple[Resource, str]) -> list[Object]:
            try:
                return self.client.list(*one, "", METADATA_LIST if metadata_only else "application/json")
            except ApiError as error:
                if error.status in (403, 404, 405, 503):
                    return []
                if not lenient:
                    raise
                echo(f"Incomplete: {redact(str(error))}", err=True)
                return []

        with ThreadPoolExecutor(THREADS) as pool:
            return [live for response in pool.map(ask, asked) for live in response]
