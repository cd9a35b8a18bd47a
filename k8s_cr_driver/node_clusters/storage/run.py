# SPDX-License-Identifier: Apache-2.0
"""Does the steps of the storage plan, counts them, and reports each to the conductor's log."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from k8s_cr_driver.errors import DriverError, InvalidPackage
from k8s_cr_driver.node_clusters import work
from k8s_cr_driver.node_clusters.inventory import Node
from k8s_cr_driver.node_clusters.storage import exports, facts, inventory, plan
from k8s_cr_driver.node_clusters.storage.inventory import Inventory
from k8s_cr_driver.node_clusters.storage.parameters import KERNEL, Storage
from k8s_cr_driver.node_clusters.storage.persistent_volumes import PersistentVolume
from k8s_cr_driver.ssh import files, units
from k8s_cr_driver.ssh.command import Command, script
from k8s_cr_driver.ssh.files import File
from k8s_cr_driver.ssh.host import Host, HostError
from k8s_cr_driver.ssh.hosts import Hosts

T = TypeVar("T")

BOOT_WITHIN = 300.0
"""Seconds in which a new server has to accept a login."""
DEVICE_WITHIN = 120.0
"""Seconds in which a volume that Cinder has attached has to be a device of the server."""
MAKE_WITHIN, INSTALL_WITHIN, SETTLED_WITHIN = 1800.0, 1800.0, 60.0
_MAKE = facts.READABLE + """\
readable "$1" || { echo "$1 cannot be read" >&2; exit 1; }
status=0
blkid -p "$1" >&2 || status=$?
if [ "$status" -ne 2 ]; then echo "$1 is not empty any more (blkid: $status)" >&2; exit 1; fi
mkfs.ext4 -q -U "$2" "$1"
"""
_MOUNT = """\
systemctl daemon-reload
for folder in "$@"; do
  mkdir -p "$folder"
  mountpoint -q "$folder" || mount "$folder"
done
"""
_DIRECTORIES = """\
owner=$1 folders=$2; shift 2
while [ "$folders" -gt 0 ]; do
  mountpoint -q "$1" || { echo "$1 is not mounted" >&2; exit 1; }
  shift; folders=$((folders - 1))
done
for directory in "$@"; do
  [ -d "$directory" ] || install -d -o "$owner" -g "$owner" -m 0770 "$directory"
