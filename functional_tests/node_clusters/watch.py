# SPDX-License-Identifier: Apache-2.0
"""Connections through a load balancer that stay open: which API server each has reached, and what it still hears of it."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from ..testbed.processes import until
from .script import Body

WITHIN = 10.0
"""Seconds for a connection and the begin of a response."""
PATIENCE = 60.0
"""Seconds until the load balancer has seen that an API server is ready."""
_PATH = "/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=3000"


def connect(entry: Body) -> tuple[http.client.HTTPSConnection, str]:
    """A connection to the endpoint of a VIM, and the name of the node at its other end, which is in its certificate."""
    host, _, port = entry["interfaceInfo"]["endpoint"].removeprefix("https://").rpartition(":")
    context = ssl.create_default_context(cadata=entry["interfaceInfo"]["ssl_ca_cert"])
    connection = http.client.HTTPSConnection(host, int(port), timeout=WITHIN, context=context)
    connection.connect()
    names = connection.sock.getpeercert()["subjectAltName"]
    [node] = {name for kind, name in names if kind == "DNS" and name.partition(".")[0] != "kubernetes"}
    return connection, node


class Watch:
    """A watch of ConfigMaps."""

    def __init__(self, entry: Body) -> None:
        self.connection, self.node = connect(entry)
        self.connection.request("GET", _PATH, headers={"Authorization": f"Bearer {entry['accessInfo']['bearer_token']}"})
        self._response = self.connection.getresponse()
        assert self._response.status == 200
        self.connection.sock.settimeout(None)
        self.seen: set[str] = set()
        """Their names."""
        self.is_open = True
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        try:
            for line in self._response:
                self.seen.add(json.loads(line)["object"]["metadata"]["name"])
        except (OSError, ValueError, http.client.HTTPException):  # it was cut
            pass
        self.is_open = False

    def close(self) -> None:
        if self.is_open:
            self.connection.sock.shutdown(socket.SHUT_RDWR)
        self._reader.join()
        self.connection.close()


@contextmanager
def on_each(entry: Body, nodes: set[str]) -> Iterator[list[Watch]]:
    """Watches, at least one by the API server of each of these nodes."""
    found: list[Watch] = []
    with ExitStack() as ending:

        def reaches_all() -> bool:
            found.append(Watch(entry))
            ending.callback(found[-1].close)
            return nodes <= {one.node for one in found}

        assert until(reaches_all, PATIENCE, pause=0.2), "the load balancer does not reach each API server"
        yield found
