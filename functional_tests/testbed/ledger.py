# SPDX-License-Identifier: Apache-2.0
"""The record of everything that `up` makes on this host, written before each thing is made.

`undo` takes it all away in reverse order, also when `up` was killed between writing and making: every kind of entry
can be undone whether or not its thing came to be. What exists already is never recorded, so nobody else's is undone.
Lines of JSON, only ever appended, each on disk before the thing is made.
"""

import json
import os
import pwd
import secrets
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from builds import commands

from . import processes

T = TypeVar("T")
Entry = dict[str, Any]

class Process:
    """A process of the bed; it outlives the program that started it."""

    def __init__(self, name: str, identity: processes.Identity, log: Path) -> None:
        self.name, self.identity, self.log = name, identity, log

    @property
    def pid(self) -> int:
        return self.identity.pid

    def is_running(self) -> bool:
        return processes.is_running(self.identity)

    def wait_until(self, predicate: Callable[[], T], timeout: float, what: str) -> T:
        """Ask `predicate` until it answers true, and return that answer.

        Raises RuntimeError at once when the process has ended, TimeoutError after `timeout` seconds; both with the
        end of its log.
        """
        dead = object()
        answer = processes.until(lambda: predicate() or (None if self.is_running() else dead), timeout)
        if answer is dead:
            raise RuntimeError(f"{self.name} ended before this was so: {what}\n{self._tail()}")
        if answer is None:
            raise TimeoutError(f"{self.name}: not so after {timeout:g} s: {what}\n{self._tail()}")
        return answer  # type: ignore[return-value]

    def wait_until_ended(self, timeout: float) -> None:
        """Raises TimeoutError with the end of the log if the process still runs after `timeout` seconds."""
        if not processes.until(lambda: not self.is_running(), timeout):
            raise TimeoutError(f"{self.name} has not ended after {timeout:g} s\n{self._tail()}")

    def stop(self) -> None:
        """Stop this process alone, with SIGKILL if it has not ended after 20 s."""
        processes.stop(lambda: [self.identity])

    def _tail(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()[-20:]
        return "\n".join([f"the end of {self.log}:", *lines])


class Ledger:
    """The bed's record in `home`, the state folder, which `undo` removes last."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._path = home / "ledger.jsonl"
        if not self._entries():
            home.mkdir(mode=0o711, parents=True, exist_ok=True)
            self._path.unlink(missing_ok=True)
            self._record("bed", token=secrets.token_hex(8))
        self.token: str = self._entries()[0]["token"]

    # --- what is made -----------------------------------------------------------------------------------------------

    def spawn(
        self,
        name: str,
        argv: Sequence[str | Path],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        user: str | None = None,
    ) -> Process:
        """Start a process in a session of its own, its output appended to `logs/<name>.log` in the state folder.

        `env` replaces the environment; a token is added. A name may be used again once its process has ended.
        """
        token = f"{self.token}/{name}"
        log = self.home / "logs" / f"{name}.log"
        log.parent.mkdir(mode=0o700, exist_ok=True)
        account = pwd.getpwnam(user) if user else None
        self._record("process", name=name)
        with log.open("ab") as output:
            child = subprocess.Popen(
                argv,
                env={**(os.environ if env is None else env), processes.TOKEN: token},
                cwd=cwd,
                user=account.pw_uid if account else None,
                group=account.pw_gid if account else None,
                extra_groups=os.getgrouplist(account.pw_name, account.pw_gid) if account else None,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        identity = processes.identify(child.pid)
        if identity is None:
            tail = Process(name, processes.Identity(child.pid, 0, ""), log)._tail()
            raise RuntimeError(f"{name} ended at once with {child.wait()}\n{tail}")
        child.returncode = 0  # Python would warn of a child that runs while its object goes; this one is to outlive it
        self._record("started", name=name, identity=list(identity))
        return Process(name, identity, log)

    def process(self, name: str) -> Process:
        """The process last started under this name. Raises KeyError if there was none."""
        for entry in reversed(self._entries()):
            if entry["kind"] == "started" and entry["name"] == name:
                return Process(name, processes.Identity(*entry["identity"]), self.home / "logs" / f"{name}.log")
        raise KeyError(f"the bed has started no process named {name}")

    def ended(self) -> list[str]:
        """The names of processes that should run and do not."""
        last = {entry["name"]: entry["kind"] for entry in self._entries() if entry["kind"] in ("started", "stopped")}
        return [name for name in last if last[name] == "started" and not self.process(name).is_running()]

    def stopped(self, name: str) -> None:
        """The process has ended because it was to."""
        self._record("stopped", name=name)

    def folder(self, path: str | Path, mode: int = 0o755) -> Path:
        """Make a folder; undone with all that it holds then."""
        path = Path(path)
        self._record_new("folder", path.exists() or path.is_symlink(), path=str(path))
        path.mkdir(mode=mode)
        path.chmod(mode)
        return path

    def file(self, path: str | Path, text: str, mode: int = 0o600) -> Path:
        """Write a new file."""
        path = Path(path)
        self._record_new("file", path.exists() or path.is_symlink(), path=str(path))
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w") as file:
            file.write(text)
        path.chmod(mode)
        return path

    def foreseen(self, path: Path) -> None:
        """A file or folder that a program will make, and leave behind when it is killed. Only an empty folder goes."""
        if not path.exists():
            self._record("foreseen", path=str(path))

    def mount(self, source: str | Path, target: str | Path, kind: str, options: str = "") -> None:
        """Mount a file system of type `kind` on an existing folder that is no mount point yet."""
        self._record_new("mount", _is_mounted(str(target)), path=str(target))
        commands.run(["mount", "-t", kind, *(["-o", options] if options else []), source, target])

    def netns(self, name: str) -> Path:
        """Make a named network namespace."""
        path = Path("/run/netns", name)
        self._record_new("netns", path.exists(), name=name)
        commands.run(["ip", "netns", "add", name])
        return path

    def link(self, name: str, *arguments: str) -> None:
        """`ip link add NAME ARGUMENTS`, such as `type bridge`."""
        self._record_new("link", _has_link(name), name=name)
        commands.run(["ip", "link", "add", name, *arguments])

    def cgroup(self, path: Path) -> Path:
        """Make a control group; undone with the processes that are in it and the groups below it."""
        self._record_new("cgroup", path.exists(), path=str(path))
        path.mkdir()
        return path

    def loop(self, file: Path) -> Path:
        """A loop device on a file of the bed's own."""
        self._record("loop", file=str(file))
        return Path(commands.run(["losetup", "--find", "--show", file]).strip())

    def release_loop(self, file: Path) -> None:
        """Take the loop device off a file before the rest is undone: others may delete the file, or take it for their own."""
        _undo_loop({"file": str(file)})
        self._record("released", file=str(file))

    def setting(self, path: str, value: str) -> None:
        """Write a setting of the kernel, a path below /proc/sys; undone to what it was."""
        file = Path("/proc/sys", path)
        self._record("setting", path=str(file), before=file.read_text())
        file.write_text(value)

    def at_least(self, path: str, value: int) -> None:
        """Raise a setting of the kernel if it is lower."""
        if int(Path("/proc/sys", path).read_text()) < value:
            self.setting(path, str(value))

    def others(self, folder: Path) -> None:
        """Folders below this one have records of their own, which are undone with this one."""
        self._record("others", path=str(folder))

    # --- how it is undone -------------------------------------------------------------------------------------------

    def undo(self) -> None:
        """End all processes, then take away everything else that was recorded, the last first.

        Goes on after a failure; raises RuntimeError that names what is left, and keeps the record then.
        """
        # What they write is not kept, so that none is waited for much longer than it takes to remove temporary files.
        processes.stop(self._processes, patience=3)
        failures, released = [], list[str]()
        for entry in reversed(self._entries()):
            if entry["kind"] == "released":
                released.append(entry["file"])
            if entry["kind"] == "loop" and entry["file"] in released:
                released.remove(entry["file"])
                continue
            try:
                _UNDO.get(entry["kind"], _nothing)(entry)
            except (OSError, RuntimeError) as error:
                failures.append(f"{entry['kind']} {entry.get('name') or entry.get('path') or ''}: {error}")
        if failures:
            raise RuntimeError("this could not be undone:\n" + "\n".join(failures))
        _remove_tree(self.home)

    def _processes(self) -> set[processes.Identity]:
        """By the token; and by identity, for one that has overwritten its environment."""
        started = {processes.Identity(*entry["identity"]) for entry in self._entries() if entry["kind"] == "started"}
        return started | processes.with_token(self.token)

    def _entries(self) -> list[Entry]:
        """Whole lines only: a crash can have cut the last one short, whose thing was not made then."""
        lines = self._path.read_text().splitlines(keepends=True) if self._path.exists() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def _record_new(self, kind: str, exists: bool, **data: Any) -> None:
        if exists:
            raise FileExistsError(f"{kind} {data.get('name') or data.get('path')} exists already, and is not the bed's")
        self._record(kind, **data)

    def _record(self, kind: str, **data: Any) -> None:
        with self._path.open("ab") as file:
            file.write(json.dumps({"kind": kind, **data}).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())


def _undo_folder(entry: Entry) -> None:
    _remove_tree(Path(entry["path"]))


def _undo_file(entry: Entry) -> None:
    Path(entry["path"]).unlink(missing_ok=True)


def _undo_foreseen(entry: Entry) -> None:
    path = Path(entry["path"])
    if not path.is_dir():
        path.unlink(missing_ok=True)
    elif not any(path.iterdir()):
        path.rmdir()


def _undo_mount(entry: Entry) -> None:
    while _is_mounted(entry["path"]):
        commands.run(["umount", entry["path"]])


def _undo_netns(entry: Entry) -> None:
    if Path("/run/netns", entry["name"]).exists():
        commands.run(["ip", "netns", "delete", entry["name"]])


def _undo_link(entry: Entry) -> None:
    if _has_link(entry["name"]):
        commands.run(["ip", "link", "delete", entry["name"]])


def _undo_cgroup(entry: Entry) -> None:
    path = Path(entry["path"])
    processes.stop(lambda: processes.in_cgroup(path), signal.SIGKILL)
    # The kernel says "busy" until the last of the dead is collected.
    if not processes.until(lambda: _remove_cgroup(path), 10):
        raise RuntimeError("still busy 10 s after its processes were killed")


def _undo_loop(entry: Entry) -> None:
    for line in commands.run(["losetup", "--associated", entry["file"]]).splitlines():
        commands.run(["losetup", "--detach", line.partition(":")[0]])


def _undo_setting(entry: Entry) -> None:
    Path(entry["path"]).write_text(entry["before"])


def _undo_others(entry: Entry) -> None:
    for record in list(Path(entry["path"]).rglob("ledger.jsonl")):
        Ledger(record.parent).undo()


def _nothing(entry: Entry) -> None:
    pass


_UNDO: dict[str, Callable[[Entry], None]] = {
    "folder": _undo_folder,
    "file": _undo_file,
    "foreseen": _undo_foreseen,
    "mount": _undo_mount,
    "netns": _undo_netns,
    "link": _undo_link,
    "cgroup": _undo_cgroup,
    "loop": _undo_loop,
    "setting": _undo_setting,
    "others": _undo_others,
}


def _remove_tree(path: Path) -> None:
    """Never reaches into a mount: what is mounted there may be somebody's files."""
    inside = [point for point in _mount_points() if Path(point).is_relative_to(path)]
    if inside:
        raise RuntimeError(f"{path} is not removed, something is still mounted on {', '.join(inside)}")
    if path.exists():
        shutil.rmtree(path)


def _remove_cgroup(path: Path) -> bool:
    try:
        for folder in sorted((below for below in path.rglob("*") if below.is_dir()), reverse=True):
            folder.rmdir()
        if path.exists():
            path.rmdir()
    except OSError:
        return False
    return True


def _is_mounted(path: str) -> bool:
    return os.path.realpath(path) in _mount_points()


def _mount_points() -> list[str]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line.split(" ")[4].encode().decode("unicode_escape") for line in lines]


def _has_link(name: str) -> bool:
    return Path("/sys/class/net", name).exists()
