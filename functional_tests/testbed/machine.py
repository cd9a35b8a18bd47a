# SPDX-License-Identifier: Apache-2.0
"""A machine: a Debian root folder with an overlay, booted by systemd-nspawn in a network namespace of its own.

It knows nothing of what it is used for. What is written into it before or after it boots goes to the overlay, and is
gone with the bed.
"""

import shutil
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from builds import commands

from . import cgroups, network, rootfs
from .ledger import Ledger, Process
from .processes import TOKEN

# systemd's own signal for an orderly power-off.
POWER_OFF = signal.SIGRTMIN + 4

# Of a command in a machine, whatever the caller's is; the token is added, so that `undo` ends it too.
_ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
}

# Each machine's systemd, kubelet and containerd take about twenty of the host's inotify instances, of which there are 128.
_INOTIFY_INSTANCES = 1024

# Where systemd-nspawn has its locks, and folders through which mounts reach machines.
_NSPAWN = Path("/run/systemd/nspawn")

_CGROUPS = """\
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=true
"""


def allow_many(ledger: Ledger) -> None:
    """Raise what the kernel allows by default to what the machines of a bed need together."""
    ledger.at_least("fs/inotify/max_user_instances", _INOTIFY_INSTANCES)


def foresee(ledger: Ledger) -> None:
    """Folders of systemd-nspawn that all machines share, for a record that is undone after those of the machines."""
    for name in ("", "locks", "propagate"):
        ledger.foreseen(_NSPAWN / name)


