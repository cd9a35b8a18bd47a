# SPDX-License-Identifier: Apache-2.0
"""The watch caches of one API server, and the watches that they feed."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import urllib3

from tests.fake_api import errors, watch
from tests.fake_api.cluster import Cluster
from tests.fake_api.kinds import Resource
from tests.fake_api.objects import Key, Object, key_of
from tests.fake_api.store import Change
from tests.fake_api.verbs import Call
from tests.simulation.scheduler import Moment, Scheduler, Waiter
from tests.simulation.weather import Weather


class Cache:
    """What one server has seen of one resource; `slowness`: how many times later than others."""

    def __init__(self, slowness: float) -> None:
        self.slowness = slowness
        self.objects: dict[Key, Object] = {}
        self.position, self.revision, self.due = 0, 0, 0.0
        self.unread: deque[Moment] = deque()
        """When the changes come that came, or will come, while no watch is open."""
        self.streams: list[Watch] = []


class Line(bytes):
    """An event of a watch in the place of its JSON, which takes long to write and to read."""

    event: Object

    @classmethod
    def of(cls, event: Object) -> Line:
        line = cls(b"event")
        line.event = event
        return line


def lines(chunks: Iterable[Line]) -> Iterator[Line]:
    """In the place of `watch_events.lines`: each chunk is one line."""
    yield from chunks


def decoded(line: Line) -> Object:
    """In the place of `watch_events.decoded`."""
    return line.event


class Server:
    """One API server of the pair."""

    def __init__(self, scheduler: Scheduler, cluster: Cluster, weather: Weather) -> None:
        self._scheduler, self._cluster, self._weather = scheduler, cluster, weather
        self._caches: dict[Resource, Cache] = defaultdict(lambda: Cache(weather.slowness()))

    def changed(self, resource: Resource) -> None:
        """The last change in the log comes to this server's cache after a while, behind those before it."""
        cache = self._caches[resource]
        cache.due = max(cache.due, self._scheduler.now + self._weather.lag(cache.slowness))
        moment = self._scheduler.moment(cache.due)
        if cache.streams:
            self._scheduler.put(moment, partial(self._advance, resource, cache))
        else:
            cache.unread.append(moment)

    def catch_up(self, resource: Resource) -> Cache:
        """The cache for a watch that is about to open."""
        cache = self._caches[resource]
        while cache.unread:
            moment = cache.unread.popleft()
            if moment[0] < self._scheduler.now:
                self._advance(resource, cache)
            else:
                self._scheduler.put(moment, partial(self._advance, resource, cache))
        return cache

    def _advance(self, resource: Resource, cache: Cache) -> None:
        change = self._cluster.store.log(resource)[cache.position]
        cache.position, cache.revision = cache.position + 1, change.revision
        if change.new is not None:
            cache.objects[key_of(change.new)] = change.new
        elif change.old is not None:
            cache.objects.pop(key_of(change.old), None)
        for stream in list(cache.streams):
            stream.hear(change)

    def end_streams(self, resource: Resource) -> None:
        for stream in list(self._caches[resource].streams):
            stream.end()


class Watch(watch.Stream):
    """One open watch; what it has to say goes into the response that the client reads."""

    def __init__(self, call: Call, cache: Cache, response: Response, show: Callable[[Object], None]) -> None:
        self._cache, self._response, self._show = cache, response, show
        super().__init__(call)
        self._until, self._since = 0, 0
        cache.streams.append(self)
        store = call.cluster.store
        version = call.query.get("resourceVersion", "")
        if call.query.get("sendInitialEvents") == "true" or version in ("", "0"):
            self._until = len(store.log(call.kind.resource))
            self._asked = store.revision
            self._is_listing = True
            self._try_to_list()
        elif int(version) < store.oldest:
            self._say({"type": "ERROR", "object": errors.expired().status})
            self.end()
        else:
            self._is_listing, self._since = False, int(version)
            for change in store.log(call.kind.resource)[: cache.position]:
                self.hear(change)

    def _begin(self) -> Any:
        return None, 0

    def hear(self, change: Change) -> None:
        if self._is_listing:
            self._try_to_list()
        elif change.revision > self._since:
            for event in self._seen(change):
                self._say(event)

    def _try_to_list(self) -> None:
        if self._cache.position < self._until:
            return
        self._is_listing = False
        for _, obj in sorted(self._cache.objects.items()):
            if self._fits(obj):
                self._say(self._event("ADDED", obj))
        self._say(self._bookmark({watch.INITIAL_EVENTS_END: "true"}, max(self._asked, self._cache.revision)))

    def bookmark(self) -> None:
        if not self._is_listing and self._cache.revision:
            self._say(self._bookmark({}, self._cache.revision))

    def end(self) -> None:
        if self in self._cache.streams:
            self._cache.streams.remove(self)
        self._response.end()

    def _say(self, event: Object) -> None:
        if not self._response.is_silent:
            self._show(event["object"])
        self._response.say(Line.of(event))


class Response:
    """What the engine has of an open watch, as urllib3 gives it."""

    def __init__(self, scheduler: Scheduler, idle_limit: float, at_shutdown: Callable[[], None]) -> None:
        self._scheduler, self._idle_limit, self._at_shutdown = scheduler, idle_limit, at_shutdown
        self._chunks: list[Line] = []
        self._is_over, self.is_silent, self._is_broken = False, False, False
        self._waiter: Waiter | None = None
        self.watch: Watch

    def say(self, line: Line) -> None:
        if not self.is_silent:
            self._chunks.append(line)
            self._wake()

    def end(self) -> None:
        if not self.is_silent:
            self._is_over = True
            self._wake()

    def fall_silent(self) -> None:
        """Half open: nothing comes any more, not even an end."""
        self.is_silent = True

    def read1(self, size: int) -> Line | bytes:
        """One line, once there is one; b"" at the end."""
        del size
        while not self._chunks:
            if self._is_over:
                return b""
            self._waiter = self._scheduler.waiter()
            if not self._waiter.wait(self._idle_limit):
                raise urllib3.exceptions.HTTPError("read timed out")
        return self._chunks.pop(0)

    def shutdown(self) -> None:
        """The client's own end."""
        self._at_shutdown()
        self._is_over = True
        self._wake()

    def close(self) -> None:
        self.is_silent = True
        self.watch.end()

    def _wake(self) -> None:
        if self._waiter is not None:
            self._waiter.wake()
