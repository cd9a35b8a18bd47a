# SPDX-License-Identifier: Apache-2.0
"""A server of the cloud as a machine of the bed.

Its folder holds what stays while it is off: the disk, the config drive that cloud-init reads, the console's text. The
namespace, mounts and control groups are there while it is on, in a record of their own. This module is loaded into Nova.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from .. import processes
from ..ledger import Ledger
from ..machine import Machine
from . import container_store, network

CLOUD_INIT = """\
datasource_list: [ConfigDrive, None]
manage_etc_hosts: true
# The host has set the addresses of the ports already.
network: {config: disabled}
locale: false
"""
SEED = "/var/lib/cloud/seed/config_drive"
BY_ID = Path("/dev/disk/by-id")
"""Where udev, which the machines do not run, links a disk by its serial number."""


@dataclass(frozen=True)
class Image:
    """
    What a server boots from: a root folder, with files, scripts, services, and folders of the host.

    `containers`: the folder with which containerd begins, see `container_store`; "" for an empty one.
    """

    root: str
    files: Mapping[str, str] = field(default_factory=dict)
    scripts: Mapping[str, str] = field(default_factory=dict)
    services: Mapping[str, str] = field(default_factory=dict)
    read_only: Mapping[str, str] = field(default_factory=dict)
    volumes: Sequence[str] = ()
    containers: str = ""

    def save(self, file: Path) -> None:
        file.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, file: Path) -> "Image":
        return cls(**json.loads(file.read_text()))

    def set_up(self, machine: Machine) -> None:
        """Write to a new disk what a server of this image has."""
        machine.set_up()
        machine.write("/etc/cloud/cloud.cfg.d/99-bed.cfg", CLOUD_INIT)
        for path, text in self.files.items():
            machine.write(path, text)
        for path, text in self.scripts.items():
            machine.write(path, text, mode=0o755)
        for name, unit in self.services.items():
            machine.service(name, unit)
        if self.containers:
            container_store.copy(Path(self.containers), machine.volume(container_store.FOLDER))


class Server:
    """One server. `home` is its folder, whose name is its id."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.id = home.name

    def exists(self) -> bool:
        return self._image.exists()

    def create(self, image: Image, drive: Mapping[str, bytes]) -> None:
        """A new disk. `drive` has the files of the config drive by their paths."""
        self.home.mkdir(parents=True)
        image.save(self._image)
        for path, content in drive.items():
            file = self.home / "drive" / path
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            file.write_bytes(content)

    def turn_on(
        self, hostname: str, ports: Sequence[network.Port], nameservers: Sequence[str], disks: Mapping[str, str]
    ) -> None:
        """Boot, without waiting for the end of it. `disks`: device in the machine, such as /dev/vdb -> file of the host."""
        image = Image.read(self._image)
        ledger = Ledger(self._run)
        machine = self._machine(ledger)
        is_new = not self._disk.exists()
        machine.mount(Path(image.root))
        if is_new:
            image.set_up(machine)
        machine.write("/etc/resolv.conf", "".join(f"nameserver {one}\n" for one in nameservers))
        self._plug(ledger, ports)
        machine.start(
            hostname=hostname,
            read_only={Path(source): target for source, target in image.read_only.items()} | {self.home / "drive": SEED},
            volumes=image.volumes,
            disks={ledger.loop(Path(file)): (device, _by_id(file)) for device, file in disks.items()},
        )

    def turn_off(self, patience: float = 0) -> None:
        """Shut down in order if it does so within `patience` seconds, else cut it off."""
        if not self._run.exists():
            return
        ledger = Ledger(self._run)
        machine = self._machine(ledger)
        try:
            machine.shut_down(patience)
        except (TimeoutError, KeyError):
            _cut_off(machine)
        self._keep_console(machine)
        ledger.undo()

    def remove(self) -> None:
        self.turn_off()
        shutil.rmtree(self.home, ignore_errors=True)

    def is_on(self) -> bool:
        if not self._run.exists():
            return False
        try:
            return self._machine(Ledger(self._run)).is_running()
        except KeyError:
            return False

    def life(self) -> str:
        """Another text each time that it is turned on; empty while it is off."""
        return Ledger(self._run).token if self.is_on() else ""

    def cut_off(self) -> None:
        """The machine dies, which nobody has asked Nova for."""
        self._machine(Ledger(self._run)).cut_off()

    def console(self) -> str:
        """What it has printed since it was made."""
        now = self._machine(Ledger(self._run)).console() if self.is_on() else Path("/dev/null")
        before = self._console.read_text(errors="replace") if self._console.exists() else ""
        return before + now.read_text(errors="replace")

    def run(self, *argv: str) -> str:
        """Run a command in the machine, as from its console; its stdout."""
        return self._machine(Ledger(self._run)).run(*argv)

    def plug_disk(self, device: str, file: str) -> None:
        """Give the running machine one more disk."""
        ledger = Ledger(self._run)
        loop = ledger.loop(Path(file))
        numbers = loop.stat().st_rdev
        self.run("mknod", device, "b", str(numbers >> 8 & 0xFFF), str(numbers & 0xFF))
        self.run("mkdir", "--parents", str(BY_ID))
        self.run("ln", "--symbolic", "--force", device, _by_id(file))

    def unplug_disk(self, device: str, file: str) -> None:
        """Take away a disk, also from a machine that has died; one that is off has none."""
        if self.is_on():
            self.run("rm", "--force", device, _by_id(file))
        if self._run.exists():
            Ledger(self._run).release_loop(Path(file))

    def _plug(self, ledger: Ledger, ports: Sequence[network.Port]) -> None:
        namespace = network.server_namespace(self.id)
        network.add_namespace(ledger, namespace)
        for number, port in enumerate(ports):
            bridge = network.bridge_of(port.network)
            if not processes.until(lambda bridge=bridge: network.has_link(bridge), 20):  # type: ignore[misc]
                raise TimeoutError(f"the network's agent has not made the bridge {bridge} within 20 s")
            network.plug(ledger, port, namespace, f"eth{number}", self.id)

    def _keep_console(self, machine: Machine) -> None:
        try:
            text = machine.console().read_bytes()
        except (KeyError, FileNotFoundError):
            return
        with self._console.open("ab") as file:
            file.write(text)

    def _machine(self, ledger: Ledger) -> Machine:
        return Machine(ledger, self.id, self._disk)

    @property
    def _image(self) -> Path:
        return self.home / "image.json"

    @property
    def _disk(self) -> Path:
        return self.home / "disk"

    @property
    def _console(self) -> Path:
        return self.home / "console.log"

    @property
    def _run(self) -> Path:
        return self.home / "run"


def _by_id(file: str) -> str:
    """The link of a volume, whose file has its id as name, as QEMU's serial numbers of 20 characters make it."""
    return str(BY_ID / f"virtio-{Path(file).name[:20]}")


def _cut_off(machine: Machine) -> None:
    with suppress(KeyError):  # it was never started
        machine.cut_off()
