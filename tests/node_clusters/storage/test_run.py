# SPDX-License-Identifier: Apache-2.0
"""The storage server and the nodes over SSH, and the cluster by kubectl: what is there afterwards, and after a crash."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from k8s_cr_driver.errors import DriverError, InvalidPackage, InvalidRequest
from k8s_cr_driver.node_clusters import parameters, work
from k8s_cr_driver.node_clusters.inventory import Node, Role
from k8s_cr_driver.node_clusters.storage import facts, persistent_volumes, run
from k8s_cr_driver.node_clusters.storage.inventory import Inventory, Volume
from k8s_cr_driver.ssh.command import Command
from k8s_cr_driver.ssh.host import CommandFailed, Host
from k8s_cr_driver.ssh.hosts import Hosts

from . import machines, specification
from .kubectl import Cluster
from .machines import Machine

ID = "1f0c2a55-8b3e-4c1d-9f00-00000000000a"
STORAGE = Node("s0", Role.STORAGE, "storage-s0", "127.0.0.1", "10.10.0.9")
WORKER = Node("w0", Role.WORKER, "worker-w0", "127.0.0.1", "10.10.0.2")
DIRECTORIES = [f"/volume/nfs/pv{number}" for number in (1, 2, 3)]
SCRIPT = """#!/bin/sh
set -eu
cat >"$ROOT/given"
printf '#!/bin/sh\\n' >"$ROOT/bin/mount.nfs"; chmod 755 "$ROOT/bin/mount.nfs"
echo inactive >"$ROOT/units/nfs-server"
"""


def pv(number: int) -> str:
    nfs = {"server": "0.0.0.0", "path": DIRECTORIES[number - 1]}
    name = {"name": f"nfs-pv{number}"}
    return json.dumps({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": name, "spec": {"nfs": nfs}})


class Bed:
    """A storage server, a worker, and a cluster, for the request of the specification."""

    def __init__(self, storage: Machine, worker: Machine) -> None:
        self.storage, self.worker, self.cluster = storage, worker, Cluster()
        self.lines: list[str] = []

    def run(self, hosts: Any, address: str = "10.10.0.9", script: str = SCRIPT, **server: Any) -> run.Run:
        given = parameters.read(specification.parameter(storage_server=specification.storage_server(**server)), {}, "i").storage
        texts = {one.path: pv(number) for number, one in enumerate(given.registrations, 1)}
        addresses = {"storage_server_CP": address}
        return run.Run(
            hosts,
            {STORAGE.name: _host(self.storage, STORAGE), WORKER.name: _host(self.worker, WORKER)},
            [WORKER],
            Inventory(STORAGE, "storage_server", (Volume(ID, "storage_server_volume", "/volume"),), addresses),
            given,
            persistent_volumes.read(given, texts, addresses),
            script,
            lambda node: {"name": node.name},
            self.cluster,
            self.lines.append,
        )

    def ensure(self, **options: Any) -> run.Run:
        """All of an operation."""
        with Hosts(lambda _: None) as hosts:
            one = self.run(hosts, **options)
            one.serve()
            one.register()
        return one


def _host(machine: Machine, node: Node) -> Host:
    host = machine.server.host()
    return Host(node.name, node.ssh, host.user, trusted=host.trusted, private_key=host.private_key, port=host.port)


@pytest.fixture
def bed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bed]:
    monkeypatch.setattr(work, "PAUSE", 0.02)
    with machines.serving(tmp_path / "s", "10.10.0.9") as storage, machines.serving(tmp_path / "w") as worker:
        storage.attach(ID)
        yield Bed(storage, worker)


def state(bed: Bed) -> dict[str, Any]:
    """What an operation has left."""
    paths = ("etc/fstab", "etc/exports.d/k8s-cr.exports", "etab", "units/nfs-server", "mounts/_volume")
    found: dict[str, Any] = {path: bed.storage.file(path) for path in paths}
    found["directories"] = [(bed.storage.root / path.lstrip("/")).is_dir() for path in DIRECTORIES]
    found["client"] = (bed.worker.root / "bin" / "mount.nfs").exists()
    found["volumes"] = {name: one.server for name, one in bed.cluster.volumes.items()}
    return found


def test_an_empty_volume_becomes_persistent_volumes_of_the_cluster(bed: Bed) -> None:
    one = bed.ensure()
    assert f"UUID={ID}\n" in (bed.storage.root / f"dev/disk/by-id/virtio-{ID[:20]}").read_text()
    assert bed.storage.file("etc/fstab").splitlines()[1] == f"UUID={ID} /volume ext4 defaults,nofail,x-k8s-cr 0 2"
    assert sorted(line.split()[0] for line in bed.storage.file("etab").splitlines()) == DIRECTORIES
    assert state(bed)["directories"] == [True] * 3 and bed.storage.file("units/nfs-server") == "active\n"
    assert {name: live.server for name, live in bed.cluster.volumes.items()} == dict.fromkeys(
        ("nfs-pv1", "nfs-pv2", "nfs-pv3"), "10.10.0.9"
    )
    assert json.loads(bed.worker.file("given")) == {"name": "worker-w0", "role": "nfs_client", "nfs_server": "kernel"}
    assert json.loads(bed.storage.file("given"))["role"] == "storage_server"
    assert one.changes == 1 + 1 + 1 + 1 + 1 + 3


def test_a_second_run_changes_nothing_and_opens_one_connection_a_server(bed: Bed) -> None:
    bed.ensure()
    before, logins = (bed.storage.log, bed.worker.log), bed.storage.server.logins
    assert bed.ensure().changes == 0
    assert (bed.storage.log, bed.worker.log) == before
    assert bed.storage.server.logins - logins == 1
    assert len(bed.cluster.calls) == 5 + 2, "the second run has looked twice"


def test_a_volume_with_data_is_mounted_as_it_is(bed: Bed) -> None:
    """By its own UUID, whatever device it is."""
    device = bed.storage.attach(ID, "TYPE=xfs\nUUID=of-before\nUSAGE=filesystem\n")
    bed.ensure()
    assert "of-before" in device.read_text() and not any(line.startswith("mkfs") for line in bed.storage.log)
    assert "UUID=of-before /volume xfs " in bed.storage.file("etc/fstab")


def test_a_folder_that_is_there_without_its_volume_is_no_other_file_system(bed: Bed) -> None:
    """As after a reboot without the volume: mountpoint(1) says so on standard output."""
    (bed.storage.root / "volume").mkdir()
    bed.ensure()
    assert bed.storage.log.count("mount /volume") == 1


def test_a_server_that_replaces_another_serves_the_data_that_were_kept(bed: Bed, tmp_path: Path) -> None:
    bed.ensure()
    with machines.serving(tmp_path / "new", "10.10.0.9") as new:
        machines.replace(bed.storage, new.root)
        bed.storage = new
        bed.ensure()
        assert not any(line.startswith("mkfs") for line in new.log) and state(bed)["directories"] == [True] * 3


def test_a_server_at_another_address_gets_new_volumes_unless_somebody_has_the_old_ones(bed: Bed) -> None:
    bed.ensure()
    bed.ensure(address="10.10.0.8")
    assert {live.server for live in bed.cluster.volumes.values()} == {"10.10.0.8"}
    bed.cluster.claim("nfs-pv2", "ns/data")
    with pytest.raises(InvalidRequest, match=r"nfs-pv2: leads to 10.10.0.8:/volume/nfs/pv2 in place of 10.10.0.7"):
        bed.ensure(address="10.10.0.7")
    bed.ensure(address="10.10.0.7", force=True)
    assert {live.server for live in bed.cluster.volumes.values()} == {"10.10.0.7"}


def test_ganesha_reads_its_exports_again_and_goes_on(bed: Bed) -> None:
    bed.storage.provide("nfs-ganesha", "active")
    bed.ensure(nfs_server="ganesha")
    assert bed.storage.file("etc/ganesha/ganesha.conf").count("EXPORT {") == 3
    assert "systemctl reload nfs-ganesha" in bed.storage.log and "systemctl restart nfs-ganesha" not in bed.storage.log


class Crash(Exception):
    """The conductor dies."""


class Crashing:
    """Hosts of a conductor that dies after some commands."""

    def __init__(self, hosts: Hosts, commands: int) -> None:
        self._hosts, self._left = hosts, commands

    def run(self, host: Host, command: Command) -> str:
        output = self._hosts.run(host, command)
        self._left -= 1
        if self._left < 0:
            raise Crash
        return output


def test_after_a_crash_at_any_command_a_retry_has_the_same_end(bed: Bed, tmp_path: Path) -> None:
    bed.ensure()
    expected, crashed = state(bed), 0
    for commands in range(40):
        storage = machines.boot(bed.storage.server, tmp_path / f"s{commands}", "10.10.0.9")
        storage.attach(ID)
        again = Bed(storage, machines.boot(bed.worker.server, tmp_path / f"w{commands}", "10.10.0.2"))
        with Hosts(lambda _: None) as hosts:
            try:
                again.run(Crashing(hosts, commands)).serve()
            except Crash:
                crashed += 1
            else:
                break
        again.ensure()
        assert state(again) == expected, f"a crash after {commands} commands"
        assert sum(line.startswith("mkfs") for line in storage.log) == 1
    assert crashed > 10


def test_exports_that_the_server_refuses_fail_with_its_words(bed: Bed) -> None:
    (bed.storage.root / "refuses").touch()
    with pytest.raises(CommandFailed, match=r"storage-s0 .*: the exports ended with status 1: exportfs: Failed to stat"):
        bed.ensure()


def test_a_volume_that_is_no_device_of_the_server_is_named(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "DEVICE_WITHIN", 0.1)
    (bed.storage.root / f"dev/disk/by-id/virtio-{ID[:20]}").unlink()
    (bed.storage.root / "dev/disk/by-id/virtio-of-another").touch()
    with pytest.raises(DriverError, match=rf"has no device in /dev/disk/by-id of storage_server_volume \({ID}\), or one"):
        bed.ensure()
    assert bed.storage.log == []


@pytest.mark.parametrize("kind", ["without a size", "that fails"])
def test_a_device_that_cannot_be_read_is_not_taken_for_an_empty_one(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Of both blkid says the same as of an empty volume."""
    monkeypatch.setattr(run, "DEVICE_WITHIN", 0.1)
    device = bed.storage.attach(ID, "")
    if kind == "that fails":
        device.unlink()
        device.mkdir()
    with pytest.raises(DriverError, match=rf"has no device in /dev/disk/by-id of storage_server_volume \({ID}\), or .* read"):
        bed.ensure()
    assert bed.storage.log == []