class Machine:
    """One machine. `Machine.create` makes a new one, `boot` starts it.

    `root` is the machine's file system as the host sees it (without /run, /tmp and /dev, which are mounts inside).
    """

    def __init__(self, ledger: Ledger, name: str, disk: Path | None = None) -> None:
        """`disk` has what the machine writes; by default it goes with the rest."""
        self.name = name
        self.home = ledger.home / "machines" / name
        self.root = self.home / "root"
        self._disk = disk or self.home
        self._ledger = ledger

    @classmethod
    def create(cls, ledger: Ledger, name: str, address: str) -> "Machine":
        """A new machine that is not booted. `address` is one of `network.NETWORK`; the bridge must be there."""
        machine = cls(ledger, name)
        machine.mount(rootfs.root_folder())
        machine.set_up()
        machine.write("/etc/hostname", f"{name}\n")
        machine.write("/etc/hosts", f"127.0.0.1 localhost\n{address} {name}\n")
        network.namespace(ledger, name, address)
        return machine

    def mount(self, root_folder: Path) -> None:
        """Mount the machine's disk over a root folder."""
        folders = {part: self._disk / part for part in ("upper", "work", "volumes")}
        for folder in (self.root, *folders.values()):
            folder.mkdir(parents=True, exist_ok=True)
        options = f"lowerdir={root_folder},upperdir={folders['upper']},workdir={folders['work']}"
        self._ledger.mount("overlay", self.root, "overlay", options)

    def set_up(self) -> None:
        """Write to a new disk what every machine has."""
        self.service("cgroups", _CGROUPS + "".join(f"ExecStart={line}\n" for line in cgroups.boot_commands()))

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        """Write a file in the machine, and the folders above it."""
        target = self._inside(path)
        target.write_text(text)
        target.chmod(mode)

    def service(self, name: str, unit: str) -> None:
        """Add a service that starts when the machine boots."""
        path = f"/etc/systemd/system/{name}.service"
        self.write(path, unit)
        link = self._inside(f"/etc/systemd/system/multi-user.target.wants/{name}.service")
        link.symlink_to(path)

    def copy(self, source: Path, path: str) -> None:
        """Copy a file of the host into the machine, with its mode."""
        shutil.copy(source, self._inside(path))

    def read(self, path: str) -> str:
        """The text of a file in the machine."""
        return (self.root / path.lstrip("/")).read_text()

    def volume(self, path: str) -> Path:
        """What the host has of one of the `volumes` that `start` takes."""
        folder = self._disk / "volumes" / path.strip("/").replace("/", "-")
        folder.mkdir(exist_ok=True)
        return folder

    def disk(self, size: int) -> Path:
        """A new block device of the host, `size` bytes long and empty, that `boot` can give to this machine."""
        backing = self.home / f"disk{len(list(self.home.glob('disk*')))}"
        with backing.open("wb") as file:
            file.truncate(size)
        return self._ledger.loop(backing)

    def boot(
        self,
        *,
        read_only: Mapping[Path, str] | None = None,
        volumes: Sequence[str] = (),
        disks: Mapping[Path, Sequence[str]] | None = None,
    ) -> None:
        """Boot as `start` does, and wait until systemd is up."""
        self.start(read_only=read_only, volumes=volumes, disks=disks)
        self._process().wait_until(self._is_up, 60, "systemd is up")

    def start(
        self,
        *,
        hostname: str = "",
        read_only: Mapping[Path, str] | None = None,
        volumes: Sequence[str] = (),
        disks: Mapping[Path, Sequence[str]] | None = None,
    ) -> None:
        """Boot, without waiting.

        hostname: the machine's name if it is not given.
        read_only: folders or files of the host -> where the machine sees them.
        volumes: folders of the machine on the host's own file system instead of the overlay.
        disks: block devices of the host -> their names in the machine, such as ["/dev/vdb"].
        """
        binds = [f"--bind-ro={source}:{target}" for source, target in (read_only or {}).items()]
        binds += [f"--bind={source}:{target}" for source, names in (disks or {}).items() for target in names]
        for volume in volumes:
            binds.append(f"--bind={self.volume(volume)}:{volume}")
        # In the namespace already when it mounts /sys, which shows the links of the namespace that it is mounted in.
        argv = [
            "nsenter", f"--net=/run/netns/k8scr-{self.name}",
            "systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--boot", f"--directory={self.root}",
            "--capability=all", "--bind=/dev/kmsg",
            f"--hostname={hostname or self.name}", f"--machine={self.name}", "--console=read-only", "--resolv-conf=off",
            "--timezone=off", "--link-journal=no", *binds,
        ]  # fmt: skip
        groups = cgroups.create(self._ledger, self.name)
        joining = "".join(f"echo $$ > {group}; " for group in groups)
        # /proc/sys and /sys writable as on a machine; no system call is refused.
        variables = "SYSTEMD_NSPAWN_API_VFS_WRITABLE=yes SYSTEMD_SECCOMP=0"
        program = ["sh", "-c", f'{joining}{variables} exec "$@"', "sh", *argv]
        self._foresee()
        self._ledger.spawn(f"machine-{self.name}", program)

    def _foresee(self) -> None:
        """What systemd-nspawn removes itself only when the machine has shut down in order."""
        foresee(self._ledger)
        root = self.root.stat()
        for path in (f"locks/inode-{root.st_dev}:{root.st_ino}", f"propagate/{self.name}"):
            self._ledger.foreseen(_NSPAWN / path)

    def run(self, *argv: str | Path) -> str:
        """Run a command in the machine; its stdout. RuntimeError with the end of its stderr when it fails."""
        leader = self._leader()
        if leader is None:
            raise RuntimeError(f"the machine {self.name} is not running")
        environment = _ENVIRONMENT | {TOKEN: self._ledger.token}
        return commands.run(["nsenter", f"--target={leader}", "--all", "--", *argv], env=environment)

    def shut_down(self, patience: float = 120) -> None:
        """Shut down in order, as a power button does; TimeoutError after `patience` seconds."""
        self._end(POWER_OFF, patience)

    def cut_off(self) -> None:
        """End it as the loss of power does."""
        self._end(signal.SIGKILL, 20)

    def is_running(self) -> bool:
        return self._process().is_running()

    def console(self) -> Path:
        """The file with what the machine has printed on its console."""
        return self._process().log

    def _end(self, number: int, patience: float) -> None:
        process, leader = self._process(), self._leader()
        if leader is not None:
            commands.run(["kill", f"-{number}", str(leader)])
        process.wait_until_ended(patience)
        self._ledger.stopped(process.name)

    def _process(self) -> Process:
        return self._ledger.process(f"machine-{self.name}")

    def _leader(self) -> int | None:
        """The pid, on the host, of the machine's pid 1."""
        pid = self._process().pid
        children = Path(f"/proc/{pid}/task/{pid}/children")
        for child in children.read_text().split() if children.exists() else ():
            try:
                status = Path(f"/proc/{child}/status").read_text()
            except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
                continue
            if any(line.startswith("NSpid:") and line.split()[2:] == ["1"] for line in status.splitlines()):
                return int(child)
        return None

    def _is_up(self) -> bool:
        if self._leader() is None:
            return False
        try:
            return self.run("systemctl", "is-system-running", "--wait").strip() == "running"
        except RuntimeError as error:
            return "degraded" in str(error)

    def _inside(self, path: str) -> Path:
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        return target
