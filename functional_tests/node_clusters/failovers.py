# SPDX-License-Identifier: Apache-2.0
"""What can fail before the API of three masters, and for how long it does not respond then."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Callable
from functools import partial

import pytest

from ..testbed.nodes import Node
from ..testbed.processes import until
from . import watch
from .masters import PORT, WHOLE_WITHIN, holder, is_whole, run
from .probe import EVERY, Probe, seconds_without
from .site import MASTERS, VIM, VIP, Server, Site, name_of

# Seconds, however busy the host is.
BACK_WITHIN = 180.0
# In which a failure shows itself.
LOOK = 5.0
STOPPED, KILLED, API_KILLED = "HAProxy stopped", "HAProxy killed", "API server killed"
OWNER, OTHER = "the owner's link down", "another master cut off"
BARS = {STOPPED: 3.0, KILLED: 1.0, API_KILLED: 1.5, OWNER: 3.0, OTHER: 2 * EVERY}
"""Seconds without the API, at the median of SEVERAL failures.

A request that is under way to the other master when it is cut off has no response, whatever a load balancer does.
"""
SEVERAL = 3


def all_of(site: Site) -> list[tuple[str, float]]:
    """What was done, and for how long the API did not respond."""
    found = []
    for what, do, undo in (
        (STOPPED, partial(run, "systemctl stop haproxy"), partial(run, "systemctl start haproxy")),
        (KILLED, partial(run, "pkill -KILL -x haproxy"), nothing),
        (API_KILLED, partial(run, "pkill -KILL -x kube-apiserver"), nothing),
        (OWNER, Node.cut_off, Node.connect),
    ):
        found.append((what, one(site, holder(site), do, undo)))
    other = next(one for one in site.of(MASTERS) if one != holder(site))
    connection = connection_to(site, other)
    found.append((OTHER, one(site, other, partial(cut_off_from, connection), partial(connect_again, connection))))
    return found


def connection_to(site: Site, server: Server) -> http.client.HTTPSConnection:
    """By the virtual IP, whose HAProxy takes a moment to see that a master is back."""
    found = until(partial(_reached, site, server), BACK_WITHIN)
    assert found, f"the load balancer does not reach {name_of(server)}"
    return found


def _reached(site: Site, server: Server) -> http.client.HTTPSConnection | None:
    """The next connection, if it has reached the master."""
    connection, node = watch.connect(site.vims[VIM])
    if node == name_of(server):
        return connection
    connection.close()
    return None


def cut_off_from(connection: http.client.HTTPSConnection, node: Node) -> None:
    """Then a request is under way that gets no response."""
    node.cut_off()
    connection.request("GET", "/readyz")


def connect_again(connection: http.client.HTTPSConnection, node: Node) -> None:
    """The load balancer has ended the connection, so that its client goes on with another one."""
    try:
        with pytest.raises((ConnectionError, ssl.SSLError)):
            connection.getresponse()
    finally:
        node.connect()


def one(site: Site, server: Server, do: Callable[[Node], None], undo: Callable[[Node], None]) -> float:
    """Seconds without the API. The cluster is whole again afterwards."""
    probe = Probe(VIP, PORT, site.vims[VIM]["interfaceInfo"]["ssl_ca_cert"])
    with probe.running():
        probe.watch(0, BACK_WITHIN)
        do(site.nodes[server.id])
        try:
            probe.watch(LOOK, BACK_WITHIN)
        finally:
            undo(site.nodes[server.id])
    assert until(lambda: is_whole(site), WHOLE_WITHIN, pause=0.5), "the cluster does not become whole again"
    return seconds_without(probe.asked)


def nothing(_: Node) -> None:
    """systemd, or the kubelet, starts it again."""