def test_a_device_that_is_read_a_moment_later_keeps_its_data(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    bed.storage.attach(ID, "")
    content = "TYPE=ext4\nUUID=of-before\nUSAGE=filesystem\n"
    monkeypatch.setattr("time.sleep", lambda _: bed.storage.attach(ID, content) and None)
    bed.ensure()
    assert not any("mkfs" in line for line in bed.storage.log)


@pytest.mark.parametrize(
    ("program", "output"),
    [
        ("mountpoint", "252:1 and more, with words"),
        ("blkid", "TYPE=ext4\nUUID=\nUSAGE=filesystem"),
        ("ip", "x src no-address y"),
    ],
)
def test_a_server_that_prints_nonsense_is_named_and_nothing_is_done(bed: Bed, program: str, output: str) -> None:
    """Whoever has root there can let it print anything."""
    for machine in (bed.storage, bed.worker):
        (machine.root / "bin" / program).write_text(f"#!/bin/sh\necho '{output}'\n")
    with pytest.raises(DriverError, match=r"printed something else than it should|no file system with a UUID|is mounted there"):
        bed.ensure()
    assert bed.storage.log == []


def test_what_blkid_cannot_tell_is_left_alone(bed: Bed) -> None:
    (bed.storage.root / "ambivalent").touch()
    with pytest.raises(InvalidRequest, match="It is neither mounted nor formatted"):
        bed.ensure()
    assert bed.storage.log == []


def test_a_server_without_an_nfs_server_needs_a_script(bed: Bed) -> None:
    with pytest.raises(InvalidPackage, match="storage-s0: lacks the NFS server; take an image that has it, or a script_path"):
        bed.ensure(script="")


def test_a_script_that_installs_no_client_is_named(bed: Bed) -> None:
    bed.storage.provide("nfs-server")
    with pytest.raises(InvalidPackage, match=r"worker-w0: lacks the NFS client, mount.nfs after script_path has run"):
        bed.ensure(script="#!/bin/sh\nexit 0\n")


def test_volumes_that_do_not_become_available_are_named(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "SETTLED_WITHIN", 0.1)
    bed.cluster.phase = "Pending"
    with pytest.raises(DriverError, match=r"PersistentVolume nfs-pv1, .*nfs-pv3 is not Available, within"):
        bed.ensure()


def test_before_the_server_is_replaced_its_volumes_go_unless_somebody_uses_them(bed: Bed) -> None:
    bed.ensure()
    removed = {"removeResources": [{"type": "STORAGE", "resource": {"resourceId": ID}}]}
    bed.cluster.claim("nfs-pv1", "ns/data")
    bed.cluster.pods = ["ns/web\tRunning\tns\t\tdata", "ns/old\tSucceeded\tns\t10.10.0.9\t"]
    with Hosts(lambda _: None) as hosts:
        with pytest.raises(InvalidRequest) as failure:
            bed.run(hosts).leave({})
        assert "Pod ns/web mounts it" in str(failure.value) and "ns/old" not in str(failure.value)
        assert len(bed.cluster.volumes) == 3
        report = bed.run(hosts, force=True).leave(removed)
        assert report[0].endswith("is replaced by a new one, and its data are lost")
        assert list(bed.cluster.volumes) == ["nfs-pv1"], "it waits for the new server"
        bed.cluster.release("nfs-pv1")
        bed.cluster.pods = []
        assert bed.run(hosts).leave({}) == (f"storage_server_volume: the Cinder volume {ID} is kept with its data",)
    assert bed.cluster.volumes == {}


def test_the_lines_of_kubectl_are_read_as_they_are() -> None:
    """Recorded of kubectl 1.36."""
    rows = "pv1\tBound\t\tdefault\tdata\t10.0.0.1\tabc\t/volume/nfs/pv1\npv2\tAvailable\t2026-01-01T00:00:00Z\t\t\t\t\t\n"
    assert facts.read_volumes(rows) == {
        "pv1": facts.Live("pv1", "Bound", False, "default/data", "10.0.0.1", "/volume/nfs/pv1", "abc"),
        "pv2": facts.Live("pv2", "Available", True),
    }
    pods = "n/p\tRunning\tn\t10.0.0.1 10.0.0.2\tdata other\nn/done\tSucceeded\tn\t10.0.0.1\t\n"
    assert facts.read_pods(pods) == [
        facts.Pod("n/p", frozenset({"10.0.0.1", "10.0.0.2"}), frozenset({"n/data", "n/other"}))
    ]
