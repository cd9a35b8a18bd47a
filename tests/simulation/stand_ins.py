# SPDX-License-Identifier: Apache-2.0
"""
What the engine waits on, in virtual time: stand-ins for the modules `threading`, `queue`, `time` and `uuid`.

The engine is written for plain `threading` under whatever patches it, as eventlet does; the simulation patches it the same
way, module by module. So none of its code knows of the simulation, whatever file it is in.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import logging
import queue
import sys
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime, timedelta, timezone
from types import ModuleType, SimpleNamespace, TracebackType
from typing import Any

from k8s_cr_driver import errors
from k8s_cr_driver.engine.run import loop
from k8s_cr_driver.engine.watch import reflectors
from k8s_cr_driver.journal import fence
from k8s_cr_driver.kube import discovery, watch_events
from tests.fake_api import objects
from tests.simulation import caches
from tests.simulation.scheduler import Task, Waiter, active, now

WAKE_UP = 60.0
"""Seconds between two looks at an operation's stop event, which no life sets."""
BEGIN = datetime(2026, 1, 1, tzinfo=timezone.utc)


class Event:
    def __init__(self) -> None:
        self._is_set, self._waiting = False, list[Waiter]()

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        for waiter in self._waiting:
            waiter.wake()
        self._waiting.clear()

    def wait(self, timeout: float | None = None) -> bool:
        if not self._is_set:
            waiter = active().waiter()
            self._waiting.append(waiter)
            waiter.wait(timeout)
        return self._is_set


class Lock:
    def __init__(self) -> None:
        self._is_held, self._waiting = False, deque[Waiter]()

    def acquire(self, timeout: float = -1) -> bool:
        """False if it is still held after `timeout` seconds; -1 waits without a limit, as `threading.Lock` does."""
        expires_at = active().now + timeout
        while self._is_held:
            waiter = active().waiter()
            self._waiting.append(waiter)
            if not waiter.wait(None if timeout < 0 else expires_at - active().now):
                self._waiting.remove(waiter)
                return False
        self._is_held = True
        return True

    def release(self) -> None:
        self._is_held = False
        if self._waiting:
            self._waiting.popleft().wake()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.release()


class Thread:
    def __init__(self, target: Callable[[], None], name: str = "", daemon: bool = False) -> None:
        del daemon
        self._target, self.name = target, name
        self._task: Task | None = None

    def start(self) -> None:
        scheduler = active()
        self._task = scheduler.spawn(scheduler.here().process, self._target)

    def join(self, timeout: float | None = None) -> None:
        """Every request of a life ends in time, so the timeout does not matter."""
        del timeout
        assert self._task is not None
        self._task.join()

    def is_alive(self) -> bool:
        return self._task is not None and not self._task.is_done


class SimpleQueue:
    def __init__(self) -> None:
        self._items, self._waiting = deque[Any](), deque[Waiter]()

    def put(self, item: Any) -> None:
        self._items.append(item)
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.is_over:
                waiter.wake()
                return

    def get(self, timeout: float | None = None) -> Any:
        deadline = None if timeout is None else active().now + timeout
        while not self._items:
            waiter = active().waiter()
            self._waiting.append(waiter)
            if not waiter.wait(None if deadline is None else deadline - active().now) and not self._items:
                raise queue.Empty
        return self._items.popleft()

    def get_nowait(self) -> Any:
        if not self._items:
            raise queue.Empty
        return self._items.popleft()


def _uuid4() -> uuid.UUID:
    return uuid.UUID(int=active().random.getrandbits(128), version=4)


def _now(micro: bool = False) -> str:
    """The API server's notion of time."""
    return _timestamp(now() if micro else int(now()), micro)


@functools.lru_cache(maxsize=64)
def _timestamp(seconds: float, micro: bool) -> str:
    return objects.timestamp(BEGIN + timedelta(seconds=seconds), micro)


_aggregated = discovery._aggregated
_read: dict[int, tuple[objects.Object, list[discovery.Resource]]] = {}


def _read_once(response: objects.Object, down: set[tuple[str, str]]) -> list[discovery.Resource]:
    """In the place of `discovery._aggregated`: all lives have the same few responses, and in none an API is down."""
    if id(response) not in _read:
        _read[id(response)] = response, list(_aggregated(response, down))
    return _read[id(response)][1]


_StandIn = tuple[ModuleType, str, object, object]
"""Module, name, what it has there, and what it gets."""
_MODULES: Mapping[ModuleType, object] = {
    threading: SimpleNamespace(Event=Event, Lock=Lock, Thread=Thread),
    queue: SimpleNamespace(SimpleQueue=SimpleQueue, Empty=queue.Empty),
    time: SimpleNamespace(
        monotonic=now,
        time=now,
        sleep=lambda seconds: active().sleep(seconds),
        gmtime=time.gmtime,
        strftime=time.strftime,
    ),
    uuid: SimpleNamespace(uuid4=_uuid4),
}
_OF_ENGINE = frozenset({threading, queue, time, uuid})
_OF_FAKE = frozenset({uuid})


@contextlib.contextmanager
def patched(**classes: tuple[object, object]) -> Iterator[None]:
    """
    Within it the engine and the fake's verbs know no other time, threads or chance; `classes` are (real, stand-in).

    Within another one it changes nothing but what is of one process.
    """
    others = _all_changes(len(sys.modules), *classes.values())
    changes = [*(one for one in others if vars(one[0])[one[1]] is one[2]), *_new_process()]
    for where, name, _, stand_in in changes:
        setattr(where, name, stand_in)
    try:
        with _without_logs(), _without_collector():
            yield
    finally:
        for where, name, real, _ in changes:
            setattr(where, name, real)


def _new_process() -> Iterator[_StandIn]:
    """A life begins without what a process knows of the kinds of clusters, and without open watches."""
    yield discovery, "_KNOWN", discovery._KNOWN, discovery._Known()
    yield reflectors, "_process", reflectors._process, reflectors._Count()


@contextlib.contextmanager
def _without_logs() -> Iterator[None]:
    before = logging.root.manager.disable
    if before < logging.CRITICAL:
        logging.disable()
    try:
        yield
    finally:
        if before < logging.CRITICAL:
            logging.disable(before)


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """A life leaves its garbage to whoever leads it: while it lasts, most of what is young is in use."""
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_enabled:
            gc.enable()


@functools.cache
def _all_changes(modules: int, *classes: tuple[object, object]) -> list[_StandIn]:
    """Until another module is loaded these are the same in each life."""
    del modules
    return [
        *_changes("k8s_cr_driver", _OF_ENGINE, classes),
        *_changes("tests.fake_api", _OF_FAKE, ((objects.now, _now),)),
        (loop, "WAKE_UP", loop.WAKE_UP, WAKE_UP),
        (discovery, "_aggregated", _aggregated, _read_once),
        (watch_events, "lines", watch_events.lines, caches.lines),
        (watch_events, "decoded", watch_events.decoded, caches.decoded),
        (fence, "this_process", fence.this_process, str),
        (errors, "foreign", errors.foreign, functools.lru_cache(maxsize=4096)(errors.foreign)),
    ]


def _changes(
    root: str, modules: Collection[ModuleType], classes: Collection[tuple[object, object]]
) -> Iterator[_StandIn]:
    stand_ins = {id(module): _MODULES[module] for module in modules} | {id(real): other for real, other in classes}
    for where in [module for name, module in sys.modules.items() if f"{name}.".startswith(f"{root}.")]:
        for name, value in vars(where).items():
            if id(value) in stand_ins:
                yield where, name, value, stand_ins[id(value)]
