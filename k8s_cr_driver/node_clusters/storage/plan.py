# SPDX-License-Identifier: Apache-2.0
"""What is to be done for the persistent volumes, from what there is and what there has to be: pure, tables of steps.

Data outlive every mistake: a file system is made only on a volume on which there is nothing at all, and whatever else is found
there stops the operation. A PersistentVolume that somebody uses is never deleted, unless the request forces it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.node_clusters.inventory import Node
from k8s_cr_driver.node_clusters.phases import Phase as PhaseOf
from k8s_cr_driver.node_clusters.storage import exports, parameters
from k8s_cr_driver.node_clusters.storage.exports import Mount
from k8s_cr_driver.node_clusters.storage.facts import Client, Disk, Live, Pod, Server
from k8s_cr_driver.node_clusters.storage.inventory import Volume
from k8s_cr_driver.node_clusters.storage.persistent_volumes import PersistentVolume
from k8s_cr_driver.redaction import lines
from k8s_cr_driver.ssh.files import File

FILE_SYSTEM = "ext4"
SHOWN = 20
"""Of those who use volumes, how many are named."""


@dataclass(frozen=True)
class Install:
    """Runs the package's script, which installs the NFS server or client."""

    node: Node
    role: str


@dataclass(frozen=True)
class MakeFileSystem:
    """mkfs on an empty volume. The UUID of the file system is that of the volume."""

    node: Node
    volume: Volume
    device: str


@dataclass(frozen=True)
class MountVolumes:
    """Replaces fstab, unless it is right, and mounts what it has at the folders."""

    node: Node
    fstab: File | None
    folders: tuple[str, ...]


@dataclass(frozen=True)
class Serve:
    """Makes directories on the volumes, replaces files, and starts the NFS server or lets it read them."""

    node: Node
    directories: tuple[str, ...]
    folders: tuple[str, ...]
    """Where the volumes are mounted: nothing is made on the root disk."""
    files: tuple[File, ...]
    start: bool


@dataclass(frozen=True)
class Apply:
    """Applies a PersistentVolume."""

    volume: PersistentVolume


@dataclass(frozen=True)
class Delete:
    """Deletes a PersistentVolume. `forced`: although a claim has it."""

    name: str
    forced: bool = False


Step = Install | MakeFileSystem | MountVolumes | Serve | Apply | Delete

Phase = PhaseOf[Step]


@dataclass(frozen=True)
class Wanted:
    """The storage server as it has to be."""

    node: Node
    given: parameters.Server
    volumes: tuple[Volume, ...]


def serve(wanted: Wanted, server: Server) -> list[Phase]:
    """The phases that are left on the storage server. Raises InvalidRequest for a volume that it may not touch."""
    given, node = wanted.given, wanted.node
    empty = tuple(volume for volume in wanted.volumes if _is_empty(volume, server.disks[volume.id]))
    mounts = tuple(_mount(volume, server.disks[volume.id]) for volume in wanted.volumes)
    if len({mount.uuid for mount in mounts}) < len(mounts):
        names = ", ".join(volume.resource for volume in wanted.volumes)
        raise InvalidRequest(f"{names}: file systems of these volumes have the same UUID, so that none can be told by it")
    fstab, folders = exports.fstab(server.fstab, mounts), tuple(mount.folder for mount in mounts)
    phases = [
        Phase("NFS server", () if server.is_loaded else (Install(node, node.role.value),)),
        Phase("file systems", tuple(MakeFileSystem(node, one, server.disks[one.id].device) for one in empty)),
    ]
    unmounted = tuple(one.mount_to for one in wanted.volumes if not server.disks[one.id].is_mounted)
    changed = fstab if "".join(f"{line}\n" for line in server.fstab) != fstab.content else None
    if changed or unmounted:
        phases.append(Phase("mounts", (MountVolumes(node, changed, unmounted),)))
    missing = tuple(one.directory for one in given.exports if one.directory not in server.directories or unmounted)
    rendered = exports.files(given.nfs_server, given.exports, mounts)
    files = tuple(one for one in rendered if server.digests.get(one.path) != one.digest)
    if missing or files or not server.is_active or _unexported(given, server):
        phases.append(Phase("exports", (Serve(node, missing, folders, files, not server.is_active),)))
    return [phase for phase in phases if phase.steps]


def clients(nodes: Sequence[Node], found: Mapping[str, Client]) -> list[Phase]:
    """The nodes that lack the NFS client."""
    steps = tuple(Install(node, "nfs_client") for node in nodes if not found[node.name].has_client)
    return [Phase("NFS clients", steps)] if steps else []


def check_exports(
    given: parameters.Server, volumes: Iterable[PersistentVolume], workers: Iterable[Node], found: Mapping[str, Client]
) -> None:
    """Raises InvalidRequest if a worker may not mount a volume: its Pods would wait for ever."""
    needed = {
        (volume.server, export)
        for volume in volumes
        for export in given.exports
        if parameters.is_below(volume.path, export.directory)
    }
    wrong = [
        f"{node.name}: has {source}, and {export.directory} is exported to {', '.join(export.networks)}: change export_to"
        for node in workers
        for server, export in sorted(needed, key=lambda one: one[1].directory)
        if (source := found[node.name].sources.get(server, "")) and not export.is_for(source)
    ]
    if wrong:
        raise InvalidRequest(lines(wrong))


