# SPDX-License-Identifier: Apache-2.0
"""Reflectors: each follows the objects of one kind and posts what changes, from a thread of its own or when it is called.

A reflector first posts a `Relist` of all objects (from the initial events of KEP-3157, or a LIST where the server does not
have them), then one `Change` for each event. After an interruption it resumes, or relists if the server no longer has
that resourceVersion (410). One without a thread posts a Relist whenever it is called. Real watches have blank lines, end
without a word, hang half-open, and their lists fail half-way.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import urllib3

from k8s_cr_driver import logs
from k8s_cr_driver.errors import ApiError, DriverError, TransportError, Unreadable
from k8s_cr_driver.kube import backoff, threads, watch_events
from k8s_cr_driver.kube.bounded import limit_silence
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.discovery import Resource, serves
from k8s_cr_driver.kube.lists import LIST_BYTES, LIST_VALUES, pages
from k8s_cr_driver.kube.memory import NoMemory
from k8s_cr_driver.kube.responses import entries
from k8s_cr_driver.objects.decoding import measured
from k8s_cr_driver.objects.keys import Object, ObjectKey, key_of

LOG = logs.logger(__name__)

IDLE_LIMIT = 300.0
"""Seconds without a byte after which a watch is opened again; servers that send bookmarks send one a minute."""
INITIAL_LIMIT = 10.0
"""Seconds without a byte after which initial events without the bookmark that ends them are given up: the server of an
aggregated API may not know `sendInitialEvents`, and ignore it. A server that knows it waits 3 s at most (KEP-3157)."""
TRIAL_LIMIT = 3.0
"""Seconds for which a reflector waits until another one knows whether the server sends initial events."""


@dataclass(frozen=True)
class Relist:
    """All objects that the reflector selects."""

    reflector: Reflector
    objects: dict[ObjectKey, Object]
    asked_at: float = field(default=0.0, compare=False)
    """A time of time.monotonic(): what was written before it is there, or no longer exists. Such lists are consistent."""


@dataclass(frozen=True)
class Change:
    """One object was added, modified or deleted."""

    reflector: Reflector
    deleted: bool
    live: Object


@dataclass(frozen=True)
class Unserved:
    """Discovery does not list the kind in this version: either nothing defines it any more, or its objects cannot be seen."""

    reflector: Reflector


@dataclass(frozen=True)
class Broken:
    """The reflector has ended for good: the server forbids the watch, or its response is malformed."""

    reflector: Reflector
    error: DriverError


Message = Relist | Change | Unserved | Broken


class InitialEvents:
    """Whether a server sends initial events: one reflector finds out, the others wait for its result."""

    def __init__(self) -> None:
        self.missing: bool | None = None
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def trial(self) -> Iterator[None]:
        """Waits for the first trial, but not for a server that hangs: then the reflectors find out each by itself."""
        waits = self.missing is None and self._lock.acquire(timeout=TRIAL_LIMIT)
        try:
            yield
        finally:
            if waits:
                self._lock.release()


def _whole(live: Object) -> Object | None:
    return live


class Reflector:
    """
    Follows one kind, in one namespace or ("") in all, selected by labels: by a watch from `start` on, or by `look`s.
    `failure` is the error of its last request, None if that has succeeded.

    With `resume` a watch begins after that resourceVersion instead of with a Relist. Reflectors that share `initial_events`
    find out once for all whether the server sends them. `keep` returns what is kept of each object at once, None for nothing.
    """

    def __init__(
        self,
        connection: Connection,
        resource: Resource,
        namespace: str,
        selector: str,
        post: Callable[[Message], None],
        *,
        resume: str = "",
        initial_events: InitialEvents | None = None,
        keep: Callable[[Object], Object | None] = _whole,
    ) -> None:
        self.resource, self.namespace, self.selector = resource, namespace, selector
        self._connection, self._post, self._version = connection, post, resume
        self._initial_events, self._keep = initial_events or InitialEvents(), keep
        self._ignores_initial_events = False
        self.failure: DriverError | None = None
        self._stopped = threading.Event()
        self._response: urllib3.BaseHTTPResponse | None = None
        self._is_initial = False

    def start(self, ended: Callable[[], None]) -> None:
        """Watches in a thread of its own, which calls `ended` at its end."""

        def run() -> None:
            try:
                self._run()
            finally:
                ended()

        self._thread = threads.start(run, f"watch {self.resource.group_kind}")

    def look(self) -> bool:
        """Lists the kind; False if that must not be repeated."""
        return not self._stopped.is_set() and self._tried(self._list)

    def stop(self) -> None:
        """Ends the reflector; its thread wakes up from its read."""
        self._stopped.set()
        response = self._response
        if response is not None:
            with contextlib.suppress(OSError, ValueError, RuntimeError):  # it may be closed already
                response.shutdown()

    def _run(self) -> None:
        failures = 0
        while not self._stopped.is_set():
            began = time.monotonic()
            if not self._tried(self._follow):
                return
            failures = 1 if time.monotonic() - began > backoff.LAST else failures + 1
            self._stopped.wait(backoff.delay(failures))

    def _tried(self, follow: Callable[[], None]) -> bool:
        """False after an error that ends the reflector, which is posted."""
        try:
            follow()
        except ApiError as error:
            self.failure = error
            return not self._gives_up(error)
        except TransportError as error:
            self.failure = error
        except DriverError as error:
            self._post(Broken(self, error))
            return False
        except Exception as error:  # a read that stop() has interrupted fails in many ways
            if not self._stopped.is_set():
                LOG.exception("The watch of %s has failed", self.resource.plural)
                self._post(Broken(self, DriverError(f"WATCH {self.resource.plural}: {type(error).__name__}")))
            return False
        return True

    def _gives_up(self, error: ApiError) -> bool:
        if error.status == 410 or (error.status == 400 and self._version):
            self._version = ""
        elif error.status == 404:
            self._version = ""
            if not self._is_served():
                self._post(Unserved(self))
        elif error.status in (400, 403, 405, 422):
            self._post(Broken(self, error))
            return True
        return False

    def _is_served(self) -> bool:
        """Whether discovery still lists the kind: a single 404, of a proxy or a lagging API server, is no proof."""
        try:
            return serves(self._connection, self.resource)
        except DriverError:
            return True

    def _follow(self) -> None:
        asked_at = time.monotonic()
        response = self._with_initial_events() if not self._version else None
        initial: dict[ObjectKey, Object] | None = None if response is None else {}
        for event in self._events(response or self._from_version(), response is not None):
            kind, live = event.get("type"), watch_events.object_of(self.resource, event)
            version = (live.get("metadata") or {}).get("resourceVersion") or ""
            if kind == "BOOKMARK":
                if initial is not None and watch_events.ends_initial_events(live):
                    self._expect_silence()
                    self._post(Relist(self, initial, asked_at))
                    initial = None
            elif initial is not None:
                _collect(initial, live, None if kind == "DELETED" else self._keep(live))
            elif (kept := self._keep(live)) is not None:
                self._post(Change(self, kind == "DELETED", kept))
            if initial is None:
                self._version = version or self._version

    def _with_initial_events(self) -> urllib3.BaseHTTPResponse | None:
        """An open watch; None if the server does not send initial events, after a list instead."""
        response = None
        if self._ignores_initial_events:
            self._list()
            return None
        with self._initial_events.trial():
            if not self._initial_events.missing:
                try:
                    response = self._watch(("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan"))
                except ApiError as error:
                    if error.status not in (400, 422):  # "sendInitialEvents is forbidden for watch unless..."
                        raise
                self._initial_events.missing = response is None
        if response is None:
            self._list()
        return response

    def _from_version(self) -> urllib3.BaseHTTPResponse:
        return self._watch(("resourceVersion", self._version))

    def _watch(self, *options: tuple[str, str]) -> urllib3.BaseHTTPResponse:
        query = [("watch", "true"), ("allowWatchBookmarks", "true"), ("labelSelector", self.selector), *options]
        response = self._connection.stream(self.resource.path(self.namespace), query, IDLE_LIMIT)
        self.failure = None
        return response

    def _list(self) -> None:
        found: dict[ObjectKey, Object] = {}
        asked_at = time.monotonic()
        query = [("labelSelector", self.selector)]
        version = ""
        for page in pages(self._connection, self.resource.path(self.namespace), query):
            listed = entries(page, self.resource.api_version, self.resource.group_kind, f"LIST {self.resource.plural}")
            found |= {key_of(live): kept for live in listed if (kept := self._keep(live)) is not None}
            version = page["metadata"].get("resourceVersion") or ""
        self._post(Relist(self, found, asked_at))
        self.failure, self._version = None, version

    def _expect_silence(self) -> None:
        """The initial events are complete."""
        if self._response is not None:
            limit_silence(self._response, IDLE_LIMIT)
            self._is_initial = False

    def _events(self, response: urllib3.BaseHTTPResponse, is_initial: bool) -> Iterator[dict[str, Any]]:
        self._response, self._is_initial = response, is_initial
        if is_initial:
            limit_silence(response, INITIAL_LIMIT)
        try:
            if self._stopped.is_set():
                return
            received = values = 0
            # `read1` and not `stream`, which in urllib3 before 2.8 reads a chunk's size without a limit.
            for line in watch_events.lines(iter(functools.partial(response.read1, 65536), b"")):
                with self._connection.memory.of_response(line):
                    event = watch_events.parse(self.resource, line) if line.strip() else None
                    if self._is_initial:
                        received, values = received + len(line), values + measured(line, event)
                        if received > LIST_BYTES or values > LIST_VALUES:
                            most = f"{LIST_BYTES} bytes or {LIST_VALUES:,} values"
                            raise Unreadable(f"WATCH: the initial events have more than {most}")
                    if event is not None:
                        yield event
                    event = None
        except urllib3.exceptions.HTTPError as error:
            self._ignores_initial_events = self._is_initial and isinstance(error, urllib3.exceptions.ReadTimeoutError)
            raise TransportError(f"WATCH {self.resource.plural}: {type(error).__name__}") from None
        except NoMemory:
            raise TransportError(f"WATCH {self.resource.plural}: other responses have the memory of this conductor") from None
        finally:
            self._response = None
            response.close()
            if not self._stopped.is_set():  # an API server that stops ends its watches
                self._connection.restarts.sign()


def _collect(objects: dict[ObjectKey, Object], live: Object, kept: Object | None) -> None:
    if kept is None:
        objects.pop(key_of(live), None)
    else:
        objects[key_of(live)] = kept
