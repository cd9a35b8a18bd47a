# SPDX-License-Identifier: Apache-2.0
"""
The fence of a run: Tacker may start a second worker on an instance while the first still runs, and the first must stop.

Each run writes a token of its own into the inventory. A run whose token was replaced writes nothing more; one that has replaced
another's knows until when writes of that may still take effect.

After `kill -9` nobody gives a token back. What a process has sent ends with it: its connections are closed, and the API server
cancels their requests. So the inventory names the process: a later one on the same host knows whether it has ended. Of a
process on another host, or in another container, nobody knows.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import threading
import time
import uuid
from pathlib import Path

from k8s_cr_driver.errors import Superseded
from k8s_cr_driver.journal.store import InventoryStore
from k8s_cr_driver.journal.stored_form import InventoryContent
from k8s_cr_driver.kube import timing

_PROC = Path("/proc")
_WORKER = re.compile(r"([0-9a-f]{16})-([0-9]{1,9})-([0-9]{1,20})")


def this_process() -> str:
    """The kernel's boot and the PID namespace as a digest, the PID and the start time of this process; "" if not known."""
    place, started = _place(), _started(os.getpid())
    return f"{place}-{os.getpid()}-{started}" if place and started else ""


def process_has_ended(worker: str) -> bool:
    """Whether a process, by what `this_process` was in it, is known to have ended; False for one of another place."""
    found = _WORKER.fullmatch(worker)
    if found is None or found[1] != _place():
        return False
    pid, started = int(found[2]), found[3]
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass  # of another user
    now = _started(pid)
    return bool(now) and now != started


def _place() -> str:
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text()
        namespace = os.readlink(_PROC / "self/ns/pid")
    except OSError:
        return ""
    return hashlib.sha256(f"{boot} {namespace}".encode()).hexdigest()[:16]


def _started(pid: int) -> str:
    """When a process has started, in ticks since the boot; "0" for one that has ended and was not waited for (proc(5))."""
    try:
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "0" if fields[0] in "ZX" else fields[19]


class Fence:
    """The token of one run. A run that has claimed nothing, such as a dry run, has nothing to confirm."""

    def __init__(self, store: InventoryStore) -> None:
        self.token = uuid.uuid4().hex
        self._store, self._has_former = store, False
        self._claimed_at: float | None = None
        self._lost: tuple[str | None, float] = "", math.inf
        """A claim without a response: the token that it was to replace, and when it was sent."""
        self._lock = threading.Lock()
        self._confirmed_at = 0.0

    @property
    def has_former(self) -> bool:
        """Whether another run held the instance when this one claimed it, and may not have noticed yet."""
        return self._has_former

    def replaces(self, found: InventoryContent | None, *, was_lost: bool) -> None:
        """
        Notes whose token the claim is about to replace. Superseded if others have claimed since a lost claim.

        `was_lost`: the instance had an inventory, so that a run may have had its token in it. A run that reconciles several
        times claims each time; Superseded if others have claimed in between.
        """
        if self._claimed_at is not None:
            self.check(found)
        self._check_lost(found)
        is_others = found is not None and found.token not in ("", self.token) and not found.released
        self._has_former |= was_lost or bool(is_others and found and not process_has_ended(found.worker))

    @property
    def worker(self) -> str:
        """
        Which process the run is of, for the next one; see `this_process`.

        "" if the end of this process does not say that nobody writes: a run before this one may.
        """
        return "" if self._has_former else this_process()

    def claimed(self) -> None:
        """The token is in the inventory: from now on every other run finds it."""
        self._claimed_at = time.monotonic()

    def lost_claim(self, former: str | None, asked_at: float) -> None:
        """
        The claim that was to replace this token, sent at that time, got no response: it may have succeeded.

        None: it could only create an inventory, and nobody had looked whether there was one.
        """
        self._lost = former, asked_at

    def _check_lost(self, found: InventoryContent | None) -> None:
        """Superseded if a lost claim may have succeeded, and others have claimed or terminated the instance since.

        An inventory that such a claim created is not deleted until its token has expired: a terminate waits for that.
        """
        former, asked_at = self._lost
        since = time.monotonic() - asked_at
        is_unchanged = found is not None and found.token in (former, self.token)
        # Whoever replaces the token of such a claim waits for its writes, and until then does not name its own process
        was_there = former is None and found is not None and bool(found.worker) and since < timing.TIMING.in_flight
        if not (is_unchanged or was_there) and since > (-1 if found else timing.TIMING.trusted):
            self.check(found)

    def former_stops_in(self) -> float:
        """Seconds until the former run no longer trusts its token, and its writes are done unless a webhook holds one."""
        return self._left(timing.TIMING.trusted + timing.TIMING.travel)

    def former_expires_in(self) -> float:
        """Seconds until no write of the former run can take effect any more."""
        return self._left(timing.TIMING.trusted + timing.TIMING.in_flight)

    def _left(self, seconds: float) -> float:
        """Of so many seconds after the claim."""
        return 0.0 if self._claimed_at is None else max(0.0, self._claimed_at + seconds - time.monotonic())

    def former_may_write(self) -> bool:
        """Whether a write of a former run can still take effect: the next run must wait for that, too."""
        return self._has_former and self.former_expires_in() > 0

    def confirmed(self, asked_at: float) -> None:
        """The inventory had the token when it was asked for at that time."""
        self._confirmed_at = asked_at

    def check(self, content: InventoryContent | None) -> None:
        """Superseded unless `content`, which was just read or watched, has this run's token."""
        if content is None:
            raise Superseded(
                f"{self._store.key}, the inventory of VNF instance {self._store.instance}, was deleted while this worker ran, "
                "so it stopped. If nobody has terminated the instance, retry: the inventory is created again."
            )
        if content.token != self.token:
            raise Superseded(
                f"Another worker took over VNF instance {self._store.instance}; this one has stopped. "
                "See the operation that is running now."
            )

    def before_write(self) -> None:
        """Superseded if the instance is no longer this run's: before each write and each deletion."""
        self._confirm(timing.TIMING.trusted)

    def before_recreate(self) -> None:
        """Superseded if the instance is no longer this run's as of now: what vanished may be deleted because of that."""
        self._confirm(-1)

    def _confirm(self, seconds: float) -> None:
        """Reads the inventory if the token was not confirmed for so long: its watch may be half-open.

        Watch events do not confirm it, for they may be late.
        """
        with self._lock:
            asked_at = time.monotonic()
            if self._claimed_at is not None and asked_at - self._confirmed_at > seconds:
                self.check(self._store.read_scope())
                self._confirmed_at = asked_at
