# SPDX-License-Identifier: Apache-2.0
"""How much of the responses is in memory at the same time: of one operation, and of all in a process.

A page of a list can take a gigabyte, and an operation reads many lists at once. So each page, each watch event and each other
response that is not small takes its share before it is decoded, and waits until others have given back theirs. It gives it back
when its reader has kept what it needs, a response that is no list when it is decoded.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

VALUE = 100
"""Bytes, about, that a value of JSON takes in Python, with its share of a mapping or a list."""
OPERATION = 2 * 1024**3
"""Bytes, about: one page of the largest kind fits."""
PROCESS = 4 * 1024**3

SMALL = 1024**2
"""Bytes, about, up to which a single object, an event or another response takes no share."""
WITHIN = 60.0
"""Seconds for which these wait."""


class NoMemory(Exception):
    """Others have what would be needed, and have not given it back in time."""


class Memory:
    """A number of bytes, some of which are `whole`'s, if it is a part of one. For many threads."""

    def __init__(self, most: int, whole: Memory | None = None) -> None:
        self.left, self._most, self._whole = most, most, whole
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def taken(self, amount: int, until: float) -> Iterator[None]:
        """Holds so many bytes; waits for them until a time of time.monotonic(), then raises NoMemory.

        More than there are at all count as all: whether a single response is too large is decided elsewhere.
        """
        amount = min(amount, self._most)
        with self._changed:
            if not self._changed.wait_for(lambda: self.left >= amount, max(0.0, until - time.monotonic())):
                raise NoMemory
            self.left -= amount
        try:
            with self._whole.taken(amount, until) if self._whole else contextlib.nullcontext():
                yield
        finally:
            with self._changed:
                self.left += amount
                self._changed.notify_all()

    @contextlib.contextmanager
    def of_response(self, data: bytes) -> Iterator[None]:
        """Holds what a text of JSON takes with its values, unless it is small. Raises NoMemory."""
        amount = cost(data)
        with self.taken(amount, time.monotonic() + WITHIN) if amount > SMALL else contextlib.nullcontext():
            yield


def cost(data: bytes) -> int:
    """The bytes, about, that a text of JSON takes with its values, or somewhat more: commas in texts count."""
    return len(data) + VALUE * sum(map(data.count, (b",", b"{", b"[")))


_process = Memory(PROCESS)


def of_operation() -> Memory:
    """For one operation; a part of what the process has."""
    return Memory(OPERATION, _process)
