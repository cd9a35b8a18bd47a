# SPDX-License-Identifier: Apache-2.0
"""Volumes of a storage server from mkfs to the replacement of the server; the tests share one cluster, in this order."""

from __future__ import annotations

import hashlib
import json
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from builds import commands

from ..conftest import Summary
from ..objects import claim_of, pod_with_claim
from ..testbed import network
from ..testbed.nodes import MOUNT, USER, Volume
from .script import Body
from .site import MASTERS, STORAGE, VOLUMES, WORKERS, Server, Site, name_of

SITE = partial(Site, driver="persistent_volumes", base=VOLUMES)
PHASES = ("file systems", "mounts", "exports", "NFS clients", "volumes")
RESOURCES = ("data", "archive")
EXPORTED = [f"{network.NETWORK[VOLUMES + 11 + number]}/32" for number in range(2)]
"""To two workers, and not to the master."""
_SCRIPT = f"""\
#!/bin/sh
set -eu
case $(jq --raw-output .role) in
nfs_client)
  install -m 0755 {MOUNT} /usr/sbin/mount.nfs
  [ -e /dev/fuse ] || mknod -m 0666 /dev/fuse c 10 229 ;;
*) command -v kubeadm ;;
esac
"""
# However busy the host is.
POD_WITHIN = "300s"


