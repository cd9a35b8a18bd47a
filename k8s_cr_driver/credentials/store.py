# SPDX-License-Identifier: Apache-2.0
"""The receiver's folder: what was received of each workload cluster, durable when a method returns.

For each cluster a JSON file with its last message, without the kubeconfig, and a file with the kubeconfig for its user, which
is written here from what was read of the one in the message. Both have mode 0600 and are replaced as a whole (write, fsync,
rename, fsync of the folder), so a crash leaves the old or the new content. The message of a deleted cluster stays for a while:
it is what an older one, sent again, is compared with. A kubeconfig that a crash has left of such a cluster is deleted at the
next start or message.
"""

from __future__ import annotations

import dataclasses
import fcntl
import hashlib
import json
import os
import stat
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from k8s_cr_driver.credentials import envelope
from k8s_cr_driver.credentials.envelope import GONE, READY, Envelope
from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.kube import kubeconfig
from k8s_cr_driver.kube.endpoint import Endpoint

KEPT = 2 * envelope.WINDOW
"""Seconds for which a deleted cluster's message stays. No signature is valid for so long."""

NAME_LIMIT = 255 - len("..kubeconfig.new")
"""Bytes of a name that is a part of a file's, which Linux limits to 255."""

INSTANCE_LIMIT = 16 * 1024 * 1024
"""Bytes of all files of a VNF instance, in whole blocks: more than a thousand clusters have."""
LIMIT = 256 * 1024 * 1024
"""Bytes of all files."""
_BLOCK = 4096
_UUID = 36
"""Characters of the VNF instance's id, with which the name of a file begins."""
_CONFIRMATION_LIMIT = 4096
"""Bytes."""


class Outdated(Exception):
    """A message precedes the last one of its cluster."""


class Full(Exception):
    """There is no room for a message."""


@dataclass(frozen=True)
class Stored:
    """What is stored of one cluster."""

    last: Envelope
    """Without its kubeconfig."""
    vim: str = ""
    """Name of the VIM that Tacker may have; "" if it has none."""
    is_registered: bool = False
    """Whether the VIM is as the last message has it."""
    identity: str = ""
    """`identity` of the last kubeconfig."""
    vim_identity: str = ""
    """The same of the VIM; "" if it has none, or an earlier version has registered it."""

    @property
    def name(self) -> str:
        """The name of its files."""
        return fitting(f"{self.last.vnfInstanceId}_{self.last.cluster.replace('/', '_')}")

    @property
    def is_held(self) -> bool:
        """Whether the VIM would come to lead to another cluster, which an operator has to confirm."""
        return self.last.event == READY and bool(self.vim) and self.identity != self.vim_identity


