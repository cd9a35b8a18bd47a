# SPDX-License-Identifier: Apache-2.0
"""
Which URLs that others name this host connects to.

Any tenant may register a VIM or send a kubeconfig, and this host connects from its own place in the network: to services that
trust it there, or to the metadata of its cloud. A URL is judged as it is written when an operation begins. Each address that
its host resolves to is judged when a connection is opened, and the connection goes to a permitted one (`kube.pools`). An
address that carries an IPv4 address, which a translator or a tunnel takes out, is judged as both.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

from k8s_cr_driver import logs
from k8s_cr_driver.errors import NotPermitted
from k8s_cr_driver.kube.endpoint import is_plain

LOG = logs.logger(__name__)
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

METADATA = frozenset(
    map(
        ipaddress.ip_address,
        (
            *("169.254.169.254", "fe80::a9fe:a9fe"),  # most clouds; OpenStack over IPv6
            *("fd00:ec2::254", "169.254.170.2", "169.254.170.23", "fd00:ec2::23"),  # AWS, and the credentials of its containers
            "fd20:ce::254",  # Google
            "168.63.129.16",  # Azure's agent
            "100.100.100.200",  # Alibaba
            *("192.0.0.192", "fd00:c1::a9fe:a9fe"),  # Oracle
            *("169.254.42.42", "fd00:42::42"),  # Scaleway
            "169.254.0.23",  # Tencent
        ),
    )
)
"""Where clouds have a host's credentials."""
_CARRIERS = {
    ipaddress.IPv6Network("64:ff9b::/96"): 0,  # NAT64 (RFC 6052)
    ipaddress.IPv6Network("::ffff:0:0/96"): 0,  # mapped (RFC 4291, 2.5.5.2)
    ipaddress.IPv6Network("::/96"): 0,  # compatible (2.5.5.1)
    ipaddress.IPv6Network("2002::/16"): 80,  # 6to4 (RFC 3056)
}
"""Prefixes of addresses that carry an IPv4 address, and how many bits follow it."""
_UNICAST = ipaddress.IPv6Network("2000::/3")


@dataclass(frozen=True)
class EndpointRules:
    """
    `allowed`: names of hosts with `*` for any part, addresses and networks; empty for all names with global addresses.

    A name that is listed permits addresses of private networks, too. Only an address or network permits what is loopback or
    link-local, only the address itself one of this host or of a cloud's metadata. `*` alone permits everything.
    """

    allowed: tuple[str, ...] = ()
    plain_http: bool = False
    option: str = "[k8s_cr] allowed_endpoints"
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
                f"{where}: no connection to this host is permitted; the operator allows it by {self.option}"
            )

    def __call__(self, host: str, addresses: Sequence[str]) -> Sequence[str]:
        """Those of a host's addresses to which a connection may go; NotPermitted if there are none."""
        permitted = [one for one in addresses if (address := _address(one)) and self._permits(host.lower(), address)]
        if addresses and not permitted:
            LOG.warning("No connection to %s, whose addresses %s are not permitted", host, ", ".join(addresses))
            raise NotPermitted(
                f"{host}: resolves to an address to which no connection is permitted; the operator allows it by {self.option}"
            )
        return permitted

    def may_permit(self, host: str) -> bool:
        """Whether an address of this host can be permitted."""
        if address := _address(host):
            return self._permits(host, address)
        return self._is_named(host) or any(_network(one) for one in self.allowed)

    def _permits(self, host: str, address: Address) -> bool:
        if "*" in self.allowed:
            return True
        networks = [network for one in self.allowed if (network := _network(one))]
        forms = (address, *_carried(address))
        listed = [network for network in networks if any(one in network for one in forms)]
        is_near = any(map(_is_near, forms))
        if not METADATA.isdisjoint(forms) or (not is_near and any(map(_is_own, forms))):
            return any(network.num_addresses == 1 for network in listed)
        is_far = not is_near if self.allowed else all(map(_is_global, forms))
        return bool(listed) or (is_far and self._is_named(host))

    def _is_named(self, host: str) -> bool:
        return not self.allowed or any(fnmatchcase(host, one.lower()) for one in self.allowed)


ANY = EndpointRules(("*",), plain_http=True)


def _is_near(address: Address) -> bool:
    return address.is_loopback or address.is_link_local or address.is_unspecified or address.is_multicast


def _is_global(address: Address) -> bool:
    """Of IPv6 only 2000::/3 is assigned to the Internet (IANA), and the prefixes of IPv4 addresses lead there as these do."""
    if address.version == 6 and address not in _UNICAST:
        return bool(_carried(address))
    return address.is_global and not address.is_multicast


def _is_own(address: Address) -> bool:
    """Whether it is an address of this host, which is where a packet to it would come from. None is sent."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((str(address), 9))
            return _address(probe.getsockname()[0]) == address
    except OSError:  # there is no way to it
        return False


def _carried(address: Address) -> list[ipaddress.IPv4Address]:
    """The IPv4 address in an IPv6 address, to which a connection may lead."""
    return [
        ipaddress.IPv4Address(int(address) >> shift & 0xFFFFFFFF)
        for network, shift in _CARRIERS.items()
        if address.version == 6 and address in network
    ]


def _address(host: str) -> Address | None:
    """The address that `host` is, in any form that the resolver takes: 127.1 and 0x7f000001 are 127.0.0.1."""
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        try:
            return ipaddress.IPv4Address(socket.inet_aton(host))
        except (OSError, ValueError):
            return None


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        return None
