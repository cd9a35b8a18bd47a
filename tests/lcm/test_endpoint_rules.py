# SPDX-License-Identifier: Apache-2.0
"""The conductor connects only to hosts that its operator allows."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from typing import Any

import pytest

from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.kube.endpoint_rules import EndpointRules
from k8s_cr_driver.lcm.vim import endpoint

WITH_PROVIDER = {"client_id": "a", "username": "a", "password": "b"}


def problem(url: str, rules: EndpointRules) -> str:
    """The error for `url` as the endpoint, which is that for it as the token URL; empty if it is allowed."""
    found = []
    for interface, access in (
        ({"endpoint": url}, {}),
        ({"endpoint": "https://allowed.example.com"}, {**WITH_PROVIDER, "oidc_token_url": url}),
    ):
        try:
            endpoint(interface, access, rules=rules)
        except InvalidRequest as error:
            found.append(str(error).partition(": ")[2])
    assert found in ([], found[:1] * 2)
    return found[0] if found else ""


NETWORKS, NAMES = ("*.example.com", "10.0.0.0/8", "2001:db8::/32"), ("*.example.com",)


@pytest.mark.parametrize(
    ("allowed", "hosts", "permitted"),
    [
        ((), "127.0.0.1 127.1 0x7f000001 2130706433 [::1] 0.0.0.0 [::ffff:127.0.0.1]", False),
        ((), "169.254.169.254 [fe80::1] [::] 224.0.0.1", False),
        ((), "8.8.8.8 a.example.com [2606:4700::1]", True),
        (NETWORKS, "10.1.2.3 10.66051 [2001:db8::1]", True),
        (NETWORKS, "11.0.0.1 127.0.0.1 [2001:db9::1]", False),
        (NAMES, "a.example.com A.Example.COM", True),
        (NAMES, "example.com allowed.example.com.evil.net", False),
    ],
)
def test_only_global_addresses_are_allowed_by_default_and_else_those_of_the_list(
    allowed: tuple[str, ...], hosts: str, permitted: bool
) -> None:
    for host in hosts.split():
        found = problem(f"https://{host}:6443/clusters/a", EndpointRules(allowed))
        assert (found == "") is permitted and (permitted or "[k8s_cr] allowed_endpoints" in found), host


def test_a_url_that_parsers_read_differently_is_refused() -> None:
    """For one parser the host ends at the backslash, for the other one it has half of an IPv6 address."""
    assert "give the plain URL" in problem("https://a\\[b", EndpointRules())


@pytest.mark.parametrize(
    "host",
    [
        *("10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "192.0.2.1", "198.18.0.1", "240.0.0.1", "255.255.255.255"),
        *("[fc00::1]", "[fd00::1]", "[2001:db8::1]", "[2001::1]", "[64:ff9b:1::808:808]", "[fec0::1]", "[4000::1]"),
    ],
)
def test_addresses_that_are_not_global_are_refused_unless_they_are_listed(host: str) -> None:
    assert "[k8s_cr] allowed_endpoints" in problem(f"https://{host}:6443", EndpointRules())
    assert problem(f"https://{host}:6443", EndpointRules((host.strip("[]"),))) == ""


@pytest.mark.parametrize("prefix", ["64:ff9b::", "::ffff:", "::", "2002:"])
@pytest.mark.parametrize(
    ("carried", "allowed", "permitted"),
    [
        ("8.8.8.8", (), True),
        ("10.0.0.1", (), False),
        ("10.0.0.1", ("10.0.0.0/8",), True),
        ("127.0.0.1", (), False),
        ("127.0.0.1", ("*.example.com",), False),
        ("127.0.0.1", ("127.0.0.0/8",), True),
        ("169.254.169.254", ("*.example.com",), False),
        ("168.63.129.16", (), False),
    ],
)
def test_an_embedded_ipv4_address_is_judged(prefix: str, carried: str, allowed: tuple[str, ...], permitted: bool) -> None:
    octets = ipaddress.IPv4Address(carried).packed.hex()
    text = f"2002:{octets[:4]}:{octets[4:]}::1" if prefix == "2002:" else prefix + carried
    rules = EndpointRules(allowed)
    if permitted:
        assert rules("a.example.com", [text]) == [text]
    else:
        with pytest.raises(InvalidRequest):
            rules("a.example.com", [text])
    assert (problem(f"https://[{text}]", rules) == "") is permitted


@pytest.mark.parametrize(
    "address",
    [
        *("169.254.169.254", "168.63.129.16", "100.100.100.200", "192.0.0.192", "169.254.170.2"),
        *("fd00:ec2::254", "fd20:ce::254", "fe80::a9fe:a9fe", "fd00:c1::a9fe:a9fe"),
    ],
)
def test_the_metadata_of_a_cloud_needs_its_own_address_in_the_list(address: str) -> None:
    """A network that contains it was not meant for it."""
    network = "0.0.0.0/0" if "." in address else "::/0"
    for allowed in ((), ("*.example.com",), (network,)):
        with pytest.raises(InvalidRequest):
            EndpointRules(allowed)("a.example.com", [address])
    assert EndpointRules((address,))("a.example.com", [address]) == [address]


def test_an_address_of_this_host_needs_itself_in_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    class Probe(contextlib.closing[Any]):
        """A socket of a host with the address 203.0.113.5 and, in a network of the list, 10.0.0.5."""

        def __init__(self, *_: object) -> None:
            super().__init__(self)
            self.source = ""

        def __enter__(self) -> Probe:
            return self

        def close(self) -> None: ...

        def connect(self, target: tuple[str, int]) -> None:
            self.source = target[0] if target[0] in ("8.8.4.4", "10.0.0.5") else "10.0.0.5"

        def getsockname(self) -> tuple[str, int]:
            return self.source, 1

    monkeypatch.setattr(socket, "socket", Probe)
    assert EndpointRules()("a.example.com", ["8.8.8.8", "8.8.4.4"]) == ["8.8.8.8"]
    assert EndpointRules(("10.0.0.0/8",))("a.example.com", ["10.0.0.5", "10.0.0.6"]) == ["10.0.0.6"]
    assert EndpointRules(("*.example.com",))("a.example.com", ["10.0.0.5", "10.0.0.6"]) == ["10.0.0.6"]
    assert EndpointRules(("10.0.0.5",))("a.example.com", ["10.0.0.5"]) == ["10.0.0.5"]


def test_the_hosts_own_addresses_are_those_of_its_interfaces() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this host has no other interface than loopback")
        own = probe.getsockname()[0]
    with pytest.raises(InvalidRequest):
        EndpointRules(("0.0.0.0/0",))("a.example.com", [own])


@pytest.mark.parametrize(
    ("allowed", "host", "addresses", "permitted"),
    [
        ((), "a.example.com", ["8.8.8.8", "2606:4700::1"], ["8.8.8.8", "2606:4700::1"]),
        ((), "a.example.com", ["127.0.0.1", "8.8.8.8", "10.0.0.1", "fe80::1%eth0"], ["8.8.8.8"]),
        ((), "a.example.com", ["169.254.169.254"], []),
        ((), "a.example.com", ["::ffff:169.254.169.254"], []),
        (("*.example.com",), "a.example.com", ["10.0.0.1", "127.0.0.1"], ["10.0.0.1"]),
        (("localhost",), "localhost", ["127.0.0.1"], []),
        (("localhost", "127.0.0.1"), "localhost", ["::1", "127.0.0.1"], ["127.0.0.1"]),
        (("10.0.0.0/8",), "a.example.com", ["10.0.0.1", "192.0.2.1"], ["10.0.0.1"]),
        (("10.0.0.0/8", "*.example.com"), "evil.net", ["192.0.2.1"], []),
        (("*",), "localhost", ["127.0.0.1"], ["127.0.0.1"]),
    ],
)  # fmt: skip
def test_a_connection_goes_to_the_permitted_addresses_of_a_host(
    allowed: tuple[str, ...], host: str, addresses: list[str], permitted: list[str]
) -> None:
    rules = EndpointRules(allowed)
    if permitted:
        assert rules(host, addresses) == permitted
        return
    with pytest.raises(InvalidRequest, match=rf"^{host}: resolves to an address .* \[k8s_cr\] allowed_endpoints") as raised:
        rules(host, addresses)
    assert not any(address in str(raised.value) for address in addresses)


@pytest.mark.parametrize(
    "rest", ["/?a=b", "?", "#a", "/#", "/a/../b", "/..", "/%2e%2e/", "/a/%2E/b", "/a\\..\\b"]
)
def test_an_endpoint_is_a_plain_url(rest: str) -> None:
    assert "give the plain URL" in problem(f"https://a.example.com{rest}", EndpointRules())


def test_http_is_refused_unless_an_option_allows_it() -> None:
    assert "allow_http_endpoints" in problem("http://a.example.com", EndpointRules())
    assert endpoint({"endpoint": "http://a.example.com"}, {}, rules=EndpointRules(plain_http=True)).url
