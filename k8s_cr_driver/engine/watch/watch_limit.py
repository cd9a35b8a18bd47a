# SPDX-License-Identifier: Apache-2.0
"""
How many watches may be open: each is a thread and a connection, which a process has a limited number of.

A run watches as many kinds as its operation and the process have left, and lists the others at intervals. So the threads
and connections of a conductor do not grow with the kinds of a package, nor with the namespaces that RBAC makes it watch.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from k8s_cr_driver import logs

LOG = logs.logger(__name__)


@dataclass(frozen=True)
class WatchLimits:
    """The limits that options of tacker.conf set."""

    operation: int = 50
    process: int = 250


WATCH_LIMITS = WatchLimits()
"""The defaults."""


class _Count:
    """Of open watches. For many threads."""

    def __init__(self) -> None:
        self._open, self._lock = 0, threading.Lock()

    def take(self, limit: int) -> bool:
        """Counts one more; False if there are `limit` already."""
        with self._lock:
            is_free = self._open < limit
            self._open += is_free
        return is_free

    def give_back(self) -> None:
        with self._lock:
            self._open -= 1


_process = _Count()


class Watches:
    """The watches of one run."""

    def __init__(self, limits: WatchLimits) -> None:
        self._limits, self._own, self._process, self._is_noted = limits, _Count(), _process, False

    def take(self) -> bool:
        """Whether one more may be opened; `give_back` when it has ended."""
        if not self._own.take(self._limits.operation):
            return self._note("max_watches", self._limits.operation)
        if not self._process.take(self._limits.process):
            self._own.give_back()
            return self._note("max_process_watches", self._limits.process)
        return True

    def _note(self, option: str, limit: int) -> bool:
        if not self._is_noted:
            LOG.info("Further kinds are listed at intervals: %d watches are open, the limit [k8s_cr] %s", limit, option)
        self._is_noted = True
        return False

    def give_back(self) -> None:
        self._own.give_back()
        self._process.give_back()
