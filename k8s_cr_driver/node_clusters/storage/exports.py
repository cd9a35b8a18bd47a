# SPDX-License-Identifier: Apache-2.0
"""Files of the storage server: which file systems it mounts, and which directories it exports. Each is rendered whole.

Writers become one user without rights (all_squash), who owns the directories: a Pod's user has no meaning on the server. The
NFS server waits for the mounts, so that a reboot without a volume does not export the root disk.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.node_clusters.storage.parameters import GANESHA, KERNEL, Export
from k8s_cr_driver.ssh.files import File

NOBODY = 65534
UNITS = {KERNEL: "nfs-server", GANESHA: "nfs-ganesha"}
"""The service of each NFS server."""
PATHS = {KERNEL: "/etc/exports.d/k8s-cr.exports", GANESHA: "/etc/ganesha/ganesha.conf"}
"""Its exports. The kernel's server reads all files of the folder (exports(5)); Ganesha has one file, which is replaced."""
FSTAB = "/etc/fstab"
OURS = "x-k8s-cr"
"""The option of our lines in fstab, which mount(8) and systemd do not read."""
_HEAD = "# Written by a management driver of k8s-cr-driver: changes are lost.\n"
_GANESHA = """\
NFS_CORE_PARAM {
  Protocols = 3, 4;
  mount_path_pseudo = true;
}
EXPORT_DEFAULTS {
  Access_Type = None;
  Squash = All_Squash;
  Anonymous_Uid = %(nobody)d;
  Anonymous_Gid = %(nobody)d;
  SecType = sys;
  Protocols = 3, 4;
  Transports = TCP;
}
"""
_GANESHA_EXPORT = """\
EXPORT {{
  Export_Id = {id};
  Path = {path};
  Pseudo = {path};
  FSAL {{ Name = VFS; }}
  CLIENT {{ Clients = {clients}; Access_Type = RW; }}
}}
"""
_IDS = 60_000


@dataclass(frozen=True)
class Mount:
    """A file system that has to be mounted."""

    uuid: str
    kind: str
    folder: str

    @property
    def line(self) -> str:
        """Its line of fstab. A server without the volume boots all the same."""
        return f"UUID={self.uuid} {self.folder} {self.kind} defaults,nofail,{OURS} 0 2"


def fstab(present: Sequence[str], mounts: Sequence[Mount]) -> File:
    """The lines of others as they are, then ours. Raises InvalidRequest if others mount something at a folder of ours."""
    others = [line for line in present if not _is_ours(line)]
    used = {one.folder for one in mounts}
    for line in others:
        fields = line.split()
        if len(fields) > 1 and not line.lstrip().startswith("#") and fields[1] in used:
            raise InvalidRequest(f"{FSTAB} of the storage server mounts {fields[0]} to {fields[1]}: choose another mount_to")
    return File(FSTAB, "".join(f"{line}\n" for line in (*others, *(one.line for one in mounts))))


def _is_ours(line: str) -> bool:
    fields = line.split()
    return len(fields) > 3 and OURS in fields[3].split(",")


def files(server: str, exports: Sequence[Export], mounts: Iterable[Mount]) -> tuple[File, File]:
    """The exports, and what its service waits for."""
    folders = " ".join(one.folder for one in mounts)
    waits = File(f"/etc/systemd/system/{UNITS[server]}.service.d/k8s-cr.conf", f"{_HEAD}[Unit]\nRequiresMountsFor={folders}\n")
    return File(PATHS[server], _HEAD + (_kernel(exports) if server == KERNEL else _ganesha(exports))), waits


def _kernel(exports: Sequence[Export]) -> str:
    options = f"rw,sync,no_subtree_check,all_squash,anonuid={NOBODY},anongid={NOBODY}"
    return "".join(f"{one.directory} {' '.join(f'{network}({options})' for network in one.networks)}\n" for one in exports)


def _ganesha(exports: Sequence[Export]) -> str:
    ids = export_ids(one.directory for one in exports)
    head = _GANESHA % {"nobody": NOBODY}
    return head + "".join(
        _GANESHA_EXPORT.format(id=ids[one.directory], path=one.directory, clients=", ".join(one.networks)) for one in exports
    )


def export_ids(directories: Iterable[str]) -> Mapping[str, int]:
    """A number for each directory, hardly dependent on the others: by it Ganesha knows an export when it reads them again."""
    found: dict[str, int] = {}
    for directory in sorted(directories):
        number = int.from_bytes(hashlib.sha256(directory.encode()).digest()[:4], "big") % _IDS
        while number + 1 in found.values():
            number = (number + 1) % _IDS
        found[directory] = number + 1
    return found
