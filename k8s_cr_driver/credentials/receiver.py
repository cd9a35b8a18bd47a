# SPDX-License-Identifier: Apache-2.0
"""The receiver's web server: HTTPS, and every check before a message is stored.

A body that is too large is not read. Of a client without the token only REFUSED_LIMIT bytes are read: a connection that is
closed with unread data is reset, and the client may lose the response. A client that is slow holds one of a limited number of
connections for a limited time, and one address has some of them only. The TLS handshake runs in the connection's own thread.
"""

from __future__ import annotations

import contextlib
import hmac
import socket
import ssl
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from k8s_cr_driver.credentials import envelope
from k8s_cr_driver.credentials.store import Full, Outdated, Store, Stored
from k8s_cr_driver.errors import InvalidRequest

BODY_LIMIT = 1024 * 1024
"""Bytes. A kubeconfig has less than 20 KiB; a Secret cannot have more than 1 MiB."""
CONNECTIONS = 64
EACH = 16
"""Connections of one address."""
PATIENCE = 10.0
"""Seconds that a client may be silent."""
HEAD_WITHIN = 3.0
"""Seconds for the TLS handshake and the headers, which nobody is authenticated for."""
LIFETIME = 30.0
"""Seconds of a connection, from its TLS handshake to its response: a client that sends a byte now and then is never silent."""
REFUSED_LIMIT = 32 * 1024
"""Bytes of the body of a client without the token: as much as a kubeconfig has."""


class Refusal(Exception):
    """The status of a response that is no success, with a reason for the log."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True)
class Gate:
    """Who may send. Without a token the TLS context must demand a client certificate."""

    hmac_key: bytes = field(repr=False)
    token: str = field(default="", repr=False)

    def check_sender(self, headers: Any) -> None:
        """Raises Refusal."""
        given = str(headers.get("Authorization") or "")
        if self.token and not hmac.compare_digest(given.encode(), f"Bearer {self.token}".encode()):
            raise Refusal(HTTPStatus.UNAUTHORIZED, "the bearer token is missing or wrong")

    def opened(self, headers: Any, body: bytes) -> envelope.Envelope:
        """The message in a body. Raises Refusal."""
        if not envelope.is_signed(self.hmac_key, headers, body, time.time()):
            raise Refusal(HTTPStatus.FORBIDDEN, "the signature is wrong, or its time is too far from this host's")
        try:
            message = envelope.parse(body)
        except InvalidRequest as error:
            raise Refusal(HTTPStatus.BAD_REQUEST, str(error)) from None
        if not envelope.is_of(headers, message):
            raise Refusal(HTTPStatus.FORBIDDEN, "the key of the signature is that of another VNF instance")
        if envelope.is_ahead(message, time.time()):
            raise Refusal(HTTPStatus.BAD_REQUEST, "sentAt is in the future")
        return message


class Receiver(ThreadingHTTPServer):
    """`accepted` is called with each message that was stored; `log` with one line for each request."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(
        self,
        address: tuple[str, int],
        tls: ssl.SSLContext,
        gate: Gate,
        store: Store,
        accepted: Callable[[Stored], None],
        log: Callable[[str], None],
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, BaseHTTPRequestHandler)  # `finish_request` makes the handlers
        self.tls, self.gate, self.store, self.accepted, self.log = tls, gate, store, accepted, log
        self._open: Counter[str] = Counter()
        self._lock = threading.Lock()

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            is_full = self._open.total() >= CONNECTIONS or self._open[client_address[0]] >= EACH
            self._open[client_address[0]] += not is_full
        if is_full:
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except Exception:  # there is no thread for it
            self._close(client_address)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._close(client_address)

    def _close(self, client_address: Any) -> None:
        with self._lock:
            self._open -= Counter([client_address[0]])  # keeps no address without connections

    def finish_request(self, request: Any, client_address: Any) -> None:
        request.settimeout(PATIENCE)
        secured = self.tls.wrap_socket(request, server_side=True, do_handshake_on_connect=False)
        with contextlib.closing(secured), _limited(secured, LIFETIME), _limited(secured, HEAD_WITHIN) as head:
            secured.do_handshake()
            _Handler(secured, client_address, self, head)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away, or whose certificate is refused, gets no response."""
        self.log(f"{client_address[0]}: no response, {type(sys.exc_info()[1]).__name__}")


class _Handler(BaseHTTPRequestHandler):
    server: Receiver
    timeout = PATIENCE

    def __init__(self, request: Any, client_address: Any, server: Receiver, head: threading.Timer) -> None:
        """`head` ends the connection unless it is cancelled when the headers are there."""
        self._head = head
        super().__init__(request, client_address, server)

    def do_POST(self) -> None:
        self._head.cancel()
        status, text = HTTPStatus.NO_CONTENT, ""
        try:
            text = self._accept()
        except Refusal as refusal:
            status, text = refusal.status, f"refused: {refusal}"
        except OSError as error:
            status, text = HTTPStatus.INTERNAL_SERVER_ERROR, f"not stored: {error.strerror}"
        self.server.log(f"{self.client_address[0]}: {status.value}, {text}")
        self.close_connection = True
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _accept(self) -> str:
        """Stores the message; returns a line about it."""
        length = self._length()
        try:
            self.server.gate.check_sender(self.headers)
        except Refusal:
            self._read(min(length, REFUSED_LIMIT))
            raise
        message = self.server.gate.opened(self.headers, self._read(length))
        try:
            stored = self.server.store.accept(message)
        except Outdated:
            raise Refusal(HTTPStatus.CONFLICT, f"{message.cluster}: a later message was received before") from None
        except InvalidRequest as error:
            raise Refusal(HTTPStatus.BAD_REQUEST, f"{message.cluster}: {error}") from None
        except Full:
            reason = f"{message.cluster}: no more room in the folder, for VNF instance {message.vnfInstanceId} or for all"
            raise Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, reason) from None
        self.server.accepted(stored)
        return f"{message.event} {message.cluster} of VNF instance {message.vnfInstanceId}"

    def _length(self) -> int:
        length = str(self.headers.get("Content-Length") or "")
        if not length.isdecimal():
            raise Refusal(HTTPStatus.LENGTH_REQUIRED, "there is no Content-Length")
        significant = length.lstrip("0") or "0"
        if len(significant) > len(str(BODY_LIMIT)) or int(significant) > BODY_LIMIT:  # int() refuses thousands of digits
            raise Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body has more than {BODY_LIMIT} bytes")
        return int(significant)

    def _read(self, length: int) -> bytes:
        try:
            return self.rfile.read(length)
        except TimeoutError:
            raise Refusal(HTTPStatus.REQUEST_TIMEOUT, f"the body has not arrived for {PATIENCE:g} seconds") from None

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are logged by `do_POST`; what http.server logs holds what clients have sent."""


@contextlib.contextmanager
def _limited(connection: socket.socket, seconds: float) -> Iterator[threading.Timer]:
    """Ends a connection after so many seconds, unless the timer is cancelled: its reads then find its end."""

    def end() -> None:
        with contextlib.suppress(OSError):  # it may be closed already
            socket.socket.shutdown(connection, socket.SHUT_RDWR)  # an SSLSocket's own would spoil a read of another thread

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield timer
    finally:
        timer.cancel()


def tls_context(certificate: str, key: str, client_ca: str = "") -> ssl.SSLContext:
    """For the files of the server's certificate and key, and of the CA whose certificates clients must have."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    if client_ca:
        context.load_verify_locations(client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context
