# SPDX-License-Identifier: Apache-2.0
"""The receiver in the documents works as it stands there."""

from __future__ import annotations

import re
import socket
import ssl
import stat
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import urllib3

from k8s_cr_driver.credentials import envelope, post
from k8s_cr_driver.credentials.envelope import Envelope
from k8s_cr_driver.credentials.post import NotDelivered
from k8s_cr_driver.credentials.secrets import Secrets
from k8s_cr_driver.credentials.settings import Settings
from tests.fake_api.tls import server_certificate
from tests.instance import BLUE

DOCUMENT = Path(__file__).parents[2] / "doc" / "source" / "reference" / "credentials.rst"
KEY = b"0123456789abcdef0123456789abcdef"


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Settings]:
    [code] = re.findall(r":name: receiver\n\n((?:   .*\n|\n)+)", DOCUMENT.read_text())
    (tmp_path / "receiver.py").write_text(textwrap.dedent(code))
    (tmp_path / "hmac.key").write_bytes(KEY + b"\n")
    chain, ca = server_certificate()
    (tmp_path / "server.pem").write_bytes(chain)
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    process = subprocess.Popen([sys.executable, "receiver.py", str(port)], cwd=tmp_path, stderr=subprocess.DEVNULL)
    yield Settings(f"https://127.0.0.1:{port}/", {}, ca_bundle=ca)
    process.kill()
    process.wait()


def test_who_says_nothing_keeps_no_one_waiting_and_who_does_not_sign_is_refused(receiver: Settings) -> None:
    send(receiver, "gone", "")
    address = urllib3.util.parse_url(receiver.url)
    with socket.create_connection((address.host, address.port)):
        send(receiver, "gone", "")
    context = ssl.create_default_context(cadata=receiver.ca_bundle)
    with urllib3.PoolManager(ssl_context=context) as http:
        assert http.request("POST", receiver.url, body=b"{}", timeout=30, retries=False).status == 403


def test_the_example_of_the_protocol_has_the_signature_of_the_document() -> None:
    text = DOCUMENT.read_text()
    body = DOCUMENT.with_name("message.json").read_bytes().removesuffix(b"\n")
    [sender] = re.findall(r"\$ sender=(\S+)\n", text)
    [(receivers, key)] = re.findall(r"-hmac (\w+)\n +SHA2-256\(stdin\)= (\w+)\n +\$ key=\2\n", text)
    [(moment, signature)] = re.findall(r"printf %s\.%s (\d+) .* hexkey:\$key\n +SHA2-256\(stdin\)= (\w+)\n", text)
    assert envelope.derived(receivers.encode(), sender).hex() == key
    headers = {envelope.SENDER_HEADER: sender, envelope.TIME_HEADER: moment, envelope.SIGNATURE_HEADER: signature}
    assert envelope.is_signed(receivers.encode(), headers, body, int(moment))
    assert envelope.parse(body).body() == body and f"{len(body)} bytes:" in " ".join(text.split())


def send(settings: Settings, event: str, kubeconfig: str, key: bytes = KEY) -> None:
    message = Envelope(event, BLUE, "default/red", "https://10.0.0.1:6443", kubeconfig, envelope.digest("a: 1"))
    with post.poster(settings, Secrets(key), time.monotonic() + 60) as poster:
        poster.post(message)


def test_the_receiver_of_the_document_stores_a_kubeconfig_and_checks_the_signature(receiver: Settings, tmp_path: Path) -> None:
    send(receiver, "ready", "a: 1")
    stored = tmp_path / f"{BLUE}_default_red.kubeconfig"
    assert stored.read_text() == "a: 1" and stat.S_IMODE(stored.stat().st_mode) == 0o600
    with pytest.raises(NotDelivered, match="status 403"):
        send(receiver, "ready", "a: 2", KEY[::-1])
    send(receiver, "going", "")
    assert stored.read_text() == "a: 1"
    send(receiver, "gone", "")
    assert not stored.exists()
