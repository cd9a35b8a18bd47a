# SPDX-License-Identifier: Apache-2.0
"""Bridges of networks, and the security groups of the servers' ports."""

from builds import commands

from ..ledger import Ledger
from . import network, security
from .view import View


class Switch:
    """Follows networks and ports."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._loaded: dict[str, tuple[int, str]] = {}

    def follow(self, view: View) -> None:
        wanted = {network.bridge_of(one): one for one in view.networks}
        for name, identifier in wanted.items():
            if not network.has_link(name):
                network.add_bridge(self._ledger, identifier)
            self._address(view, identifier)
        for name in network.links(network.BRIDGE) - wanted.keys():
            commands.run(["ip", "link", "delete", name])
        self._secure(view)

    def _address(self, view: View, identifier: str) -> None:
        """The host is the gateway of an external network."""
        if not view.networks[identifier]["router:external"]:
            return
        name = network.bridge_of(identifier)
        gateways = {
            network.with_prefix(subnet["gateway_ip"], subnet["cidr"])
            for subnet in view.subnets.values()
            if subnet["network_id"] == identifier and subnet["gateway_ip"]
        }
        for gateway in gateways - network.addresses(name):
            commands.run(["ip", "address", "add", gateway, "dev", name])

    def _secure(self, view: View) -> None:
        members = view.group_members()
        for server in {port["device_id"] for port in view.ports.values() if port["device_owner"].startswith("compute:")}:
            namespace = network.server_namespace(server)
            if network.has_namespace(namespace):
                self._load(namespace, security.rules(_in_order(view, server, namespace), view.security_groups, members))

    def _load(self, namespace: str, rules: str) -> None:
        """Only what has changed; a server that was off has a new namespace."""
        state = (network.identity(namespace), rules)
        if self._loaded.get(namespace) != state:
            network.load(namespace, security.TABLE, rules)
            self._loaded[namespace] = state


def _in_order(view: View, server: str, namespace: str) -> list[dict[str, object]]:
    """The server's ports in the order of its interfaces."""
    by_mac = {port["mac_address"]: port for port in view.ports_of(server)}
    return [by_mac[mac] for mac in network.interfaces(namespace).values() if mac in by_mac]
