# SPDX-License-Identifier: Apache-2.0
"""Where secrets must not be: arguments of processes, on the host and in its machines, and files that others can read."""

from __future__ import annotations

import base64
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

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
        processes = [name for name in os.listdir("/proc") if name.isdigit()]
        self._looks = {name: self._looks.get(name, 0) + 1 for name in processes}
        for name in processes:
            if self._looks[name] <= _OFTEN:
                try:
                    self.seen.add(Path("/proc", name, "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
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


def readable_by_others(run: Callable[..., str], secrets: Sequence[str]) -> list[str]:
    """Paths of files in a machine that have a secret, and that each of its users can read. run: a command in it."""
    encoded = base64.b64encode("".join(f"{one}\n" for one in secrets).encode()).decode()
    find = f"find {' '.join(_FOLDERS)} -xdev -type f -perm -004 -size -1024k -exec grep -lFf $file {{}} + || true"
    line = f"file=$(mktemp); echo {encoded} | base64 --decode >$file; {find}; rm $file"
    return run("sh", "-c", line).splitlines()
