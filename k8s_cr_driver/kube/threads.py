# SPDX-License-Identifier: Apache-2.0
"""Threads of an operation.

oslo.log takes the ids of the request and of the instance from a context that each thread has of its own. So a thread that
an operation starts gets the context of the thread that starts it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from oslo_context import context


def start(target: Callable[[], None], name: str) -> threading.Thread:
    """Starts a daemon thread with the log context of the caller."""
    current = context.get_current()

    def run() -> None:
        if current is not None:
            current.update_store()
        target()

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread
