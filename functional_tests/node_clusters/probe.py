# SPDX-License-Identifier: Apache-2.0
"""Asks an API server every 50 ms, each time by a new connection, and measures for how long it did not respond.

A request does not wait for the one before: the loss of one that was under way would look like a second without the API.
"""

from __future__ import annotations

import http.client
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from ..testbed.processes import until

EVERY = 0.05
# Seconds for a connection, and for a response.
WITHIN = 1.0
# As many as are sent until the first of them has failed.
AT_ONCE = int(2 * WITHIN / EVERY)
# Responses one after another, after which it is back.
BACK = 20


class Asked(NamedTuple):
    sent: float
    """By the monotonic clock."""
    is_right: bool


def seconds_without(asked: Sequence[Asked]) -> float:
    """From each request that failed first until the next one was sent that did not."""
    seconds, since = 0.0, None
    for sent, is_right in sorted(asked):
        if not is_right:
            since = sent if since is None else since
        elif since is not None:
            seconds, since = seconds + sent - since, None
    return seconds


@dataclass
class Probe:
    """What it has seen so far."""

    host: str
    port: int
    ca: str
    asked: list[Asked] = field(default_factory=list)
    """Those that have ended."""
    _ended: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self) -> Iterator[Probe]:
        """All requests have ended afterwards."""
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            yield self
        finally:
            self._ended.set()
            thread.join()

    def watch(self, seconds: float, patience: float) -> None:
        """Looks on for so long, and then until it has been back for a while.

        Fails if it is not back within `patience` seconds.
        """
        end = time.monotonic() + seconds
        assert until(lambda: time.monotonic() > end and self._is_back(), patience), "the API does not come back"

    def _is_back(self) -> bool:
        last = sorted(self.asked)[-BACK:]
        return len(last) == BACK and all(one.is_right for one in last)

    def _run(self) -> None:
        context = ssl.create_default_context(cadata=self.ca)
        with ThreadPoolExecutor(AT_ONCE) as workers:
            while not self._ended.wait(EVERY):
                workers.submit(self._ask, context)

    def _ask(self, context: ssl.SSLContext) -> None:
        sent = time.monotonic()
        self.asked.append(Asked(sent, self._is_right(context)))

    def _is_right(self, context: ssl.SSLContext) -> bool:
        connection = http.client.HTTPSConnection(self.host, self.port, timeout=WITHIN, context=context)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
