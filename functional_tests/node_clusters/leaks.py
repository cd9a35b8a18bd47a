# SPDX-License-Identifier: Apache-2.0
"""Where secrets must not be: arguments of processes, on the host and in its machines, and files that others can read."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ..testbed.machine import Machine

# Seconds between two looks: a process that lives for a shorter time may be missed.
EVERY = 0.05
_OFTEN = 4
_FOLDERS = ("/etc", "/home", "/run", "/tmp", "/var/lib", "/var/log", "/var/tmp")


@dataclass
class Arguments:
    """What was seen."""

    seen: set[str] = field(default_factory=set)
    _looks: dict[str, int] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return len(self.seen)

    def look(self) -> None:
        """The host sees the processes of its machines, too. One that has been seen a few times runs its own program."""
        processes = [one for one in Path("/proc").iterdir() if one.name.isdigit()]
        self._looks = {one.name: self._looks.get(one.name, 0) + 1 for one in processes}
        for entry in processes:
            if self._looks[entry.name] <= _OFTEN:
                try:
                    self.seen.add((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
                except OSError:  # it has ended
                    continue


@contextmanager
def watched() -> Iterator[Arguments]:
    """Looks again and again until the end."""
    found, ended = Arguments(), threading.Event()

    def look() -> None:
        while not ended.wait(EVERY):
            found.look()

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield found
    finally:
        ended.set()
        thread.join()


def readable_by_others(machine: Machine, secrets: Sequence[str]) -> list[str]:
    """Paths of files in a machine that have a secret, and that each of its users can read."""
    machine.write("/root/secrets", "".join(f"{one}\n" for one in secrets), mode=0o600)
    line = f"find {' '.join(_FOLDERS)} -xdev -type f -perm -004 -size -1024k -exec grep -lFf /root/secrets {{}} + || true"
    try:
        return machine.run("sh", "-c", line).splitlines()
    finally:
        (machine.root / "root/secrets").unlink()
