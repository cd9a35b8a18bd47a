# SPDX-License-Identifier: Apache-2.0
"""Keeps the VIMs of Tacker as the received clusters are: registered, current, and removed when the cluster no longer exists.

What is to be done follows from the store alone, so that a restart goes on with it. A cluster that fails, or is slow, holds one
of a few threads for a limited time, its VNF instance some of them only, and is tried again with backoff, after the others.
Whoever sends decides where a kubeconfig leads: so this host connects only where `judge` permits it, and a VIM that would come
to lead to another cluster waits for an operator.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import partial

from k8s_cr_driver.credentials import service_account
from k8s_cr_driver.credentials.envelope import GONE
from k8s_cr_driver.credentials.store import Store, Stored, fitting, identity
from k8s_cr_driver.credentials.tacker import Tacker, Vim
from k8s_cr_driver.errors import DriverError, InvalidRequest
from k8s_cr_driver.kube import kubeconfig, threads, tls, workload
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.pools import Judge
from k8s_cr_driver.redaction import redact

LONGEST_PAUSE = 60.0
"""Seconds between two tries of a cluster that fails."""
LOOK_EVERY = 1.0
"""Seconds between two looks whether a try is due, or a change confirmed."""
THREADS = 16
EACH = 4
"""Threads of one VNF instance."""
TRY_WITHIN = 90.0
"""Seconds for all requests to a cluster in one try."""
TRIES = 100
"""Of a cluster, which take more than an hour and a half, until another message of it comes, or the process starts again."""


@dataclass
class Registrar:
    """Acts in threads of its own, for as long as the process runs."""

    store: Store
    tacker: Tacker
    log: Callable[[str], None]
    judge: Judge
    """Which addresses of clusters it may connect to."""
    _changed: threading.Event = field(default_factory=threading.Event)
    _running: dict[str, str] = field(default_factory=dict)
    """The VNF instances of the clusters that are tried now."""
    _held: set[Stored] = field(default_factory=set)
    """Clusters whose change waits for an operator."""
    _failures: dict[str, int] = field(default_factory=dict)
    _not_before: dict[str, float] = field(default_factory=dict)
    _renewed: set[str] = field(default_factory=set)
    """Clusters of which a message has come since their last try began."""

    def start(self) -> None:
        threading.Thread(target=self._run, name="registrar", daemon=True).start()

    def changed(self, stored: Stored) -> None:
        """A message of this cluster was stored."""
        self._renewed.add(stored.name)
        self._forget(stored.name)
        self._changed.set()

    def reconcile(self) -> None:
        """Acts once on each cluster whose VIM is not as its last message has it; returns when it has."""
        tried: set[str] = set()
        while started := self._start(tried):
            tried |= started.keys()
            for thread in started.values():
                thread.join()

    def _start(self, tried: Collection[str] = ()) -> dict[str, threading.Thread]:
        """Starts what is due, but for `tried`: of those that are, as many as there are threads for."""
        due = {one.name: one for one in self.store.clusters() if is_due(one)}
        for name in self._failures.keys() - due.keys():
            self._forget(name)
        held = {one for one in due.values() if one.is_held and not self.store.is_confirmed(one)}
        for one in held - self._held:
            self.log(
                f"{one.last.cluster}: VIM {one.vim} stays as it is until an operator confirms that it may lead to "
                f"{one.identity}: k8s-cr confirm --folder {self.store.folder} {one.name}"
            )
        self._held = held
        left = [one for one in due.values() if one not in held and one.name not in tried]
        ordered = sorted(left, key=lambda one: self._failures.get(one.name, 0))
        return {one.name: self._start_one(one) for one in ordered if self._may_start(one)}

    def _may_start(self, one: Stored) -> bool:
        running = list(self._running.values())
        return (
            one.name not in self._running
            and self._not_before.get(one.name, 0) <= time.monotonic()
            and len(running) < THREADS
            and running.count(one.last.vnfInstanceId) < EACH
        )

    def _start_one(self, stored: Stored) -> threading.Thread:
        self._running[stored.name] = stored.last.vnfInstanceId
        self._renewed.discard(stored.name)
        try:
            return threads.start(partial(self._try, stored), f"register {stored.last.cluster}")
        except RuntimeError:
            self._running.pop(stored.name, None)
            raise

    def _run(self) -> None:
        while True:
            self._changed.clear()
            try:
                self._start()
            except OSError as error:
                self._pause(f"the folder cannot be read: {_words(error)}")
            except RuntimeError:
                self._pause("no thread can be started")
            else:
                is_later = any(at < math.inf for at in list(self._not_before.values()))
                self._changed.wait(LOOK_EVERY if is_later or self._held else None)

    def _pause(self, reason: str) -> None:
        self.log(f"not all VIMs are current, next try in {LONGEST_PAUSE:.0f} s: {reason}")
        self._changed.wait(LONGEST_PAUSE)

    def _try(self, stored: Stored) -> None:
        try:
            self._act(stored)
        except Exception as error:
            failures = self._failures[stored.name] = self._failures.get(stored.name, 0) + 1
            is_last = failures >= TRIES and stored.last.event != GONE  # which asks nobody but Tacker
            pause = math.inf if is_last else min(2.0 ** min(failures, 10), LONGEST_PAUSE)
            if stored.name not in self._renewed:
                self._not_before[stored.name] = time.monotonic() + pause
            following = "next try when it is sent again" if is_last else f"next try in {pause:.0f} s"
            self.log(f"{stored.last.cluster}: its VIM is not current, {following}: {_words(error)}")
        else:
            self._forget(stored.name)
        finally:
            self._running.pop(stored.name, None)
            self._changed.set()  # a message may have come meanwhile

    def _forget(self, name: str) -> None:
        self._failures.pop(name, None)
        self._not_before.pop(name, None)

    def _act(self, stored: Stored) -> None:
        if stored.last.event == GONE:
            is_removed = self.tacker.remove(stored.vim, _description(stored))
            self.store.registered(stored, "")
            became = "is removed" if is_removed else "has another description by now, so it is left to whoever has changed that"
            self.log(f"{stored.last.cluster}: VIM {stored.vim} {became}")
            return
        vim = self._vim(stored)
        if not self.store.registering(stored, vim.name):
            return
        self.tacker.register(vim)
        self.store.registered(stored, vim.name)
        self.log(f"{stored.last.cluster}: VIM {vim.name} is registered")

    def _vim(self, stored: Stored) -> Vim:
        path = self.store.kubeconfig(stored)
        endpoint = kubeconfig.endpoint(path)
        if not tls.is_https(endpoint.url):
            raise InvalidRequest("its kubeconfig has an http server, to which no token is sent")
        if stored.identity not in ("", identity(endpoint)):  # "" of an earlier version
            raise InvalidRequest("another message of it has come, and is judged first")
        opened = Connection(replace(endpoint, judge=self.judge), deadline=time.monotonic() + TRY_WITHIN)
        with opened as connection, workload.unquoted():
            token = service_account.token(connection)
        namespace, _, name = stored.last.cluster.partition("/")
        # The separator is one that no name of Kubernetes has.
        vim = stored.vim or fitting(f"{name}_{namespace}_{stored.last.vnfInstanceId}")
        return Vim(vim, _description(stored), endpoint.url, endpoint.ca, token)


def _description(stored: Stored) -> str:
    """By which a VIM of this receiver is known."""
    name = stored.last.cluster.partition("/")[2]
    return f"Workload cluster {name} of VNF instance {stored.last.vnfInstanceId}"


def is_due(stored: Stored) -> bool:
    """Whether a VIM is to be registered or removed. The VIM of a cluster that is going stays as it is."""
    match stored.last.event:
        case "ready":
            return not stored.is_registered
        case "gone":
            return bool(stored.vim)
    return False


def _words(error: Exception) -> str:
    """An unexpected error without its text, which may have anything of a kubeconfig."""
    return redact(str(error)) if isinstance(error, (DriverError, OSError)) else type(error).__name__
