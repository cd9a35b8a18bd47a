# SPDX-License-Identifier: Apache-2.0
"""
Which URLs of a VIM the conductor connects to.

Any tenant may register a VIM, and the conductor connects from its own place in the network: to services that trust it there,
or to the metadata of its cloud. The rules speak of the host as it is written. A name that an operator allows is trusted to
resolve to that operator's cluster.
"""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass
from fnmatch import fnmatchcase
from urllib.parse import unquote, urlsplit

from k8s_cr_driver.errors import InvalidRequest

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True)
class EndpointRules:
    """`allowed`: names of hosts with `*` for any part, addresses and networks; empty for all but loopback and link-local."""

    allowed: tuple[str, ...] = ()
    plain_http: bool = False

    def check(self, url: str, where: str) -> None:
        """Raise InvalidRequest, which names the field `where` and the rule, unless the conductor may connect to `url`."""
        parts = urlsplit(url)
        steps = unquote(parts.path).replace("\\", "/").split("/")
        if parts.query or parts.fragment or "?" in url or "#" in url or not {".", ".."}.isdisjoint(steps):
            raise InvalidRequest(f"{where}: has a query, a fragment, or the path segment . or ..; give the plain URL")
        if parts.scheme != "https" and not self.plain_http:
            raise InvalidRequest(f"{where}: is not https; the operator allows http by [k8s_cr] allow_http_endpoints")
        if not self._allows(parts.hostname or ""):
            raise InvalidRequest(
                f"{where}: the conductor may not connect to this host; the operator allows it by [k8s_cr] allowed_endpoints"
            )

    def _allows(self, host: str) -> bool:
        address = _address(host)
        if self.allowed:
            return any(fnmatchcase(host, one.lower()) or _within(address, one) for one in self.allowed)
        if address is None:
            return not f".{host.rstrip('.')}".endswith(".localhost")
        return not (address.is_loopback or address.is_link_local or address.is_unspecified or address.is_multicast)


ANY = EndpointRules(("*",), plain_http=True)


def _address(host: str) -> Address | None:
    """The address that `host` is, in any form that the resolver takes: 127.1 and 0x7f000001 are 127.0.0.1."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        try:
            return ipaddress.IPv4Address(socket.inet_aton(host))
        except (OSError, ValueError):
            return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _within(address: Address | None, network: str) -> bool:
    try:
        return address is not None and address in ipaddress.ip_network(network)
    except ValueError:
        return False
