# SPDX-License-Identifier: Apache-2.0
"""Keystone, Heat, Neutron, Cinder and Nova over HTTP, as far as the driver asks them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PROJECT = "id-of-p"
SERVICES = ("orchestration", "network", "block-storage", "compute", "nfv-orchestration")


@dataclass
class Raw:
    """A whole response."""

    status: int
    content: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class OpenStack:
    """What the services respond, by method and path; `seen` has the requests, without the authentication."""

    url: str = ""
    responses: dict[str, Any] = field(default_factory=dict)
    failures: list[int] = field(default_factory=list)
    """Statuses of the next responses."""
    catalog: str = ""
    """Where the services are, if not here."""
    authenticated: Any = None
    """What Keystone responds in the place of a token, unless it is None."""
    seen: list[str] = field(default_factory=list)

    def vim(self, **changes: str) -> dict[str, dict[str, str]]:
        """The interfaceInfo and accessInfo of the project."""
        access = {"username": "u", "password": "secret-word", "project": "p", "userDomain": "d", "projectDomain": "d"}
        return {"interfaceInfo": {"endpoint": f"{self.url}/v3"}, "accessInfo": {**access, "region": "RegionOne", **changes}}

    def authenticate(self, password: str) -> tuple[int, Any]:
        if password != "secret-word":
            return 401, {"error": {"message": "no", "code": 401}}
        return 201, self.token() if self.authenticated is None else self.authenticated

    def token(self) -> dict[str, Any]:
        catalog = [
            {"type": name, "name": name, "endpoints": [self._endpoint(name)]} for name in SERVICES
        ]
        times = {"expires_at": "2099-01-01T00:00:00.000000Z", "issued_at": "2026-01-01T00:00:00.000000Z"}
        project = {"id": PROJECT, "name": "p", "domain": {"id": "d", "name": "d"}}
        user = {"id": "u", "name": "u", "domain": {"id": "d", "name": "d"}}
        return {"token": {"catalog": catalog, "methods": ["password"], "user": user, "project": project, **times}}

    def _endpoint(self, name: str) -> dict[str, str]:
        url = f"{self.catalog or self.url}/{name}"
        return {"interface": "public", "region": "RegionOne", "region_id": "RegionOne", "url": url, "id": name}


@contextmanager
def serving(port: int = 0) -> Iterator[OpenStack]:
    """At that port of this host, or at a free one."""
    cloud = OpenStack()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or "{}")
            if self.path == "/v3/auth/tokens":
                self._respond(*cloud.authenticate(body["auth"]["identity"]["password"]["user"]["password"]))
            else:
                self._request()

        def do_GET(self) -> None:
            if self.path.rstrip("/") == "/v3":
                links = [{"rel": "self", "href": f"{cloud.url}/v3"}]
                self._respond(200, {"version": {"id": "v3.14", "status": "stable", "links": links}})
            else:
                self._request()

        def _request(self) -> None:
            path = self.path.partition("?")[0]
            cloud.seen.append(f"{self.command} {self.path}")
            if cloud.failures:
                self._respond(cloud.failures.pop(0), {"error": "the service is away"})
            elif path in cloud.responses:
                self._respond(200, cloud.responses[path])
            else:
                self._respond(404, {"error": {"message": f"{path} is not here"}})

        def _respond(self, status: int, body: Any) -> None:
            raw = body if isinstance(body, Raw) else Raw(status, json.dumps(body).encode())
            content = raw.content
            self.send_response(raw.status)
            list(map(self.send_header, raw.headers, raw.headers.values()))
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.send_header("X-Subject-Token", "token-of-keystone")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    cloud.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield cloud
    finally:
        server.shutdown()
        server.server_close()
        thread.join(20)
