# SPDX-License-Identifier: Apache-2.0
"""
The watches of a run: a reflector for each kind, and the newest state of each object of the instance.

Kinds without the verb `watch`, and those for which no watch is left (see `reflectors`), are listed at intervals instead.

A kind `is_listed` when its first list is complete: only then is it known which objects of it are ours. A kind is watched
in all namespaces; where RBAC forbids that, in each namespace of the instance.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

from k8s_cr_driver.engine.report.not_ready import Report
from k8s_cr_driver.engine.run.loop import Run
from k8s_cr_driver.engine.run.nodes import is_another, is_older, version
from k8s_cr_driver.engine.watch.discovery_gaps import Unserved
from k8s_cr_driver.engine.watch.reflectors import Reflectors
from k8s_cr_driver.engine.watch.strangers import Strangers
from k8s_cr_driver.errors import ApiError, DriverError, Forbidden, Refused, Unreadable
from k8s_cr_driver.journal.store import CONFIG_MAPS
from k8s_cr_driver.journal.stored_form import parse_scope
from k8s_cr_driver.kube import watch
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, key_of
from k8s_cr_driver.resources.health import State
from k8s_cr_driver.writes.context import is_selected, selector

OBJECTS = 100_000
"""Members of one kind, and others with their label: a server that reports new ones without end ends the run."""


@dataclass
class _Kind:
    """A kind that the run has opened."""

    version: str = ""
    """The apiVersion in which its objects are reported; "" if they are not."""
    objects: dict[ObjectKey, Object] = field(default_factory=dict)
    """Their newest states."""
    awaited: set[watch.Reflector] = field(default_factory=set)
    """The reflectors whose first list is still to come."""
    refused: DriverError | None = None
    """Why it never will."""


class Informers:
    """
    The newest states of the objects of one run.

    `on_change` is called for every change, None: it no longer exists; `on_listed` when a kind's first list is complete.
    """

    def __init__(
        self, run: Run, on_change: Callable[[ObjectKey, Object | None], None], on_listed: Callable[[GroupKind], None]
    ) -> None:
        self._run, self._loop, self._context = run, run.loop, run.context
        self._on_change, self._on_listed = on_change, on_listed
        self._reflectors, self._strangers, self._unserved = Reflectors(run), Strangers(run.context.inventory), Unserved(run)
        self._kinds: dict[GroupKind, _Kind] = {}
        self._written: dict[ObjectKey, tuple[str, float]] = {}
        """The resourceVersions of what this run has written, and when. A watch may be minutes late."""

    def fence(self) -> None:
        """Watches the inventory; another worker's token in it ends this run."""
        inventory = self._context.inventory
        home, seen = inventory.key.namespace, inventory.content.resource_version
        self.follow(CONFIG_MAPS, home, inventory.selector, self._fenced, resume=seen)

    def open(self, kinds: Iterable[GroupKind]) -> None:
        """Watches those kinds that are not watched yet. Those that are not served now follow when discovery lists them."""
        for kind in sorted(set(kinds).difference(self._kinds)):
            resource = self._run.resources.find(kind)
            if resource is None:
                self._look_for(kind)
                continue
            one = self._kinds[kind] = _Kind()
            if "list" in resource.verbs:
                one.version = resource.api_version
                one.awaited.add(self._start(resource, "", selector(self._context.instance, kind)))
            elif resource.is_unlisted and not self._run.operation.abandon:
                remedy = "delete them yourself, and give a new terminate additionalParams abandon: true"
                self._loop.refuse(Refused(f"{kind}: the instance may have objects, which the cluster cannot list: {remedy}."))
            else:
                self._on_listed(kind)

    def reopen(self, kind: GroupKind, versions: Sequence[str]) -> None:
        """Watches a kind in a version that its CRD still serves: the watch of a removed version reports all as deleted."""
        ended = [one for one in self._reflectors.of(kind) if one.resource.version not in versions]
        resource = self._run.resources.find(kind, versions[0]) if versions else None
        if resource is None or kind not in self._kinds:
            return
        if ended:
            self._kinds[kind].version = resource.api_version
        for reflector in ended:
            self._stop(reflector)
            self._kinds[kind].awaited.add(self._start(resource, reflector.namespace, reflector.selector))

    def close(self, kind: GroupKind) -> None:
        """Ends the watch of a kind that goes with its CRD: no object of it is left."""
        for reflector in self._reflectors.of(kind):
            self._stop(reflector)

    def _stop(self, reflector: watch.Reflector) -> None:
        self._reflectors.stop(reflector)
        self._kinds[reflector.resource.group_kind].awaited.discard(reflector)

    def _look_for(self, kind: GroupKind, *, again: bool = False) -> None:
        if self._unserved.add(kind, again=again):
            self._loop.start(self._discover())

    async def _discover(self) -> None:
        while self._unserved.kinds:
            served, undefined = await self._unserved.look()
            for resource in served:  # discovery lists these again, perhaps in other versions
                self.reopen(resource.group_kind, [resource.version])
                self.open([resource.group_kind])
            for kind in self._kinds.keys() & undefined:  # no object of these exists
                for reflector in self._reflectors.of(kind):
                    self._relist(kind, watch.Relist(reflector, {}, math.inf))

    def follow(
        self, resource: Resource, namespace: str, selector: str, handle: Callable[[watch.Message], None], resume: str = ""
    ) -> None:
        """Watches objects that are not members of the set; `handle` is called with each list and change."""

        def receive(message: watch.Message) -> None:
            if isinstance(message, watch.Broken):
                self._loop.refuse(_explained(message.reflector, message.error))
            elif not isinstance(message, watch.Unserved):
                handle(message)

        self._reflectors.start(resource, namespace, selector, receive, resume=resume)

    def wrote(self, live: Object) -> None:
        """Notes an object that this run has written: it no longer exists if a list that is asked for later misses it.

        Between two lists it may be created and deleted.
        """
        key = key_of(live)
        if self.watched_version(key.group_kind) and is_selected(self._context.instance, live):
            objects = self._kinds[key.group_kind].objects
            if key not in objects or is_older(objects[key], version(live)):
                objects[key] = live
            self._written[key] = version(live), time.monotonic()

    def is_listed(self, kind: GroupKind) -> bool:
        """Whether it is known which objects of the kind are ours."""
        return kind in self._kinds and not self._kinds[kind].awaited

    def watched_version(self, kind: GroupKind) -> str:
        """The apiVersion in which the objects of a kind are reported; "" if they are not."""
        return self._kinds[kind].version if kind in self._kinds else ""

    def opened_are_listed(self, kinds: Iterable[GroupKind]) -> bool:
        """The same of those of `kinds` that are open."""
        return all(map(self.is_listed, self._kinds.keys() & kinds))

    def all_listed(self) -> bool:
        return not self.unlisted_kinds()

    def unlisted_kinds(self) -> frozenset[GroupKind]:
        """The kinds of which objects of the instance may exist that no list has reported."""
        return self._unserved.kinds | {kind for kind, one in self._kinds.items() if one.awaited}

    def unlisted(self) -> list[Report]:
        """One report for each kind that is not listed yet."""
        unread = {report.key: report for report in self.unread(self._kinds)}
        listed = [
            _not_listed(resource, one.refused)
            for kind, one in sorted(self._kinds.items(), key=lambda pair: pair[0])
            if one.awaited and (resource := self._run.resources.find(kind))
        ]
        return self._unserved.reports() + [unread.get(report.key, report) for report in listed]

    def unread(self, kinds: Collection[GroupKind]) -> list[Report]:
        """One report for each of the kinds of which the newest request has failed, so that its changes are not seen."""
        failing = {one.resource.group_kind: one for one in self._reflectors if one.failure}
        return [
            _not_listed(one.resource, self._kinds[kind].refused, one.failure)
            for kind, one in sorted(failing.items())
            if kind in kinds and kind in self._kinds
        ]

    def everything(self) -> list[tuple[ObjectKey, Object]]:
        """The newest state of every object that the watches select."""
        return [item for one in self._kinds.values() for item in one.objects.items()]

    def is_reported(self, key: ObjectKey) -> bool:
        """Whether a watch has reported this object."""
        return key.group_kind in self._kinds and key in self._kinds[key.group_kind].objects

    def list_again(self) -> list[Object]:
        """The objects that the watches select, by LIST requests: a watch may be late or half-open."""
        found, client, keep = list[Object](), self._context.client, self._strangers.kept
        for one in [one for one in self._reflectors if one.resource.group_kind in self._kinds]:
            try:
                found += client.list_if_served(one.resource, one.namespace, one.selector, keep=keep)
            except ApiError as error:
                if error.status not in (403, 405):  # the reflector reports these
                    raise
        return found

    def report(self, live: Object) -> None:
        """Calls `on_change` for an object that no watch has reported."""
        self._on_change(key_of(live), live)

    def stop(self) -> None:
        self._reflectors.stop_all()

    def _start(self, resource: Resource, namespace: str, selector: str) -> watch.Reflector:
        return self._reflectors.start(resource, namespace, selector, self._message, keep=self._strangers.kept)

    def _message(self, message: watch.Message) -> None:
        kind = message.reflector.resource.group_kind
        if message.reflector not in self._reflectors:
            return  # its version is not served any more, see `reopen`
        if isinstance(message, watch.Change):
            key = key_of(message.live)
            written, _ = self._written.get(key, ("", 0.0))
            if not is_older(message.live, written):  # else it may be the deletion of the one before ours
                self._change(kind, key, None if message.deleted else message.live)
        elif isinstance(message, watch.Relist):
            self._relist(kind, message)
        elif isinstance(message, watch.Unserved):
            if self._kinds[kind].objects or message.reflector in self._kinds[kind].awaited:
                self._kinds[kind].awaited.add(message.reflector)  # its objects may go with the CRD before the next list
                self._look_for(kind, again=True)
        else:
            self._broken(message)

    def _change(self, kind: GroupKind, key: ObjectKey, live: Object | None) -> None:
        objects = self._kinds[kind].objects
        if live is None:
            objects.pop(key, None)
        else:
            known, objects[key] = objects.get(key), live
            if known is not None and is_another(known, live):
                self._on_change(key, None)  # no list has shown the time between
            if len(objects) > OBJECTS:
                self._loop.refuse(Refused(f"The cluster reports more than {OBJECTS:,} objects {kind} of this instance"))
        self._on_change(key, live)

    def _relist(self, kind: GroupKind, relist: watch.Relist) -> None:
        namespace, awaited = relist.reflector.namespace, self._kinds[kind].awaited
        for key in list(self._kinds[kind].objects):
            _, written_at = self._written.get(key, ("", -math.inf))
            if key not in relist.objects and namespace in ("", key.namespace) and written_at < relist.asked_at:
                self._change(kind, key, None)
        for key, live in relist.objects.items():
            self._change(kind, key, live)
        if relist.reflector in awaited:
            awaited.remove(relist.reflector)
            if not awaited:
                self._on_listed(kind)

    def _broken(self, message: watch.Broken) -> None:
        reflector, error = message.reflector, message.error
        resource = reflector.resource
        one, namespaces = self._kinds[resource.group_kind], self._context.inventory.content.places(resource.group_kind)
        if _is_forbidden(error) and resource.namespaced and not reflector.namespace and namespaces:
            one.awaited.discard(reflector)
            one.awaited |= {self._start(resource, place, reflector.selector) for place in namespaces}
        elif self._run.operation.abandon:
            one.awaited.add(reflector)
            one.refused = _explained(reflector, error)
        else:
            self._loop.refuse(_explained(reflector, error))

    def _fenced(self, message: watch.Message) -> None:
        inventory = self._context.inventory
        if isinstance(message, watch.Relist):
            live = message.objects.get(inventory.key)
            inventory.fence.check(parse_scope(live) if live else None)
        elif isinstance(message, watch.Change):
            inventory.fence.check(None if message.deleted else parse_scope(message.live))


def _not_listed(resource: Resource, refused: DriverError | None, last: DriverError | None = None) -> Report:
    """`refused`: why it never will; `last`: of the last try."""
    yet = f"the server of {resource.api_version} has not listed {resource.plural} yet"
    error = refused or (last if isinstance(last, Unreadable) else None)
    why = str(error) if error else f"{yet}: {last}" if last else yet
    return Report(ObjectKey(*resource.group_kind, "", "*"), State.WAITING.value, "NotListed", why)


def _is_forbidden(error: DriverError) -> bool:
    return isinstance(error, ApiError) and error.status == 403


def _explained(reflector: watch.Reflector, error: DriverError) -> DriverError:
    if not _is_forbidden(error):
        return error
    where = f"namespace {reflector.namespace}" if reflector.namespace else "all namespaces"
    return Forbidden(f"The driver must be allowed to list and watch {reflector.resource.plural} in {where}: {error}")
