# SPDX-License-Identifier: Apache-2.0
"""
The reflectors of a run, and how many of them watch: each watch is a thread and a connection, which a process has a limited
number of.

A run watches as many kinds as its operation and the process have left, and lists the others at intervals. So the threads
and connections of a conductor do not grow with the kinds of a package, nor with the namespaces that RBAC makes it watch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

from k8s_cr_driver import logs
from k8s_cr_driver.engine.run.loop import Run, Workers
from k8s_cr_driver.engine.run.operation import WatchLimits
from k8s_cr_driver.kube import watch
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.objects.keys import GroupKind, Object

LOG = logs.logger(__name__)

READ_EVERY = 2.0
"""Seconds between two lists of a kind that is not watched."""
LISTS_PER_SECOND = 50
"""Of one run, so many at most: with more kinds the time between two lists of each is longer."""
LISTERS = 4
"""Threads that list. Not the workers that write: a server of one API that hangs would keep these from all others."""


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


class Reflectors:
    """Those of one run that have not been stopped."""

    def __init__(self, run: Run) -> None:
        self._loop, self._connection = run.loop, run.client.connection
        self._initial_events = watch.InitialEvents()
        self._watches, self._listers = Watches(run.operation.watches), Workers(LISTERS)
        self._all: list[watch.Reflector] = []
        self._listed = 0

    def __iter__(self) -> Iterator[watch.Reflector]:
        return iter(self._all)

    def of(self, kind: GroupKind) -> list[watch.Reflector]:
        """Those of a kind."""
        return [one for one in self._all if one.resource.group_kind == kind]

    def start(
        self,
        resource: Resource,
        namespace: str,
        selector: str,
        handle: Callable[[watch.Message], None],
        *,
        keep: Callable[[Object], Object | None] = lambda live: live,
        resume: str = "",
    ) -> watch.Reflector:
        """Has `handle` called in the loop's thread with what is reported; `keep` says what is kept of each object."""

        def post(message: watch.Message) -> None:
            self._loop.post(handle, message)

        reflector = watch.Reflector(
            self._connection, resource, namespace, selector, post, resume=resume, initial_events=self._initial_events, keep=keep
        )
        self._all.append(reflector)
        if "watch" in resource.verbs and self._watches.take():
            reflector.start(self._watches.give_back)
        else:
            self._listed += 1
            self._list(reflector)
        return reflector

    def stop(self, reflector: watch.Reflector) -> None:
        """Its messages that come still are to be ignored: it is none of these any more."""
        reflector.stop()
        self._all.remove(reflector)

    def stop_all(self) -> None:
        for reflector in self._all:
            reflector.stop()
        self._listers.finish(0)

    def _list(self, reflector: watch.Reflector) -> None:
        """Lists the kind, again and again."""
        self._listers.submit(lambda: self._loop.post(self._list_later, reflector, reflector.look()))

    def _list_later(self, reflector: watch.Reflector, goes_on: bool) -> None:
        if goes_on:
            self._loop.after(max(READ_EVERY, self._listed / LISTS_PER_SECOND), self._list, reflector)
        else:
            self._listed -= 1
