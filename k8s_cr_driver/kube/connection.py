# SPDX-License-Identifier: Apache-2.0
"""One way to send a request to a cluster: over one urllib3 pool, without a repetition or a sleep inside of a call."""

from __future__ import annotations

import json
import math
import re
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any
from urllib.parse import quote, urlencode

import urllib3

from k8s_cr_driver.errors import (
    ApiError,
    Concern,
    ConnectionFailed,
    DriverError,
    InvalidRequest,
    NotConnected,
    Said,
    TransportError,
    Unreadable,
    passes,
)
from k8s_cr_driver.kube import audit, auth, bounded, pools, tls
from k8s_cr_driver.kube.clock import ServerClock
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.kube.memory import Memory, NoMemory, of_operation
from k8s_cr_driver.kube.refusals import refusal
from k8s_cr_driver.kube.restarts import Restarts
from k8s_cr_driver.kube.sent_values import SentValues
from k8s_cr_driver.objects.decoding import BeyondLimit, decoded
from k8s_cr_driver.objects.keys import Object

CONNECT_TIMEOUT = 10.0
READ_TIMEOUT = 60.0
WRITE_CONNECT_TIMEOUT = 2.0
"""Seconds to connect for a write: another worker of the instance waits for them, too. A write that was not sent is repeated."""
WRITE_TIMEOUT = 11.0
"""
Seconds after which the API server gives up a write (its query parameter `timeout`, which cancels webhooks and transactions).

Without it a write could take effect after 34 s, when the worker that sent it may no longer own the instance. Webhooks have 10 s
unless they ask for more, so one that does not respond and is ignored still leaves time for the write.
"""
SHORTEST_TIMEOUT = 0.1
"""Seconds for a request that is sent at a connection's deadline."""

POOL_SIZE = 1024
"""More than the threads of an operation, which are the workers and one for each kind that it watches. A connection that finds
no place in the pool is closed, and a later request pays for another TLS handshake. Only what is needed is opened."""

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
"""Accepts a list's objects without specs and data, from servers that can leave these out."""

_KEEPALIVE = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.IPPROTO_TCP, getattr(socket, "TCP_KEEPIDLE", 4), 20),
    (socket.IPPROTO_TCP, getattr(socket, "TCP_KEEPINTVL", 5), 10),
    (socket.IPPROTO_TCP, getattr(socket, "TCP_KEEPCNT", 6), 3),
]


@dataclass
class Traffic:
    """Counts requests. For many threads."""

    requests: int = 0
    failed: int = 0
    """Those among them that got no response, 429 or 5xx, after which a request is repeated."""
    _lock: threading.Lock = field(default_factory=lambda: threading.Lock())  # `threading` may be patched

    def count(self, error: BaseException | None = None) -> None:
        with self._lock:
            self.requests += 1
            self.failed += error is not None and passes(error)


def _never() -> bool:
    return False


def _ignore(data: bytes, response: Object) -> None:
    del data, response


