# SPDX-License-Identifier: Apache-2.0
"""A server that has died leaves its cluster: hosts that only print, one of which does not respond."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from k8s_cr_driver.node_clusters import parameters, run, work
from k8s_cr_driver.ssh.command import Command
from k8s_cr_driver.ssh.host import Host, Unreachable

from .clusters import INVENTORY, MASTERS
from .test_parameters import GIVEN

DEAD = "worker-w0"
SERVER = "interface=eth0\njoined=yes\ncontrol=yes\nunit=haproxy active\nunit=keepalived active\n"


@dataclass
class Hosts:
    """As `ssh.hosts.Hosts`. The cluster notices that DEAD is dead at the look `noticed`."""

    noticed: int
    looks: int = 0
    done: list[str] = field(default_factory=list)

    def run(self, host: Host, command: Command) -> str:
        if host.name == DEAD:
            raise Unreachable(host, "no connection")
        if command.what == "the look at the server":
            return SERVER
        if command.what == "the look at the cluster":
            self.looks += 1
            return "\n".join((json.dumps({"items": self._nodes()}), json.dumps({"members": _members()}), *_addresses()))
        self.done.append(command.what)
        return ""

    def _nodes(self) -> list[dict[str, Any]]:
        return [_node(node.name, node.name != DEAD or self.looks < self.noticed) for node in INVENTORY.nodes]


def _node(name: str, is_ready: bool) -> dict[str, Any]:
    return {"metadata": {"name": name}, "status": {"conditions": [{"type": "Ready", "status": str(is_ready)}]}}


def _members() -> list[dict[str, Any]]:
    return [{"ID": one.server, "name": one.name, "peerURLs": [f"https://{one.address}:2380"]} for one in MASTERS]


def _addresses() -> list[str]:
    return [one.address for one in MASTERS]


@pytest.mark.parametrize(
    ("noticed", "within", "done"),
    [
        (1, 90, ["the removal of the node"]),
        (3, 90, ["the removal of the node"]),
        (1000, 0, [f"kubectl drain {DEAD}", "the removal of the node"]),
    ],
    ids=["at once", "later", "never"],
)
def test_a_drain_does_not_wait_for_the_pods_of_a_dead_server(
    monkeypatch: pytest.MonkeyPatch, noticed: int, within: float, done: list[str]
) -> None:
    """The cluster takes most of a minute to notice. A node that stays Ready runs, though SSH does not reach it."""
    monkeypatch.setattr(work, "PAUSE", 0.0)
    monkeypatch.setattr(run, "NOTICED_WITHIN", within)
    hosts = Hosts(noticed)
    reach = {node.name: Host(node.name, node.ssh, "u") for node in INVENTORY.nodes}
    given = parameters.read(GIVEN, {}, "4a1f")
    run.Run(hosts, reach, "4a1f", INVENTORY, given, run.Package(), lambda _: None).leave(["w0"])  # type: ignore[arg-type]
    assert hosts.done == done
