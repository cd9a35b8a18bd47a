# SPDX-License-Identifier: Apache-2.0
"""The servers of one role, as a request names them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Group:
    """The servers of one VDU."""

    vdu_id: str
    aspect_id: str
    """The name of the Heat group that has them, where `vdu_id` is not given."""
    ssh_cp_name: str
    """The resource of the VDU's template, a port or a floating IP, at which SSH reaches a server."""
    nic_cp_name: str
    """The port by which the nodes reach each other; that of `ssh_cp_name` by default."""
    username: str
    password: str = field(default="", repr=False)

    @property
    def label(self) -> str:
        return self.vdu_id or self.aspect_id
