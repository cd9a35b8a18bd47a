"""
A few threads that do one request each and post what came of it.

Daemons, unlike those of concurrent.futures, so that a hanging request never keeps a conductor from ending; and plain
threading, so that they are correct under native threads and under eventlet's monkey patching alike.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable

THREADS = 8


class Workers:
    """Runs jobs in parallel; every job must post its own outcome and raise nothing."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []

    def submit(self, job: Callable[[], None]) -> None:
        if len(self._threads) < THREADS:
            thread = threading.Thread(target=self._run, name="k8s-cr worker", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._jobs.put(job)

    def drop(self) -> int:
        """Forgets the jobs that have not begun; how many there were."""
        dropped = 0
        with contextlib.suppress(queue.Empty):
            while True:
                self._jobs.get_nowait()
                dropped += 1
        return dropped

    def finish(self) -> None:
        """Waits for the jobs that have begun, whose requests have time limits of their own, and forgets the others."""
        self.drop()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
