# SPDX-License-Identifier: Apache-2.0
"""Servers as a cloud hands them over, but without one: machines with kubeadm, SSH host keys, and a user that has a key.

Each has a record of its own, so that a test can remove it and put another in its place. All go with the bed.
"""

from __future__ import annotations

import functools
import ipaddress
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import asyncssh

from builds import commands

from . import config, network, paths, rootfs, virtualenv
from .ledger import Ledger
from .machine import Machine
from .openstack import images, kubernetes_node
from .openstack.server import BY_ID, Image
from .release import NEWEST

FOLDER = paths.STATE / "nodes"
CLIENT = Path(__file__).parent / "templates" / "mount.nfs"
"""The program."""
USER = "nodeadmin"
"""Who may call `sudo` without a password."""
PUBLIC = ipaddress.ip_network("198.18.214.0/24")
"""Beside `network.NETWORK`: the addresses of second ports, which lead outside. Each odd one has the host at the one before."""
_MARKS = "-----BEGIN SSH HOST KEY KEYS-----", "-----END SSH HOST KEY KEYS-----"
"""Between these cloud-init prints the public keys of a server on its console."""
PASSWORD = "word-of-the-user"
"""Of USER."""
_OF_KUBESPRAY = (
    "apparmor", "apt-transport-https", "bash-completion", "gnupg", "ipset", "iputils-ping", "mergerfs", "openssl",
    "python3-apt", "rsync", "software-properties-common", "unzip", "xfsprogs",
)  # fmt: skip
"""What kubespray's role `system_packages` installs on Debian 12, beside those of every machine."""
MOUNT = "/usr/local/share/mount.nfs"
"""On each server, what mounts NFS without a kernel that can; a server that has it at /usr/sbin is an NFS client."""


def prepare(ledger: Ledger) -> None:
    """What the nodes boot from is made, and those that a test leaves go with the rest."""
    ledger.folder(FOLDER)
    ledger.others(FOLDER)
    with_kubernetes()
    ansible()


def ansible() -> Path:
    """The modules of Ansible, with its own collections only."""
    return virtualenv.of_machines("ansible", virtualenv.LOCKS / "ansible.lock", "ansible_collections", "ansible")


def plain() -> Image:
    """Without Kubernetes."""
    return Image(str(rootfs.root_folder(images.PACKAGES)))


def with_kubernetes() -> Image:
    """With kubeadm and kubelet, and the images of containers."""
    return kubernetes_node.image(NEWEST, images.PACKAGES)


def for_kubespray() -> Image:
    """What kubespray makes nodes of: without kubeadm and kubelet, with the packages that it wants, which no mirror has."""
    return kubernetes_node.without_programs(kubernetes_node.image(NEWEST, (*images.PACKAGES, *_OF_KUBESPRAY)))


class Volume:
    """A volume as a cloud has them: a block device, empty at first, that outlives the servers it is attached to."""

    def __init__(self, identifier: str, size: int = 64 << 20) -> None:
        self.id = identifier
        self._ledger = Ledger(FOLDER / f"volume-{identifier[:8]}")
        file = self._ledger.home / identifier
        with file.open("wb") as empty:
            empty.truncate(size)
        self.device = self._ledger.loop(file)
        """On the host."""

    @property
    def names(self) -> tuple[str, str]:
        """In a machine: as the kernel names it, which libblkid tries by /proc/partitions, and by its id, as udev would."""
        return str(self.device), str(BY_ID / f"virtio-{self.id[:20]}")

    def remove(self) -> None:
        self._ledger.undo()


class Node:
    """A server. Its name is that of its machine, of at most 40 characters."""

    def __init__(self, name: str, address: str, public: str = "") -> None:
        """`address` is one of `network.NETWORK`; `public`, if it has a second port, an odd one of PUBLIC."""
        self.name, self.address, self.public = name, address, public
        self._record()
        self.console = ""
        """What it has printed of its host keys."""
        self.host_keys: list[str] = []

    def boot(
        self,
        authorized_key: str,
        *,
        volumes: Sequence[Volume] = (),
        image: Image | None = None,
        folders: Mapping[Path, str] | None = None,
    ) -> None:
        """Without waiting for the end of it. image: `plain` by default. folders: of the host -> where it sees them."""
        disks = {volume.device: volume.names for volume in volumes}
        self._turn_on = functools.partial(self._start, image or plain(), dict(folders or {}), disks)
        self._turn_on(authorized_key)

    def reboot(self) -> None:
        """It loses its power and gets it back: its disk stays, and nothing else. Without waiting for the end of the boot."""
        self.machine.cut_off()
        self._ledger.undo()
        self._record()
        self._turn_on("")

    def _record(self) -> None:
        """Of what it is while it is on; its disk is beside the record."""
        self._ledger = Ledger(FOLDER / self.name / "on")
        self.machine = Machine(self._ledger, self.name, FOLDER / self.name / "disk")

    def _install(self, image: Image, authorized_key: str) -> None:
        """What a new disk has."""
        machine = self.machine
        image.set_up(machine)
        machine.write("/etc/cloud/cloud-init.disabled", "")
        machine.write("/etc/hostname", f"{self.name}\n")
        machine.write("/etc/hosts", f"127.0.0.1 localhost\n{self.address} {self.name}\n")
        machine.write("/etc/resolv.conf", f"nameserver {self.address}\n")  # nothing answers there, which is learned at once
        pods = f"10.244.{self.address.rpartition('.')[2]}.0/24"
        machine.write("/etc/cni/net.d/10-pods.conflist", config.render("pods.conflist", pods=pods))
        machine.write(MOUNT, CLIENT.read_text(), mode=0o755)
        (machine.root / "usr/sbin/mount.nfs").unlink(missing_ok=True)
        self._add_user(authorized_key)
        self.renew_host_key()

    def _start(
        self, image: Image, folders: Mapping[Path, str], disks: Mapping[Path, Sequence[str]], authorized_key: str
    ) -> None:
        """authorized_key: if the disk is new."""
        self.machine.mount(Path(image.root))
        if authorized_key:
            self._install(image, authorized_key)
        network.namespace(self._ledger, self.name, self.address)
        if self.public:
            self._plug_public()
        read_only = {Path(one): target for one, target in image.read_only.items()} | dict(folders)
        self.machine.start(read_only=read_only, volumes=image.volumes, disks=disks)

    def _plug_public(self) -> None:
        """The host and the server are the ends of a cable, which no other server has."""
        own = ipaddress.ip_address(self.public)
        cable = f"k8scr-p{str(own).rpartition('.')[2]}"
        self._ledger.link(cable, "type", "veth", "peer", "name", "eth1", "netns", f"k8scr-{self.name}")
        commands.run(["ip", "address", "add", f"{own - 1}/31", "dev", cable])
        commands.run(["ip", "link", "set", cable, "up"])
        self._ip("address", "add", f"{own}/31", "dev", "eth1")
        self._ip("link", "set", "eth1", "up")

    def renew_host_key(self) -> None:
        """Another host key, as a server has that has taken the place of this one; sshd reads it when it starts."""
        key = asyncssh.generate_private_key("ssh-ed25519")
        for old in (self.machine.root / "etc/ssh").glob("ssh_host_*"):
            old.unlink()
        self.machine.write("/etc/ssh/ssh_host_ed25519_key", key.export_private_key().decode(), mode=0o600)
        public = key.export_public_key().decode().strip()
        self.host_keys = [public]
        self.console = "\n".join((_MARKS[0], public, _MARKS[1], ""))

    @contextmanager
    def other_host_key(self) -> Iterator[None]:
        """Within it sshd shows another key, as a server would that has taken the place of this one."""
        kept = {path: path.read_bytes() for path in (self.machine.root / "etc/ssh").glob("ssh_host_*")}
        console, host_keys = self.console, self.host_keys
        self.renew_host_key()
        self.machine.run("systemctl", "restart", "ssh")
        self.console, self.host_keys = console, host_keys
        try:
            yield
        finally:
            for path, content in kept.items():
                path.write_bytes(content)
            self.machine.run("systemctl", "restart", "ssh")

    def cut_off(self) -> None:
        """Nothing reaches it any more; it runs on."""
        self._ip("link", "set", "eth0", "down")

    def connect(self) -> None:
        """Take back `cut_off`."""
        self._ip("link", "set", "eth0", "up")
        self._ip("route", "replace", "default", "via", str(network.HOST))

    def remove(self) -> None:
        self._ledger.undo()
        shutil.rmtree(FOLDER / self.name)

    def _ip(self, *arguments: str) -> None:
        commands.run(["ip", "-netns", f"k8scr-{self.name}", *arguments])

    def _add_user(self, authorized_key: str) -> None:
        commands.run(["chroot", self.machine.root, "useradd", "--create-home", "--shell", "/bin/bash", USER])
        self.machine.write(f"/home/{USER}/.ssh/authorized_keys", f"{authorized_key}\n")
        subprocess.run(["chroot", self.machine.root, "chpasswd"], input=f"{USER}:{PASSWORD}\n", text=True, check=True)
        self.machine.write(f"/etc/sudoers.d/{USER}", f"{USER} ALL=(ALL) NOPASSWD:ALL\n", mode=0o440)
