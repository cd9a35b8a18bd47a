# SPDX-License-Identifier: Apache-2.0
"""Ends what waits for a socket at a deadline, whatever the other side sends.

A timeout of a socket ends with each byte that arrives, so a server that sends one byte now and then could hold a TLS handshake
or the head of a response for ever. One thread of the process shuts sockets down when their time is over, and what waits for
them fails.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import os
import socket
import threading
import time
from collections.abc import Iterator


@contextlib.contextmanager
def shut_at(sock: socket.socket | None, until: float) -> Iterator[None]:
    """Encloses the use of a socket until a time of time.monotonic(), then raises TimeoutError. No limit if it is not open."""
    if sock is None or sock.fileno() < 0:
        yield
        return
    with socket.fromfd(sock.fileno(), sock.family, sock.type) as twin, _watchdog(os.getpid()).guarding(twin, until):
        try:
            yield
        except Exception:
            _check(until)
            raise
        _check(until)  # a head that ends with the connection looks complete to http.client


def _check(until: float) -> None:
    if time.monotonic() >= until:
        raise TimeoutError("timed out") from None


class _Watchdog:
    def __init__(self) -> None:
        self._changed, self._ids = threading.Condition(), itertools.count()
        self._guarded: dict[int, tuple[float, socket.socket]] = {}
        self._next = math.inf
        threading.Thread(target=self._run, name="socket deadlines", daemon=True).start()

    @contextlib.contextmanager
    def guarding(self, sock: socket.socket, until: float) -> Iterator[None]:
        number = next(self._ids)
        with self._changed:
            self._guarded[number] = until, sock
            if until < self._next:
                self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._guarded.pop(number, None)

    def _run(self) -> None:
        with self._changed:
            while True:
                now = time.monotonic()
                for until, sock in self._guarded.values():
                    if until <= now:
                        with contextlib.suppress(OSError):  # the other side may have closed it
                            sock.shutdown(socket.SHUT_RDWR)
                self._next = min((until for until, _ in self._guarded.values() if until > now), default=math.inf)
                self._changed.wait(None if self._next == math.inf else self._next - now)


@functools.cache
def _watchdog(process: int) -> _Watchdog:
    """Of this process: a thread does not live on in a fork."""
    del process
    return _Watchdog()
