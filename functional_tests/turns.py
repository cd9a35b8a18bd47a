# SPDX-License-Identifier: Apache-2.0
"""Which tests run side by side on one bed, and which have a part of it to themselves.

Several processes share the bed. A test marked `alone("tacker")` kills, restarts or counts something of that part, so
no other test that needs the part runs meanwhile; `alone` with another name excludes the tests that give the same name.
Locks on files guarantee it; the order of the tests only keeps processes from waiting for each other. What takes long to make
the processes can share: the first one makes it.
"""

from __future__ import annotations

import fcntl
import json
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from .families import family_of
from .testbed import paths

LAST = "test_secrets.py"
"""Looks at what all the other tests have left."""


@contextmanager
def turn(item: pytest.Item) -> Iterator[None]:
    """The test has what it needs: to itself where it says so, else together with others."""
    alone, family = alone_on(item), family_of(item.path)
    with ExitStack() as stack:
        for name in sorted({*family.parts, *family.beside, *alone}):  # in one order: no two wait for each other
            is_own = name in alone or _of_thread.own[name].uses > 0  # a fixture of this process may have it to itself
            stack.enter_context(to_itself(name) if is_own else locked(name, fcntl.LOCK_SH))
        yield


def alone_on(item: pytest.Item) -> set[str]:
    """What the test has to itself."""
    return {name for mark in item.iter_markers("alone") for name in mark.args}


@contextmanager
def locked(name: str, operation: int = fcntl.LOCK_EX) -> Iterator[None]:
    """Holds a lock that lives as long as the bed."""
    with (paths.STATE / f"{name}.lock").open("w") as file:
        fcntl.flock(file, operation)
        yield


@contextmanager
def to_itself(name: str) -> Iterator[None]:
    """Holds a lock that excludes other processes.

    A fixture that outlives a test takes those that the test's turn has taken before it: else it could wait for a test that
    waits for this one.
    """
    own = _of_thread.own[name]
    if not own.uses:
        own.lock.enter_context(locked(name))
    own.uses += 1
    try:
        yield
    finally:
        own.uses -= 1
        if not own.uses:
            own.lock.close()


@dataclass
class _Own:
    """A lock that is held once, however many tests and fixtures of the thread need it."""

    uses: int = 0
    lock: ExitStack = field(default_factory=ExitStack)


class _OfThread(threading.local):
    """A process runs its tests in one thread."""

    def __init__(self) -> None:
        self.own: dict[str, _Own] = defaultdict(_Own)


_of_thread = _OfThread()


@contextmanager
def shared(name: str, make: Callable[[], Any], remove: Callable[[Any], None]) -> Iterator[Any]:
    """What `make` returns, as JSON has it: the first process calls it, and the last one `remove` with it."""
    made = paths.STATE / f"{name}.json"
    with ExitStack() as use:
        with locked(f"{name}-making"):
            use.enter_context(locked(f"{name}-users", fcntl.LOCK_SH))
            if not made.exists():
                made.write_text(json.dumps(make()))
        try:
            yield json.loads(made.read_text())
        finally:
            with locked(f"{name}-making"):
                use.close()
                with suppress(BlockingIOError), locked(f"{name}-users", fcntl.LOCK_EX | fcntl.LOCK_NB):
                    remove(json.loads(made.read_text()))
                    made.unlink()


def arrange(items: list[pytest.Item]) -> None:
    """Those for which many others have to wait come late. The tests of a module stay together."""
    items.sort(key=_phase)


def _phase(item: pytest.Item) -> tuple[bool, ...]:
    """What needs Tacker comes first, the longest before the rest; while something has Tacker to itself others can run."""
    alone, family = alone_on(item), family_of(item.path)
    return (
        item.path.name == LAST,
        "kubernetes" in alone,
        "tacker" in alone,
        "tacker" not in family.parts,
        not family.samples,
    )