@dataclass
class Store:
    """One folder, used by one process; its methods are for many threads."""

    folder: Path
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        """Raises InvalidRequest for a folder in which others may write."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if stat.S_IMODE(self.folder.stat().st_mode) & 0o022:
            raise InvalidRequest(f"{self.folder}: other users may write in it; change that with: chmod go-w {self.folder}")

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Keeps other processes out of the folder. Raises InvalidRequest if one has it; the kernel frees it when that ends.

        Also if it belongs to another user, who could replace its files.
        """
        if self.folder.stat().st_uid != os.geteuid():
            raise InvalidRequest(f"{self.folder}: belongs to another user; give the receiver a folder of its own user")
        with os.fdopen(os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)) as file:
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
        """Stores a message. Raises Outdated, Full, InvalidRequest for its kubeconfig, and OSError if it cannot be stored."""
        new = Stored(dataclasses.replace(message, kubeconfig=""))
        text = ""
        if message.event == READY:
            endpoint = _endpoint(message)
            text = kubeconfig.written(endpoint, message.cluster.partition("/")[2], "kubeconfig")
            new = dataclasses.replace(new, identity=identity(endpoint))
        with self._lock:
            old = self._read(new.name)
            if old is not None:
                if envelope.order(message) < envelope.order(old.last):
                    raise Outdated
                new = dataclasses.replace(
                    new, vim=old.vim, vim_identity=old.vim_identity, identity=new.identity or old.identity
                )
            if text or old is None:
                self._check_room(new, len(text))
            if text:
                self._write(f"{new.name}.kubeconfig", text)
            self._keep(new)
            self._tidy()
            _sync(self.folder)
        return new

    def registering(self, stored: Stored, vim: str) -> bool:
        """
        Notes that Tacker may have a VIM of that name, which leads to the cluster of `stored`, whatever becomes of the request.

        False if the cluster has gone so long ago that nothing is stored of it any more: then no VIM may be registered.
        """
        return self._note(stored, vim, is_registered=False)

    def registered(self, stored: Stored, vim: str) -> None:
        """Notes the VIM of `stored`, "" for none. It is not current if another message has come meanwhile."""
        self._note(stored, vim, is_registered=True)
        self._confirmation(stored).unlink(missing_ok=True)

    def _note(self, stored: Stored, vim: str, *, is_registered: bool) -> bool:
        with self._lock:
            now = self._read(stored.name)
            if now is not None:
                is_current = is_registered and now.last == stored.last
                identity = stored.identity if vim else ""
                self._keep(dataclasses.replace(now, vim=vim, is_registered=is_current, vim_identity=identity))
            return now is not None

    def clusters(self) -> list[Stored]:
        with self._lock:
            return [stored for name in self._names() if (stored := self._read(name)) is not None]

    def kubeconfig(self, stored: Stored) -> Path:
        return self.folder / f"{stored.name}.kubeconfig"

    def confirm(self, stored: Stored) -> None:
        """Notes that the VIM may lead to the cluster of `stored`; for another process than the one that has the folder."""
        self._write(self._confirmation(stored).name, stored.identity, 0o644)

    def is_confirmed(self, stored: Stored) -> bool:
        """Whether an operator has confirmed this very change."""
        try:
            descriptor = os.open(self._confirmation(stored), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return False
        with os.fdopen(descriptor, encoding="utf-8", errors="replace") as file:
            return file.read(_CONFIRMATION_LIMIT) == stored.identity

    def _confirmation(self, stored: Stored) -> Path:
        return self.folder / f"{stored.name}.ok"

    def _check_room(self, new: Stored, size: int) -> None:
        """Raises Full. What is replaced takes no room."""
        own = {f"{new.name}.json", f"{new.name}.kubeconfig"}
        used: Counter[str] = Counter()
        for entry in os.scandir(self.folder):
            if entry.name not in own:
                used[entry.name[:_UUID]] += _blocks(entry.stat(follow_symlinks=False).st_size)
        more = _blocks(size) + _BLOCK
        if used[new.name[:_UUID]] + more > INSTANCE_LIMIT or used.total() + more > LIMIT:
            raise Full

    def _keep(self, stored: Stored) -> None:
        self._write(f"{stored.name}.json", json.dumps(dataclasses.asdict(stored)))

    def _names(self) -> Iterator[str]:
        return (path.stem for path in sorted(self.folder.glob("*.json")))

    def _read(self, name: str) -> Stored | None:
        try:
            content = json.loads((self.folder / f"{name}.json").read_bytes())
            stored = Stored(**{**content, "last": Envelope(**content["last"])})
            return stored if stored.name == name else None
        except FileNotFoundError:
            return None
        except (AttributeError, KeyError, TypeError, ValueError):  # a file of somebody else
            return None

    def _write(self, name: str, text: str, mode: int = 0o600) -> None:
        unfinished = self.folder / f".{name}.new"
        with suppress(FileNotFoundError):  # of a process that was killed
            os.unlink(unfinished)
        with os.fdopen(_created(unfinished, mode), "w", encoding="utf-8") as file:
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
                self._confirmation(stored).unlink(missing_ok=True)
                path.unlink()


def identity(endpoint: Endpoint) -> str:
    """What makes it the same cluster: its URL, and the CA by which it is known."""
    return f"{endpoint.url} with CA sha256:{hashlib.sha256(endpoint.ca.encode()).hexdigest()}"


def fitting(name: str) -> str:
    """A name that a file and a VIM can have: a longer one ends with its digest."""
    digest = hashlib.sha256(name.encode()).hexdigest()
    return name if len(name) <= NAME_LIMIT else f"{name[:NAME_LIMIT - len(digest) - 1]}_{digest}"


def _endpoint(message: Envelope) -> Endpoint:
    endpoint = kubeconfig.parse(message.kubeconfig, "kubeconfig")
    if endpoint.url != message.endpoint:
        raise InvalidRequest("endpoint is not the server of kubeconfig")
    return endpoint


def _created(path: Path, mode: int) -> int:
    """A file of that mode, whatever the umask. FileExistsError if there is one, or a link of its name."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    os.fchmod(descriptor, mode)
    return descriptor


def _blocks(size: int) -> int:
    return -(-size // _BLOCK) * _BLOCK


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
