# SPDX-License-Identifier: Apache-2.0
"""Keystone's tokens and the VIMs of Tacker's API v1.0, as far as a client of them sees.

VIMs behave as Tacker's: a name is unique, `auth_url` cannot be changed, and credentials are masked in responses.
"""

from __future__ import annotations

import contextlib
import json
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

PASSWORD = "password-of-the-operator"


@dataclass
class Cloud:
    """`failures` are statuses of Tacker's next responses; with `lost` it acts, and the client gets a 504."""

    url: str = ""
    vims: dict[str, dict[str, Any]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    failures: list[int] = field(default_factory=list)
    lost: bool = False

    @property
    def entry(self) -> dict[str, Any]:
        """The cloud in clouds.yaml."""
        auth = {"auth_url": f"{self.url}/v3", "username": "operator", "password": PASSWORD, "project_name": "nfv",
                "user_domain_id": "default", "project_domain_id": "default"}  # fmt: skip
        return {"auth": auth}

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        url = urlsplit(path)
        if url.path == "/v3/auth/tokens":
            right = body["auth"]["identity"]["password"]["user"]["password"] == PASSWORD
            return (201, self._token()) if right else (401, {"error": {"message": "wrong"}})
        if url.path.startswith("/v3"):
            links = [{"rel": "self", "href": f"{self.url}/v3/"}]
            return 200, {"version": {"id": "v3.14", "status": "stable", "links": links}}
        self.requests.append(f"{method} {url.path.partition('/v1.0')[2]}")
        if self.failures:
            return self.failures.pop(0), {"NotFound": {"message": "it did not work"}}
        status, response = self._vims(method, url.path.removeprefix("/v1.0/vims").strip("/"), parse_qs(url.query), body)
        if self.lost:
            self.lost = False
            return 504, {}
        return status, response

    def _vims(self, method: str, id: str, query: dict[str, list[str]], body: Any) -> tuple[int, Any]:
        if method == "GET":
            found = [_masked(vim) for vim in self.vims.values() if vim["name"] in query["name"]]
            return 200, {"vims": found}
        if method == "POST":
            if any(vim["name"] == body["vim"]["name"] for vim in self.vims.values()):
                return 409, {"DuplicateEntity": {"message": "vim already exist"}}
            new = {"id": str(uuid.uuid4()), **body["vim"]}
            self.vims[new["id"]] = new
            return 201, {"vim": _masked(new)}
        if id not in self.vims:
            return 404, {"VimNotFoundException": {"message": "not found"}}
        if method == "DELETE":
            del self.vims[id]
            return 204, None
        if body["vim"].keys() - {"auth_cred", "description"}:
            return 400, {"badRequest": {"message": "Cannot update read-only attribute"}}
        self.vims[id].update(body["vim"])
        return 200, {"vim": _masked(self.vims[id])}

    def _token(self) -> Any:
        endpoint = {"id": "1", "interface": "public", "region": "RegionOne", "region_id": "RegionOne", "url": self.url}
        catalog = [{"type": "nfv-orchestration", "name": "tacker", "id": "1", "endpoints": [endpoint]}]
        return {"token": {"expires_at": "2099-01-01T00:00:00.000000Z", "issued_at": "2026-01-01T00:00:00.000000Z",
                          "methods": ["password"], "catalog": catalog, "user": {"id": "1", "name": "operator"},
                          "project": {"id": "1", "name": "nfv"}, "roles": []}}  # fmt: skip


@contextlib.contextmanager
def openstack() -> Iterator[Cloud]:
    cloud = Cloud()

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            status, content = cloud.answer(self.command, self.path, body)
            data = b"" if content is None else json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("X-Subject-Token", "keystone-token")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    cloud.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield cloud
    finally:
        server.shutdown()
        server.server_close()


def _masked(vim: dict[str, Any]) -> dict[str, Any]:
    return {**vim, "auth_cred": dict.fromkeys(vim["auth_cred"], "***")}