done
"""
_START = 'systemctl daemon-reload; systemctl enable --quiet "$1"; systemctl restart "$1"'
_READ_AGAIN = {KERNEL: "systemctl daemon-reload; exportfs -ra"}


class Kubectl(Protocol):
    """What kubectl prints on a master of the cluster, whoever has made that. Raises DriverError."""

    def __call__(self, what: str, *argv: str, stdin: str = "", within: float = 120.0) -> str: ...


@dataclass
class Run:
    """The persistent volumes of one operation."""

    hosts: Hosts
    reach: Mapping[str, Host]
    """How each node and the storage server are reached, by name."""
    nodes: Sequence[Node]
    inventory: Inventory
    given: Storage
    volumes: Sequence[PersistentVolume]
    script: str = field(repr=False)
    """The package's, which installs what is missing; "" for images that have it."""
    about: Callable[[Node], Mapping[str, Any]]
    """What the script of the package is given of a server, without its role here."""
    kubectl: Kubectl
    progress: Callable[[str], None]
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Values that no error may have."""
    changes: int = 0

    def serve(self) -> None:
        """The storage server exports its volumes, and all nodes have an NFS client afterwards. Raises DriverError."""
        found = dict(zip((node.name for node in self.nodes), work.on_all(self.nodes, self._node), strict=True))
        if self.given.server is not None:
            workers = [node for node in self.nodes if not node.is_master]
            plan.check_exports(self.given.server, self.volumes, workers, found)
            self._do(plan.serve(self._wanted, self._server()))
            self._settled(lambda: plan.serve(self._wanted, self._server()), "of the storage server")
        self._do(plan.clients(self.nodes, found))

    def register(self) -> None:
        """The cluster has the PersistentVolumes afterwards. Raises DriverError."""
        self._do(plan.register(self.volumes, self._live(), force=self.given.force))
        names = [one.name for one in self.volumes]

        def waiting() -> list[str]:
            live = self._live()
            return [f"PersistentVolume {name}" for name in names if name not in live or live[name].phase in _WAITING]

        work.until(waiting, lambda found: not found, SETTLED_WITHIN, "is not Available")
        self.progress(f"{len(names)} PersistentVolumes; {self.changes} changes")

    def leave(self, grant_request: Mapping[str, Any]) -> tuple[str, ...]:
        """No PersistentVolume leads to the storage server afterwards, unless forced. Returns what is kept and lost."""
        replaced = inventory.replaced(grant_request, self.inventory.volumes)
        disks = {volume: volume in replaced for volume in self.inventory.volumes}
        server = self.inventory.server
        addresses = {*self.inventory.addresses.values(), *((server.address, server.ssh) if server else ())}
        pods = facts.read_pods(self.kubectl("the look at the Pods", *facts.PODS))
        found = plan.leave(self._live().values(), pods, addresses, disks, force=self.given.force)
        for line in found.report:
            self.progress(line)
        self._do(list(found.phases))
        return found.report

    @property
    def _wanted(self) -> plan.Wanted:
        assert self.inventory.server is not None and self.given.server is not None
        return plan.Wanted(self.inventory.server, self.given.server, self.inventory.volumes)

    def _node(self, node: Node) -> facts.Client:
        command = facts.of_node(sorted({one.server for one in self.volumes}))
        return work.when_reachable(lambda: self._read(node, command, facts.read_node), time.monotonic() + BOOT_WITHIN)

    def _server(self) -> facts.Server:
        """As soon as all its volumes are devices of it."""
        wanted = self._wanted
        unit = exports.UNITS[wanted.given.nfs_server]
        paths = [file.path for file in exports.files(wanted.given.nfs_server, (), ())]
        command = facts.of_server(unit, wanted.volumes, paths, (one.directory for one in wanted.given.exports))

        def look() -> facts.Server:
            return self._read(wanted.node, command, facts.read_server)

        found = work.when_reachable(look, time.monotonic() + BOOT_WITHIN)
        end = time.monotonic() + DEVICE_WITHIN
        while missing := [one for one in wanted.volumes if not found.disks.get(one.id, facts.Disk()).device]:
            if time.monotonic() > end:
                names = ", ".join(f"{one.resource} ({one.id})" for one in missing)
                lacks = f"has no device in /dev/disk/by-id of {names}, or one that cannot be read, although it is attached"
                raise DriverError(f"{wanted.node.name}: {lacks}")
            time.sleep(work.PAUSE)
            found = look()
        return found

    def _live(self) -> dict[str, facts.Live]:
        return facts.read_volumes(self.kubectl("the look at the PersistentVolumes", *facts.VOLUMES))

    def _settled(self, phases: Callable[[], list[plan.Phase]], what: str) -> None:
        """What was done has had its effect: there is nothing left to be done."""

        def left() -> list[str]:
            return [phase.name for phase in phases()]

        work.until(left, lambda found: not found, SETTLED_WITHIN, f"{what}: still not as it has to be")

    def _read(self, node: Node, command: Command, read: Callable[[str], T]) -> T:
        output = self._on(node, command)
        try:
            return read(output)
        except ValueError:
            raise HostError(self.reach[node.name], f"{command.what} printed something else than it should") from None

    def _on(self, node: Node, command: Command) -> str:
        return self.hosts.run(self.reach[node.name], command)

    def _do(self, phases: list[plan.Phase]) -> None:
        for phase in phases:
            self.changes += phase.run(self._step, self.progress)

    def _step(self, step: plan.Step) -> None:
        started = time.monotonic()
        match step:
            case plan.Install(node, role):
                self._install(node, role)
            case plan.MakeFileSystem(node, volume, device):
                argv = ("sh", "-euc", _MAKE, "sh", device, volume.id)
                unit = f"k8s-cr-mkfs-{volume.id}"
                self._on(node, units.step(f"mkfs of {volume.resource}", unit, argv, within=MAKE_WITHIN))
            case plan.MountVolumes(node, fstab, folders):
                if fstab:
                    self._on(node, files.replace(fstab))
                self._on(node, script("the mount of the volumes", _MOUNT, *folders))
            case plan.Serve():
                self._serve(step)
            case plan.Apply(volume):
                apply = ("apply", "--server-side", "--field-manager=k8s-cr-node-cluster", "--filename=-")
                self.kubectl(f"PersistentVolume {volume.name}", *apply, stdin=volume.manifest)
            case plan.Delete(name, forced):
                self._delete(name, forced)
        self.progress(f"{plan.subject(step)}: {type(step).__name__}: {time.monotonic() - started:.1f} s")

    def _install(self, node: Node, role: str) -> None:
        """Its own look afterwards: a script may have been written for other roles only."""
        missing = "the NFS server" if role == node.role.value else "the NFS client, mount.nfs"
        if not self.script:
            raise InvalidPackage(f"{node.name}: lacks {missing}; take an image that has it, or a script_path that installs it")
        given = {**self.about(node), "role": role, "nfs_server": self.given.server.nfs_server if self.given.server else ""}
        path = f"{units.FOLDER}/install-{role}"
        self._on(node, files.replace(File(path, self.script, mode="0700")))
        unit = f"k8s-cr-install-{role}".replace("_", "-")
        step = units.step("the package's script", unit, (path,), json.dumps(given), INSTALL_WITHIN, self.secrets)
        self._on(node, step)
        if role == "nfs_client" and not self._node(node).has_client:
            raise InvalidPackage(f"{node.name}: lacks {missing} after script_path has run with the role {role}")

    def _serve(self, step: plan.Serve) -> None:
        args = (str(exports.NOBODY), str(len(step.folders)), *step.folders, *step.directories)
        self._on(step.node, script("the directories of the exports", _DIRECTORIES, *args))
        for file in step.files:
            self._on(step.node, files.replace(file))
        server = self._wanted.given.nfs_server
        again = _READ_AGAIN.get(server, 'systemctl daemon-reload; systemctl reload "$1"')
        self._on(step.node, script("the exports", _START if step.start else again, exports.UNITS[server]))

    def _delete(self, name: str, forced: bool) -> None:
        wait = "--wait=false" if forced else "--timeout=60s"
        self.kubectl(f"the removal of PersistentVolume {name}", "delete", "persistentvolume", name, "--ignore-not-found", wait)
        if forced and name in self._live():  # its claim would keep it for ever
            free = '--patch={"metadata":{"finalizers":null}}'
            self.kubectl(f"the removal of PersistentVolume {name}", "patch", "persistentvolume", name, "--type=merge", free)


_WAITING = ("", "Pending", "Failed")
