# SPDX-License-Identifier: Apache-2.0
"""A web server over TLS that records what is posted, and responds as a test wants."""

from __future__ import annotations

import contextlib
import json
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.fake_api.tls import server_context

CLOSE = 0
"""Instead of a status: closes the connection in the middle of the response."""
HANG = -1
"""Instead of a status: never responds."""


@dataclass
class Post:
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def message(self) -> dict[str, str]:
        message: dict[str, str] = json.loads(self.body)
        return message


@dataclass
class Web:
    """`responses` are (status, headers) of the next requests; afterwards it is 204."""

    url: str = ""
    ca: str = ""
    posts: list[Post] = field(default_factory=list)
    responses: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)

    @property
    def events(self) -> list[tuple[str, str]]:
        return [(post.message["event"], post.message["cluster"]) for post in self.posts]


@contextlib.contextmanager
def web(context: ssl.SSLContext | None = None, ca: str = "") -> Iterator[Web]:
    if context is None:
        context, ca = server_context()
    found = Web(ca=ca)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.posts.append(Post(self.path, dict(self.headers.items()), body))
            status, headers = found.responses.pop(0) if found.responses else (204, {})
            if status == HANG:
                found.closing.wait(30)
            if status <= 0:
                self.close_connection = True
                return
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def handle_error(self, *_: Any) -> None:
            """A client that refuses the certificate is no fault of the server."""

    server = Server(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    found.url = f"https://127.0.0.1:{server.server_address[1]}/hook"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield found
    finally:
        found.closing.set()
        server.shutdown()
        server.server_close()


def wait_until(condition: Any, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)
