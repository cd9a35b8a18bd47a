# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr receive` as a process: it listens, stores, ends, and goes on where it was."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from k8s_cr_driver.credentials import envelope, post
from k8s_cr_driver.credentials.envelope import Envelope
from k8s_cr_driver.credentials.post import NotDelivered
from k8s_cr_driver.credentials.secrets import Secrets
from k8s_cr_driver.credentials.settings import Settings
from tests.cli.tool import Tool
from tests.fake_api.tls import server_certificate
from tests.instance import BLUE

KEY = "0123456789abcdef0123456789abcdef"
TOKEN = "receiver-token-fedcba9876543210"
READY = Envelope("ready", BLUE, "default/red", "https://10.0.0.1:6443", "a: secret", envelope.digest("a: secret"))


@pytest.fixture
def options(tmp_path: Path) -> dict[str, str]:
    """The options of the command, and the CA as `ca`."""
    chain, ca = server_certificate()
    files = {"certificate": chain.decode(), "hmac-key": f"{KEY}\n", "token": f"{TOKEN}\n", "ca": ca}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    found = {f"--{name}": str(tmp_path / name) for name in ("certificate", "hmac-key", "token")}
    return {**found, "--key": found["--certificate"], "--folder": str(tmp_path / "received"), "--listen": "127.0.0.1:0"}


def arguments(options: dict[str, str]) -> list[str]:
    return ["receive", *(part for pair in options.items() for part in pair)]


@contextmanager
def running(tool: Tool, options: dict[str, str]) -> Iterator[str]:
    """The URL of a receiver that runs; it is killed."""
    process = tool.start(*arguments(options))
    assert process.stderr is not None
    line = process.stderr.readline()
    assert line.startswith("Listening on 127.0.0.1:"), line
    try:
        yield "https://" + line.split()[-1]
    finally:
        process.kill()
        process.communicate()


def send(url: str, options: dict[str, str], message: Envelope) -> None:
    ca = Path(options["--token"]).with_name("ca").read_text()
    with post.poster(Settings(url, {}, ca_bundle=ca), Secrets(KEY.encode(), TOKEN), time.monotonic() + 10) as poster:
        poster.post(message)


def test_a_kubeconfig_is_received_and_a_killed_receiver_remembers_it(tool: Tool, options: dict[str, str]) -> None:
    with running(tool, options) as url:
        send(url, options, READY)
    stored = Path(options["--folder"], f"{BLUE}_default_red.kubeconfig")
    assert stored.read_text() == "a: secret"
    with running(tool, options) as url:
        older = Envelope(*READY.__dict__.values()).__dict__ | {"sentAt": "2026-01-01T00:00:00+00:00"}
        with pytest.raises(NotDelivered, match="status 409"):
            send(url, options, Envelope(**older))
    assert stored.read_text() == "a: secret"


def test_an_interrupt_ends_it(tool: Tool, options: dict[str, str]) -> None:
    process = tool.start(*arguments(options))
    assert process.stderr is not None and "Listening" in process.stderr.readline()
    assert tool.interrupt(process) == 130
    process.communicate()


def test_anybody_may_not_send(tool: Tool, options: dict[str, str]) -> None:
    del options["--token"]
    assert "Give --token, --client-ca, or both" in tool.run(*arguments(options), code=2).output


@pytest.mark.parametrize(
    "option, content, message",
    [
        ("--hmac-key", "short", "is shorter than 32 bytes; make one with: openssl rand -hex 32"),
        ("--token", "", "is empty, or holds a character that no token has"),
        ("--certificate", "nothing", "--certificate, --key or --client-ca: "),
    ],
)
def test_a_file_that_cannot_be_used_is_named(
    tool: Tool, options: dict[str, str], option: str, content: str, message: str
) -> None:
    Path(options[option]).write_text(content)
    result = tool.run(*arguments(options), code=2 if option == "--certificate" else 1)
    assert message in result.output and option in result.output


def test_an_address_that_is_none_is_a_usage_error(tool: Tool, options: dict[str, str]) -> None:
    assert "is not HOST:PORT" in tool.run(*arguments({**options, "--listen": "8443"}), code=2).output
