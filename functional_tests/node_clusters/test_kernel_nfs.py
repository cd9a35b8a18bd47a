# SPDX-License-Identifier: Apache-2.0
"""The NFS server of a kernel, in a machine with a kernel of its own: what the driver writes there, and NFS 4.1 on it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator

import asyncssh
import pytest

from k8s_cr_driver.node_clusters.inventory import Node, Role
from k8s_cr_driver.node_clusters.storage.inventory import Inventory, Volume
from k8s_cr_driver.node_clusters.storage.parameters import Export, Server, Storage
from k8s_cr_driver.node_clusters.storage.parameters import Volume as Given
from k8s_cr_driver.node_clusters.storage.run import Run
from k8s_cr_driver.ssh.command import script
from k8s_cr_driver.ssh.host import CommandFailed, Host, HostError
from k8s_cr_driver.ssh.hosts import Hosts

from ..conftest import Summary
from ..testbed import nodes
from ..testbed.ledger import Ledger
from ..testbed.nodes import USER
from ..testbed.processes import until
from ..testbed.virtual_machine import ADDRESS, VirtualMachine

NFS_SERVER = "nfs-kernel-server"
VOLUME = Volume(str(uuid.uuid4()), "data", "/data")
# Seconds, however busy the host is.
UP_WITHIN = 900.0
EXPORT = Export("/data/pv", (f"{ADDRESS}/32",))
"""To itself, and to nobody else."""
_MOUNT = 'mkdir -p /mnt/it; mount -t nfs -o nfsvers=4.1,hard,retry=0 "$1" /mnt/it'


@pytest.fixture(scope="module")
def storage(bed: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    ledger = Ledger(nodes.FOLDER / "kernel-nfs")
    key = asyncssh.generate_private_key("ssh-ed25519")
    device = tmp_path_factory.mktemp("volume") / "volume"
    with device.open("wb") as empty:
        empty.truncate(64 << 20)
    machine = VirtualMachine(ledger, "kernel-nfs")
    try:
        machine.boot((NFS_SERVER,), USER, key.export_public_key().decode().strip(), {VOLUME.id: device})
        private = key.export_private_key().decode()
        host = Host("storage", "127.0.0.1", USER, trusted=(machine.host_key,), private_key=private, port=machine.port)
        with Hosts(lambda _: None) as found:
            assert until(lambda: accepts_logins(found, host), UP_WITHIN)
        yield host
    finally:
        ledger.undo()


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    with Hosts(lambda _: None) as found:
        yield found


def accepts_logins(hosts: Hosts, host: Host) -> bool:
    try:
        return hosts.run(host, script("a sign of life", "echo yes")) == "yes\n"
    except HostError:
        return False


def run_on(storage: Host, hosts: Hosts) -> tuple[Run, list[str]]:
    """The phases of the storage server, and where their progress goes."""
    node, log = Node("s", Role.STORAGE, "storage", storage.address, ADDRESS), list[str]()
    given = Server("CP1", USER, "", "kernel", (Given("data", "/data"),), (EXPORT,))

    def none(*_: object, **__: object) -> str:
        raise AssertionError("there is no cluster")

    found = Inventory(node, "storage", (VOLUME,))
    return Run(hosts, {"storage": storage}, (), found, Storage(given), (), "", lambda _: {}, none, log.append), log


def test_the_kernel_exports_a_volume_as_it_was_told(storage: Host, hosts: Hosts, summary: Summary) -> None:
    started = time.monotonic()
    run, log = run_on(storage, hosts)
    run.serve()
    summary(f"exported within {time.monotonic() - started:.0f} s")
    assert run.changes > 0
    again, _ = run_on(storage, hosts)
    again.serve()
    assert again.changes == 0, log


def test_a_client_of_nfs_4_1_writes_as_nobody(storage: Host, hosts: Hosts) -> None:
    def shell(text: str, *args: str) -> str:
        return hosts.run(storage, script("a command of the test", text, *args))

    shell(_MOUNT, f"{ADDRESS}:/data/pv")
    assert "vers=4.1" in shell("grep /mnt/it /proc/mounts")
    shell("echo text >/mnt/it/file; umount /mnt/it")
    assert shell("cat /data/pv/file; stat --format=%U /data/pv/file") == "text\nnobody\n"


def test_a_client_that_the_export_is_not_for_is_refused(storage: Host, hosts: Hosts) -> None:
    with pytest.raises(CommandFailed, match=r"denied|No such file"):
        hosts.run(storage, script("a mount from another address", _MOUNT, "127.0.0.1:/data/pv"))
