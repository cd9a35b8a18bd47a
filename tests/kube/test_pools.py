# SPDX-License-Identifier: Apache-2.0
"""Where a connection leads is judged by the address that it goes to."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import urllib3
from urllib3.exceptions import ClosedPoolError

from k8s_cr_driver.errors import ConnectionFailed, InvalidRequest, NotConnected
from k8s_cr_driver.kube import pools
from k8s_cr_driver.kube.auth import Provider
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.kube.endpoint_rules import EndpointRules
from tests.fake_api import FakeApi

LOCAL = EndpointRules(("*",))


class Names:
    """A resolver whose result for a name changes from call to call; the last one stays."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.found: dict[str, list[list[str]]] = {}
        self.asked: list[str] = []
        self._resolve = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self)

    def __call__(self, host: str, port: Any, *args: Any, **options: Any) -> list[Any]:
        if host not in self.found:
            return self._resolve(host, port, *args, **options)
        self.asked.append(host)
        results = self.found[host]
        addresses = results.pop(0) if len(results) > 1 else results[0]
        return [entry for one in addresses for entry in self._resolve(one, port, type=socket.SOCK_STREAM)]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    return Names(monkeypatch)


@pytest.fixture
def listener() -> Iterator[tuple[int, list[Any]]]:
    """A port of this machine, and the connections to it."""
    accepted: list[Any] = []

    def serve(server: socket.socket) -> None:
        try:
            while True:
                accepted.append(server.accept())
        except OSError:
            pass

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, args=(server,), daemon=True).start()
        yield server.getsockname()[1], accepted


def test_a_name_that_resolves_to_loopback_is_refused_before_a_connection(names: Names, listener: Any) -> None:
    names.found["metadata.example.com"] = [["127.0.0.1"]]
    port, accepted = listener
    endpoint = Endpoint(f"http://metadata.example.com:{port}", judge=EndpointRules(plain_http=True))
    with Connection(endpoint) as connection, pytest.raises(InvalidRequest, match=r"^metadata.example.com: resolves to"):
        connection.request("GET", "/api")
    assert not accepted


def test_a_provider_that_resolves_to_loopback_is_refused(names: Names, listener: Any) -> None:
    names.found["login.example.com"] = [["127.0.0.1"]]
    port, accepted = listener
    provider = Provider(f"http://login.example.com:{port}/token", "tacker", "operator", "word")
    endpoint = Endpoint("http://10.0.0.1", provider=provider, judge=EndpointRules(plain_http=True))
    with Connection(endpoint) as connection, pytest.raises(InvalidRequest, match=r"^login.example.com: resolves to"):
        connection.request("GET", "/api")
    assert not accepted


def test_the_address_that_was_judged_is_the_one_that_is_used(names: Names, listener: Any) -> None:
    """A resolver that gives a harmless address first, and then one of this machine."""
    names.found["rebind.example.com"] = [["192.0.2.1"], ["127.0.0.1"]]
    port, accepted = listener
    judged: list[Any] = []

    def judge(host: str, addresses: Any) -> Any:
        judged.append((host, list(addresses)))
        return ["127.0.0.2"]

    with Connection(Endpoint(f"http://rebind.example.com:{port}", judge=judge)) as connection, pytest.raises(NotConnected):
        connection.request("GET", "/api")
    assert judged == [("rebind.example.com", ["192.0.2.1"])]
    assert names.asked == ["rebind.example.com"]
    assert not accepted


def test_another_address_is_tried_if_one_does_not_accept(api: FakeApi, names: Names) -> None:
    names.found["two.example.com"] = [["127.0.0.3", "127.0.0.1"]]
    with Connection(Endpoint(api.url.replace("127.0.0.1", "two.example.com"), judge=LOCAL)) as connection:
        assert connection.request("GET", "/api")


def test_tls_verifies_the_name_and_not_the_address(tls_api: FakeApi, names: Names) -> None:
    names.found["other.example.com"] = [["127.0.0.1"]]
    url = tls_api.url.replace("127.0.0.1", "{}").replace("localhost", "{}")
    with Connection(Endpoint(url.format("localhost"), ca=tls_api.ca_cert or "", judge=LOCAL)) as connection:
        assert connection.request("GET", "/api")
    other = Endpoint(url.format("other.example.com"), ca=tls_api.ca_cert or "", judge=LOCAL)
    with Connection(other) as connection, pytest.raises(ConnectionFailed, match="certificate"):
        connection.request("GET", "/api")


def test_a_resolver_that_does_not_respond_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: ended.wait(20))
    try:
        with Connection(Endpoint("http://slow.example.com")) as connection, pytest.raises(NotConnected, match="timed out"):
            connection.request("GET", "/api", read_timeout=0.2)
    finally:
        ended.set()


def test_a_resolver_that_hangs_holds_one_thread_for_each_host(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended, asked = threading.Event(), threading.Event(), list[str]()

    def resolve(host: str, *_: Any, **__: Any) -> list[Any]:
        asked.append(host)
        begun.set()
        ended.wait(20)
        raise socket.gaierror("no such host")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    try:
        with Connection(Endpoint("http://slower.example.com")) as connection:
            for _ in range(3):
                with pytest.raises(NotConnected, match="timed out"):
                    connection.request("GET", "/api", read_timeout=0.1)
            assert begun.wait(10)
            assert asked == ["slower.example.com"]
            ended.set()
            with pytest.raises(NotConnected, match="resolve"):
                connection.request("GET", "/api")
            with pytest.raises(NotConnected, match="resolve"):
                connection.request("GET", "/api")
            assert len(asked) > 1
    finally:
        ended.set()


def test_connections_are_closed_with_the_manager_though_somebody_has_a_pool(api: FakeApi) -> None:
    """Else the garbage collector closes them, in whatever thread and depth of calls it runs."""
    manager = pools.pools(pools.anywhere, None, retries=False, timeout=urllib3.Timeout(60))
    pool = manager.connection_from_url(api.url)
    assert pool.request("GET", "/apis").status == 200
    manager.clear()
    with pytest.raises(ClosedPoolError):
        pool.request("GET", "/apis")
