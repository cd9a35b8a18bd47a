# SPDX-License-Identifier: Apache-2.0
"""Watch streams: initial events, changes through selectors, bookmarks, and what tests inject into open streams."""

import json
import time
from collections import deque
from collections.abc import Callable, Iterator

from tests.fake_api import errors
from tests.fake_api.faults import StreamFault
from tests.fake_api.objects import Object
from tests.fake_api.selectors import selector
from tests.fake_api.store import Change
from tests.fake_api.verbs import Call, shown

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
_CLIENT_CHECK_SECONDS = 0.1
_ENCODER = json.JSONEncoder(separators=(",", ":"))


class Broken(Exception):
    """The stream is to be cut without a proper end; `reset` says how."""

    def __init__(self, reset: bool) -> None:
        super().__init__("cut" if not reset else "reset")
        self.reset = reset


class Stream:
    """One open watch. `events()` blocks for what comes next; `inject` may be called from any thread."""

    def __init__(self, call: Call) -> None:
        _check_options(call)
        self.kind = call.kind
        self.namespace = call.namespace
        self.query = call.query
        self.sent = 0
        self._failed = False
        self.open = True
        self._store = call.cluster.store
        self._ignores_initial_events = call.cluster.knobs.ignore_initial_events
        self._bookmarks = call.query.get("allowWatchBookmarks", "").lower() in ("true", "1")
        self._fits = selector(call.query, call.namespace)
        self._faults: deque[StreamFault] = deque()
        self._deadline = time.monotonic() + float(call.query.get("timeoutSeconds") or 3600)
        with self._store.lock:
            self._epoch = self._store.epoch(self.kind.resource)
            self._queue, self._position = self._begin()

    def inject(self, fault: StreamFault) -> None:
        with self._store.changed:
            self._faults.append(fault)
            self._store.changed.notify_all()

    def close(self) -> None:
        with self._store.changed:
            self.open = False
            self._store.changed.notify_all()

    def chunks(self, client_gone: Callable[[], bool]) -> Iterator[bytes]:
        """What is sent, whole lines, until the end in good order; Broken where a fault cuts the stream.

        As on a real server all events that wait go out in one chunk.
        """
        while (lines := self._next(client_gone)) is not None:
            yield lines
            if self._failed:
                return

    def _begin(self) -> tuple[deque[Object], int]:
        """What is sent at once, and the place in the log from which changes follow."""
        log = self._store.log(self.kind.resource)
        version = self.query.get("resourceVersion", "")
        initial = self.query.get("sendInitialEvents", "").lower()
        if initial == "false" or (not initial and version not in ("", "0")):
            since = int(version or self._store.revision)
            if since < self._store.oldest:
                old = errors.expired(f"too old resource version: {since} ({self._store.oldest})")
                return deque([{"type": "ERROR", "object": old.status}]), len(log)
            return deque(), next((i for i, change in enumerate(log) if change.revision > since), len(log))
        current = self._store.objects(self.kind.resource, self.namespace)
        queue = deque(self._event("ADDED", obj) for obj in current if self._fits(obj))
        if self._bookmarks and not self._ignores_initial_events:
            queue.append(self._bookmark({INITIAL_EVENTS_END: "true"}, self._store.revision))
        return queue, len(log)

    def _next(self, client_gone: Callable[[], bool]) -> bytes | None:
        with self._store.changed:
            while True:
                if self._faults and self.sent >= self._faults[0].after:
                    return self._fault(self._faults.popleft(), client_gone)
                if self._queue:
                    return self._waiting_lines()
                if self._read_log():
                    continue
                left = self._deadline - time.monotonic()
                if left <= 0 or not self.open or self._epoch != self._store.epoch(self.kind.resource) or client_gone():
                    return None
                self._store.changed.wait(min(left, _CLIENT_CHECK_SECONDS))

    def _waiting_lines(self) -> bytes:
        """All lines that wait, up to the next fault."""
        lines = []
        while self._queue and not (self._faults and self.sent >= self._faults[0].after):
            event = self._queue.popleft()
            self._failed = event["type"] == "ERROR"
            self.sent += 1
            lines.append(line(event))
        return b"".join(lines)

    def _read_log(self) -> bool:
        """Queue the events of the changes since the last look; whether there are any."""
        log = self._store.log(self.kind.resource)
        for change in log[self._position:]:
            self._queue.extend(self._seen(change))
        self._position = len(log)
        return bool(self._queue)

    def _seen(self, change: Change) -> Iterator[Object]:
        """The change as this stream's selector sees it."""
        if change.old is None and change.new is None:
            if self._bookmarks:
                yield self._bookmark({}, change.revision)
            return
        before = change.old is not None and self._fits(change.old)
        if change.new is not None and self._fits(change.new):
            yield self._event("MODIFIED" if before else "ADDED", change.new)
        elif before and change.old is not None:
            metadata = {**change.old["metadata"], "resourceVersion": str(change.revision)}
            yield self._event("DELETED", {**change.old, "metadata": metadata})

    def _event(self, what: str, obj: Object) -> Object:
        return {"type": what, "object": shown(self.kind, obj)}

    def _bookmark(self, annotations: dict[str, str], revision: int) -> Object:
        metadata: Object = {"resourceVersion": str(revision), "creationTimestamp": None}
        if annotations:
            metadata["annotations"] = annotations
        return {"type": "BOOKMARK", "object": {"kind": self.kind.kind, "apiVersion": self.kind.api_version,
                                               "metadata": metadata}}

    def _fault(self, fault: StreamFault, client_gone: Callable[[], bool]) -> bytes | None:
        if fault.what == "blank":
            return b"\n"
        if fault.what == "error":
            self._failed = True
            return line({"type": "ERROR", "object": fault.status})
        if fault.what in ("cut", "reset"):
            raise Broken(fault.what == "reset")
        while fault.what == "silent" and self.open and not client_gone():
            self._store.changed.wait(_CLIENT_CHECK_SECONDS)
        return None


def line(event: Object) -> bytes:
    return _ENCODER.encode(event).encode() + b"\n"


def _check_options(call: Call) -> None:
    match = call.query.get("resourceVersionMatch", "")
    causes = []

    def refuse(name: str, why: str) -> None:
        causes.append(errors.cause("FieldValueForbidden", f"Forbidden: {why}", name))

    if "sendInitialEvents" in call.query:
        if match != "NotOlderThan":
            refuse("resourceVersionMatch", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
        if not call.cluster.knobs.send_initial_events:
            refuse("sendInitialEvents", "sendInitialEvents is forbidden for watch unless the WatchList feature gate "
                                        "is enabled")
    elif match:
        refuse("resourceVersionMatch", "resourceVersionMatch is forbidden for watch unless sendInitialEvents is "
                                       "provided")
    if causes:
        raise errors.invalid("meta.k8s.io", "ListOptions", "", causes)
