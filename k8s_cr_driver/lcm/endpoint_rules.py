# SPDX-License-Identifier: Apache-2.0
"""
Which URLs of a VIM the conductor connects to.

Any tenant may register a VIM, and the conductor connects from its own place in the network: to services that trust it there,
or to the metadata of its cloud. A URL is judged as it is written when an operation begins. Each address that its host resolves
to is judged when a connection is opened, and the connection goes to a permitted one (`kube.pools`).
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

from oslo_log import log as logging

from k8s_cr_driver.errors import NotPermitted
from k8s_cr_driver.kube.endpoint import is_plain

LOG = logging.getLogger(__name__)
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True)
class EndpointRules:
    """
    `allowed`: names of hosts with `*` for any part, addresses and networks; empty for all names.

    Only an address or network permits what is loopback or link-local, and `*` alone, which permits everything.
    """

    allowed: tuple[str, ...] = ()
    plain_http: bool = False
    option: str = "allowed_endpoints"
    """The option that `allowed` comes from, for errors."""

    def check(self, url: str, where: str) -> None:
        """Raise NotPermitted, which names the field `where` and the rule, unless the conductor may connect to `url`."""
        if not is_plain(url):
            raise NotPermitted(f"{where}: has a query, a fragment, or the path segment . or ..; give the plain URL")
        parts = urlsplit(url)
        if parts.scheme != "https" and not self.plain_http:
            raise NotPermitted(f"{where}: is not https; the operator allows http by [k8s_cr] allow_http_endpoints")
        if not self.may_permit((parts.hostname or "").lower()):
            raise NotPermitted(
                f"{where}: the conductor may not connect to this host; the operator allows it by [k8s_cr] {self.option}"
            )

    def __call__(self, host: str, addresses: Sequence[str]) -> Sequence[str]:
        """Those of a host's addresses to which a connection may go; NotPermitted if there are none."""
        permitted = [one for one in addresses if (address := _address(one)) and self._permits(host.lower(), address)]
        if addresses and not permitted:
            LOG.warning("No connection to %s, whose addresses %s are not permitted", host, ", ".join(addresses))
            raise NotPermitted(
                f"{host}: resolves to an address that the conductor may not connect to; the operator allows it by [k8s_cr] "
                f"{self.option}"
            )
        return permitted

    def may_permit(self, host: str) -> bool:
        """Whether an address of this host can be permitted."""
        if address := _address(host):
            return self._permits(host, address)
        return self._is_named(host) or any(_network(one) for one in self.allowed)

    def _permits(self, host: str, address: Address) -> bool:
        if "*" in self.allowed or any(address in network for one in self.allowed if (network := _network(one))):
            return True
        return self._is_named(host) and not _is_near(address)

    def _is_named(self, host: str) -> bool:
        return not self.allowed or any(fnmatchcase(host, one.lower()) for one in self.allowed)


ANY = EndpointRules(("*",), plain_http=True)


def _is_near(address: Address) -> bool:
    return address.is_loopback or address.is_link_local or address.is_unspecified or address.is_multicast


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


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        return None
