# SPDX-License-Identifier: Apache-2.0
"""The HTTP side: sockets, keep-alive, TLS, recording, faults, and the hand-over to verbs and streams."""

import contextlib
import json
import os
import select
import socket
import ssl
import struct
import threading
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import yaml

from tests.fake_api import access, discovery, dispatch, errors, verbs
from tests.fake_api.cluster import Cluster
from tests.fake_api.errors import ApiError, PageNotFound
from tests.fake_api.faults import Action, Answer, Cut, Faults, Hang, Held, Lie, StreamFault
from tests.fake_api.objects import Object, copy
from tests.fake_api.recording import Request, Requests
from tests.fake_api.watch import Broken, Stream


class Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def __init__(self, cluster: Cluster, tls: ssl.SSLContext | None, requests: Requests, faults: Faults,
                 crashes: list[str], port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.cluster = cluster
        self.tls = tls
        self.requests = requests
        self.faults = faults
        self.crashes = crashes
        self.closing = threading.Event()
        self._streams: list[Stream] = []
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.connections_opened = 0

    def finish_request(self, request: Any, client_address: Any) -> None:
        if self.tls is not None:
            request = self.tls.wrap_socket(request, server_side=True)
        with self._lock:
            self._connections.add(request)
            self.connections_opened += 1
        try:
            super().finish_request(request, client_address)
        finally:
            with self._lock:
                self._connections.discard(request)
            if self.tls is not None:
                self.shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away, or fails the TLS handshake, is no fault of the server."""

    def add_stream(self, stream: Stream) -> None:
        with self.cluster.store.changed:
            self._streams.append(stream)
            self.cluster.store.changed.notify_all()

    def remove_stream(self, stream: Stream) -> None:
        with self.cluster.store.changed:
            self._streams.remove(stream)
            self.cluster.store.changed.notify_all()

    def streams(self) -> list[Stream]:
        with self.cluster.store.lock:
            return list(self._streams)

    def start(self) -> None:
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.005}, daemon=True).start()

    def close(self) -> None:
        """Stop listening, end streams, drop connections."""
        self.closing.set()
        self.shutdown()
        self.server_close()
        for stream in self.streams():
            stream.close()
        self.drop_connections()

    def drop_connections(self) -> None:
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: Server

    def finish(self) -> None:
        """Also where a client that has gone away leaves something unsent, which makes the base class stop half-way."""
        with contextlib.suppress(OSError):
            super().finish()
        self.rfile.close()

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _serve(self) -> None:
        """Record, then fail as the test wants, or answer."""
        url = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        raw = self.rfile.read(length) if length else b""
        content_type = (self.headers.get("Content-Type") or "").partition(";")[0].strip()
        request = self.server.requests.start(self.command, url.path, dict(parse_qsl(url.query, keep_blank_values=True)),
                                             dict(self.headers.items()), _parse(raw), content_type)
        fault = self.server.faults.take(request)
        try:
            if isinstance(fault, Answer):
                raise fault.error
            if isinstance(fault, Lie):
                self._write(request, 200, fault.body, {"Content-Type": "application/json"})
            elif isinstance(fault, Hang):
                self._hang()
            elif isinstance(fault, Cut) and fault.when == "before":
                self._cut(reset=True)
            else:
                if isinstance(fault, Held):
                    self._hold(request, fault)
                self._answer(request, fault)
        except ApiError as error:
            self._send(request, error.code, error.status, error.headers)
        except PageNotFound:
            self._write(request, 404, b"404 page not found\n", {"Content-Type": "text/plain; charset=utf-8"})
        except OSError:
            self.close_connection = True  # the client went away, or close() took the connection
        except Exception as error:
            self.server.crashes.append(f"{request}\n{traceback.format_exc()}")
            self._send(request, 500, errors.internal(f"the fake API server failed: {error!r}").status, {})

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815 - names of http.server

    def _answer(self, request: Request, fault: Action | None) -> None:
        cluster = self.server.cluster
        access.authenticate(cluster.knobs, self.headers.get("Authorization"))
        if request.path in ("/readyz", "/livez", "/healthz"):
            self._write(request, 200, b"ok", {"Content-Type": "text/plain; charset=utf-8"})
        elif request.path in ("/version", "/version/"):
            self._send(request, 200, discovery.version(cluster), {})
        elif tuple(request.path.split("/")[2:4]) in cluster.knobs.down:
            self._write(request, 503, b"service unavailable\n", {"Content-Type": "text/plain; charset=utf-8"})
        elif found := discovery.respond(cluster, request.path, self.headers.get("Accept") or ""):
            self._discover(request, *found, half=isinstance(fault, Cut))
        elif request.watch and request.method == "GET":
            self._stream(request, Stream(self._call(request)), fault)
        else:
            code, body = dispatch.execute(self._call(request), request.method)
            if "as=PartialObjectMetadataList" in (self.headers.get("Accept") or "") and "items" in body:
                body = _metadata_only(body)
            if isinstance(fault, Cut) and fault.when == "after":
                request.status = code
                self._cut(reset=True)
            else:
                self._send(request, code, body, {}, half=isinstance(fault, Cut))

    def _discover(self, request: Request, body: Object, headers: dict[str, str], half: bool) -> None:
        if headers.get("ETag") and self.headers.get("If-None-Match") == headers["ETag"]:
            self._write(request, 304, b"", headers)
        else:
            self._send(request, 200, body, headers, half)

    def _call(self, request: Request) -> verbs.Call:
        return dispatch.call(self.server.cluster, request.method, request.path, request.query, copy(request.body),
                             request.content_type, self.headers.get("User-Agent") or "")

    def _stream(self, request: Request, stream: Stream, fault: Action | None) -> None:
        if isinstance(fault, StreamFault):
            stream.inject(fault)
        request.status = 200
        self.server.add_stream(stream)
        try:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.flush()
            for line in stream.chunks(self._client_gone):
                self._chunk(line)
            self.wfile.write(b"0\r\n\r\n")
            self.wfile.flush()
        except Broken as broken:
            if not broken.reset:
                self._chunk(b'{"type":"MODIFIED","object":{"kind":')
            self._cut(broken.reset)
        finally:
            self.server.remove_stream(stream)

    def _chunk(self, lines: bytes) -> None:
        """As a real server does it: events and chunks do not begin and end together."""
        middle = len(lines) // 2
        for part in (lines[:middle], lines[middle:]):
            if part:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
        self.wfile.flush()

    def _client_gone(self) -> bool:
        """A client of a watch says nothing more: whatever can be read from it is its end."""
        readable, _, _ = select.select([self.connection], [], [], 0)
        return bool(readable) or self.server.closing.is_set()

    def _send(self, request: Request, code: int, body: Object, headers: dict[str, str], half: bool = False) -> None:
        request.response = body
        data = json.dumps(body, separators=(",", ":")).encode()
        self._write(request, code, data, {"Content-Type": "application/json", **headers}, half)

    def _write(self, request: Request, code: int, data: bytes, headers: dict[str, str], half: bool = False) -> None:
        request.status = code
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[:len(data) // 2] if half else data)
        self.wfile.flush()
        if half:
            self._cut(reset=False)

    def _cut(self, reset: bool) -> None:
        """End the connection now: with RST, or with FIN after what has been sent."""
        self.close_connection = True
        if reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        else:
            self.connection.shutdown(socket.SHUT_RDWR)
        os.close(self.connection.detach())

    def _hold(self, request: Request, held: Held) -> None:
        """The filter of request deadlines: `timeout` is a Go duration; the handlers of writes have a limit of their own."""
        limit = min(float(request.query.get("timeout", "34s").removesuffix("s")), 34.0)
        if held.end is None:
            self.server.closing.wait(min(held.seconds, limit))
        elif held.end.wait(min(held.seconds, limit)):
            return
        if held.seconds > limit:
            raise errors.timed_out()

    def _hang(self) -> None:
        self.close_connection = True
        while not self._client_gone():
            select.select([self.connection], [], [], 0.1)


def _metadata_only(listed: Object) -> Object:
    kind = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
    items = [{**kind, "metadata": item["metadata"]} for item in listed["items"]]
    return {**listed, "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "items": items}


def _parse(raw: bytes) -> Any:
    """The body as data; bytes that are neither JSON nor YAML stay as they are."""
    if not raw:
        return None
    try:
        return json.loads(raw)
    except ValueError:
        try:
            return yaml.safe_load(raw)
        except yaml.YAMLError:
            return raw
