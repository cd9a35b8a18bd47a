# SPDX-License-Identifier: Apache-2.0
"""A response ends, whatever the server sends: it has limits of time and size."""

from __future__ import annotations

import contextlib
import gzip
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from k8s_cr_driver.errors import TransportError
from k8s_cr_driver.kube import auth, backoff, bounded, watch
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.kube.watch import Message, Reflector, Relist
from k8s_cr_driver.objects.keys import GroupKind

MAPS = "/api/v1/namespaces/default/configmaps"
Send = Callable[[bytes], None]


@contextlib.contextmanager
def server(respond: Callable[[Send, threading.Event], None]) -> Iterator[str]:
    """The URL of a server that responds to each request by `respond(send, closing)`."""
    closing = threading.Event()

    def converse(client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            while client.recv(65536):
                respond(client.sendall, closing)

    def serve(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=converse, args=(listener.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        closing.set()


def head(length: int, status: str = "200 OK", *more: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", "Content-Type: application/json", f"Content-Length: {length}", *more, "", ""]
    return "\r\n".join(lines).encode()


def dripping(status: str) -> Callable[[Send, threading.Event], None]:
    def respond(send: Send, closing: threading.Event) -> None:
        send(head(10**6, status))
        while not closing.wait(0.02):
            send(b" ")

    return respond


@pytest.mark.parametrize("status", ["200 OK", "500 Internal Server Error"])
def test_a_response_that_drips_ends_at_the_read_timeout_and_at_the_deadline(status: str) -> None:
    with server(dripping(status)) as url:
        began = time.monotonic()
        with Connection(Endpoint(url)) as connection, pytest.raises(TransportError, match=f"^GET {MAPS}: .*timed out"):
            connection.request("GET", MAPS, read_timeout=0.2)
        with Connection(Endpoint(url), deadline=time.monotonic() + 0.2) as connection:
            for request in (connection.request, lambda *_: connection.get_if_changed("/api", "application/json", "")):
                with pytest.raises(TransportError, match="timed out"):
                    request("GET", MAPS)
        assert time.monotonic() - began < 5


def test_a_provider_that_drips_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "READ_TIMEOUT", 0.2)
    with server(dripping("200 OK")) as url:
        endpoint = Endpoint("http://127.0.0.1:1", provider=auth.Provider(f"{url}/token", "tacker", "operator", "word"))
        with Connection(endpoint) as connection, pytest.raises(TransportError, match=f"^POST {url}/token: .*timed out"):
            connection.request("GET", MAPS)


def test_a_response_that_is_encoded_is_refused() -> None:
    packed = gzip.compress(b'{"a": "' + b"x" * 10**6 + b'"}')
    with server(lambda send, _: send(head(len(packed), "200 OK", "Content-Encoding: gzip") + packed)) as url:
        with Connection(Endpoint(url)) as connection, pytest.raises(TransportError, match="no encoding is accepted"):
            connection.request("GET", MAPS)
        endpoint = Endpoint(url, provider=auth.Provider(f"{url}/token", "tacker", "operator", "word"))
        with Connection(endpoint) as connection, pytest.raises(TransportError, match="no encoding is accepted"):
            connection.request("GET", MAPS)


def test_a_response_has_a_limited_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "RESPONSE_LIMIT", 1000)
    for size, is_accepted in ((1000, True), (1001, False)):
        content = b'{"a": "%b"}' % (b"x" * (size - 9))
        with server(lambda send, _, content=content: send(head(len(content)) + content)) as url:  # type: ignore[misc]
            expected = contextlib.nullcontext() if is_accepted else pytest.raises(TransportError, match="more than 1000 bytes")
            with Connection(Endpoint(url)) as connection, expected:
                connection.request("GET", MAPS)


def test_a_watch_event_without_end_is_given_up_and_the_watch_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "FIRST", 0.01)
    monkeypatch.setattr(watch, "LINE_LIMIT", 100_000, raising=False)
    metadata = b'{"resourceVersion": "5", "annotations": {"k8s.io/initial-events-end": "true"}}'
    whole = b'{"type": "BOOKMARK", "object": {"metadata": %b}}\n' % metadata
    bodies = [None, whole]

    def respond(send: Send, closing: threading.Event) -> None:
        send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        if body := bodies.pop(0):
            send(b"%x\r\n%b\r\n" % (len(body), body))
            return
        while not closing.wait(0.001):
            send(b"2710\r\n%b\r\n" % (b"x" * 10_000))

    heard: queue.SimpleQueue[Message] = queue.SimpleQueue()
    resource = Resource(GroupKind("", "ConfigMap"), "v1", "configmaps", True, frozenset({"list", "watch"}))
    with server(respond) as url, Connection(Endpoint(url)) as connection:
        stream = Reflector(connection, resource, "", "a=b", heard.put)
        try:
            assert heard.get(timeout=5) == Relist(stream, {})
        finally:
            stream.stop()
