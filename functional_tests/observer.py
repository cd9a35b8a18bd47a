# SPDX-License-Identifier: Apache-2.0
"""What a cluster shows of VNF instances while Tacker works on them: a table of objects and their states.

It only looks: it follows the inventories, and one stream for each kind that they name.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from k8s_cr_driver.errors import ApiError
from k8s_cr_driver.journal.stored_form import INVENTORY_LABEL, parse
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.discovery import Resource, Resources, discover
from k8s_cr_driver.kube.kubeconfig import endpoint as kubeconfig_endpoint
from k8s_cr_driver.kube.watch import Broken, Message, Reflector, Relist
from k8s_cr_driver.objects.api_groups import is_builtin
from k8s_cr_driver.objects.keys import CRD, NAMESPACE, GroupKind, Object, ObjectKey, key_of, labels
from k8s_cr_driver.objects.marks import INSTANCE_LABEL, users
from k8s_cr_driver.resources.health import Health, State
from k8s_cr_driver.resources.registry import resource_for

CONFIG_MAPS = GroupKind("", "ConfigMap")
COLOURS = {State.READY: "green", State.SUSPENDED: "cyan", State.WAITING: "yellow", State.FAILED: "red"}


class Observer:
    """A live view for rich; `names` gives instances the names that people know."""

    place = "on the cluster"

    def __init__(self, kubeconfig: Path) -> None:
        self.names: dict[str, str] = {}
        self._connection = Connection(kubeconfig_endpoint(kubeconfig))
        self._resources: Resources = discover(self._connection)
        self._lock = threading.Lock()
        self._streams: dict[GroupKind | None, Reflector] = {}
        self._crds: dict[GroupKind, Object | None] = {}
        self._health: dict[ObjectKey, tuple[set[str], Health]] = {}

    def __enter__(self) -> Observer:
        inventories = self._resources.find(CONFIG_MAPS)
        assert inventories is not None
        self._streams[None] = self._stream(inventories, INVENTORY_LABEL, self._inventories)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for stream in list(self._streams.values()):
            stream.stop()

    def summary(self) -> str:
        """How many objects there are in which state."""
        with self._lock:
            counts = Counter(health.state for _, health in self._health.values())
        return ", ".join(f"{counts[state]} {state.value.lower()}" for state in State if counts[state]) or "no objects"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = max(3, (options.max_height or console.height) - 8)
        with self._lock:
            rows = sorted(self._health.items(), key=lambda item: (item[1][1].state, item[0]))
        table = Table(title=f"Objects of the instances: {self.summary()}", title_justify="left", expand=True)
        for column, ratio in (("instance", 2), ("kind", 4), ("object", 7), ("state", 2), ("why", 9)):
            table.add_column(column, no_wrap=True, ratio=ratio)
        for key, (instances, health) in rows[:room]:
            owners = ", ".join(sorted(self.names.get(one, one[:8]) for one in instances))
            name = f"{key.namespace}/{key.name}" if key.namespace else key.name
            state = Text(health.state.value, COLOURS[health.state])
            why = "" if health.settled else health.message or health.reason
            table.add_row(owners, key.kind, name, state, why)
        if len(rows) > room:
            table.add_row("", "", f"... and {len(rows) - room} more", "", "")
        yield table

    def _inventories(self, message: Message) -> None:
        if isinstance(message, Broken):
            return
        found = message.objects.values() if isinstance(message, Relist) else [message.live]
        for kind in {kind for live in found for kind in parse(live).kinds}:
            self._follow(kind)

    def _follow(self, kind: GroupKind) -> None:
        with self._lock:
            if kind in self._streams:
                return
            resource = self._resources.find(kind) or self._rediscovered(kind)
            if resource is not None and "watch" in resource.verbs:
                selector = "" if kind in (NAMESPACE, CRD) else INSTANCE_LABEL
                self._streams[kind] = self._stream(resource, selector, self._heard)

    def _stream(self, resource: Resource, selector: str, post: Callable[[Message], None]) -> Reflector:
        stream = Reflector(self._connection, resource, "", selector, post)
        stream.start(ended=lambda: None)
        return stream

    def _rediscovered(self, kind: GroupKind) -> Resource | None:
        self._resources = discover(self._connection)
        return self._resources.find(kind)

    def _heard(self, message: Message) -> None:
        if isinstance(message, Broken):
            return
        if isinstance(message, Relist):
            for live in message.objects.values():
                self._judge(live, message.reflector.resource)
        elif message.deleted:
            with self._lock:
                self._health.pop(key_of(message.live), None)
            if key_of(message.live).group_kind == CRD:
                self._forget(message.live)
        else:
            self._judge(message.live, message.reflector.resource)

    def _forget(self, crd: Object) -> None:
        """The kind of a CRD that was deleted; it may be created again."""
        kind = GroupKind(crd["spec"]["group"], crd["spec"]["names"]["kind"])
        with self._lock:
            stream = self._streams.pop(kind, None)
            for key in [key for key in self._health if key.group_kind == kind]:
                del self._health[key]
        if stream is not None:
            stream.stop()

    def _judge(self, live: Object, resource: Resource) -> None:
        owner = labels(live).get(INSTANCE_LABEL)
        instances = {owner} if owner else users(live)
        if not instances or INVENTORY_LABEL in labels(live):
            return
        health = resource_for(live, self._crd(resource)).assess(live)
        with self._lock:
            self._health[key_of(live)] = (instances, health)
        if key_of(live).group_kind == CRD:
            self._appeared(live)

    def _appeared(self, crd: Object) -> None:
        """The kinds that inventories name are found again when their CRD comes after them."""
        self._follow(GroupKind(crd["spec"]["group"], crd["spec"]["names"]["kind"]))

    def _crd(self, resource: Resource) -> Object | None:
        if is_builtin(resource.group_kind):
            return None
        if resource.group_kind not in self._crds:
            try:
                self._crds[resource.group_kind] = Client(self._connection).crd(resource)
            except ApiError:
                return None
        return self._crds[resource.group_kind]


