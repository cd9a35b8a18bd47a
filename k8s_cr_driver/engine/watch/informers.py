# SPDX-License-Identifier: Apache-2.0
"""
The watches of a run: a reflector for each kind, and the newest state of each object of the instance.

Kinds without the verb `watch`, and those for which no watch is left (see `watch_limit`), are listed at intervals instead.

A kind `is_listed` when its first list is complete: only then is it known which objects of it are ours. A kind is watched
in all namespaces; where RBAC forbids that, in each namespace of the instance.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from k8s_cr_driver.engine.report.not_ready import Report
from k8s_cr_driver.engine.run.loop import Run, Workers
from k8s_cr_driver.engine.run.nodes import is_another, is_older, version
from k8s_cr_driver.engine.watch.discovery_gaps import Unserved
from k8s_cr_driver.engine.watch.strangers import Strangers
from k8s_cr_driver.engine.watch.watch_limit import Watches
from k8s_cr_driver.errors import ApiError, DriverError, Forbidden, Refused
from k8s_cr_driver.journal.entries import parse
from k8s_cr_driver.kube import watch
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, key_of
from k8s_cr_driver.resources.health import State
from k8s_cr_driver.writes.context import is_selected, selector

READ_EVERY = 2.0
"""Seconds between two lists of a kind that is not watched."""
OBJECTS = 100_000
"""Members of one kind, and others with their label: a server that reports new ones without end ends the run."""
LISTS_PER_SECOND = 50
"""Of one run, so many at most: with more kinds the time between two lists of each is longer."""
LISTERS = 4
"""Threads that list. Not the workers that write: a server of one API that hangs would keep these from all others."""

OnChange = Callable[[ObjectKey, Object | None], None]
"""Called with the live object, or None when it no longer exists."""


class Informers:
    """The reflectors of one run. `on_change` is called for every change, `on_listed` when a kind's first list is complete."""

    def __init__(self, run: Run, on_change: OnChange, on_listed: Callable[[GroupKind], None]) -> None:
        self._operation, self._loop, self._context, self._resources = run.operation, run.loop, run.context, run.resources
        self._on_change, self._on_listed = on_change, on_listed
        self._initial_events = watch.InitialEvents()
        self._reflectors: list[watch.Reflector] = []
        self._watches, self._listers, self._listed = Watches(run.operation.watches), Workers(LISTERS), 0
        self._awaited: dict[GroupKind, set[watch.Reflector]] = {}
        """Of each kind the reflectors whose first list is still to come."""
        self._versions: dict[GroupKind, str] = {}
        self._written_at: dict[ObjectKey, float] = {}
        self._written: dict[ObjectKey, str] = {}
        """The resourceVersions of what this run has written. A watch may be minutes late."""
        self._refused: dict[GroupKind, DriverError] = {}
        """Why the lists of some kinds will never come."""
        self._strangers = Strangers(run.context.inventory)
        self._unserved = Unserved(run, self._served, self._undefined)
        self.objects: dict[GroupKind, dict[ObjectKey, Object]] = {}

    def fence(self) -> None:
        """Watches the inventory; another worker's token in it ends this run."""
        inventory = self._context.inventory
        self._start(
            inventory.resource, inventory.key.namespace, inventory.selector, self._fenced, inventory.content.resource_version
        )

    def open(self, kinds: Iterable[GroupKind]) -> None:
        """Watches those kinds that are not watched yet. Those that are not served now follow when discovery lists them."""
        for kind in sorted(set(kinds).difference(self.objects)):
            resource = self._resources.find(kind)
            if resource is None:
                self._unserved.add(kind)
                continue
            self.objects[kind] = {}
            if "list" in resource.verbs:
                self._versions[kind] = resource.api_version
                self._awaited[kind] = {self._start(resource, "", selector(self._context.instance, kind), self._message)}
            elif resource.is_unlisted and not self._operation.abandon:
                remedy = "delete them yourself, and give a new terminate additionalParams abandon: true"
                self._loop.refuse(Refused(f"{kind}: the instance may have objects, which the cluster cannot list: {remedy}."))
            else:
                self._on_listed(kind)

    def reopen(self, kind: GroupKind, versions: Sequence[str]) -> None:
        """Watches a kind in a version that its CRD still serves: the watch of a removed version reports all as deleted."""
        ended = [one for one in self._reflectors if one.resource.group_kind == kind and one.resource.version not in versions]
        resource = self._resources.find(kind, versions[0]) if versions else None
        if resource is None or kind not in self.objects:
            return
        if ended:
            self._versions[kind] = resource.api_version
        for reflector in ended:
            reflector.stop()
            self._reflectors.remove(reflector)
            self._awaited[kind].discard(reflector)
            self._awaited[kind].add(self._start(resource, reflector.namespace, reflector.selector, self._message))

    def close(self, kind: GroupKind) -> None:
        """Ends the watch of a kind that goes with its CRD: no object of it is left."""
        for reflector in [one for one in self._reflectors if one.resource.group_kind == kind]:
            reflector.stop()
            self._reflectors.remove(reflector)
            self._awaited[kind].discard(reflector)

    def _served(self, resources: Iterable[Resource]) -> None:
        """Discovery lists these kinds again, perhaps in other versions."""
        for one in resources:
            self.reopen(one.group_kind, [one.version])
            self.open([one.group_kind])

    def _undefined(self, kinds: Iterable[GroupKind]) -> None:
        """Nothing defines these kinds, so no object of them exists."""
        for kind in self.objects.keys() & kinds:
            for reflector in [one for one in self._reflectors if one.resource.group_kind == kind]:
                self._relist(kind, watch.Relist(reflector, {}, math.inf))

    def follow(
        self, resource: Resource, namespace: str, selector: str, handle: Callable[[watch.Message], None]
    ) -> None:
        """Watches objects that are not members of the set; `handle` is called with each message."""

        def receive(message: watch.Message) -> None:
            if isinstance(message, watch.Broken):
                self._loop.refuse(_explained(message.reflector, message.error))
            elif not isinstance(message, watch.Unserved):
                handle(message)

        self._start(resource, namespace, selector, receive)

    def wrote(self, live: Object) -> None:
        """Notes an object that this run has written: it no longer exists if a list that is asked for later misses it.

        Between two lists it may be created and deleted.
        """
        key = key_of(live)
        if key.group_kind in self._awaited and is_selected(self._context.instance, live):
            objects = self.objects[key.group_kind]
            if key not in objects or is_older(objects[key], version(live)):
                objects[key] = live
            self._written_at[key], self._written[key] = time.monotonic(), version(live)

    def is_listed(self, kind: GroupKind) -> bool:
        """Whether it is known which objects of the kind are ours."""
        return kind in self.objects and not self._awaited.get(kind)

    def watched_version(self, kind: GroupKind) -> str:
        """The apiVersion in which the objects of a kind are reported; "" if they are not."""
        return self._versions.get(kind, "")

    def listed(self) -> list[Resource]:
        """The kinds that are listed, in the versions that are watched."""
        followed = {one.resource.group_kind: one.resource for one in self._reflectors}
        return [resource for kind, resource in followed.items() if self.is_listed(kind)]

    def all_listed(self) -> bool:
        return not self.unlisted_kinds()

    def unlisted_kinds(self) -> frozenset[GroupKind]:
        """The kinds of which objects of the instance may exist that no list has reported."""
        return self._unserved.kinds | {kind for kind, awaited in self._awaited.items() if awaited}

    def unlisted(self) -> list[Report]:
        """One report for each kind that is not listed yet."""
        awaited = [self._resources.find(kind) for kind, awaited in sorted(self._awaited.items()) if awaited]
        unread = {report.key: report for report in self.unread(self._awaited)}
        last = {one.resource.group_kind: one.last_error for one in self._reflectors}
        listed = [
            _not_listed(resource, self._refused.get(resource.group_kind), last.get(resource.group_kind))
            for resource in awaited
            if resource
        ]
        return self._unserved.reports() + [unread.get(report.key, report) for report in listed]

    def unread(self, kinds: Iterable[GroupKind]) -> list[Report]:
        """One report for each of the kinds of which the newest response cannot be read, so that its changes are not seen."""
        failing = {one.resource.group_kind: one for one in self._reflectors if one.failure}
        return [_not_listed(one.resource, one.failure) for kind, one in sorted(failing.items()) if kind in kinds]

    def everything(self) -> Iterator[tuple[ObjectKey, Object]]:
        """The newest state of every object that the watches select."""
        for objects in self.objects.values():
            yield from objects.items()

    def is_reported(self, key: ObjectKey) -> bool:
        """Whether a watch has reported this object."""
        return key in self.objects.get(key.group_kind, ())

    def list_again(self) -> list[Object]:
        """The objects that the watches select, by LIST requests: a watch may be late or half-open."""
        found: list[Object] = []
        for one in [one for one in self._reflectors if one.resource.group_kind in self.objects]:
            try:
                found += self._context.client.list_if_served(
                    one.resource, one.namespace, one.selector, keep=self._strangers.kept
                )
            except ApiError as error:
                if error.status not in (403, 405):  # the reflector reports these
                    raise
        return found

    def report(self, live: Object) -> None:
        """Calls `on_change` for an object that no watch has reported."""
        self._on_change(key_of(live), live)

    def stop(self) -> None:
        for reflector in self._reflectors:
            reflector.stop()
        self._listers.finish(0)

    def _start(
        self,
        resource: Resource,
        namespace: str,
        selector: str,
        handle: Callable[[watch.Message], None],
        resume: str = "",
    ) -> watch.Reflector:
        def post(message: watch.Message) -> None:
            self._loop.post(handle, message)

        is_of_members = handle == self._message
        reflector = watch.Reflector(
            self._context.connection, resource, namespace, selector, post, resume=resume, initial_events=self._initial_events,
            **({"keep": self._strangers.kept} if is_of_members else {}),
        )
        self._reflectors.append(reflector)
        if "watch" in resource.verbs and self._watches.take():
            reflector.start(self._watches.give_back)
        else:
            self._listed += 1
            self._list(reflector)
        return reflector

    def _interval(self) -> float:
        return max(READ_EVERY, self._listed / LISTS_PER_SECOND)

    def _list(self, reflector: watch.Reflector) -> None:
        """Lists the kind, again and again."""
        self._listers.submit(lambda: self._loop.post(self._list_later, reflector, reflector.look()))

    def _list_later(self, reflector: watch.Reflector, goes_on: bool) -> None:
        if goes_on:
            self._loop.after(self._interval(), self._list, reflector)
        else:
            self._listed -= 1

    def _message(self, message: watch.Message) -> None:
        kind = message.reflector.resource.group_kind
        if message.reflector not in self._reflectors:
            return  # its version is not served any more, see `reopen`
        if isinstance(message, watch.Change):
            key = key_of(message.live)
            if not is_older(message.live, self._written.get(key, "")):  # else it may be the deletion of the one before ours
                self._change(kind, key, None if message.deleted else message.live)
        elif isinstance(message, watch.Relist):
            self._relist(kind, message)
        elif isinstance(message, watch.Unserved):
            if self.objects[kind] or message.reflector in self._awaited[kind]:
                self._awaited[kind].add(message.reflector)  # its objects may go with the CRD before the next list
                self._unserved.add(kind, again=True)
        else:
            self._broken(message)

    def _change(self, kind: GroupKind, key: ObjectKey, live: Object | None) -> None:
        if live is None:
            self.objects[kind].pop(key, None)
        else:
            known = self.objects[kind].get(key)
            self.objects[kind][key] = live
            if known is not None and is_another(known, live):
                self._on_change(key, None)  # no list has shown the time between
            if len(self.objects[kind]) > OBJECTS:
                self._loop.refuse(Refused(f"The cluster reports more than {OBJECTS:,} objects {kind} of this instance"))
        self._on_change(key, live)

    def _relist(self, kind: GroupKind, relist: watch.Relist) -> None:
        namespace = relist.reflector.namespace
        for key in list(self.objects[kind]):
            is_newer = self._written_at.get(key, -math.inf) >= relist.asked_at
            if key not in relist.objects and namespace in ("", key.namespace) and not is_newer:
                self._change(kind, key, None)
        for key, live in relist.objects.items():
            self._change(kind, key, live)
        awaited = self._awaited[kind]
        if relist.reflector in awaited:
            awaited.remove(relist.reflector)
            if not awaited:
                self._on_listed(kind)

    def _broken(self, message: watch.Broken) -> None:
        reflector, error = message.reflector, message.error
        awaited = self._awaited[reflector.resource.group_kind]
        namespaces = self._context.inventory.content.places(reflector.resource.group_kind)
        if _is_forbidden(error) and reflector.resource.namespaced and not reflector.namespace and namespaces:
            awaited.discard(reflector)
            awaited |= {self._start(reflector.resource, one, reflector.selector, self._message) for one in namespaces}
        elif self._operation.abandon:
            awaited.add(reflector)
            self._refused[reflector.resource.group_kind] = _explained(reflector, error)
        else:
            self._loop.refuse(_explained(reflector, error))

    def _fenced(self, message: watch.Message) -> None:
        inventory = self._context.inventory
        if isinstance(message, watch.Broken):
            self._loop.refuse(_explained(message.reflector, message.error))
        elif isinstance(message, watch.Relist):
            live = message.objects.get(inventory.key)
            inventory.fence.check(parse(live) if live else None)
        elif isinstance(message, watch.Change):
            inventory.fence.check(None if message.deleted else parse(message.live))


def _not_listed(resource: Resource, error: DriverError | None, last: DriverError | None = None) -> Report:
    """`error`: why it never will; `last`: of the last try."""
    yet = f"the server of {resource.api_version} has not listed {resource.plural} yet"
    why = str(error or (f"{yet}: {last}" if last else yet))
    return Report(ObjectKey(*resource.group_kind, "", "*"), State.WAITING.value, "NotListed", why)


def _is_forbidden(error: DriverError) -> bool:
    return isinstance(error, ApiError) and error.status == 403


def _explained(reflector: watch.Reflector, error: DriverError) -> DriverError:
    if not _is_forbidden(error):
        return error
    where = f"namespace {reflector.namespace}" if reflector.namespace else "all namespaces"
    return Forbidden(f"The driver must be allowed to list and watch {reflector.resource.plural} in {where}: {error}")
