# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr receive` as a process: it listens, stores, ends, and goes on where it was."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from k8s_cr_driver.credentials import post
from k8s_cr_driver.credentials.envelope import Envelope
from k8s_cr_driver.credentials.post import NotDelivered
from k8s_cr_driver.credentials.secrets import Secrets
from k8s_cr_driver.credentials.settings import Settings
from tests.cli.tool import Tool
from tests.credentials.messages import READY, STORED, gone, issue, ready
from tests.credentials.openstack import openstack
from tests.credentials.web import wait_until
from tests.fake_api import FakeApi
from tests.fake_api.tls import server_certificate
from tests.instance import BLUE

KEY = "0123456789abcdef0123456789abcdef"
TOKEN = "receiver-token-fedcba9876543210"


@pytest.fixture
def options(tmp_path: Path) -> dict[str, str]:
    """The options of the command, and the CA as `ca`."""
    chain, ca = server_certificate()
    files = {"certificate": chain.decode(), "hmac-key": f"{KEY}\n", "token": f"{TOKEN}\n", "ca": ca}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o600)
    found = {f"--{name}": str(tmp_path / name) for name in ("certificate", "hmac-key", "token")}
    return {**found, "--key": found["--certificate"], "--folder": str(tmp_path / "received"), "--listen": "127.0.0.1:0"}


def arguments(options: dict[str, str]) -> list[str]:
    return ["receive", *(part for pair in options.items() for part in pair)]


@contextmanager
def running(tool: Tool, options: dict[str, str], *flags: str) -> Iterator[str]:
    """The URL of a receiver that runs; it is killed."""
    process = tool.start(*arguments(options), *flags)
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        assert line.startswith("Listening on 127.0.0.1:"), line
        yield "https://" + line.split()[-1]
    finally:
        process.kill()
        process.communicate()


def send(url: str, options: dict[str, str], message: Envelope) -> None:
    ca = Path(options["--token"]).with_name("ca").read_text()
    with post.poster(Settings(url, {}, ca_bundle=ca), Secrets(KEY.encode(), TOKEN), time.monotonic() + 10) as poster:
        poster.post(message)


def test_a_secret_that_other_users_may_read_is_a_warning_with_the_remedy(tool: Tool, options: dict[str, str]) -> None:
    Path(options["--hmac-key"]).chmod(0o644)
    Path(options["--token"]).chmod(0o640)
    process = tool.start(*arguments(options))
    assert process.stderr is not None
    try:
        file = options["--hmac-key"]
        expected = f"warning: --hmac-key {file}: other users may read it; change that with: chmod o-r {file}\n"
        assert process.stderr.readline() == expected
        assert process.stderr.readline().startswith("Listening on")
    finally:
        process.kill()
        process.communicate()


def test_a_kubeconfig_is_received_and_a_killed_receiver_remembers_it(tool: Tool, options: dict[str, str]) -> None:
    with running(tool, options) as url:
        send(url, options, READY)
    stored = Path(options["--folder"], f"{BLUE}_default_red.kubeconfig")
    assert stored.read_text() == STORED
    with running(tool, options) as url:
        older = Envelope(*READY.__dict__.values()).__dict__ | {"sentAt": "2026-01-01T00:00:00+00:00"}
        with pytest.raises(NotDelivered, match="status 409"):
            send(url, options, Envelope(**older))
    assert stored.read_text() == STORED


def test_a_folder_has_one_receiver_at_a_time(tool: Tool, options: dict[str, str]) -> None:
    with running(tool, options):
        message = re.escape(f"Error: {options['--folder']}: another receiver uses this folder")
        with pytest.raises(AssertionError, match=message), running(tool, options):
            pass
    with running(tool, options):
        pass


def test_a_cluster_is_a_vim_from_its_kubeconfig_to_its_end(
    tool: Tool, options: dict[str, str], tls_api: FakeApi, tmp_path: Path
) -> None:
    issue(tls_api, "token-of-tacker-vim")
    message = ready(tls_api)
    with openstack() as cloud:
        (tmp_path / "clouds.yaml").write_text(yaml.safe_dump({"clouds": {"tacker": cloud.entry}}))
        (tmp_path / "clouds.yaml").chmod(0o600)
        given = {**options, "--clouds": str(tmp_path / "clouds.yaml"), "--allow-endpoint": "127.0.0.0/8"}
        with running(tool, given, "--register-vim") as url:
            send(url, options, message)
            wait_until(lambda: [vim["auth_url"] for vim in cloud.vims.values()] == [tls_api.url])
            send(url, options, gone(message))
            wait_until(lambda: not cloud.vims)


def test_register_vim_needs_the_credentials_of_tacker(tool: Tool, options: dict[str, str], tmp_path: Path) -> None:
    found = tool.run(*arguments(options), "--register-vim", code=2)
    assert "--register-vim and --clouds belong together" in found.output
    (tmp_path / "clouds.yaml").write_text("clouds: {}")
    found = tool.run(*arguments({**options, "--clouds": str(tmp_path / "clouds.yaml")}), "--register-vim", code=1)
    assert "there is no cloud 'tacker' with auth" in found.output


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
        ("--certificate", "nothing", "is no certificate as PEM"),
        ("--client-ca", "nothing", "is no certificate as PEM"),
        ("--key", "nothing", "is no private key as PEM, or its passphrase is wrong"),
        ("--key", server_certificate()[0].decode(), "does not belong to --certificate"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(
    tool: Tool, options: dict[str, str], tmp_path: Path, option: str, content: str, message: str
) -> None:
    (tmp_path / "wrong").write_text(content)
    code = 1 if option in ("--hmac-key", "--token") else 2
    result = tool.run(*arguments({**options, option: str(tmp_path / "wrong")}), code=code)
    assert f"{option} {tmp_path / 'wrong'}" in result.output and message in result.output


def test_an_address_that_is_none_is_a_usage_error(tool: Tool, options: dict[str, str]) -> None:
    assert "'8443' is not HOST:PORT" in tool.run(*arguments({**options, "--listen": "8443"}), code=2).output


def test_an_address_that_cannot_be_listened_on_is_named(tool: Tool, options: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        found = tool.run(*arguments({**options, "--listen": address}), code=2)
    assert f"--listen {address}: Address already in use" in found.output
