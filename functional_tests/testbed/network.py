# SPDX-License-Identifier: Apache-2.0
"""One bridge that the host and all machines are on; each machine has a network namespace of its own."""

import ipaddress
from pathlib import Path

from builds import commands

from .ledger import Ledger

BRIDGE = "k8scr0"
# Set aside by RFC 2544 for tests between devices, so that hardly any host has a route for it.
NETWORK = ipaddress.ip_network("198.18.213.0/24")
HOST = NETWORK[1]


def bridge(ledger: Ledger) -> None:
    """Make the bridge, if it is not there yet, with the host at address `HOST` of it."""
    if Path("/sys/class/net", BRIDGE).exists():
        return
    # A given address: else it is that of the lowest port, and changes under the others when a machine comes or goes.
    ledger.link(BRIDGE, "address", "02:00:00:00:00:01", "type", "bridge")
    commands.run(["ip", "address", "add", f"{HOST}/{NETWORK.prefixlen}", "dev", BRIDGE])
    commands.run(["ip", "link", "set", BRIDGE, "up"])


def namespace(ledger: Ledger, name: str, address: str) -> Path:
    """A network namespace whose eth0 has `address` on the bridge.

    Its link address is that of the port, which a server that replaces another one gets with the address: nobody else has to
    learn another one.
    """
    path = ledger.netns(f"k8scr-{name}")
    outer = f"k8scr-{address.rpartition('.')[2]}"  # at most 15 characters, which a name can pass
    link_address = ipaddress.ip_address(address).packed.hex(":")
    ledger.link(outer, "type", "veth", "peer", "name", "eth0", "address", f"02:00:{link_address}", "netns", path.name)
    commands.run(["ip", "link", "set", outer, "master", BRIDGE, "up"])
    inside = ["ip", "-netns", path.name]
    commands.run([*inside, "address", "add", f"{address}/{NETWORK.prefixlen}", "dev", "eth0"])
    commands.run([*inside, "link", "set", "lo", "up"])
    commands.run([*inside, "link", "set", "eth0", "up"])
    commands.run([*inside, "route", "add", "default", "via", str(HOST)])
    return path


def lead(pods: str, address: str) -> None:
    """Let the host reach the pods of a machine, as the API servers of in-memory clusters are. It ends with the bridge."""
    commands.run(["ip", "route", "replace", pods, "via", address, "dev", BRIDGE])
