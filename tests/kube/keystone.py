# SPDX-License-Identifier: Apache-2.0
"""Keystone and Nova, as far as a client sees who asks for a token and then for one server."""

from __future__ import annotations

import contextlib
import json
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import yaml

from k8s_cr_driver.objects.keys import Object
from tests.credentials.clusters import put_secret
from tests.fake_api import FakeApi

SECRET = "secret-of-the-application"
PASSWORD = "password-of-the-project"
TOKEN = "gAAAA-token-of-the-look"
Answer = tuple[int, dict[str, str], bytes]


@dataclass
class Keystone:
    """`faults` are those of Nova's servers by their id; `answers` are the next responses, whatever is asked."""

    url: str = ""
    requests: list[str] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)
    faults: dict[str, Any] = field(default_factory=dict)
    answers: list[Answer] = field(default_factory=list)

    def auth(self, **changes: Any) -> dict[str, Any]:
        """Of an application credential, in clouds.yaml."""
        given = {"auth_url": self.url, "application_credential_id": "1", "application_credential_secret": SECRET}
        return given | changes

    def answer(self, method: str, path: str, token: str, body: Any) -> Answer:
        self.requests.append(f"{method} {path}")
        self.bodies.append(body)
        if self.answers:
            return self.answers.pop(0)
        if path == "/v3/auth/tokens":
            return self._token(body["auth"]["identity"])
        if path.startswith("/compute/v2.1/servers/") and token == TOKEN:
            server = path.rpartition("/")[2]
            if server in self.faults:
                return as_json(200, {"server": {"id": server, "status": "ERROR", "fault": self.faults[server]}})
        return as_json(404, {"itemNotFound": {"message": "not found", "code": 404}})

    def _token(self, identity: Any) -> Answer:
        application, password = identity.get("application_credential", {}), identity.get("password", {}).get("user", {})
        if SECRET not in application.values() and PASSWORD not in password.values():
            return as_json(401, {"error": {"code": 401, "message": f"not accepted: {identity}"}})
        endpoint = {"interface": "public", "region": "RegionOne", "url": f"{self.url.removesuffix('/v3')}/compute/v2.1"}
        token = {"catalog": [{"type": "compute", "name": "nova", "endpoints": [endpoint]}], "methods": [*identity["methods"]]}
        status, headers, content = as_json(201, {"token": token})
        return status, {**headers, "X-Subject-Token": TOKEN}, content


def as_json(status: int, body: Any) -> Answer:
    return status, {"Content-Type": "application/json"}, json.dumps(body).encode()


@contextlib.contextmanager
def keystone(context: ssl.SSLContext | None = None) -> Iterator[Keystone]:
    """At http, at https with the `context` of its certificate."""
    cloud = Keystone()

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            status, headers, content = cloud.answer(self.command, self.path, self.headers.get("X-Auth-Token", ""), body)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = _serve  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            """A client may go away, or not trust the certificate."""

    server = Server(("127.0.0.1", 0), Handler)
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    cloud.url = f"{'https' if context else 'http'}://127.0.0.1:{server.server_address[1]}/v3"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield cloud
    finally:
        server.shutdown()
        server.server_close()


def put_clouds(api: FakeApi, auth: Object, ca: str = "", **rest: Any) -> None:
    """The Secret `cloud-config` with the cloud `openstack`."""
    text = yaml.safe_dump({"clouds": {"openstack": {"auth": auth, **rest}}})
    put_secret(api, "cloud-config", {"clouds.yaml": text, **({"cacert": ca} if ca else {})})
