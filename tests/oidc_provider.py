# SPDX-License-Identifier: Apache-2.0
"""A small OpenID Connect provider: the token endpoint, and the ID tokens that it has given."""

from __future__ import annotations

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl

from tests.fake_api import tls as certificates


class OidcProvider:
    """
    `accepted` are the tokens that an API server accepts of it; `asked` the forms that came. `answers` come first, as
    (status, body), then tokens that live for `lifetime` seconds (None: they do not tell) since `issued`, a Unix time.
    While `held` is set, nothing is answered.
    """

    def __init__(self, accepted: set[str], *, tls: bool = False) -> None:
        self.asked: list[dict[str, str]] = []
        self.answers: list[tuple[int, Any]] = []
        self.lifetime: int | None = 3600
        self.issued = 1_800_000_000
        self.free = threading.Event()
        self.free.set()
        self.ca_cert = ""
        self._accepted = accepted
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._server.handle_error = lambda request, client_address: None  # type: ignore[method-assign] # a failed handshake
        if tls:
            context, self.ca_cert = certificates.server_context()
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self._server.server_address[1]}/realms/tacker/token"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.005}, daemon=True).start()

    def __enter__(self) -> OidcProvider:
        return self

    def __exit__(self, *_: object) -> None:
        self.free.set()
        self._server.shutdown()
        self._server.server_close()

    def access(self, **rest: str) -> dict[str, str]:
        """The accessInfo of a VIM with a login here."""
        return {"oidc_token_url": self.url, "client_id": "tacker", "username": "operator", "password": "word", **rest}

    def revoke(self) -> None:
        """The API server accepts none of the tokens that were given so far."""
        self._accepted.clear()

    def answer(self) -> tuple[int, Any]:
        if self.answers:
            return self.answers.pop(0)
        claims: dict[str, Any] = {"sub": "operator", "jti": len(self.asked)}
        if self.lifetime is not None:
            claims |= {"iat": self.issued, "exp": self.issued + self.lifetime}
        token = ".".join(_encoded(part) for part in ({"alg": "none"}, claims, {}))
        self._accepted.add(token)
        return 200, {"id_token": token, "access_token": "another", "expires_in": 1}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                form = self.rfile.read(int(self.headers["Content-Length"])).decode()
                provider.asked.append(dict(parse_qsl(form, keep_blank_values=True)))
                provider.free.wait(10)
                status, body = provider.answer()
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                if status == 307:
                    self.send_header("Location", provider.url)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler


def _encoded(part: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
