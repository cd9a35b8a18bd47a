# SPDX-License-Identifier: Apache-2.0
"""
Which process holds an instance, so that a later one on the same host knows whether it has ended.

After `kill -9` nobody gives the fence's token back. What a process has sent ends with it: its connections are closed, and
the API server cancels their requests. Of a process on another host, or in another container, nobody knows.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

_PROC = Path("/proc")
_WORKER = re.compile(r"([0-9a-f]{16})-([0-9]{1,9})-([0-9]{1,20})")


def this() -> str:
    """The kernel's boot and the PID namespace as a digest, the PID and the start time of this process; "" if not known."""
    place, started = _place(), _started(os.getpid())
    return f"{place}-{os.getpid()}-{started}" if place and started else ""


def has_ended(worker: str) -> bool:
    """Whether a process, by what `this` was in it, is known to have ended; False for one of another place."""
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
