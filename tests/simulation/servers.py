# SPDX-License-Identifier: Apache-2.0
"""
API servers in virtual time: a pair that shares one etcd, each with watch caches of its own.

The model is what Kubernetes promises. Writes, and reads without a resourceVersion, are linearizable, whichever server is
asked. A watch tells of what its server's cache of that resource has seen, in order, as late as it likes; initial events
without a resourceVersion wait until the cache has all that was there when they were asked for (KEP-3157). A request may
be executed long after it was sent, also when who sent it has crashed or has no patience left, and its answer be lost.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from k8s_cr_driver.errors import ApiError
from tests.fake_api import discovery, dispatch, errors
from tests.fake_api.cluster import Cluster, Work
from tests.fake_api.kinds import Resource
from tests.fake_api.objects import Key, Object, key_of
from tests.fake_api.store import Store
from tests.fake_api.verbs import Call
from tests.simulation.caches import Response, Server, Watch
from tests.simulation.entries import USER, WIDGETS, Actor
from tests.simulation.ledger import Ledger
from tests.simulation.scheduler import Scheduler
from tests.simulation.weather import Weather

BOOKMARK_EVERY = 60.0
MOST_REQUESTS = 3000
"""Of one life; more would be an operation that goes round in circles."""
_DISCOVERED: dict[tuple[str, str, bool], Object] = {}
"""The responses to discovery, by path, form and whether there are widgets."""
_DISCOVERY = re.compile(r"/apis?|/api/[^/]+|/apis/[^/]+(/[^/]+)?")
_is_discovery = functools.lru_cache(maxsize=4096)(_DISCOVERY.fullmatch)


@dataclass
class Sent:
    """One request on its way, and what has become of it. Nobody writes into `body` or `answer`."""

    method: str
    path: str
    query: dict[str, str]
    body: Any
    content_type: str
    accept: str
    idle_limit: float = 0.0
    answer: Any = None
    error: Exception | None = None
    is_answered: bool = False
    applied: tuple[Resource, Key] | None = None

    def __str__(self) -> str:
        return f"{self.method} {self.path}{'?watch' if 'watch' in self.query else ''}"


class Servers:
    """The pair, and all that comes to it."""

    def __init__(self, scheduler: Scheduler, ledger: Ledger, weather: Weather) -> None:
        self.scheduler, self.ledger, self.weather = scheduler, ledger, weather
        self.cluster = Cluster()
        self.cluster.store = self.store = _Store(ledger, self)
        self.cluster.later = self._later
        self.pair = [Server(scheduler, self.cluster, weather) for _ in range(2)]
        self.requests = 0
        self.listeners: list[Callable[[Resource, Object], None]] = []

    def is_overrun(self) -> bool:
        return self.requests > MOST_REQUESTS

    def acting(self, actor: Actor, work: Callable[[], object]) -> None:
        """Does something at once in the name of that actor."""
        before, self.ledger.actor = self.ledger.actor, actor
        try:
            work()
        finally:
            self.ledger.actor = before

    def _later(self, work: Work) -> None:
        actor = Actor(self.ledger.actor.owner, self.ledger.actor.name, is_direct=False)
        self.scheduler.after(self.weather.collector(), partial(self.acting, actor, work))

    def execute(self, sent: Sent, actor: Actor) -> None:
        """What a server does when a request gets there."""
        self.requests += 1
        if self.is_overrun():
            self.scheduler.stop()
        try:
            self.weather.refuse(sent, actor)
            self.acting(actor, partial(self._execute, sent))
        except errors.ApiError as error:
            sent.error = _translated(str(sent), error)
        except errors.PageNotFound:
            sent.error = ApiError(str(sent), 404, "NotFound", "404 page not found")
        self.ledger.note(f"{actor}: {sent} -> {sent.error.status if isinstance(sent.error, ApiError) else 'ok'}")

    def _execute(self, sent: Sent) -> None:
        if _is_discovery(sent.path):
            sent.answer = self._discovery(sent)
        else:
            call = dispatch.call(
                self.cluster, sent.method, sent.path, sent.query, sent.body, sent.content_type, "k8s-cr-driver"
            )
            if sent.method != "GET":
                self.weather.admission.check_request(self.scheduler.now, call.kind.resource, *call.key)
            if "watch" in sent.query:
                sent.answer = self._watch(call, sent.idle_limit)
            else:
                sent.answer = dispatch.execute(call, sent.method)[1]
                if sent.method == "PATCH":
                    sent.applied = call.kind.resource, (call.namespace, call.name)

    def _discovery(self, sent: Sent) -> Object:
        """Made anew only when a CRD has changed what is served; nobody writes into it."""
        asked = sent.path, sent.accept, bool(self.cluster.served(WIDGETS))  # one CRD, and always the same, comes and goes
        if asked not in _DISCOVERED:
            found = discovery.respond(self.cluster, sent.path, sent.accept)
            assert found is not None
            _DISCOVERED[asked] = found[0]
        return _DISCOVERED[asked]

    def _watch(self, call: Call, idle_limit: float) -> Response:
        server = self.scheduler.random.choice(self.pair)
        resource, reader = call.kind.resource, self.ledger.actor
        response = Response(self.scheduler, idle_limit, partial(self.ledger.looked, reader))
        response.watch = Watch(call, server.catch_up(resource), response, partial(self.ledger.show, reader, resource))
        self.scheduler.after(BOOKMARK_EVERY, partial(self._bookmark, response.watch))
        silence = self.weather.silence()
        if silence is not None:
            self.scheduler.after(silence, response.fall_silent)
        return response

    def _bookmark(self, stream: Watch) -> None:
        if stream in stream._cache.streams:
            stream.bookmark()
            self.scheduler.after(BOOKMARK_EVERY, partial(self._bookmark, stream))


class _Store(Store):
    """Tells the ledger of all writes, and others of what has been written."""

    def __init__(self, ledger: Ledger, servers: Servers) -> None:
        super().__init__()
        self._ledger, self._servers = ledger, servers

    def put(self, resource: Resource, obj: Object) -> Object:
        old = self.get(resource, key_of(obj))
        if old is None and self._ledger.actor.owner != USER:
            self._servers.weather.admission.check_creation(self._servers.scheduler.now, resource, *key_of(obj))
        stored = super().put(resource, obj)
        self._ledger.wrote(resource, old, stored)
        self._tell(resource, stored)
        return stored

    def remove(self, resource: Resource, key: Key) -> Object:
        gone = super().remove(resource, key)
        self._ledger.removed(resource, gone)
        self._tell(resource, gone)
        return gone

    def _tell(self, resource: Resource, obj: Object) -> None:
        for server in self._servers.pair:
            server.changed(resource)
        for listener in self._servers.listeners:
            listener(resource, obj)

    def end_streams(self, resource: Resource | None = None) -> None:
        if resource is not None:
            for server in self._servers.pair:
                self._servers.scheduler.after(self._servers.weather.lag(), partial(server.end_streams, resource))


def _translated(attempt: str, error: errors.ApiError) -> ApiError:
    status = error.status
    details = status.get("details") or {}
    causes = [
        (str(cause.get("reason", "")), str(cause.get("field", "")), str(cause.get("message", "")))
        for cause in details.get("causes") or []
    ]
    after = error.headers.get("Retry-After")
    reason, message = str(status.get("reason") or ""), str(status.get("message") or "")
    subject = str(details.get("kind") or ""), str(details.get("name") or "")
    return ApiError(attempt, error.code, reason, message, causes, float(after) if after else None, subject)
