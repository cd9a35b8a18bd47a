# SPDX-License-Identifier: Apache-2.0
"""The conductor connects only to hosts that its operator allows."""

from __future__ import annotations

import pytest

from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.lcm.endpoint_rules import EndpointRules
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


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.1", "0x7f000001", "2130706433", "[::1]", "0.0.0.0"),
        *("[::ffff:127.0.0.1]", "169.254.169.254", "[fe80::1]", "[::]", "224.0.0.1"),
    ],
)
def test_loopback_and_link_local_are_refused_by_default(host: str) -> None:
    assert "[k8s_cr] allowed_endpoints" in problem(f"https://{host}:6443", EndpointRules())


def test_a_url_that_parsers_read_differently_is_refused() -> None:
    """For one parser the host ends at the backslash, for the other one it has half of an IPv6 address."""
    assert "give the plain URL" in problem("https://a\\[b", EndpointRules())


@pytest.mark.parametrize("url", ["https://10.0.0.1:6443", "https://a.example.com", "https://[2001:db8::1]:6443/clusters/a"])
def test_other_hosts_are_allowed_by_default(url: str) -> None:
    assert problem(url, EndpointRules()) == ""


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("10.1.2.3", True), ("10.66051", True), ("11.0.0.1", False), ("127.0.0.1", False),
        ("[2001:db8::1]", True), ("[2001:db9::1]", False),
    ],
)  # fmt: skip
def test_only_the_hosts_of_the_list_are_allowed(host: str, allowed: bool) -> None:
    rules = EndpointRules(("*.example.com", "10.0.0.0/8", "2001:db8::/32"))
    assert (problem(f"https://{host}", rules) == "") is allowed


@pytest.mark.parametrize(
    ("host", "allowed"),
    [("a.example.com", True), ("A.Example.COM", True), ("example.com", False), ("allowed.example.com.evil.net", False)],
)
def test_only_the_names_of_the_list_are_allowed(host: str, allowed: bool) -> None:
    assert (problem(f"https://{host}", EndpointRules(("*.example.com",))) == "") is allowed


@pytest.mark.parametrize(
    ("allowed", "host", "addresses", "permitted"),
    [
        ((), "a.example.com", ["10.0.0.1", "2001:db8::1"], ["10.0.0.1", "2001:db8::1"]),
        ((), "a.example.com", ["127.0.0.1", "10.0.0.1", "fe80::1%eth0"], ["10.0.0.1"]),
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
