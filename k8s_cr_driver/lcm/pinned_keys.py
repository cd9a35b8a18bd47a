# SPDX-License-Identifier: Apache-2.0
"""The SSH host keys of an instance's servers: read once from the console of each, then pinned in the instance."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from k8s_cr_driver.cloud import stack
from k8s_cr_driver.cloud.access import Cloud
from k8s_cr_driver.errors import DriverError
from k8s_cr_driver.node_clusters.inventory import Node
from k8s_cr_driver.objects.fields import mapping, texts
from k8s_cr_driver.ssh import host_keys

KEY = "host_keys"
"""Where the instance keeps them."""
KEYS_WITHIN = 300.0
"""Seconds in which a new server prints its host keys on its console."""
PAUSE = 2.0


class PinnedKeys:
    """`stored`: what the instance keeps. until: a monotonic time."""

    def __init__(self, stored: Mapping[str, Any], until: float, progress: Callable[[str], None]) -> None:
        known = mapping(stored, KEY)
        self.keys: dict[str, list[str]] = {server: texts(known, server) for server in known}
        """By the ids of the servers that the instance has reached."""
        self._until, self._progress = until, progress

    @property
    def kept(self) -> dict[str, dict[str, list[str]]]:
        return {KEY: self.keys}

    def forget_others(self, nodes: Iterable[Node]) -> None:
        """A server that replaces another one gets new keys."""
        servers = {node.server for node in nodes}
        self.keys = {server: keys for server, keys in self.keys.items() if server in servers}

    def of(self, cloud: Cloud, node: Node) -> list[str]:
        """One request for a new server, more while it boots: the Compute API has no list of consoles. Raises DriverError."""
        if node.server not in self.keys:
            end = time.monotonic() + KEYS_WITHIN
            while not (found := host_keys.of_console(stack.console(cloud, node.server))):
                if time.monotonic() > min(end, self._until):
                    raise DriverError(
                        f"{node.name}: the console of the server {node.server} shows no SSH host keys within "
                        f"{KEYS_WITHIN:.0f} s; cloud-init prints them, unless emit_keys_to_console of its section ssh is false"
                    )
                time.sleep(PAUSE)
            self.keys[node.server] = found
            self._progress(f"{node.name}: host keys read from the console")
        return self.keys[node.server]
