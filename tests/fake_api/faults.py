# SPDX-License-Identifier: Apache-2.0
"""Fault injection: what a test wants to go wrong, with which request, how many times.

A fault is an action and a match. Actions of `Answer` and `Lie` replace the answer and nothing is written; the others are cut
into the connection or the watch stream at the moment that they name.
"""

import math
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.fake_api import errors
from tests.fake_api.errors import ApiError, PageNotFound
from tests.fake_api.objects import Object

if TYPE_CHECKING:
    from tests.fake_api.recording import Request


@dataclass(frozen=True)
class Answer:
    """Answer with this error; nothing is written."""

    error: ApiError | PageNotFound


@dataclass(frozen=True)
class Lie:
    """Answer with 200 and these bytes, whatever they are; nothing is written."""

    body: bytes


@dataclass(frozen=True)
class Cut:
    """Break the connection: `before` the request is executed, `after` it, or in the middle of the `body`."""

    when: str


@dataclass(frozen=True)
class Hang:
    """Execute nothing and never answer, until the client or the server closes."""


@dataclass(frozen=True)
class Held:
    """An admission webhook takes so many seconds, or until `end`. After the request's `timeout` nothing is written."""

    seconds: float
    end: threading.Event | None = None


@dataclass(frozen=True)
class StreamFault:
    """In a watch, after `after` events: `blank`, `end`, `cut`, `reset`, `silent` or `error` (an ERROR event)."""

    what: str
    after: int = 0
    status: Object = field(default_factory=dict)


Action = Answer | Lie | Cut | Hang | Held | StreamFault


def status(code: int, reason: str = "", message: str = "fault injected by the test", *, retry_after: int | None = None,
           causes: list[Object] | None = None) -> Answer:
    details: Object = {"causes": causes} if causes else {}
    headers = {}
    if retry_after is not None:
        details["retryAfterSeconds"] = retry_after
        headers["Retry-After"] = str(retry_after)
    return Answer(ApiError(code, reason, message, details, headers))


def conflict(name: str = "x", plural: str = "objects", group: str = "") -> Answer:
    """409 without causes: somebody else changed the object meanwhile."""
    return Answer(errors.modified(group, plural, name))


def field_conflict(field_path: str = ".spec.replicas", manager: str = "kubectl", version: str = "v1") -> Answer:
    """409 with one cause: another manager owns the field."""
    message = f"conflict with {errors.quoted(manager)} using {version}"
    return Answer(errors.apply_conflict([errors.cause("FieldManagerConflict", message, field_path)],
                                        f"Apply failed with 1 conflict: {message}: {field_path}"))


def gone() -> Answer:
    return Answer(errors.expired())


def too_many(retry_after: int = 1) -> Answer:
    return status(429, "TooManyRequests", "the server has received too many requests and has asked us to try again "
                  "later", retry_after=retry_after)


def internal(message: str = "etcdserver: request timed out") -> Answer:
    return status(500, "InternalError", f"Internal error occurred: {message}")


def webhook_down(name: str = "validate.example.com") -> Answer:
    """What a write gets whose admission webhook has no backend yet."""
    return internal(f'failed calling webhook "{name}": failed to call webhook: Post '
                    '"https://webhook.default.svc:443/validate?timeout=10s": dial tcp 10.96.0.10:443: connect: '
                    'connection refused')


def denied(words: str, code: int = 403, reason: str = "Forbidden", *, name: str = "validate.example.com",
           details: Object | None = None) -> Answer:
    """What a write gets that an admission webhook denies: code, reason and details are the webhook's own.

    apiserver, pkg/admission/plugin/webhook/errors/statuserror.go: no code below 400.
    """
    message = f"admission webhook {errors.quoted(name)} denied the request: {words}"
    return Answer(ApiError(max(code, 400), reason, message, details))


def forbidden(verb: str = "list", plural: str = "configmaps") -> Answer:
    """What the authorizer does not allow, or does not know yet to be allowed."""
    return status(403, "Forbidden", f'{plural} is forbidden: User "tacker" cannot {verb} resource "{plural}" in API group "" '
                  'in the namespace "default"')


def unavailable() -> Answer:
    return status(503, "ServiceUnavailable", "the server is currently unable to handle the request")


def not_found() -> Answer:
    """404 of a path, not of an object."""
    return Answer(errors.no_such_path())


def page_not_found() -> Answer:
    """404 in plain text, of a load balancer or of an API server that starts."""
    return Answer(PageNotFound())


def lie(body: bytes) -> Lie:
    return Lie(body)


def reset_before() -> Cut:
    return Cut("before")


def reset_after() -> Cut:
    return Cut("after")


def truncated() -> Cut:
    return Cut("body")


def hang() -> Hang:
    return Hang()


def held(seconds: float = math.inf, end: threading.Event | None = None) -> Held:
    return Held(seconds, end)


def blank_line(after: int = 0) -> StreamFault:
    return StreamFault("blank", after)


def stream_end(after: int = 0) -> StreamFault:
    """The stream ends in good order (EOF)."""
    return StreamFault("end", after)


def stream_cut(after: int = 0) -> StreamFault:
    """The stream ends in the middle of an event."""
    return StreamFault("cut", after)


def stream_reset(after: int = 0) -> StreamFault:
    return StreamFault("reset", after)


def half_open(after: int = 0) -> StreamFault:
    """The stream stays open and says nothing any more."""
    return StreamFault("silent", after)


def stream_error(error: ApiError | None = None, after: int = 0) -> StreamFault:
    """An ERROR event, by default 410, then EOF."""
    return StreamFault("error", after, (error or errors.expired("too old resource version: 1 (2)")).status)


@dataclass
class _Rule:
    action: Action
    matches: Callable[["Request"], bool]
    left: int


class Faults:
    """The faults that wait for their request; thread safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rules: list[_Rule] = []

    def add(self, action: Action, *, method: str = "", path: str = "", query: dict[str, str] | None = None,
            index: int | None = None, when: Callable[["Request"], bool] | None = None, times: int = 1) -> None:
        """Let `action` befall the next `times` requests that fit all that is given (`path` is a regular expression)."""
        watching = isinstance(action, StreamFault)

        def matches(request: "Request") -> bool:
            return ((not method or request.method == method) and bool(re.search(path, request.path))
                    and all(request.query.get(name) == value for name, value in (query or {}).items())
                    and (index is None or request.index == index) and (when is None or when(request))
                    and (not watching or request.watch))

        with self._lock:
            self._rules.append(_Rule(action, matches, times))

    def take(self, request: "Request") -> Action | None:
        with self._lock:
            for rule in self._rules:
                if rule.left and rule.matches(request):
                    rule.left -= 1
                    return rule.action
        return None

    @property
    def pending(self) -> int:
        """How many faults have not befallen any request yet."""
        with self._lock:
            return sum(rule.left for rule in self._rules)

    def clear(self) -> None:
        with self._lock:
            self._rules.clear()
