# SPDX-License-Identifier: Apache-2.0
"""What is on the storage server, on the nodes, and in the cluster now. Each look is one command."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from k8s_cr_driver.node_clusters.storage.exports import FSTAB
from k8s_cr_driver.node_clusters.storage.inventory import Volume
from k8s_cr_driver.node_clusters.storage.persistent_volumes import ANNOTATION
from k8s_cr_driver.ssh.command import Command, script

EMPTY = 2
"""Status of `blkid -p` for a device on which it finds nothing (blkid(8))."""

READABLE = """\
readable() {
  [ "$(head -c 1 "$1" 2>/dev/null | wc -c)" -eq 1 ] && { head -c 1048576 "$1" && tail -c 1048576 "$1"; } >/dev/null 2>&1
}
"""
"""A function of a shell. Of a device without a size, and of one that fails, blkid says the same as of an empty one."""
_SERVER = READABLE + """\
unit=$1 fstab=$2 volumes=$3 files=$4; shift 4
echo "loaded=$(systemctl show --property=LoadState --value "$unit.service")"
echo "active=$(systemctl is-active "$unit.service" || true)"
while [ "$volumes" -gt 0 ]; do
  id=$1 folder=$2 device= number= mounted= status=0; shift 2; volumes=$((volumes - 1))
  for path in "/dev/disk/by-id/virtio-$(printf %.20s "$id")" "/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_$id"; do
    if [ -e "$path" ] && readable "$path"; then device=$path; break; fi
  done
  if [ -n "$device" ]; then
    number=$(mountpoint -x "$device")
    found=$(blkid -p -o export "$device") || status=$?
    printf '%s\\n' "$found" | sed -n "s/^\\(TYPE\\|UUID\\|USAGE\\|PTTYPE\\)=/probe=$id \\1 /p"
  fi
  if mountpoint -q "$folder"; then mounted=$(mountpoint -d "$folder"); fi
  echo "volume=$id $status ${device:--} ${number:--} $mounted"
done
while [ "$files" -gt 0 ]; do
  if [ -f "$1" ]; then echo "file=$(sha256sum "$1")"; fi
  shift; files=$((files - 1))
done
for directory in "$@"; do
  if [ -d "$directory" ]; then echo "directory=$directory"; fi
done
if [ "$unit" = nfs-server ] && command -v exportfs >/dev/null; then
  exportfs -s | sed -n 's/^\\([^ ]*\\)  *\\([^ (]*\\).*/exported=\\1 \\2/p'
fi
if [ -f "$fstab" ]; then sed 's/^/fstab=/' "$fstab"; fi
"""
_NODE = """\
echo "client=$(command -v mount.nfs || true)"
for address in "$@"; do
  echo "source=$address $(ip -oneline route get "$address" 2>/dev/null | sed -n 's/.* src \\([^ ]*\\).*/\\1/p')"
done
"""
_VOLUMES = (
    r'{range .items[*]}{.metadata.name}{"\t"}{.status.phase}{"\t"}{.metadata.deletionTimestamp}{"\t"}'
    r'{.spec.claimRef.namespace}{"\t"}{.spec.claimRef.name}{"\t"}{.spec.nfs.server}{"\t"}'
    rf'{{.metadata.annotations.{ANNOTATION}}}{{"\t"}}{{.spec.nfs.path}}{{"\n"}}{{end}}'
)
_PODS = (
    r'{range .items[*]}{.metadata.namespace}/{.metadata.name}{"\t"}{.status.phase}{"\t"}{.metadata.namespace}{"\t"}'
    r'{.spec.volumes[*].nfs.server}{"\t"}{.spec.volumes[*].persistentVolumeClaim.claimName}{"\n"}{end}'
)
VOLUMES = ("get", "persistentvolumes", f"--output=jsonpath={_VOLUMES}")
"""Arguments of kubectl."""
PODS = ("get", "pods", "--all-namespaces", f"--output=jsonpath={_PODS}")


@dataclass(frozen=True)
class Disk:
    """A volume as the server has it."""

    device: str = ""
    """Its path by its id, never by a name that the kernel gives; "" until it is there and can be read."""
    status: int = 0
    """Of blkid."""
    number: str = ""
    """Major and minor number of the device."""
    mounted: str = ""
    """The same of what is mounted at its folder; "" for nothing."""
    probe: Mapping[str, str] = field(default_factory=dict)
    """What is on it: TYPE, UUID, USAGE, PTTYPE."""

    @property
    def is_empty(self) -> bool:
        return self.status == EMPTY

    @property
    def is_mounted(self) -> bool:
        return bool(self.mounted) and self.mounted == self.number


@dataclass(frozen=True)
class Server:
    """The storage server."""

    is_loaded: bool = False
    """Its NFS server is installed."""
    is_active: bool = False
    disks: Mapping[str, Disk] = field(default_factory=dict)
    """By the volume's id."""
    digests: Mapping[str, str] = field(default_factory=dict)
    fstab: tuple[str, ...] = ()
    directories: frozenset[str] = frozenset()
    exported: frozenset[tuple[str, str]] = frozenset()
    """Directory and network, as the kernel's server has them."""


