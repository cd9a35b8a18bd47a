# SPDX-License-Identifier: Apache-2.0
"""An HTTP proxy that stands for the API server, counts its clients' requests, and lets one of them meet a fault.

A fault is a function of the `Exchange` that it befalls, which may forward it, answer in the server's place, or break
the connection; `injections` has those of the tests. All other requests pass as they are, watches as they come.
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import urllib3

# Of one connection, not of the request or the answer (RFC 9110, section 7.6.1).
_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "host"}
_LINGER_NOT = struct.pack("ii", 1, 0)


class Upstream:
    """The API server: its URL, and one pool of connections for all proxies before it."""

    def __init__(self, url: str, ca: str = "") -> None:
        self._url = url
        context = ssl.create_default_context(cadata=ca) if ca else None
        self._pool = urllib3.PoolManager(maxsize=128, retries=False, ssl_context=context)

    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> urllib3.BaseHTTPResponse:
        """The answer, its body still to be read."""
        return self._pool.request(
            method, self._url + path, headers=headers, body=body, preload_content=False, decode_content=False, redirect=False
        )


def any_request(line: str) -> bool:
    del line
    return True


Fault = Callable[["Exchange"], None]
Among = Callable[[str], bool]
"""Selects, by the request line, the requests of which one is to meet a fault."""


class Proxy(ThreadingHTTPServer):
    """A context manager; after its end nothing reaches the API server any more.

    `requests` has the line of every request since the last `strike`, `has_struck` says whether one has met the fault.
    """

    daemon_threads = False
    request_queue_size = 128

    def __init__(self, upstream: Upstream, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Exchange)
        self.upstream, self.tls = upstream, tls
        self.requests: list[str] = []
        self.has_struck = False
        self._fault: Fault | None = None
        self._index, self._among = 0, any_request
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.server_address[1]}"

    def __enter__(self) -> Proxy:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self._thread.join()
        self.drop_connections()
        self.server_close()  # waits for the exchanges that are under way

    def drop_connections(self) -> None:
        """Ends all that are open; their clients make new ones."""
        with self._lock:
            for connection in self._connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def strike(self, fault: Fault, index: int, among: Among = any_request) -> None:
        """Lets the fault befall the request of that index, counted from now on, `among` those that it may befall."""
        with self._lock:
            self.requests, self.has_struck = [], False
            self._fault, self._index, self._among = fault, index, among

    def fault_of(self, exchange: Exchange) -> Fault | None:
        """Counts a request; the fault if it is the one that shall meet it."""
        with self._lock:
            self.requests.append(exchange.requestline)
            if not self._among(exchange.requestline):
                return None
            self._index -= 1
            if self._fault is None or self._index != -1:
                return None
            self.has_struck = True
            return self._fault

    def finish_request(self, request: Any, client_address: Any) -> None:
        if self.tls is not None:
            request = self.tls.wrap_socket(request, server_side=True)
        with self._lock:
            self._connections.add(request)
        try:
            super().finish_request(request, client_address)
        finally:
            with self._lock:
                self._connections.discard(request)
            request.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has died, or does not accept our certificate, is what the tests are about."""


class Exchange(BaseHTTPRequestHandler):
    """One request and its answer; an instance serves one connection, request by request."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: Proxy
    body = b""

    @property
    def is_watch(self) -> bool:
        return is_watch(self.requestline)

    def forward(self) -> urllib3.BaseHTTPResponse:
        """Has the API server execute the request; its answer, whose body is still to be read."""
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP_BY_HOP}
        return self.server.upstream.request(self.command, self.path, headers, self.body)

    def relay(self) -> None:
        """What the API server answers."""
        answer = self.forward()
        if self.is_watch and answer.status == 200:
            self._stream(answer)
        else:
            self.send(answer.status, _kept(answer.headers), answer.data)

    def execute(self) -> bytes:
        """Has the API server execute the request; the body of its answer, but nothing of a watch."""
        answer = self.forward()
        try:
            return b"" if self.is_watch else answer.data
        finally:
            answer.close()

    def refuse(self, code: int, reason: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        """A Status object in the API server's place."""
        status = {
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message,
        }  # fmt: skip
        if self.is_watch and code == 410:
            self.begin_stream()
            self.write_chunk(json.dumps({"type": "ERROR", "object": status}).encode() + b"\n")
            self.write_chunk(b"")
        else:
            self.send(code, {"Content-Type": "application/json", **(headers or {})}, json.dumps(status).encode())

    def send(self, code: int, headers: Mapping[str, str], data: bytes, *, whole: bool = True) -> None:
        """An answer; the first half of its body if it is not to be `whole`."""
        self.send_response_only(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data if whole else data[: len(data) // 2])
        self.wfile.flush()

    def begin_stream(self) -> None:
        self.close_connection = True
        self.send_response_only(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()

    def write_chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def reset(self) -> None:
        """Breaks the connection, with a reset."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT)
        self.end()

    def end(self) -> None:
        """Ends the connection after what has been sent."""
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.close()

    def await_client(self) -> None:
        """Until the client of a stream, which has nothing more to say, has gone."""
        with contextlib.suppress(OSError):
            self.connection.recv(1)

    def _stream(self, answer: urllib3.BaseHTTPResponse) -> None:
        self.begin_stream()
        threading.Thread(target=self._end_with_client, args=(answer,), daemon=True).start()
        try:
            for chunk in answer.stream(65536):
                self.write_chunk(chunk)
            self.write_chunk(b"")
        finally:
            answer.close()
            with contextlib.suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)

    def _end_with_client(self, answer: urllib3.BaseHTTPResponse) -> None:
        self.await_client()
        with contextlib.suppress(OSError, ValueError, RuntimeError):  # it may have ended already
            answer.shutdown()

    def _serve(self) -> None:
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = self.server.fault_of(self)
        try:
            fault(self) if fault else self.relay()
        except (OSError, urllib3.exceptions.HTTPError):  # the client or the API server has gone
            self.reset()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815 - names of http.server

    def finish(self) -> None:
        """Also where a client that has gone away leaves something unsent."""
        with contextlib.suppress(OSError, ValueError):
            super().finish()
        self.rfile.close()


def is_watch(line: str) -> bool:
    return "watch=true" in line


def is_write(line: str) -> bool:
    return not line.startswith("GET ")


def _kept(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in _HOP_BY_HOP}
