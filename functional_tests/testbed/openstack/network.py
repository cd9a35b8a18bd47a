# SPDX-License-Identifier: Apache-2.0
"""The cloud's network on this host: a bridge for each network, a pair of interfaces for each port that is plugged in.

The names of links are those of Neutron's objects, cut to the 15 characters that a link can have.
"""

import hashlib
import ipaddress
import json
from dataclasses import dataclass
from pathlib import Path

from builds import commands

from ..ledger import Ledger

_LINKS = Path("/sys/class/net")
_NAMESPACES = Path("/run/netns")
BRIDGE, TAP = "kbr-", "ktp-"


@dataclass(frozen=True)
class Port:
    """A port of Neutron: where it is plugged in, and its addresses with the prefix length of their subnets."""

    id: str
    network: str
    mac: str
    addresses: tuple[str, ...]
    gateway: str = ""


def bridge_of(network: str) -> str:
    return f"{BRIDGE}{network[:11]}"


def tap_of(port: str, server: str = "") -> str:
    """A port that moves to another server has another one there: the end of the first server removes only its own."""
    return f"{TAP}{hashlib.sha256(f'{server}{port}'.encode()).hexdigest()[:11] if server else port[:11]}"


def has_link(name: str) -> bool:
    return (_LINKS / name).exists()


def has_namespace(name: str) -> bool:
    return (_NAMESPACES / name).exists()


def links(prefix: str) -> set[str]:
    """The host's links whose names begin so."""
    return {path.name for path in _LINKS.iterdir() if path.name.startswith(prefix)}


def namespaces(prefix: str) -> set[str]:
    return {path.name for path in _NAMESPACES.glob(f"{prefix}*")}


def server_namespace(server: str) -> str:
    """The name that `machine` gives to the namespace of a machine."""
    return f"k8scr-{server}"


def add_bridge(ledger: Ledger, network: str) -> None:
    name = bridge_of(network)
    ledger.link(name, "type", "bridge")
    commands.run(["ip", "link", "set", name, "up"])


def add_namespace(ledger: Ledger, name: str) -> None:
    ledger.netns(name)
    commands.run(["ip", "-netns", name, "link", "set", "lo", "up"])


def plug(ledger: Ledger, port: Port, namespace: str, name: str, server: str = "") -> None:
    """Connect the namespace's interface `name` with the bridge of the port's network, which must be there."""
    tap = tap_of(port.id, server)
    ledger.link(tap, "type", "veth", "peer", "name", name, "netns", namespace)
    commands.run(["ip", "link", "set", tap, "master", bridge_of(port.network), "up"])
    inside = ["ip", "-netns", namespace]
    commands.run([*inside, "link", "set", name, "address", port.mac])
    for address in port.addresses:
        commands.run([*inside, "address", "add", address, "dev", name])
    commands.run([*inside, "link", "set", name, "up"])
    if port.gateway:
        commands.run([*inside, "route", "replace", "default", "via", port.gateway])


def unplug(port: str, server: str) -> None:
    """Take a port off a server, if it is there."""
    if has_link(tap_of(port, server)):
        commands.run(["ip", "link", "delete", tap_of(port, server)])


def interfaces(namespace: str) -> dict[str, str]:
    """The names of a namespace's links, in their order, and their MAC addresses."""
    shown = json.loads(commands.run(["ip", "-netns", namespace, "-json", "link", "show"]))
    return {one["ifname"]: one.get("address", "") for one in shown}


def addresses(name: str, namespace: str = "") -> set[str]:
    """What a link of the host, or of a namespace, has, with prefix lengths."""
    where = ["-netns", namespace] if namespace else []
    lines = commands.run(["ip", *where, "-4", "-oneline", "address", "show", "dev", name]).splitlines()
    return {line.split()[3] for line in lines}


def identity(namespace: str) -> int:
    """Another for each namespace, also of the same name."""
    return (_NAMESPACES / namespace).stat().st_ino


def load(namespace: str, table: str, rules: str) -> None:
    """Replace a table of nftables, such as `ip nat`, in a namespace."""
    text = f"table {table}\ndelete table {table}\ntable {table} {{\n{rules}}}\n"
    commands.run(["ip", "netns", "exec", namespace, "nft", text])


def with_prefix(address: str, cidr: str) -> str:
    """The address and the prefix length of its subnet."""
    return f"{address}/{ipaddress.ip_network(cidr).prefixlen}"