def register(wanted: Iterable[PersistentVolume], live: Mapping[str, Live], *, force: bool) -> list[Phase]:
    """
    The PersistentVolumes that are missing or not as they have to be.

    A server is immutable in Kubernetes, so one that leads elsewhere is deleted first. Raises InvalidRequest if it is in use,
    and for one of this name that is not the driver's.
    """
    deleted, applied = list[Step](), list[Step]()
    for one in wanted:
        there = live.get(one.name)
        if there is None:
            applied.append(Apply(one))
            continue
        if not there.digest:
            raise InvalidRequest(f"PersistentVolume {one.name}: is there already, and not of the package; rename one of them")
        leads = (there.server, there.path) == (one.server, one.path)
        if leads and there.digest == one.digest and not there.is_deleted:
            continue
        if not leads or there.is_deleted:
            if there.claim and not force:
                leading = f"{there.server}:{there.path} in place of {one.server}:{one.path}"
                problem = f"leads to {leading}, and the claim {there.claim} has it"
                raise InvalidRequest(f"PersistentVolume {one.name}: {problem}. {_REMEDY}")
            deleted.append(Delete(one.name, forced=bool(there.claim)))
        applied.append(Apply(one))
    return [phase for phase in (Phase("old volumes", tuple(deleted)), Phase("volumes", tuple(applied))) if phase.steps]


@dataclass(frozen=True)
class Leave:
    """What precedes the replacement of the storage server."""

    phases: tuple[Phase, ...]
    report: tuple[str, ...]
    """What is kept, and what is lost, one sentence each."""


def leave(
    live: Iterable[Live], pods: Iterable[Pod], addresses: Collection[str], disks: Mapping[Volume, bool], *, force: bool
) -> Leave:
    """
    Removes the PersistentVolumes that nobody uses, so that no Pod gets one until the new server serves.

    disks: whether each Cinder volume is replaced, too. Raises InvalidRequest if one is in use, unless forced: then it stays.
    """
    report = [_fate(volume, is_replaced) for volume, is_replaced in disks.items()]
    concerned = [one for one in live if one.digest or one.server in addresses]
    claims = {one.claim for one in concerned if one.claim}
    users = [one for one in pods if one.claims & claims or one.servers & set(addresses)]
    used = [f"PersistentVolume {one.name} is {one.phase} and has the claim {one.claim}" for one in concerned if one.claim]
    used += [f"Pod {one.name} mounts it" for one in users]
    if len(used) > SHOWN:
        used = [*used[:SHOWN], f"{len(used) - SHOWN} more"]
    if used and not force:
        refused = "the storage server cannot be replaced while its volumes are in use"
        raise InvalidRequest(lines([refused, *used, *report, _REMEDY]))
    free = tuple(Delete(one.name) for one in concerned if one.digest and not one.claim)
    phases = (Phase("volumes that nobody uses", free),) if free else ()
    return Leave(phases, (*report, *(f"{one}: it is forced, and waits for the new server" for one in used)))


_REMEDY = (
    "Delete the Pods and claims, and Released volumes whose data nobody needs; or set storage_server.force: true in the request"
)


def _fate(volume: Volume, is_replaced: bool) -> str:
    of = f"{volume.resource}: the Cinder volume {volume.id}"
    return f"{of} is replaced by a new one, and its data are lost" if is_replaced else f"{of} is kept with its data"


def _is_empty(volume: Volume, disk: Disk) -> bool:
    """Whether there is nothing on it. Raises InvalidRequest for anything but one file system with a UUID."""
    if disk.mounted and not disk.is_mounted:
        raise InvalidRequest(f"{volume.mount_to} of the storage server: something else than {volume.resource} is mounted there")
    if disk.is_empty:
        return True
    if disk.status or disk.probe.get("USAGE") != "filesystem" or not disk.probe.get("UUID"):
        kind = disk.probe.get("TYPE") or disk.probe.get("PTTYPE") or f"something that blkid cannot tell (status {disk.status})"
        raise InvalidRequest(
            f"{volume.resource}: the volume {volume.id} has {kind}, and no file system with a UUID. It is neither mounted nor "
            "formatted: take an empty volume, or make a file system on it"
        )
    return False


def _mount(volume: Volume, disk: Disk) -> Mount:
    if disk.is_empty:
        return Mount(volume.id, FILE_SYSTEM, volume.mount_to)
    return Mount(disk.probe["UUID"], disk.probe.get("TYPE", "auto"), volume.mount_to)


def _unexported(given: parameters.Server, server: Server) -> bool:
    """Whether the kernel's server lacks an export, although its file is right. Ganesha's are not listed."""
    wanted = {(one.directory, network) for one in given.exports for network in one.networks}
    exported = {(directory, _normal(network)) for directory, network in server.exported}
    return given.nfs_server == parameters.KERNEL and not wanted <= exported


def _normal(network: str) -> str:
    """As parameters have it, in whichever form exportfs prints it."""
    try:
        return str(ipaddress.ip_network(network, strict=False))
    except ValueError:
        return network


def subject(step: Step) -> str:
    """What a step is about, for the log."""
    match step:
        case Install(node) | MountVolumes(node) | Serve(node) | MakeFileSystem(node):
            return node.name
        case Apply(volume):
            return volume.name
        case Delete(name):
            return name
