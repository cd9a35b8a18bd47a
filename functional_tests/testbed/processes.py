# SPDX-License-Identifier: Apache-2.0
"""Processes as /proc shows them: found by a token in their environment, known again by pid and start time.

A token finds a process although nobody lived to write its pid down, and its children too; the start time distinguishes a
process from a later one that got the same pid.
"""

import os
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple, TypeVar

TOKEN = "K8S_CR_BED"

T = TypeVar("T")


class Identity(NamedTuple):
    """One process for all time: `start` is in clock ticks since the boot whose random id is `boot`."""

    pid: int
    start: int
    boot: str


def identify(pid: int) -> Identity | None:
    """The identity of a running process; None if there is none, or only its zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()
    if fields[0] in "ZX":
        return None
    return Identity(pid, int(fields[19]), Path("/proc/sys/kernel/random/boot_id").read_text().strip())


def is_running(process: Identity) -> bool:
    """Is it this very process that runs under its pid?"""
    return identify(process.pid) == process


def with_token(token: str) -> set[Identity]:
    """Every running process whose environment has TOKEN=`token` or TOKEN=`token`/anything. Own process excepted."""
    wanted = f"{TOKEN}={token}".encode()
    found = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            variables = (entry / "environ").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        if any(variable == wanted or variable.startswith(wanted + b"/") for variable in variables):
            process = identify(int(entry.name))
            if process:
                found.add(process)
    return found


def in_cgroup(group: Path) -> set[Identity]:
    """Every running process in this control group or one below it."""
    found = set()
    for file in group.rglob("cgroup.procs"):
        try:
            pids = file.read_text().split()
        except FileNotFoundError:  # a group that went away meanwhile
            continue
        found |= {process for process in map(identify, map(int, pids)) if process}
    return found


def stop(find: Callable[[], Iterable[Identity]], first: int = signal.SIGTERM, patience: float = 20) -> None:
    """Send `first` to what `find` finds, after `patience` seconds SIGKILL, until none is left that runs.

    Raises TimeoutError for processes that outlive even SIGKILL.
    """
    for signal_number, seconds in ((first, patience), (signal.SIGKILL, 10)):
        signalled: set[Identity] = set()

        def none_left(signal_number: int = signal_number, signalled: set[Identity] = signalled) -> bool:
            left = {process for process in find() if is_running(process)}
            for process in left - signalled:
                send(process, signal_number)
            signalled |= left
            return not left

        if until(none_left, seconds):
            return
    raise TimeoutError(f"these processes outlive SIGKILL: {sorted(process.pid for process in find())}")


def until(condition: Callable[[], T], seconds: float, pause: float = 0.05) -> T | None:
    """Ask until the answer is true, at most `seconds` long; the answer, or None if time ran out."""
    end = time.monotonic() + seconds
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() >= end:
            return None
        time.sleep(pause)


def send(process: Identity, number: int) -> None:
    """Through a pidfd, so that the signal cannot reach another process that gets the pid in between."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    try:
        if is_running(process):
            signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        pass
    finally:
        os.close(descriptor)
