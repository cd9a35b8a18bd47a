# SPDX-License-Identifier: Apache-2.0
"""Waiting for servers."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from k8s_cr_driver.node_clusters import work
from k8s_cr_driver.ssh.command import Command
from k8s_cr_driver.ssh.host import LoginRefused, Unreachable
from k8s_cr_driver.ssh.hosts import Hosts
from tests.ssh.server import Server, serving


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as one:
        yield one


def login(server: Server, hosts: Hosts, patience: float) -> str:
    return work.when_reachable(lambda: hosts.run(server.host(), Command("a look", ("echo", "in"))), time.monotonic() + patience)


@pytest.fixture
def hosts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hosts]:
    monkeypatch.setattr(work, "PAUSE", 0.01)
    with Hosts(lambda _: None) as one:
        yield one


def test_a_server_that_boots_refuses_logins_for_a_moment(server: Server, hosts: Hosts) -> None:
    """It has no user before cloud-init has made one, and systemd lets only root log in before it is up."""
    server.refused = 2
    assert login(server, hosts, 60) == "in\n"
    assert server.logins == 3


def test_a_wrong_key_is_not_tried_for_as_long_as_a_server_may_boot(
    server: Server, hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "LOGIN_WITHIN", 0.0)
    server.refused = 1000
    with pytest.raises(LoginRefused):
        login(server, hosts, 3600)


def test_a_server_that_is_not_awaited_is_asked_once(server: Server, hosts: Hosts) -> None:
    server.refused = 1000
    with pytest.raises(LoginRefused):
        login(server, hosts, 0)
    assert server.logins == 1
    with pytest.raises(Unreachable):
        work.when_reachable(lambda: hosts.run(server.host(port=1), Command("a look", ("true",))), 0)
