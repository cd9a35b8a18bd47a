"""
What a run hears of the cluster: one stream for each kind, and the last word on each object of the instance.

A kind is `known` when its first snapshot is there: only then can it be said what is ours already. Where RBAC forbids to
watch all namespaces at once there is one stream for each namespace.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence

from k8s_cr_driver.engine import api_services
from k8s_cr_driver.engine.not_ready import Report
from k8s_cr_driver.engine.run import Run
from k8s_cr_driver.errors import ApiError, DriverError, Forbidden, passes
from k8s_cr_driver.kube import watch
from k8s_cr_driver.kube.discovery import Resource, Resources, discover
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, key_of
from k8s_cr_driver.ownership.inventory import parse
from k8s_cr_driver.ownership.write import selector
from k8s_cr_driver.resources.health import State

Heard = Callable[[ObjectKey, Object | None], None]
"""Called with the live object, or None when it is gone."""


class Informers:
    """The streams of one run. `heard` is called for every change, `learnt` when a kind has become known."""

    def __init__(self, run: Run, heard: Heard, learnt: Callable[[GroupKind], None]) -> None:
        self._operation, self._loop, self._target, self._resources = run.operation, run.loop, run.target, run.resources
        self._heard, self._learnt = heard, learnt
        self._initial_events = watch.InitialEvents()
        self._streams: list[watch.Reflector] = []
        self._awaited: dict[GroupKind, set[watch.Reflector]] = {}
        """Of each kind the streams that have not told what there is."""
        self._refused: dict[GroupKind, DriverError] = {}
        """Why some of these never will."""
        self._unknown: set[GroupKind] = set()
        self.objects: dict[GroupKind, dict[ObjectKey, Object]] = {}

    def fence(self) -> None:
        """Follows the inventory; another worker's token in it ends this run."""
        inventory = self._target.inventory
        self._start(
            inventory.resource, inventory.key.namespace, inventory.selector, self._fenced, inventory.record.version
        )

    def open(self, kinds: Iterable[GroupKind]) -> None:
        """Opens the streams of those kinds that the cluster serves and that are not open yet.

        Kinds of which it cannot tell now follow when it can.
        """
        for kind in sorted(kinds):
            resource = self._resources.find(kind)
            if self._resources.unknown_in(kind):
                self._await(kind)
            if resource is None or kind in self.objects:
                continue
            self.objects[kind] = {}
            if "list" in resource.verbs:
                self._awaited[kind] = {self._start(resource, "", selector(self._target.instance, kind), self._message)}
            else:
                self._learnt(kind)

    def reopen(self, kind: GroupKind, versions: Sequence[str]) -> None:
        """Follows a kind in one of the versions that its CRD serves by now: of one that has ended all objects seem gone."""
        ended = [one for one in self._streams if one.resource.group_kind == kind and one.resource.version not in versions]
        resource = self._resources.find(kind, versions[0]) if versions else None
        if resource is None or kind not in self.objects:
            return
        for stream in ended:
            stream.stop()
            self._streams.remove(stream)
            self._awaited[kind].discard(stream)
            self._awaited[kind].add(self._start(resource, stream.namespace, stream.selector, self._message))

    def follow(
        self, resource: Resource, namespace: str, selector: str, handle: Callable[[watch.Message], None]
    ) -> None:
        """Opens a stream of other objects than the set's; `handle` is called with what it tells."""

        def hear(message: watch.Message) -> None:
            if isinstance(message, watch.Broken):
                self._loop.refuse(_explained(message.reflector, message.error))
            else:
                handle(message)

        self._start(resource, namespace, selector, hear)

    def knows(self, kind: GroupKind) -> bool:
        """Whether it is known which objects of the kind are ours."""
        return kind in self.objects and not self._awaited.get(kind)

    def known(self) -> list[Resource]:
        """The kinds of which that is known, in the versions that are followed."""
        followed = {one.resource.group_kind: one.resource for one in self._streams}
        return [resource for kind, resource in followed.items() if self.knows(kind)]

    def all_known(self) -> bool:
        return not self._unknown and not any(self._awaited.values())

    def unlisted(self) -> list[Report]:
        """Why not `all_known`."""
        awaited = [self._resources.find(kind) for kind, streams in sorted(self._awaited.items()) if streams]
        return api_services.reports(self._resources, ((kind, "") for kind in self._unknown)) + [
            Report(
                ObjectKey(*resource.group_kind, "", "*"),
                State.WAITING.value,
                "NotListed",
                str(self._refused.get(resource.group_kind, ""))
                or f"the server of {resource.api_version} has not listed {resource.plural} yet",
            )
            for resource in awaited
            if resource is not None
        ]

    def everything(self) -> Iterator[tuple[ObjectKey, Object]]:
        """The last word on every object that the streams select."""
        for objects in self.objects.values():
            yield from objects.items()

    def stop(self) -> None:
        for stream in self._streams:
            stream.stop()

    def _await(self, kind: GroupKind) -> None:
        if not self._unknown:
            self._loop.after(api_services.ASK_EVERY, self._ask_again)
        self._unknown.add(kind)

    def _ask_again(self) -> None:
        connection = self._target.connection
        self._loop.send(lambda: discover(connection), self._discovered, self._undiscovered)

    def _discovered(self, newer: Resources) -> None:
        self._resources.refresh(newer)
        asked, self._unknown = self._unknown, set()
        self.open(asked)

    def _undiscovered(self, error: DriverError) -> None:
        if passes(error):
            self._loop.after(api_services.ASK_EVERY, self._ask_again)
        else:
            self._loop.refuse(error)

    def _start(
        self,
        resource: Resource,
        namespace: str,
        selector: str,
        handle: Callable[[watch.Message], None],
        resume: str = "",
    ) -> watch.Reflector:
        def post(message: watch.Message) -> None:
            self._loop.post(functools.partial(handle, message))

        connection, known = self._target.connection, self._initial_events
        stream = watch.Reflector(connection, resource, namespace, selector, post, resume=resume, initial_events=known)
        self._streams.append(stream)
        return stream

    def _message(self, message: watch.Message) -> None:
        kind = message.reflector.resource.group_kind
        if message.reflector not in self._streams:
            return  # its version has ended, see `reopen`
        if isinstance(message, watch.Change):
            self._change(kind, key_of(message.live), None if message.deleted else message.live)
        elif isinstance(message, watch.Relist):
            self._snapshot(kind, message)
        else:
            self._broken(message)

    def _change(self, kind: GroupKind, key: ObjectKey, live: Object | None) -> None:
        if live is None:
            self.objects[kind].pop(key, None)
        else:
            self.objects[kind][key] = live
        self._heard(key, live)

    def _snapshot(self, kind: GroupKind, snapshot: watch.Relist) -> None:
        namespace = snapshot.reflector.namespace
        for key in list(self.objects[kind]):
            if key not in snapshot.objects and namespace in ("", key.namespace):
                self._change(kind, key, None)
        for key, live in snapshot.objects.items():
            self._change(kind, key, live)
        awaited = self._awaited[kind]
        if snapshot.reflector in awaited:
            awaited.remove(snapshot.reflector)
            if not awaited:
                self._learnt(kind)

    def _broken(self, message: watch.Broken) -> None:
        stream, error = message.reflector, message.error
        awaited = self._awaited[stream.resource.group_kind]
        namespaces = sorted(self._target.inventory.record.namespaces)
        if _is_forbidden(error) and stream.resource.namespaced and not stream.namespace and namespaces:
            awaited.discard(stream)
            awaited |= {self._start(stream.resource, one, stream.selector, self._message) for one in namespaces}
        elif self._operation.abandon:
            awaited.add(stream)
            self._refused[stream.resource.group_kind] = _explained(stream, error)
        else:
            self._loop.refuse(_explained(stream, error))

    def _fenced(self, message: watch.Message) -> None:
        inventory = self._target.inventory
        if isinstance(message, watch.Broken):
            self._loop.refuse(_explained(message.reflector, message.error))
        elif isinstance(message, watch.Relist):
            live = message.objects.get(inventory.key)
            inventory.check(parse(live) if live else None)
        else:
            inventory.check(None if message.deleted else parse(message.live))


def _is_forbidden(error: DriverError) -> bool:
    return isinstance(error, ApiError) and error.status == 403


def _explained(stream: watch.Reflector, error: DriverError) -> DriverError:
    if not _is_forbidden(error):
        return error
    where = f"namespace {stream.namespace}" if stream.namespace else "all namespaces"
    return Forbidden(f"The driver must be allowed to list and watch {stream.resource.plural} in {where}: {error}")
