# SPDX-License-Identifier: Apache-2.0
"""Control groups of machines: the one place that knows version 1 from version 2.

Every machine gets a group of its own below the root of each hierarchy, whatever group the caller is in: systemd-nspawn
can then hand the controllers on, and nothing is left behind in the groups of others.
"""

from pathlib import Path

from .ledger import Ledger

ROOT = Path("/sys/fs/cgroup")


def version() -> int:
    return 2 if (ROOT / "cgroup.controllers").exists() else 1


def is_mounted() -> bool:
    return version() == 2 or (ROOT.is_dir() and bool(_v1_hierarchies()))


def create(ledger: Ledger, name: str) -> list[Path]:
    """The `cgroup.procs` files that a process writes itself into to be in the group `name` of every hierarchy."""
    hierarchies = [ROOT] if version() == 2 else _v1_hierarchies()
    groups = [ledger.cgroup(hierarchy / f"k8scr-{name}") for hierarchy in hierarchies]
    for group in groups:
        if version() == 2:
            _delegate_v2(group)
        elif (group / "cpuset.cpus").exists():
            for file in ("cpuset.cpus", "cpuset.mems"):
                (group / file).write_text((group.parent / file).read_text())
    return [group / "cgroup.procs" for group in groups]


def boot_commands() -> list[str]:
    """What a machine runs before it starts containers."""
    if version() == 2:
        return []
    # systemd-nspawn mounts the controllers of version 1 read-only; without `bind` the kernel says "busy".
    controllers = [path.name for path in _v1_hierarchies() if path.name not in ("systemd", "unified")]
    return [f"mount -o remount,rw,bind /sys/fs/cgroup/{controller}" for controller in controllers]


def _v1_hierarchies() -> list[Path]:
    return sorted(path for path in ROOT.iterdir() if (path / "cgroup.procs").exists() and not path.is_symlink())


def _delegate_v2(group: Path) -> None:
    available = (ROOT / "cgroup.controllers").read_text().split()
    (ROOT / "cgroup.subtree_control").write_text(" ".join(f"+{controller}" for controller in available))
