# SPDX-License-Identifier: Apache-2.0
"""Machines behind a real SSH server: a storage server with volumes, and nodes. Programs that need a kernel are stand-ins.

A device is a file with what blkid prints of it, a line without `=` for an empty volume. What is mounted, exported and active
are files, too.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.ssh import server as ssh

PATHS = ("/etc/", "/dev/disk/", "/var/lib/k8s-cr-nodes", "/volume")

_PROGRAMS = {
    "systemctl": """\
echo "systemctl $*" >>"$ROOT/log"
case $1 in
show)
  unit=${4%.service}
  case $2 in *LoadState) if [ -e "$ROOT/units/$unit" ]; then echo loaded; else echo not-found; fi ;; *) echo inactive ;; esac ;;
is-active) state=$(cat "$ROOT/units/${2%.service}" 2>/dev/null || echo inactive); echo "$state"; [ "$state" = active ] ;;
restart) [ -e "$ROOT/units/$2" ] || exit 5
  echo active >"$ROOT/units/$2"; if [ "$2" = nfs-server ]; then exportfs -ra; fi ;;
reload) [ "$(cat "$ROOT/units/$2")" = active ] ;;
esac
""",
    "systemd-run": 'while [ "$1" != -- ]; do shift; done; shift; "$@"',
    "blkid": """\
for device in "$@"; do :; done
if [ -e "$ROOT/ambivalent" ]; then exit 8; fi
grep -q = "$device" 2>/dev/null || exit 2
cat "$device"
""",
    "mkfs.ext4": 'echo "mkfs $4" >>"$ROOT/log"; printf "TYPE=ext4\\nUUID=%s\\nUSAGE=filesystem\\n" "$3" >"$4"',
    "mountpoint": """\
if [ "$1" = -x ]; then set -- $(echo "${2##*/}" | cksum); echo "252:$1"; exit; fi
file=$ROOT/mounts/$(echo "${2#"$ROOT"}" | tr / _)
if [ ! -e "$file" ]; then
  if [ "$1" = -d ] && [ -d "$2" ]; then echo "$2 is not a mountpoint"; fi
  exit 1
fi
if [ "$1" = -d ]; then cat "$file"; fi
""",
    "mount": """\
echo "mount ${1#"$ROOT"}" >>"$ROOT/log"
uuid=$(awk -v f="${1#"$ROOT"}" '$2 == f {sub("UUID=", "", $1); print $1}' "$ROOT/etc/fstab")
device=$(grep -l "^UUID=$uuid$" "$ROOT"/dev/disk/by-id/*)
mountpoint -x "$device" >"$ROOT/mounts/$(echo "${1#"$ROOT"}" | tr / _)"
""",
    "exportfs": """\
if [ "$1" = -s ]; then cat "$ROOT/etab" 2>/dev/null; exit 0; fi
echo "exportfs $*" >>"$ROOT/log"
if [ -e "$ROOT/refuses" ]; then echo "exportfs: Failed to stat /volume/nfs/pv1" >&2; exit 1; fi
awk '/^[^#]/ {for (i = 2; i <= NF; i++) print $1 "  " $i}' "$ROOT"/etc/exports.d/*.exports >"$ROOT/etab"
""",
    "kubectl": """\
case "$*" in
*"get persistentvolumes"*) cat "$ROOT/persistentvolumes" ;;
*"get pods"*) cat "$ROOT/pods" ;;
*) shift 2; echo "kubectl $*" >>"$ROOT/log" ;;
esac
""",
    "install": 'shift 7; mkdir -p "$@"',
    "ip": 'echo "$4 dev eth0 src $(cat "$ROOT/address") uid 0"',
}


@dataclass
class Machine:
    """One machine: its SSH server, and the folder that it sees as `/`."""

    server: ssh.Server
    root: Path

    @property
    def log(self) -> list[str]:
        """The programs that have changed something, in their order."""
        file = self.root / "log"
        return [line for line in file.read_text().splitlines() if "show" not in line and "is-active" not in line]

    def file(self, path: str) -> str:
        """The content of a file that the machine has at that path."""
        return (self.root / path.lstrip("/")).read_text()

    def attach(self, volume: str, content: str = "nothing\n") -> Path:
        """A volume, with what blkid finds on it; "" for a device without a size."""
        device = self.root / "dev" / "disk" / "by-id" / f"virtio-{volume[:20]}"
        device.write_text(content)
        return device

    def provide(self, unit: str, state: str = "inactive") -> None:
        """The service is installed."""
        (self.root / "units" / unit).write_text(state)

    def become_master(self, volumes: str, pods: str = "") -> None:
        """Of a cluster that has these, as kubectl lists them."""
        for path in ("kubelet.conf", "admin.conf", "manifests/kube-apiserver.yaml"):
            file = self.root / "etc" / "kubernetes" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
        (self.root / "persistentvolumes").write_text(volumes)
        (self.root / "pods").write_text(pods)


def _program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}")
    path.chmod(0o755)


@contextmanager
def serving(root: Path, address: str = "10.10.0.2", at: str = "127.0.0.1", port: int = 0) -> Iterator[Machine]:
    """A machine with that address in the network of the cluster, and with a new root disk. SSH reaches it `at` another one."""
    with ssh.serving(address=at, port=port) as server:
        yield boot(server, root, address)


def boot(server: ssh.Server, root: Path, address: str) -> Machine:
    """What SSH reaches from now on: a machine with a new root disk."""
    for folder in ("bin", "units", "mounts", "etc/exports.d", "etc/ganesha", "etc/systemd/system", "dev/disk/by-id"):
        (root / folder).mkdir(parents=True)
    for name, text in _PROGRAMS.items():
        _program(root / "bin" / name, text)
    (root / "address").write_text(address)
    (root / "log").touch()
    (root / "etc" / "fstab").write_text("UUID=root / ext4 defaults 0 1\n")
    server.root, server.paths = str(root), PATHS
    server.environment = {"PATH": f"{root / 'bin'}:{os.environ['PATH']}", "ROOT": str(root)}
    return Machine(server, root)


def replace(machine: Machine, root: Path) -> None:
    """Gives a machine another root disk with what is on its volumes, as a heal that keeps them does."""
    for device in (machine.root / "dev" / "disk" / "by-id").iterdir():
        shutil.copy(device, root / "dev" / "disk" / "by-id")
