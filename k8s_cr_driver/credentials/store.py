# SPDX-License-Identifier: Apache-2.0
"""The receiver's folder: what was received of each workload cluster, durable when a method returns.

For each cluster a JSON file with its last message, without the kubeconfig, and a file with the kubeconfig for its user. Both
have mode 0600 and are replaced as a whole (write, fsync, rename, fsync of the folder), so a crash leaves the old or the new
content. The message of a deleted cluster stays for a while: it is what an older one, sent again, is compared with. A kubeconfig
that a crash has left of such a cluster is deleted at the next start or message.
"""

from __future__ import annotations

import dataclasses
import fcntl
import hashlib
import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from k8s_cr_driver.credentials import envelope
from k8s_cr_driver.credentials.envelope import GONE, READY, Envelope
from k8s_cr_driver.errors import InvalidRequest

KEPT = 2 * envelope.WINDOW
"""Seconds for which a deleted cluster's message stays. No signature is valid for so long."""

NAME_LIMIT = 255 - len("..kubeconfig.new")
"""Bytes of a name that is a part of a file's, which Linux limits to 255."""


class Outdated(Exception):
    """A message precedes the last one of its cluster."""


@dataclass(frozen=True)
class Stored:
    """What is stored of one cluster."""

    last: Envelope
    """Without its kubeconfig."""
    vim: str = ""
    """Name of the VIM that Tacker may have; "" if it has none."""
    is_registered: bool = False
    """Whether the VIM is as the last message has it."""

    @property
    def name(self) -> str:
        """The name of its files."""
        return fitting(f"{self.last.vnfInstanceId}_{self.last.cluster.replace('/', '_')}")


@dataclass
class Store:
    """One folder, used by one process; its methods are for many threads."""

    folder: Path
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Keeps other processes out of the folder. Raises InvalidRequest if one has it; the kernel frees it when that ends."""
        with open(self.folder / ".lock", "w", opener=_private) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InvalidRequest(
                    f"{self.folder}: another receiver uses this folder; give each a folder of its own"
                ) from None
            with self._lock:
                self._tidy()
            yield

    def accept(self, message: Envelope) -> Stored:
        """Stores a message. Raises Outdated, and OSError if it cannot be stored."""
        new = Stored(dataclasses.replace(message, kubeconfig=""))
        with self._lock:
            old = self._read(new.name)
            if old is not None:
                if envelope.order(message) < envelope.order(old.last):
                    raise Outdated
                new = dataclasses.replace(new, vim=old.vim)
            if message.event == READY:
                self._write(f"{new.name}.kubeconfig", message.kubeconfig)
            self._keep(new)
            self._tidy()
            _sync(self.folder)
        return new

    def registering(self, stored: Stored, vim: str) -> bool:
        """
        Notes that Tacker may have a VIM of that name from now on, whatever becomes of the request.

        False if the cluster has gone so long ago that nothing is stored of it any more: then no VIM may be registered.
        """
        return self._note(stored, vim, is_registered=False)

    def registered(self, stored: Stored, vim: str) -> None:
        """Notes the VIM of `stored`, "" for none. It is not current if another message has come meanwhile."""
        self._note(stored, vim, is_registered=True)

    def _note(self, stored: Stored, vim: str, *, is_registered: bool) -> bool:
        with self._lock:
            now = self._read(stored.name)
            if now is not None:
                is_current = is_registered and now.last == stored.last
                self._keep(dataclasses.replace(now, vim=vim, is_registered=is_current))
            return now is not None

    def clusters(self) -> list[Stored]:
        with self._lock:
            return [stored for name in self._names() if (stored := self._read(name)) is not None]

    def kubeconfig(self, stored: Stored) -> Path:
        return self.folder / f"{stored.name}.kubeconfig"

    def _keep(self, stored: Stored) -> None:
        self._write(f"{stored.name}.json", json.dumps(dataclasses.asdict(stored)))

    def _names(self) -> Iterator[str]:
        return (path.stem for path in sorted(self.folder.glob("*.json")))

    def _read(self, name: str) -> Stored | None:
        try:
            content = json.loads((self.folder / f"{name}.json").read_bytes())
            stored = Stored(Envelope(**content["last"]), content["vim"], content["is_registered"])
            return stored if stored.name == name else None
        except FileNotFoundError:
            return None
        except (AttributeError, KeyError, TypeError, ValueError):  # a file of somebody else
            return None

    def _write(self, name: str, text: str) -> None:
        unfinished = self.folder / f".{name}.new"
        with open(unfinished, "w", encoding="utf-8", opener=_private) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(self.folder / name)
        _sync(self.folder)

    def _tidy(self) -> None:
        """Removes the kubeconfigs of deleted clusters, and later all that is stored of those without a VIM."""
        for name in self._names():
            stored, path = self._read(name), self.folder / f"{name}.json"
            if stored is None or stored.last.event != GONE:
                continue
            self.kubeconfig(stored).unlink(missing_ok=True)
            if not stored.vim and time.time() - path.stat().st_mtime > KEPT:
                path.unlink()


def fitting(name: str) -> str:
    """A name that a file and a VIM can have: a longer one ends with its digest."""
    digest = hashlib.sha256(name.encode()).hexdigest()
    return name if len(name) <= NAME_LIMIT else f"{name[:NAME_LIMIT - len(digest) - 1]}_{digest}"


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
