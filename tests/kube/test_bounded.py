# SPDX-License-Identifier: Apache-2.0
"""A response ends, whatever the server sends: it has limits of time and size."""

from __future__ import annotations

import contextlib
import gzip
import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from k8s_cr_driver.errors import DriverError, TransportError
from k8s_cr_driver.kube import auth, bounded, watch
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.discovery import Resource, discover
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.kube.watch import Message, Reflector, Relist
from k8s_cr_driver.objects.keys import GroupKind
from tests.times import change_times

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
        assert time.monotonic() - began < 15


def dripped(text: bytes) -> Callable[[Send, threading.Event], None]:
    """Sends a text again and again, byte by byte."""

    def respond(send: Send, closing: threading.Event) -> None:
        while True:
            for byte in text:
                if closing.wait(0.02):
                    return
                send(bytes([byte]))

    return respond


HELLO = b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc" + b"\x03" * 16000
"""The begin of a TLS record with a ServerHello."""
SLOW = {
    "status line": ("http", b"H" * 1000),
    "headers": ("http", b"HTTP/1.1 200 OK\r\n" + b"X-A: b\r\n" * 1000),
    "interim responses": ("http", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "handshake": ("https", HELLO),
}


@pytest.mark.parametrize("what", SLOW)
def test_a_head_and_a_handshake_that_drip_end_at_the_read_timeout_and_at_the_deadline(what: str) -> None:
    scheme, text = SLOW[what]
    with server(dripped(text)) as url:
        endpoint, began = Endpoint(url.replace("http", scheme), verify=False), time.monotonic()
        with Connection(endpoint) as connection, pytest.raises(TransportError, match=f"^GET {MAPS}: .*timed out"):
            connection.request("GET", MAPS, read_timeout=0.2)
        with Connection(endpoint, deadline=time.monotonic() + 0.2) as connection:
            with pytest.raises(TransportError, match="timed out"):
                connection.request("GET", MAPS)
            with pytest.raises(TransportError, match="timed out"):
                connection.stream(MAPS, (), 60.0)
        assert time.monotonic() - began < 15


def test_a_deadline_holds_in_green_threads() -> None:
    """Under eventlet, as Tacker's conductor runs, each byte of a handshake renews its timeout."""
    program = "import eventlet; eventlet.monkey_patch(); import tests.kube.test_bounded as test\n"
    program += "for what in test.SLOW:\n"
    program += "    test.test_a_head_and_a_handshake_that_drip_end_at_the_read_timeout_and_at_the_deadline(what)\n"
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, timeout=60)


@pytest.mark.parametrize("text", [b"SSH-2.0-Secret_8.4\r\n", b"HTTP/9.secret 200 OK\r\n\r\n", b"HTTP/1.1 secret OK\r\n\r\n"])
def test_words_of_a_server_that_is_none_of_http_are_not_repeated(text: bytes) -> None:
    with server(lambda send, _: send(text)) as url:
        provider = auth.Provider(f"{url}/token", "tacker", "operator", "word")
        for endpoint in (Endpoint(url), Endpoint("http://127.0.0.1:1", provider=provider)):
            with Connection(endpoint) as connection, pytest.raises(TransportError, match="not HTTP") as raised:
                connection.request("GET", MAPS)
            assert "ecret" not in str(raised.value)


def test_words_in_a_body_of_chunks_are_not_repeated() -> None:
    response = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nsecret words\r\n"
    with server(lambda send, _: send(response)) as url, Connection(Endpoint(url)) as connection:
        with pytest.raises(TransportError) as raised:
            connection.request("GET", MAPS)
        assert "secret" not in str(raised.value)


@pytest.mark.parametrize("status", ["400 Secret", "403 Secret", "404 Secret", "409 Secret", "500 Secret", "302 Secret"])
@pytest.mark.parametrize(
    "body",
    [
        b"secret words",
        b'{"message": "secret words", "reason": "secret", "error": "secret", "error_description": "secret"}',
        b'{"kind": "Secret", "apiVersion": "v1", "message": "secret", "details": {"name": "secret"}}',
        b'["secret"]',
        b'{"kind": "Status", "apiVersion": "v1", "details": ["secret"]}',
    ],
)
def test_words_of_a_server_that_is_no_api_server_are_not_repeated(status: str, body: bytes) -> None:
    with server(lambda send, _: send(head(len(body), status, "Location: http://secret/", "X-Secret: secret") + body)) as url:
        provider = auth.Provider(f"{url}/token", "tacker", "operator", "word")
        for endpoint in (Endpoint(url), Endpoint("http://127.0.0.1:1", provider=provider)):
            with Connection(endpoint) as connection, pytest.raises(DriverError) as raised:
                discover(connection)
            assert "ecret" not in str(raised.value)


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


EVENT = b'{"type": "ADDED", "object": {"kind": "ConfigMap", "metadata": {"name": "a", "uid": "b", "resourceVersion": "1"}}}\n'


@pytest.mark.parametrize(("limit", "content"), [("watch_events.LINE_LIMIT", b"x" * 10_000), ("watch.LIST_BYTES", EVENT * 100)])
def test_a_watch_without_end_is_given_up_and_opened_again(monkeypatch: pytest.MonkeyPatch, limit: str, content: bytes) -> None:
    """In one event, and in initial events."""
    change_times(monkeypatch, first_backoff=0.01)
    for limit_of_time in ("INITIAL_LIMIT", "IDLE_LIMIT"):
        monkeypatch.setattr(watch, limit_of_time, 300.0)
    monkeypatch.setattr(f"k8s_cr_driver.kube.{limit}", 100_000)
    metadata = b'{"resourceVersion": "5", "annotations": {"k8s.io/initial-events-end": "true"}}'
    whole = b'{"type": "BOOKMARK", "object": {"metadata": %b}}\n' % metadata
    bodies = [None, whole]

    def respond(send: Send, closing: threading.Event) -> None:
        send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        if body := bodies.pop(0):
            send(b"%x\r\n%b\r\n" % (len(body), body))
            return
        for _ in range(1_000_000 // len(content)):  # far below the limit of the product
            if closing.wait(0.001):
                return
            send(b"%x\r\n%b\r\n" % (len(content), content))
        closing.wait()

    heard: queue.SimpleQueue[Message] = queue.SimpleQueue()
    resource = Resource(GroupKind("", "ConfigMap"), "v1", "configmaps", True, frozenset({"list", "watch"}))
    with server(respond) as url, Connection(Endpoint(url)) as connection:
        stream = Reflector(connection, resource, "", "a=b", heard.put)
        stream.start(lambda: None)
        try:
            assert heard.get(timeout=30) == Relist(stream, {})
        finally:
            stream.stop()


def test_a_watch_reads_no_size_of_a_chunk_without_end() -> None:
    sent: queue.SimpleQueue[int] = queue.SimpleQueue()
    most = 64 * 1024 * 1024

    def respond(send: Send, closing: threading.Event) -> None:
        number = 0
        send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            while number < most:
                send(b"0" * 65536)
                number += 65536
        finally:
            sent.put(number)

    with server(respond) as url, Connection(Endpoint(url)) as connection:
        resource = Resource(GroupKind("", "ConfigMap"), "v1", "configmaps", True, frozenset({"watch"}))
        reflector = Reflector(connection, resource, "", "", lambda _: None)
        reflector.start(lambda: None)
        try:
            assert sent.get(timeout=30) < most
        finally:
            reflector.stop()

