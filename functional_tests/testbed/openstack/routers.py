# SPDX-License-Identifier: Apache-2.0
"""Routers: a namespace each, with an interface for each of its ports, floating IPs and source NAT."""

from dataclasses import replace

from builds import commands

from ..ledger import Ledger
from . import network, routing
from .view import Object, View

PREFIX = "k8scr-router-"


class Routers:
    """Follows routers, their ports, and floating IPs."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._loaded: dict[str, str] = {}

    def follow(self, view: View) -> None:
        wanted = {f"{PREFIX}{identifier}": router for identifier, router in view.routers.items()}
        for name in network.namespaces(PREFIX) - wanted.keys():
            commands.run(["ip", "netns", "delete", name])
            self._loaded.pop(name, None)
        for name, router in wanted.items():
            if not network.has_namespace(name):
                network.add_namespace(self._ledger, name)
                commands.run(["ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv4.ip_forward=1"])
            self._plug(view, router["id"], name)
            if router["external_gateway_info"]:
                self._translate(view, router, name)

    def _plug(self, view: View, router: str, namespace: str) -> None:
        ports = {_interface(port): port for port in view.ports_of(router)}
        for name in network.interfaces(namespace).keys() - ports.keys() - {"lo"}:
            commands.run(["ip", "-netns", namespace, "link", "delete", name])
        for name, port in ports.items():
            plugged = view.port(port)
            if not network.has_link(network.tap_of(port["id"])) and network.has_link(network.bridge_of(plugged.network)):
                gateway = plugged.gateway if name.startswith(routing.OUTSIDE) else ""
                network.plug(self._ledger, replace(plugged, gateway=gateway), namespace, name)

    def _translate(self, view: View, router: Object, namespace: str) -> None:
        outside = next(port for port in view.ports_of(router["id"]) if _interface(port).startswith(routing.OUTSIDE))
        own = outside["fixed_ips"][0]["ip_address"]
        floating = {
            one["floating_ip_address"]: one["fixed_ip_address"]
            for one in view.floatingips.values()
            if one["router_id"] == router["id"] and one["fixed_ip_address"]
        }
        self._hold(namespace, _interface(outside), set(floating))
        rules = routing.rules(own, floating, router["external_gateway_info"].get("enable_snat", True))
        if self._loaded.get(namespace) != rules:
            network.load(namespace, routing.TABLE, rules)
            self._loaded[namespace] = rules

    def _hold(self, namespace: str, interface: str, floating: set[str]) -> None:
        """The external interface answers for the floating IPs, and for no other than its own besides."""
        held = {address for address in network.addresses(interface, namespace) if address.endswith("/32")}
        wanted = {f"{address}/32" for address in floating}
        for verb, changed in (("add", wanted - held), ("delete", held - wanted)):
            for address in changed:
                commands.run(["ip", "-netns", namespace, "address", verb, address, "dev", interface])


def _interface(port: Object) -> str:
    """Its name in the router's namespace."""
    outside = port["device_owner"] == "network:router_gateway"
    return f"{routing.OUTSIDE if outside else routing.INSIDE}{port['id'][:11]}"
