# SPDX-License-Identifier: Apache-2.0
"""Servers as a cloud hands them over, but without one: machines with kubeadm, SSH host keys, and a user that has a key.

Each has a record of its own, so that a test can remove it and put another in its place. All go with the bed.
"""

from __future__ import annotations

from pathlib import Path

import asyncssh

from builds import commands

from . import config, network, paths
from .ledger import Ledger
from .machine import Machine
from .openstack import images, kubernetes_node
from .openstack.server import Image
from .release import NEWEST

FOLDER = paths.STATE / "nodes"
USER = "nodeadmin"
"""Who may call `sudo` without a password."""
_MARKS = "-----BEGIN SSH HOST KEY KEYS-----", "-----END SSH HOST KEY KEYS-----"
"""Between these cloud-init prints the public keys of a server on its console."""


def prepare(ledger: Ledger) -> None:
    """What the nodes boot from is made, and those that a test leaves go with the rest."""
    ledger.folder(FOLDER)
    ledger.others(FOLDER)
    _image()


class Node:
    """A server. Its name is that of its machine, of at most 40 characters."""

    def __init__(self, name: str, address: str) -> None:
        """`address` is one of `network.NETWORK`."""
        self.name, self.address = name, address
        self._ledger = Ledger(FOLDER / name)
        self.machine = Machine(self._ledger, name)
        self.console = ""
        """What it has printed of its host keys."""

    def boot(self, authorized_key: str) -> None:
        """Without waiting for the end of it."""
        image, machine = _image(), self.machine
        machine.mount(Path(image.root))
        image.set_up(machine)
        machine.write("/etc/cloud/cloud-init.disabled", "")
        machine.write("/etc/hostname", f"{self.name}\n")
        machine.write("/etc/hosts", f"127.0.0.1 localhost\n{self.address} {self.name}\n")
        machine.write("/etc/resolv.conf", f"nameserver {self.address}\n")  # nothing answers there, which is learned at once
        pods = f"10.244.{self.address.rpartition('.')[2]}.0/24"
        machine.write("/etc/cni/net.d/10-pods.conflist", config.render("pods.conflist", pods=pods))
        self._add_user(authorized_key)
        self.renew_host_key()
        network.namespace(self._ledger, self.name, self.address)
        machine.start(read_only={Path(one): target for one, target in image.read_only.items()}, volumes=image.volumes)

    def renew_host_key(self) -> None:
        """Another host key, as a server has that has taken the place of this one; sshd reads it when it starts."""
        key = asyncssh.generate_private_key("ssh-ed25519")
        for old in (self.machine.root / "etc/ssh").glob("ssh_host_*"):
            old.unlink()
        self.machine.write("/etc/ssh/ssh_host_ed25519_key", key.export_private_key().decode(), mode=0o600)
        self.console = "\n".join((_MARKS[0], key.export_public_key().decode().strip(), _MARKS[1], ""))

    def cut_off(self) -> None:
        """Nothing reaches it any more; it runs on."""
        self._ip("link", "set", "eth0", "down")

    def connect(self) -> None:
        """Take back `cut_off`."""
        self._ip("link", "set", "eth0", "up")
        self._ip("route", "replace", "default", "via", str(network.HOST))

    def remove(self) -> None:
        self._ledger.undo()

    def _ip(self, *arguments: str) -> None:
        commands.run(["ip", "-netns", f"k8scr-{self.name}", *arguments])

    def _add_user(self, authorized_key: str) -> None:
        commands.run(["chroot", self.machine.root, "useradd", "--create-home", "--shell", "/bin/bash", USER])
        self.machine.write(f"/home/{USER}/.ssh/authorized_keys", f"{authorized_key}\n")
        self.machine.write(f"/etc/sudoers.d/{USER}", f"{USER} ALL=(ALL) NOPASSWD:ALL\n", mode=0o440)


def _image() -> Image:
    return kubernetes_node.image(NEWEST, images.PACKAGES)