class Connection:
    """One cluster for the length of one operation; a context manager, safe to use from many threads."""

    def __init__(
        self,
        endpoint: Endpoint,
        traffic: Traffic | None = None,
        deadline: float = math.inf,
        is_stopped: Callable[[], bool] = _never,
        response_limit: int | None = None,
        memory: Memory | None = None,
    ) -> None:
        """No request lasts longer than until `deadline`, a time of time.monotonic(); no list goes on after `is_stopped`.

        `response_limit`: bytes of a response, RESPONSE_LIMIT without it. `memory`: that of the operation.
        """
        self.memory = memory or of_operation()
        self.endpoint, self._traffic, self._deadline, self._is_stopped = endpoint, traffic or Traffic(), deadline, is_stopped
        self.clock = ServerClock()
        self.restarts = Restarts()
        self._is_closed = False
        self._pool = pools.pools(endpoint.judge, endpoint.tls_context(), maxsize=POOL_SIZE, socket_options=_KEEPALIVE)
        self._response_limit = response_limit
        provider = endpoint.provider
        self._tokens = auth.tokens(provider, endpoint.ca, endpoint.verify, endpoint.judge) if provider else None
        self._acceptance = auth.Acceptance()

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_closed = True
        self._pool.clear()

    def to(self, endpoint: Endpoint, response_limit: int) -> Connection:
        """A connection to another cluster, for the same operation."""
        return Connection(endpoint, self._traffic, self._deadline, self._is_stopped, response_limit, self.memory)

    def until(self, deadline: float, is_stopped: Callable[[], bool]) -> Connection:
        """A connection to the same cluster, for what of the same operation is to end by then."""
        within = Connection(self.endpoint, self._traffic, min(deadline, self._deadline), is_stopped, memory=self.memory)
        within.restarts = self.restarts
        return within

    def is_over(self) -> bool:
        """Whether no further page of a list may be requested."""
        return time.monotonic() >= self._deadline or self._is_stopped()

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Sequence[tuple[str, str]] = (),
        body: Any = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        read_timeout: float = READ_TIMEOUT,
        adopted: bool = False,
        live: Object | None = None,
        arrived: Callable[[bytes], object] | None = None,
        received: Callable[[bytes, Object], None] = _ignore,
    ) -> Object:
        """One request, of at most `read_timeout` seconds; returns the response's JSON.

        The audit log says `adopted`. No error has values of `body`, nor of `live`, the object as the server has it.
        `arrived` takes the memory for the response's body before it is decoded, for as long as it likes; without it the body
        has its memory meanwhile only. `received` is called with the body and its JSON.
        ApiError: the server refused. TransportError: its response is not known, or may be another one soon.
        """
        if method != "GET":
            query = [*query, ("timeout", f"{WRITE_TIMEOUT:g}s")]
        sent = (body, content_type, accept, read_timeout, False)
        response = self._counted(method, path, query, *sent, adopted=adopted, live=live)
        if arrived is None:
            found = self._decoded(f"{method} {path}", response.data)
        else:
            arrived(response.data)
            found = _json(f"{method} {path}", response.data)
        received(response.data, found)
        return found

    def get_if_changed(self, path: str, accept: str, etag: str) -> tuple[Object, str] | None:
        """The response to a GET and its ETag, "" for none; None if the server's is still `etag` (RFC 9110, 13.1.2)."""
        try:
            response = self._counted("GET", path, (), None, "application/json", accept, READ_TIMEOUT, False, etag)
        except ApiError as error:
            if error.status == 304:
                return None
            raise
        return self._decoded(f"GET {path}", response.data), response.headers.get("ETag") or ""

    def _decoded(self, attempt: str, data: bytes) -> Object:
        try:
            with self.memory.of_response(data):
                return _json(attempt, data)
        except NoMemory:
            raise TransportError(f"{attempt}: other responses have the memory of this conductor") from None

    def stream(self, path: str, query: Sequence[tuple[str, str]], idle_limit: float) -> urllib3.BaseHTTPResponse:
        """An open response to a GET, for a watch; it may be silent for `idle_limit` seconds. The caller closes it."""
        response = self._counted("GET", path, query, None, "application/json", "application/json", READ_TIMEOUT, True)
        bounded.limit_silence(response.opened, idle_limit)
        return response.opened

    def _counted(
        self,
        method: str,
        path: str,
        query: Sequence[tuple[str, str]],
        *request: Any,
        adopted: bool = False,
        live: Object | None = None,
    ) -> bounded.Response:
        failure: BaseException | None = None
        try:
            return self._send(method, path, query, *request, live=live)
        except BaseException as error:  # whatever it is, the request may have been sent
            failure = error
            raise
        finally:
            self._traffic.count(failure)
            is_trial = ("dryRun", "All") in query or (method == "DELETE" and "dryRun" in (request[0] or {}))
            if method != "GET" and not is_trial:
                audit.record(method, self.endpoint.url, path, query, adopted, failure)

    def _send(
        self,
        method: str,
        path: str,
        query: Sequence[tuple[str, str]],
        body: Any,
        content_type: str,
        accept: str,
        read_timeout: float,
        stream: bool,
        etag: str = "",
        *,
        live: Object | None,
    ) -> bounded.Response:
        attempt = f"{method} {path}"
        if self._is_closed:  # a thread that was not waited for any longer must not write
            raise NotConnected(f"{attempt}: the operation has ended")
        if not {".", ".."}.isdisjoint(path.split("/")):  # urllib3 would request another path
            raise InvalidRequest(f"{attempt}: has a name that no object has")
        content = None if body is None else _yaml(body) if content_type == APPLY else json.dumps(body)
        url = self.endpoint.url + quote(path, safe="/:") + (f"?{urlencode(query)}" if query else "")
        headers = {"User-Agent": "k8s-cr-driver", "Accept": accept, "Content-Type": content_type}
        headers |= {"If-None-Match": etag} if etag else {}
        left = max(self._deadline - time.monotonic(), SHORTEST_TIMEOUT)
        connect, within = CONNECT_TIMEOUT if method == "GET" else WRITE_CONNECT_TIMEOUT, min(read_timeout, left)

        def sent(authorization: str) -> bounded.Response:
            given = {**headers, **({"Authorization": authorization} if authorization else {})}
            response = bounded.request(
                self._pool, method, url, headers=given, body=content, connect=connect, within=within, limit=self._response_limit
            )
            if not stream or not response.is_success:
                _ = response.data  # is read here, where its errors are understood
            return response

        try:
            response = sent(self.endpoint.authorization) if self._tokens is None else self._tokens.lend(sent, left)
        except urllib3.exceptions.HTTPError as error:
            self.restarts.sign()
            raise self._unanswered(attempt, error) from None
        if not response.is_success:
            refused = refusal(attempt, response, SentValues(filter(None, (body, live)), self.is_over))
            if response.status == 401 and Said.DENIED not in refused.said:  # an admission webhook may say any code
                raise self._refused(attempt)
            raise self.restarts.judged(attempt, refused)
        self.restarts.allowed(attempt)
        self._acceptance.accepted()
        self.clock.note(response.headers.get("Date"))
        return response

    def _unanswered(self, attempt: str, error: urllib3.exceptions.HTTPError) -> DriverError:
        if isinstance(error, urllib3.exceptions.SSLError):
            return tls.failure(self.endpoint.url, str(error))
        if isinstance(error, urllib3.exceptions.NewConnectionError | urllib3.exceptions.ConnectTimeoutError):
            return NotConnected(f"{attempt}: cannot connect to {self.endpoint.url}: {bounded.words(error)}")
        return TransportError(f"{attempt}: {bounded.words(error)}")

    def _refused(self, attempt: str) -> DriverError:
        if self._tokens is not None:
            return self._acceptance.refused(attempt, self._tokens.refusal(self.endpoint.url))
        refusal = ConnectionFailed(f"{self.endpoint.url} does not accept the credentials (401).", Concern.CREDENTIALS)
        return self._acceptance.refused(attempt, refusal)


def _json(attempt: str, data: bytes) -> Object:
    try:
        response = decoded(data)
    except BeyondLimit as error:
        raise Unreadable(f"{attempt}: {error}") from None
    except ValueError:
        raise Unreadable(f"{attempt}: the response is not whole JSON") from None
    if not isinstance(response, dict):
        raise Unreadable(f"{attempt}: the response is not an object")
    return response


def _yaml(body: Object) -> str:
    """JSON that servers read as YAML, which knows no surrogate pairs, folds some characters and refuses others raw."""
    text = json.dumps(body, ensure_ascii=False)
    return re.sub("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]", lambda found: f"\\u{ord(found[0]):04x}", text)
