# SPDX-License-Identifier: Apache-2.0
"""Security groups as rules of nftables in the namespace of the server that the port belongs to.

The chains come before a guest's own address translation on the way in, and after it on the way out, as a switch outside would
see the packets. Connection tracking on bridges, which would keep the rules out of the guest's reach, is not in every kernel.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

TABLE = "inet k8scr_security"
Object = Mapping[str, Any]

_HOOKS = {
    "ingress": ("prerouting", "iifname", "saddr", -150),  # after connection tracking, before destination NAT
    "egress": ("postrouting", "oifname", "daddr", 150),  # after source NAT
}


def rules(ports: Sequence[Object], groups: Mapping[str, Object], members: Mapping[str, Sequence[str]]) -> str:
    """The table of a server whose interfaces eth0, eth1 ... are `ports`.

    groups: security groups by their ids. members: addresses of the ports that are in each.
    """
    return "".join(_chain(direction, ports, groups, members) for direction in _HOOKS)


def _chain(direction: str, ports: Sequence[Object], groups: Mapping[str, Object], members: Mapping[str, Sequence[str]]) -> str:
    hook, side, remote, priority = _HOOKS[direction]
    lines = [f"type filter hook {hook} priority {priority}; policy accept;"]
    for number, port in enumerate(ports):
        if not port["port_security_enabled"]:
            continue
        interface = f'{side} "eth{number}"'
        if direction == "egress":  # of replies, too
            lines.append(f"{interface} ip saddr != {{ {', '.join(_own(port))} }} drop")
        lines.append(f"{interface} ct state established,related accept")
        for group in port["security_groups"]:
            for rule in groups[group]["security_group_rules"]:
                if rule["direction"] == direction and rule["ethertype"] == "IPv4":
                    lines += [f"{interface} {match} accept" for match in _matches(rule, remote, members)]
        lines.append(f"{interface} drop")
    return f"chain {direction} {{\n" + "".join(f"  {line}\n" for line in lines) + "}\n"


def _own(port: Object) -> list[str]:
    """What a port may send from: its addresses, and those that it is allowed besides."""
    addresses = [one["ip_address"] for one in (*port["fixed_ips"], *port["allowed_address_pairs"])]
    return [address for address in addresses if ":" not in address]


def _matches(rule: Object, remote: str, members: Mapping[str, Sequence[str]]) -> Iterable[str]:
    """The conditions of a rule; none for a group that has no members."""
    protocol = _protocol(rule)
    if rule["remote_group_id"]:
        if addresses := members.get(rule["remote_group_id"]):
            yield f"ip {remote} {{ {', '.join(sorted(addresses))} }} {protocol}"
    else:
        prefix = rule["remote_ip_prefix"] or "0.0.0.0/0"
        yield f"ip {remote} {prefix} {protocol}"


def _protocol(rule: Object) -> str:
    protocol, low, high = rule["protocol"], rule["port_range_min"], rule["port_range_max"]
    if protocol in (None, "any", "0"):
        return ""
    if protocol in ("icmp", "1"):
        return "ip protocol icmp" if low is None else f"icmp type {low}"
    if protocol in ("tcp", "udp") and low is not None:
        return f"{protocol} dport {low}-{high}"
    return f"ip protocol {protocol}"
