# SPDX-License-Identifier: Apache-2.0
"""Manifests at URLs are read where the operator allows it, within one deadline, and with the hash that the package gives."""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer  # eventlet leaves its own as attributes of http
from pathlib import Path
from typing import Any

import pytest

from k8s_cr_driver.errors import InvalidPackage, InvalidRequest
from k8s_cr_driver.lcm.remote_manifests import RemoteManifests
from k8s_cr_driver.package.files import SIZE_LIMIT
from k8s_cr_driver.package.manifests import load
from tests.fake_api.tls import server_context

CONFIG = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n"
LOCAL = ["127.0.0.0/8", "::1/128"]


class Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        length = SIZE_LIMIT + 1 if self.path == "/large" else len(CONFIG)
        self.send_response({"/missing": 404, "/elsewhere": 302}.get(self.path.partition("?")[0], 200))
        self.send_header("Location", "/one")
        if self.path == "/packed":
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(length))
        self.end_headers()
        with contextlib.suppress(OSError):
            if self.path == "/slow":
                for byte in CONFIG:
                    self.wfile.write(bytes([byte]))
                    time.sleep(0.2)
            else:
                self.wfile.write(b"#" * length if self.path == "/large" else CONFIG)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as running:
        running.handle_error = lambda *_: None  # type: ignore[method-assign]
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def base(server: ThreadingHTTPServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of the server with TLS, whose CA is among those of the system."""
    context, ca = server_context()
    server.socket = context.wrap_socket(server.socket, server_side=True)
    (tmp_path / "ca.pem").write_text(ca)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    return f"https://localhost:{server.server_port}"


def read(root: Path, *urls: str, allowed: list[str] = LOCAL, seconds: float = 60) -> list[dict[str, Any]]:
    return load(root, urls, fetch=RemoteManifests(allowed, seconds))


def test_a_url_is_read_where_the_operator_allows_it(tmp_path: Path, base: str) -> None:
    assert len(read(tmp_path, f"{base}/one")) == 1
    for allowed in ([], ["example.com"]):
        with pytest.raises(InvalidPackage, match=r"hosts that the operator names in \[k8s_cr\] allow_remote_manifests"):
            read(tmp_path, f"{base}/one", allowed=allowed)
    with pytest.raises(InvalidPackage, match="allowed only by https"):
        read(tmp_path, base.replace("https", "http"))


def test_a_name_on_the_list_does_not_lead_to_loopback(tmp_path: Path, base: str) -> None:
    with pytest.raises(InvalidRequest, match=r"^localhost: resolves to .* \[k8s_cr\] allow_remote_manifests"):
        read(tmp_path, f"{base}/one", allowed=["localhost"])


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("elsewhere", "responded with 302; expected 200"),
        ("missing", "responded with 404"),
        ("large", "cannot be read: the response has more than 33554432 bytes"),
        ("packed", "is encoded"),
    ],
)
def test_what_is_no_plain_manifest_is_refused(tmp_path: Path, base: str, page: str, words: str) -> None:
    with pytest.raises(InvalidPackage, match=words) as caught:
        read(tmp_path, f"{base}/{page}?token=hunter2" if page == "missing" else f"{base}/{page}")
    assert "hunter" not in str(caught.value)


@pytest.mark.parametrize("url", ["https://localhost:1/unused?hunter2", "https://localhost:99999/?hunter2"])
def test_an_unusable_url_is_one_error_without_its_query(tmp_path: Path, url: str) -> None:
    with pytest.raises(InvalidPackage, match=r"^https://localhost:\d+/(unused)?: cannot be read") as caught:
        read(tmp_path, url)
    assert "hunter" not in str(caught.value)


def test_one_deadline_holds_for_all_urls(tmp_path: Path, base: str) -> None:
    began = time.monotonic()
    with pytest.raises(InvalidPackage, match="timed out"):
        read(tmp_path, f"{base}/slow", seconds=1)
    fetch = RemoteManifests(LOCAL, 0)
    with pytest.raises(InvalidPackage, match="were not read within 0 s"):
        fetch(f"{base}/one")
    assert time.monotonic() - began < 0.2 * len(CONFIG) - 1


def test_a_certificate_of_no_known_authority_is_refused(tmp_path: Path, server: ThreadingHTTPServer) -> None:
    context, _ = server_context()
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with pytest.raises(InvalidPackage, match="CERTIFICATE_VERIFY_FAILED"):
        read(tmp_path, f"https://127.0.0.1:{server.server_port}/one")


@pytest.mark.parametrize(("content", "is_right"), [(CONFIG, True), (b"another", False)])
def test_the_content_has_the_hash_that_the_package_gives(tmp_path: Path, base: str, content: bytes, is_right: bool) -> None:
    (tmp_path / "TOSCA-Metadata").mkdir()
    digest = hashlib.sha256(content).hexdigest()
    meta = f"Created-by: x\n\nSource: {base}/one\nAlgorithm: SHA-256\nHash: {digest}\n"
    (tmp_path / "TOSCA-Metadata/TOSCA.meta").write_text(meta)
    if is_right:
        assert len(read(tmp_path, f"{base}/one")) == 1
    else:
        with pytest.raises(InvalidPackage, match="one: Hash is not that of the content at the URL"):
            read(tmp_path, f"{base}/one")