@dataclass(frozen=True)
class Client:
    """A node."""

    has_client: bool = False
    sources: Mapping[str, str] = field(default_factory=dict)
    """Address of the NFS server -> the node's own address on the way there."""


@dataclass(frozen=True)
class Live:
    """A PersistentVolume of the cluster."""

    name: str
    phase: str = "Available"
    is_deleted: bool = False
    claim: str = ""
    """Namespace and name of the claim that it has, or had."""
    server: str = ""
    path: str = ""
    digest: str = ""
    """Of what this driver has applied; "" for those of others."""


@dataclass(frozen=True)
class Pod:
    """A Pod that has not ended."""

    name: str
    servers: frozenset[str]
    """NFS servers that it mounts itself."""
    claims: frozenset[str]


def of_server(unit: str, volumes: Sequence[Volume], paths: Sequence[str], directories: Iterable[str]) -> Command:
    pairs = (text for one in volumes for text in (one.id, one.mount_to))
    args = (unit, FSTAB, str(len(volumes)), str(len(paths)), *pairs, *paths, *directories)
    return script("the look at the storage server", _SERVER, *args)


def read_server(output: str) -> Server:
    """Of what `of_server` prints. ValueError for anything else."""
    pairs = [line.partition("=")[::2] for line in output.splitlines()]
    found: dict[str, list[str]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    probes: dict[str, dict[str, str]] = {}
    for line in found.get("probe", []):
        volume, key, value = line.split(" ", 2)
        probes.setdefault(volume, {})[key] = value
    digests = (line.split(maxsplit=1) for line in found.get("file", []))
    return Server(
        is_loaded=found.get("loaded") == ["loaded"],
        is_active=found.get("active") == ["active"],
        disks=dict(_disk(line, probes) for line in found.get("volume", [])),
        digests={one[1]: one[0] for one in digests if len(one) == 2},
        fstab=tuple(found.get("fstab", [])),
        directories=frozenset(found.get("directory", [])),
        exported=frozenset((one[0], one[1]) for line in found.get("exported", []) if len(one := line.split()) == 2),
    )


def _disk(line: str, probes: Mapping[str, Mapping[str, str]]) -> tuple[str, Disk]:
    volume, status, device, number, *mounted = line.split()
    if device == "-":
        return volume, Disk(mounted="".join(mounted))
    return volume, Disk(device, int(status), number, "".join(mounted), probes.get(volume, {}))


def of_node(addresses: Iterable[str]) -> Command:
    return script("the look at the NFS client", _NODE, *addresses)


def read_node(output: str) -> Client:
    """Of what `of_node` prints. ValueError for anything else."""
    pairs = [line.partition("=")[::2] for line in output.splitlines()]
    sources = (value.split() for key, value in pairs if key == "source")
    found = {one[0]: str(ipaddress.ip_address(one[1])) for one in sources if len(one) == 2}
    return Client(bool(dict(pairs).get("client")), found)


def read_volumes(output: str) -> dict[str, Live]:
    """By name, of what kubectl prints for VOLUMES."""
    rows = (line.split("\t", 7) for line in output.splitlines())
    return {
        name: Live(name, phase, bool(deleted), f"{namespace}/{claim}" if claim else "", server, path, digest)
        for name, phase, deleted, namespace, claim, server, digest, path in (row for row in rows if len(row) == 8)
    }


def read_pods(output: str) -> list[Pod]:
    """Of what kubectl prints for PODS."""
    rows = (line.split("\t") for line in output.splitlines())
    return [
        Pod(name, frozenset(servers.split()), frozenset(f"{namespace}/{claim}" for claim in claims.split()))
        for name, phase, namespace, servers, claims in (row for row in rows if len(row) == 5)
        if phase not in ("Succeeded", "Failed")
    ]