@pytest.fixture(scope="module", autouse=True)
def servers(site: Site, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A master, a worker, and a storage server with an empty volume and one that has a file."""
    fill(site.volume("archive"), tmp_path_factory.mktemp("archive"))
    site.volume("data")
    for vdu in (MASTERS, WORKERS, STORAGE):
        site.add(vdu)
    site.conductor.write("Scripts/install.sh", _SCRIPT)
    for name in RESOURCES:
        site.conductor.write(f"Files/{name}.yaml", json.dumps(manifest(name)))


def parameters(site: Site, **changes: Any) -> Body:
    """Of an instantiate. changes: of the section `storage_server`."""
    given = site.parameters
    server = {
        "ssh_cp_name": f"{STORAGE}_CP1",
        "username": USER,
        "nfs_server": "ganesha",
        "cinder_volume_setup_params": [{"volume_resource_id": name, "mount_to": f"/{name}"} for name in RESOURCES],
        "nfs_server_setup_params": [
            {"export_dir": f"/{name}/pv", "export_to": network} for name in RESOURCES for network in EXPORTED
        ],
    }
    return {
        **given,
        "master_node": {**given["master_node"], "cluster_cp_name": f"{MASTERS}_CP1"},
        "storage_server": {**server, **changes},
        "pv_registration_params": [
            {"pv_manifest_file_path": f"Files/{name}.yaml", "nfs_server_cp": f"{STORAGE}_CP1"} for name in RESOURCES
        ],
    }


@pytest.mark.parametrize("others", [(), ("another",), ("own", "another")], ids=["none", "another", "both"])
def test_a_volume_that_is_not_attached_to_the_storage_server_alone_is_refused(site: Site, others: tuple[str, ...]) -> None:
    [server] = site.of(STORAGE)
    attached = next(one for one in site.deployed.volumes if one.resource == "data")
    attached.servers = tuple(server.id if one == "own" else one for one in others)
    outcome = site.operate("instantiate_end", **parameters(site))
    attached.servers = (server.id,)
    where = f"attached to {', '.join(others).replace('own', server.id)}" if others else "attached to no server"
    assert f"data: the volume {attached.id} is {where}, and must be attached to the storage server" in outcome.failure
    assert is_empty(site.volumes["data"])


@pytest.mark.parametrize(
    ("name", "problem"), [("nothing", "no resource 'nothing'"), (f"{WORKERS}_CP1", "is no volume of Cinder")]
)
def test_what_is_no_volume_is_refused(site: Site, name: str, problem: str) -> None:
    wrong = [{"volume_resource_id": name, "mount_to": "/data"}, {"volume_resource_id": "archive", "mount_to": "/archive"}]
    assert problem in site.operate("instantiate_end", **parameters(site, cinder_volume_setup_params=wrong)).failure


def test_a_volume_with_something_else_than_a_file_system_is_not_touched(site: Site) -> None:
    device = site.volumes["data"].device
    commands.run(["mkswap", device])
    before = digest(device)
    outcome = site.operate("instantiate_end", **parameters(site))
    assert "has swap, and no file system with a UUID. It is neither mounted nor formatted" in outcome.failure
    assert digest(device) == before
    commands.run(["wipefs", "--quiet", "--all", device])


def test_an_instantiate_that_dies_at_each_step_makes_one_file_system(site: Site, summary: Summary) -> None:
    started = time.monotonic()
    for phase in PHASES:
        site.operate("instantiate_end", killed_when=lambda log, phase=phase: f": {phase}: " in log, **parameters(site))
    outcome = site.operate("instantiate_end", **parameters(site))
    assert outcome.failure == ""
    assert site.ready() == site.names()
    [server] = site.of(STORAGE)
    machine = site.nodes[server.id].machine
    for volume in site.volumes.values():
        assert machine.run("blkid", "--probe", "--match-tag=UUID", "--output=value", volume.device).strip() == volume.id
    assert [line.split()[:2] for line in machine.read("/etc/fstab").splitlines()] == [
        [f"UUID={site.volumes[name].id}", f"/{name}"] for name in RESOURCES
    ]
    assert machine.run("cat", "/archive/pv/old") == "from before\n"
    assert phases(site) == dict.fromkeys(RESOURCES, "Available")
    assert {one["spec"]["nfs"]["server"] for one in volumes(site)} == {server.address}
    summary(f"{len(PHASES)} deaths, complete after {time.monotonic() - started:.0f} s")


def test_a_second_run_changes_nothing(site: Site) -> None:
    outcome = site.operate("heal_end")
    assert (outcome.failure, outcome.changes) == ("", 0)


def test_a_pod_writes_to_the_volume_and_another_reads_it(site: Site, summary: Summary) -> None:
    started = time.monotonic()
    for name in RESOURCES:
        claim(site, name)
    run(site, "data", "echo written-in-a-pod >/data/file")
    summary(f"a Pod with a volume {time.monotonic() - started:.1f} s")
    assert on_the_server(site, "/data/pv/file") == "written-in-a-pod\n"
    assert run(site, "data", "read -r line </data/file; echo $line") == "written-in-a-pod\n"
    assert run(site, "archive", "read -r line </data/old; echo $line") == "from before\n"


def test_the_server_exports_to_no_others(site: Site) -> None:
    [master], [server] = site.of(MASTERS), site.of(STORAGE)
    machine = site.nodes[master.id].machine
    with pytest.raises(RuntimeError, match="Permission denied"):
        machine.run("mount", "-t", "nfs", "-o", "nfsvers=3", f"{server.address}:/data/pv", "/mnt")


def test_a_new_worker_gets_the_client_unless_its_address_is_not_exported_to(site: Site) -> None:
    refused = site.add(WORKERS, 2)
    outcome = site.operate("scale_end")
    export = f"/data/pv is exported to {', '.join(EXPORTED)}: change export_to"
    assert f"{name_of(refused)}: has {refused.address}, and {export}" in outcome.failure
    assert not has_client(site, refused)
    site.remove(refused)
    added = site.add(WORKERS, 1)
    assert site.operate("scale_end").failure == ""
    assert site.ready() == site.names()
    assert has_client(site, added)
    assert run(site, "data", "read -r line </data/file; echo $line", on=added) == "written-in-a-pod\n"


def test_the_storage_server_is_not_scaled(site: Site) -> None:
    outcome = site.operate("scale_start", *site.of(STORAGE))
    assert "the storage server is one server with its volumes, and cannot be scaled" in outcome.failure


def test_a_storage_server_is_not_replaced_while_its_volumes_are_in_use(site: Site) -> None:
    [server] = site.of(STORAGE)
    outcome = site.operate("heal_start", server)
    assert "the storage server cannot be replaced while its volumes are in use" in outcome.failure
    for name in RESOURCES:
        assert f"PersistentVolume {name} is Bound and has the claim default/{name}" in outcome.failure
        assert f"{name}: the Cinder volume {site.volumes[name].id} is kept with its data" in outcome.failure
    assert phases(site) == dict.fromkeys(RESOURCES, "Bound")


def test_a_forced_replacement_keeps_the_data_and_the_claims(site: Site, summary: Summary) -> None:
    [old] = site.of(STORAGE)
    started = time.monotonic()
    outcome = site.operate("heal_start", old, storage_server={"force": True})
    assert outcome.failure == ""
    assert any("PersistentVolume data is Bound" in line and "it is forced" in line for line in outcome.log)
    new = site.replace(old)
    outcome = site.operate("heal_end", new)
    assert outcome.failure == ""
    assert "MakeFileSystem" not in "\n".join(outcome.log)
    summary(f"replacement of the storage server {time.monotonic() - started:.0f} s")
    assert run(site, "data", "read -r line </data/file; echo $line") == "written-in-a-pod\n"
    assert phases(site) == dict.fromkeys(RESOURCES, "Bound")


def test_a_server_at_another_address_serves_what_nobody_uses(site: Site) -> None:
    """Of a Released volume the user decides: its data are somebody's."""
    [old] = site.of(STORAGE)
    for name in RESOURCES:
        site.kubectl("delete", "persistentvolumeclaim", name, "--timeout=240s")
    assert "PersistentVolume data is Released" in site.operate("heal_start", old).failure
    site.kubectl("delete", "persistentvolume", "data", "--timeout=240s")
    site.kubectl("patch", "persistentvolume", "archive", "--type=merge", '--patch={"spec":{"claimRef":null}}')
    assert site.operate("heal_start", old).failure == ""
    assert phases(site) == {}
    new = site.replace(old, address=str(network.NETWORK[VOLUMES + 18]))
    assert site.operate("heal_end", new).failure == ""
    assert phases(site) == dict.fromkeys(RESOURCES, "Available")
    assert {one["spec"]["nfs"]["server"] for one in volumes(site)} == {new.address}
    claim(site, "data")
    assert run(site, "data", "read -r line </data/file; echo $line") == "written-in-a-pod\n"


def test_a_heal_of_the_whole_instance_has_the_same_data_in_a_new_cluster(site: Site, summary: Summary) -> None:
    """Nothing is refused, though the claim has the volume. The storage server gets another address, too."""
    started = time.monotonic()
    [storage] = site.of(STORAGE)
    former = [*site.deployed.servers]
    assert site.operate("heal_start", *former, is_whole=True).failure == ""
    assert list(site.vims) == ["vim1"]
    site.replace_all()
    [same] = site.of(STORAGE)
    new = site.replace(same, address=str(network.NETWORK[VOLUMES + 17]))
    outcome = site.operate("heal_end", *former, is_whole=True)
    assert outcome.failure == ""
    assert "MakeFileSystem" not in "\n".join(outcome.log)
    assert site.ready() == site.names()
    assert site.asked_by_vim("/api/v1/namespaces") == 200
    assert phases(site) == dict.fromkeys(RESOURCES, "Available")
    assert {one["spec"]["nfs"]["server"] for one in volumes(site)} == {new.address} != {storage.address}
    claim(site, "data")
    assert run(site, "data", "read -r line </data/file; echo $line") == "written-in-a-pod\n"
    summary(f"heal of the whole instance {time.monotonic() - started:.0f} s")


def fill(volume: Volume, folder: Path) -> None:
    """It has a file system with a file in it."""
    (folder / "pv").mkdir()
    (folder / "pv" / "old").write_text("from before\n")
    commands.run(["mkfs.ext4", "-q", "-U", volume.id, "-d", folder, volume.device])


def is_empty(volume: Volume) -> bool:
    return commands.run(["sh", "-c", f"blkid --probe {volume.device}; echo $?"]).strip() == "2"


def digest(device: Path) -> str:
    return hashlib.sha256(device.read_bytes()).hexdigest()


def manifest(name: str) -> Body:
    """A PersistentVolume of the package, whose server is to be filled in."""
    spec = {
        "capacity": {"storage": "32Mi"},
        "accessModes": ["ReadWriteMany"],
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "",
        "mountOptions": ["nfsvers=3", "hard"],
        "nfs": {"server": "storage.example", "path": f"/{name}/pv"},
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def volumes(site: Site) -> list[Body]:
    return list(json.loads(site.kubectl("get", "persistentvolumes", "--output=json"))["items"])


def phases(site: Site) -> dict[str, str]:
    return {one["metadata"]["name"]: one["status"]["phase"] for one in volumes(site)}


def claim(site: Site, name: str) -> None:
    """A claim of the volume of this name has it."""
    site.apply(claim_of(name))
    site.kubectl("wait", f"persistentvolumeclaim/{name}", "--for=jsonpath={.status.phase}=Bound", f"--timeout={POD_WITHIN}")


def run(site: Site, volume: str, line: str, on: Server | None = None) -> str:
    """What a Pod prints that has the claim at /data, after it has ended well."""
    site.apply(pod_with_claim("one", volume, line, name_of(on) if on else ""))
    site.kubectl("wait", "pod/one", "--for=jsonpath={.status.phase}=Succeeded", f"--timeout={POD_WITHIN}")
    printed = site.kubectl("logs", "one")
    site.kubectl("delete", "pod", "one", "--timeout=240s")
    return printed


def on_the_server(site: Site, path: str) -> str:
    [server] = site.of(STORAGE)
    return site.nodes[server.id].machine.run("cat", path)


def has_client(site: Site, server: Server) -> bool:
    return (site.nodes[server.id].machine.root / "usr/sbin/mount.nfs").exists()
