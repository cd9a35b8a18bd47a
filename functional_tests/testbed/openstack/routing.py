# SPDX-License-Identifier: Apache-2.0
"""A router as rules of nftables in its namespace: floating IPs, and source NAT to the external network."""

from collections.abc import Mapping

TABLE = "ip k8scr_router"
INSIDE, OUTSIDE = "qr-", "qg-"
# Of a connection from inside to a floating IP, whose reply has to come back through the router.
_HAIRPIN = "0x1"


def rules(own: str, floating_ips: Mapping[str, str], translates: bool) -> str:
    """The table of a router with the external address `own`. floating_ips: floating address -> fixed address."""
    inward = [
        line
        for floating, fixed in sorted(floating_ips.items())
        for line in (
            f'iifname "{INSIDE}*" ip daddr {floating} meta mark set {_HAIRPIN}',
            f"ip daddr {floating} dnat to {fixed}",
        )
    ]
    outward = [f"meta mark {_HAIRPIN} snat to {own}"]
    outward += [f'oifname "{OUTSIDE}*" ip saddr {fixed} snat to {floating}' for floating, fixed in sorted(floating_ips.items())]
    if translates:
        outward.append(f'oifname "{OUTSIDE}*" snat to {own}')
    return _chain("prerouting", "dstnat", inward) + _chain("postrouting", "srcnat", outward)


def _chain(hook: str, priority: str, lines: list[str]) -> str:
    text = "".join(f"  {line}\n" for line in lines)
    return f"chain {hook} {{\n  type nat hook {hook} priority {priority}; policy accept;\n{text}}}\n"
