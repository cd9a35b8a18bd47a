# SPDX-License-Identifier: Apache-2.0
"""
What a run notes in its inventory while it works: adoptions, and ends of objects. That of a short time is one write.

A write costs as much as the inventory is long. One is on its way at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from k8s_cr_driver.errors import DriverError, passes
from k8s_cr_driver.journal.inventory import Inventory
from k8s_cr_driver.kube import backoff
from k8s_cr_driver.objects.keys import ObjectKey

COLLECT_FOR = 0.3
"""Seconds for which notes are collected."""


class Sender(Protocol):
    """The loop of a run: it calls what it is given in its own thread."""

    def after(self, seconds: float, action: Callable[[], None], /) -> None:
        """Calls `action` later."""

    def send(
        self, request: Callable[[], None], then: Callable[[None], None], failed: Callable[[DriverError], None], /
    ) -> None:
        """Has a worker make the request, and calls `then` or `failed`."""


@dataclass(frozen=True, eq=False)
class Note:
    """`written` is called once it is stored, `failed` with the error that ends it; `repeats`: not with one that passes."""

    written: Callable[[], None]
    failed: Callable[[DriverError], None]
    adopted: tuple[ObjectKey, str] | None = None
    """An object and its uid."""
    repeats: bool = False


class Writer:
    """The only one of a run that writes notes."""

    def __init__(self, inventory: Inventory, loop: Sender) -> None:
        self._inventory, self._loop = inventory, loop
        self._notes: list[Note] = []
        self._is_due, self._failures = False, 0

    def add(self, note: Note) -> None:
        """Ends are noted in the inventory before."""
        self._notes.append(note)
        if not self._is_due:
            self._is_due = True
            self._loop.after(COLLECT_FOR, self._write)

    def _write(self) -> None:
        notes, self._notes = self._notes, []
        adopted = dict(one.adopted for one in notes if one.adopted)

        def ended(error: DriverError | None = None) -> None:
            again = [one for one in notes if one.repeats] if error is not None and passes(error) else []
            self._failures = self._failures + 1 if again else 0
            self._notes[:0] = again
            for one in notes:
                if error is None:
                    one.written()
                elif one not in again:
                    one.failed(error)
            self._is_due = bool(self._notes)
            if self._is_due:
                self._loop.after(backoff.delay(self._failures, error) if again else COLLECT_FOR, self._write)

        self._loop.send(lambda: self._inventory.adopt(adopted), lambda _: ended(), ended)
