# SPDX-License-Identifier: Apache-2.0
"""Work on several servers at once, and waiting for what has to become true."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from k8s_cr_driver.errors import DriverError
from k8s_cr_driver.ssh.host import LoginRefused, Unreachable

PARALLEL = 8
"""Servers that are worked on at once."""
LOGIN_WITHIN = 60.0
"""Seconds in which a server that boots, and responds, gets its user."""
PAUSE = 1.0
"""Seconds between two looks at what has to become ready."""
T = TypeVar("T")
U = TypeVar("U")


def on_all(items: Sequence[T], work: Callable[[T], U]) -> list[U]:
    """The results in the order of the items. Raises what the first of them raises, after all have ended."""
    if not items:
        return []
    with ThreadPoolExecutor(min(PARALLEL, len(items)), "server") as pool:
        return list(pool.map(work, items))


def when_reachable(look: Callable[[], T], end: float) -> T:
    """
    What `look` returns as soon as the server responds and lets the user log in.

    Raises Unreachable if it does not respond until `end`, a monotonic time, and LoginRefused LOGIN_WITHIN after it has.
    """
    refused_until: float | None = None
    while True:
        try:
            return look()
        except LoginRefused:
            refused_until = refused_until or min(end, time.monotonic() + LOGIN_WITHIN)
            if time.monotonic() > refused_until:
                raise
        except Unreachable:
            if time.monotonic() > end:
                raise
        time.sleep(PAUSE)


def until(look: Callable[[], list[str]], is_right: Callable[[list[str]], bool], within: float, wrong: str) -> None:
    """Looks until it is right. Raises DriverError, which names what the last look has found, or that it was nothing."""
    end = time.monotonic() + within
    while not is_right(found := look()):
        if time.monotonic() > end:
            raise DriverError(f"{', '.join(found) or 'no node'} {wrong}, within {within:.0f} s")
        time.sleep(PAUSE)
