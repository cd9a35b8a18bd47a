# SPDX-License-Identifier: Apache-2.0
"""Keeps the VIMs of Tacker as the received clusters are: registered, current, and removed when the cluster no longer exists.

What is to be done follows from the store alone, so that a restart goes on with it. A cluster that fails, or is slow, does not
hold up the others: each has a thread of its own, and is tried again with backoff.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from k8s_cr_driver.credentials import service_account
from k8s_cr_driver.credentials.envelope import GONE
from k8s_cr_driver.credentials.store import Store, Stored, fitting
from k8s_cr_driver.credentials.tacker import Tacker, Vim
from k8s_cr_driver.errors import DriverError, InvalidRequest
from k8s_cr_driver.kube import kubeconfig, threads, tls, workload
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.redaction import redact

LONGEST_PAUSE = 60.0
"""Seconds between two tries of a cluster that fails."""


@dataclass
class Registrar:
    """Acts in threads of its own, for as long as the process runs."""

    store: Store
    tacker: Tacker
    log: Callable[[str], None]
    _changed: threading.Event = field(default_factory=threading.Event)
    _running: set[str] = field(default_factory=set)
    _failures: dict[str, int] = field(default_factory=dict)
    _not_before: dict[str, float] = field(default_factory=dict)
    _renewed: set[str] = field(default_factory=set)
    """Clusters of which a message has come since their last try began."""

    def start(self) -> None:
        threading.Thread(target=self._run, name="registrar", daemon=True).start()

    def changed(self, stored: Stored) -> None:
        """A message of this cluster was stored."""
        self._renewed.add(stored.name)
        self._not_before.pop(stored.name, None)
        self._changed.set()

    def reconcile(self) -> None:
        """Acts once on each cluster whose VIM is not as its last message has it; returns when it has."""
        for thread in self._start():
            thread.join()

    def _start(self) -> list[threading.Thread]:
        due = {one.name: one for one in self.store.clusters() if is_due(one)}
        for name in self._failures.keys() - due.keys():
            self._forget(name)
        now = time.monotonic()
        return [
            self._start_one(one)
            for one in due.values()
            if one.name not in self._running and self._not_before.get(one.name, 0) <= now
        ]

    def _start_one(self, stored: Stored) -> threading.Thread:
        self._running.add(stored.name)
        self._renewed.discard(stored.name)
        try:
            return threads.start(partial(self._try, stored), f"register {stored.last.cluster}")
        except RuntimeError:
            self._running.discard(stored.name)
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
                self._changed.wait(1.0 if self._not_before else None)

    def _pause(self, reason: str) -> None:
        self.log(f"not all VIMs are current, next try in {LONGEST_PAUSE:.0f} s: {reason}")
        self._changed.wait(LONGEST_PAUSE)

    def _try(self, stored: Stored) -> None:
        try:
            self._act(stored)
        except Exception as error:
            failures = self._failures[stored.name] = self._failures.get(stored.name, 0) + 1
            pause = min(2.0**failures, LONGEST_PAUSE)
            if stored.name not in self._renewed:
                self._not_before[stored.name] = time.monotonic() + pause
            self.log(f"{stored.last.cluster}: its VIM is not current, next try in {pause:.0f} s: {_words(error)}")
        else:
            self._forget(stored.name)
        finally:
            self._running.discard(stored.name)
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
        with Connection(endpoint) as connection, workload.unquoted():
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
