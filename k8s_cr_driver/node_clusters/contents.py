# SPDX-License-Identifier: Apache-2.0
"""What a VNF package has for the servers of its cluster."""

from __future__ import annotations

from dataclasses import dataclass, field

from k8s_cr_driver.node_clusters.inventory import Node, Role


@dataclass(frozen=True)
class Package:
    """Texts of its files."""

    script: str = field(default="", repr=False)
    """That of `script_path`."""
    balancer_script: str = field(default="", repr=False)
    """That of the load balancers outside the masters."""
    manifests: tuple[str, ...] = field(default=(), repr=False)

    def script_of(self, node: Node) -> str:
        """The one that installs what the server needs; "" if its image has that."""
        return self.balancer_script if node.role is Role.BALANCER else self.script
