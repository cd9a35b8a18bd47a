# SPDX-License-Identifier: Apache-2.0
"""A machine with a kernel of its own, for what the host's does not have, such as NFS: QEMU boots a Debian root folder.

It needs no support of the hardware, and so a minute or two until it is up. Debian's kernel is that of x86-64.
"""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path

import asyncssh

from builds import commands

from . import apt, rootfs
from .ledger import Ledger
from .machine import Machine

PACKAGES = ("linux-image-amd64", "udev", "python3")
"""Of Debian, beside those of every machine."""
ADDRESS = "10.0.2.15"
"""Its own, as it sees it; the network is QEMU's, and only SSH reaches it from outside."""
_QEMU = "qemu-system-x86"
_UNMASKED = ("systemd-udevd.service", "run-rpc_pipefs.mount")
"""What other machines have of the host, or do without."""
_SIZE = 8 << 30
_NETWORK = f"""\
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=ip link set eth0 up
ExecStart=ip address add {ADDRESS}/24 dev eth0
"""


class VirtualMachine:
    """One, whose user may log in with a key, and call `sudo`."""

    def __init__(self, ledger: Ledger, name: str) -> None:
        self.name, self._ledger = name, ledger
        with socket.create_server(("127.0.0.1", 0)) as free:
            found: int = free.getsockname()[1]
        self.port = found
        """Of the host's loopback, at which SSH reaches it."""
        self.host_key = ""

    def boot(self, packages: tuple[str, ...], user: str, authorized_key: str, volumes: Mapping[str, Path]) -> None:
        """Without waiting for the end of it. volumes: ids of volumes -> files or block devices of the host."""
        apt.install(self._ledger, [_QEMU])
        disk, boot = self._disk((*PACKAGES, *packages), user, authorized_key)
        [kernel], [initrd] = boot.glob("vmlinuz-*"), boot.glob("initrd.img-*")
        argv = [
            "qemu-system-x86_64", "-machine", "q35", "-cpu", "max", "-accel", "tcg,thread=multi", "-smp", "2", "-m", "1024",
            "-nographic", "-no-reboot", "-nodefaults", "-serial", "stdio", "-kernel", str(kernel), "-initrd", str(initrd),
            "-append", "root=/dev/vda rw console=ttyS0 net.ifnames=0 quiet mitigations=off no_timer_check",
            "-netdev", f"user,id=net,hostfwd=tcp:127.0.0.1:{self.port}-:22", "-device", "virtio-net-pci,netdev=net",
        ]  # fmt: skip
        for number, (serial, path) in enumerate({"root": disk, **volumes}.items()):
            argv += ["-drive", f"file={path},if=none,id=disk{number},format=raw,cache=unsafe"]
            argv += ["-device", f"virtio-blk-pci,drive=disk{number},serial={serial[:20]}"]
        self._ledger.spawn(self.name, argv)

    def _disk(self, packages: tuple[str, ...], user: str, authorized_key: str) -> tuple[Path, Path]:
        """A disk with all that it boots, and the folder with the kernel."""
        root, key = rootfs.root_folder(packages), asyncssh.generate_private_key("ssh-ed25519")
        machine = Machine(self._ledger, self.name)
        machine.mount(root)
        machine.service("network", _NETWORK)
        machine.write("/etc/hostname", f"{self.name}\n")
        machine.write("/etc/hosts", f"127.0.0.1 localhost\n{ADDRESS} {self.name}\n")
        machine.write("/etc/fstab", "")
        for unit in _UNMASKED:
            (machine.root / "etc/systemd/system" / unit).unlink()
        for old in (machine.root / "etc/ssh").glob("ssh_host_*"):
            old.unlink()
        machine.write("/etc/ssh/ssh_host_ed25519_key", key.export_private_key().decode(), mode=0o600)
        self.host_key = key.export_public_key().decode().strip()
        commands.run(["chroot", machine.root, "useradd", "--create-home", "--shell", "/bin/bash", user])
        machine.write(f"/home/{user}/.ssh/authorized_keys", f"{authorized_key}\n")
        machine.write(f"/etc/sudoers.d/{user}", f"{user} ALL=(ALL) NOPASSWD:ALL\n", mode=0o440)
        disk = machine.home / "disk"
        with disk.open("wb") as empty:
            empty.truncate(_SIZE)
        subprocess.run(["mkfs.ext4", "-q", "-d", machine.root, disk], check=True)
        return disk, root / "boot"
