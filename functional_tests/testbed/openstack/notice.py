# SPDX-License-Identifier: Apache-2.0
"""How services wake the network's agent: an empty datagram, which carries nothing, for the agent reads the APIs.

This module is loaded into Neutron, Octavia and Nova.
"""

import os
import socket
from contextlib import suppress
from pathlib import Path

VARIABLE = "K8S_CR_BED_NOTICE"
"""The variable that has the path of the agent's socket."""
SOCKET = "agent.sock"


def send() -> None:
    """An agent that does not listen reads everything when it starts; one that is full is awake."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        with suppress(OSError):
            sender.sendto(b"", os.environ[VARIABLE])


class Receiver:
    """The agent's end."""

    def __init__(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))

    def wait(self, seconds: float) -> None:
        """Until there is a notice, at most so long; takes all that have come."""
        self._socket.settimeout(seconds)
        try:
            self._socket.recv(1)
            self._socket.setblocking(False)
            while True:
                self._socket.recv(1)
        except (TimeoutError, BlockingIOError):
            pass
