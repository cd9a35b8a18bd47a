# SPDX-License-Identifier: Apache-2.0
"""Asks an API server every 50 ms, each time by a new connection, and measures for how long it did not respond."""

from __future__ import annotations

import http.client
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ..testbed.processes import until

EVERY = 0.05
# Seconds for a connection and a response.
WITHIN = 1.0
# Responses one after another, after which it is back.
BACK = 20


@dataclass
class Probe:
    """What it has seen so far."""

    host: str
    port: int
    ca: str
    asked: int = 0
    in_a_row: int = 0
    """Responses since the last failure."""
    seconds: float = 0.0
    """Without a response: of each hole from its first failed attempt to the next response."""
    _since: float | None = None
    _ended: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self) -> Iterator[Probe]:
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            yield self
        finally:
            self._ended.set()
            thread.join()

    def watch(self, seconds: float, patience: float) -> float:
        """Looks on for so long, and then until it has been back for a while; the seconds without a response.

        Fails if it is not back within `patience` seconds.
        """
        end = time.monotonic() + seconds
        assert until(lambda: time.monotonic() > end and self.in_a_row >= BACK, patience), "the API does not come back"
        return self.seconds

    def _run(self) -> None:
        context = ssl.create_default_context(cadata=self.ca)
        while not self._ended.is_set():
            begun = time.monotonic()
            is_right = self._ask(context)
            self.asked += 1
            now = time.monotonic()
            if not is_right:
                self._since, self.in_a_row = self._since or begun, 0
            elif self._since is not None:
                self.seconds, self._since = self.seconds + now - self._since, None
            self.in_a_row += is_right
            self._ended.wait(max(0.0, EVERY - (now - begun)))

    def _ask(self, context: ssl.SSLContext) -> bool:
        connection = http.client.HTTPSConnection(self.host, self.port, timeout=WITHIN, context=context)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
