# SPDX-License-Identifier: Apache-2.0
"""What is to be done for persistent volumes, for what there is: tables of phases, and what is refused."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.node_clusters.inventory import Node, Role
from k8s_cr_driver.node_clusters.storage import exports, parameters, plan
from k8s_cr_driver.node_clusters.storage.exports import Mount
from k8s_cr_driver.node_clusters.storage.facts import EMPTY, Client, Disk, Live, Pod, Server
from k8s_cr_driver.node_clusters.storage.inventory import Volume
from k8s_cr_driver.node_clusters.storage.parameters import GANESHA, KERNEL, Export
from k8s_cr_driver.node_clusters.storage.persistent_volumes import PersistentVolume

ID, OTHER = "1f0c2a55-0000-4000-8000-000000000001", "1f0c2a55-0000-4000-8000-000000000002"
DEVICE = f"/dev/disk/by-id/virtio-{ID[:20]}"
NODE = Node("s0", Role.STORAGE, "storage-s0", "198.51.100.9", "10.0.0.9")
MASTER = Node("m0", Role.MASTER, "master-m0", "198.51.100.1", "10.0.0.1")
WORKER = Node("w0", Role.WORKER, "worker-w0", "198.51.100.2", "10.0.0.2")
VOLUME = Volume(ID, "data", "/volume")
EXPORTS = (Export("/volume/a", ("10.0.0.0/24",)), Export("/volume/b", ("10.0.0.0/24", "10.1.0.7/32")))
FSTAB = ("UUID=root / ext4 defaults 0 1", "# a remark")
MOUNT = Mount(ID, "ext4", "/volume")


def wanted(nfs_server: str = KERNEL, *volumes: Volume) -> plan.Wanted:
    found = volumes or (VOLUME,)
    given = parameters.Server(
        "cp", "u", "", nfs_server, tuple(parameters.Volume(one.resource, one.mount_to) for one in found), EXPORTS
    )
    return plan.Wanted(NODE, given, found)


def disk(status: int = 0, mounted: str = "", **probe: str) -> Disk:
    found = probe or ({} if status else {"TYPE": "ext4", "UUID": ID, "USAGE": "filesystem"})
    return Disk(DEVICE, status, "252:16", mounted, found)


def settled(nfs_server: str = KERNEL, **changes: Any) -> Server:
    """A server that has all that `serve` gives it."""
    return dataclasses.replace(
        Server(
            is_loaded=True,
            is_active=True,
            disks={ID: disk(mounted="252:16")},
            digests={file.path: file.digest for file in exports.files(nfs_server, EXPORTS, [MOUNT])},
            fstab=(*FSTAB, MOUNT.line),
            directories=frozenset(one.directory for one in EXPORTS),
            exported=frozenset({("/volume/a", "10.0.0.0/24"), ("/volume/b", "10.0.0.0/24"), ("/volume/b", "10.1.0.7")}),
        ),
        **changes,
    )


def names(phases: list[plan.Phase]) -> list[str]:
    return [phase.name for phase in phases]


def test_a_new_server_with_an_empty_volume_gets_everything_in_turn() -> None:
    new = Server(disks={ID: disk(EMPTY)}, fstab=FSTAB)
    phases = plan.serve(wanted(), new)
    assert names(phases) == ["NFS server", "file systems", "mounts", "exports"]
    made, mounts, serve = (phase.steps[0] for phase in phases[1:])
    assert made == plan.MakeFileSystem(NODE, VOLUME, DEVICE), "by the id of the volume, never by the name of a device"
    assert isinstance(mounts, plan.MountVolumes) and mounts.folders == ("/volume",)
    assert mounts.fstab is not None
    assert mounts.fstab.content.splitlines() == [*FSTAB, f"UUID={ID} /volume ext4 defaults,nofail,x-k8s-cr 0 2"]
    assert isinstance(serve, plan.Serve) and serve.directories == ("/volume/a", "/volume/b") and serve.start


def test_the_nfs_server_is_installed_once_whatever_the_number_of_volumes() -> None:
    disks = {ID: disk(EMPTY), OTHER: disk(EMPTY)}
    phases = plan.serve(wanted(KERNEL, VOLUME, Volume(OTHER, "more", "/more")), Server(disks=disks))
    assert [len(phase.steps) for phase in phases] == [1, 2, 1, 1]


@pytest.mark.parametrize("nfs_server", [KERNEL, GANESHA])
def test_a_second_run_changes_nothing(nfs_server: str) -> None:
    exported = frozenset[tuple[str, str]]() if nfs_server == GANESHA else settled().exported
    assert plan.serve(wanted(nfs_server), settled(nfs_server, exported=exported)) == []


def test_a_volume_with_data_is_mounted_by_its_own_uuid_and_never_formatted() -> None:
    """Upstream formats it again: without a terminal, mkfs asks nobody."""
    kept = disk(TYPE="xfs", UUID="of-before", USAGE="filesystem")
    phases = plan.serve(wanted(), Server(is_loaded=True, disks={ID: kept}, fstab=FSTAB))
    assert names(phases) == ["mounts", "exports"]
    [step] = phases[0].steps
    assert isinstance(step, plan.MountVolumes) and step.fstab is not None
    assert "UUID=of-before /volume xfs " in step.fstab.content


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        ({"disks": {ID: disk()}}, ["mounts", "exports"]),
        ({"fstab": FSTAB}, ["mounts"]),
        ({"fstab": (*FSTAB, Mount("old", "ext4", "/volume").line)}, ["mounts"]),
        ({"digests": {}}, ["exports"]),
        ({"directories": frozenset({"/volume/a"})}, ["exports"]),
        ({"is_active": False}, ["exports"]),
        ({"exported": frozenset()}, ["exports"]),
    ],
    ids=["not mounted", "no fstab", "fstab of before", "no files", "no directory", "stopped", "not exported"],
)
def test_after_a_crash_only_what_is_left_is_done(changes: dict[str, Any], left: list[str]) -> None:
    assert names(plan.serve(wanted(), settled(**changes))) == left


def test_a_server_that_runs_reads_its_exports_again_and_is_not_restarted() -> None:
    [phase] = plan.serve(wanted(), settled(digests={}))
    [step] = phase.steps
    assert isinstance(step, plan.Serve) and not step.start and step.files[0].path == exports.PATHS[KERNEL]


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (disk(TYPE="crypto_LUKS", UUID="u", USAGE="crypto"), f"data: the volume {ID} has crypto_LUKS, and no file system"),
        (disk(PTTYPE="gpt"), "has gpt, and no file system with a UUID. It is neither mounted nor formatted"),
        (disk(TYPE="iso9660", USAGE="filesystem"), "has iso9660, and no file system with a UUID"),
        (disk(status=8), r"has something that blkid cannot tell \(status 8\)"),
        (disk(mounted="8:1"), "/volume of the storage server: something else than data is mounted there"),
        (disk(EMPTY, mounted="8:1"), "/volume of the storage server: something else than data is mounted there"),
    ],
)
def test_what_is_not_one_file_system_is_neither_mounted_nor_formatted(found: Disk, problem: str) -> None:
    with pytest.raises(InvalidRequest, match=problem):
        plan.serve(wanted(), settled(disks={ID: found}))


def test_file_systems_of_one_uuid_cannot_be_mounted_by_it() -> None:
    disks = {ID: disk(), OTHER: disk()}
    with pytest.raises(InvalidRequest, match="data, more: file systems of these volumes have the same UUID"):
        plan.serve(wanted(KERNEL, VOLUME, Volume(OTHER, "more", "/more")), settled(disks=disks))


def test_a_folder_that_another_line_of_fstab_has_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="mounts LABEL=x to /volume: choose another mount_to"):
        plan.serve(wanted(), settled(fstab=("LABEL=x /volume ext4 defaults 0 2",)))


def test_nodes_without_a_client_get_one() -> None:
    """Also one that a scale out or a heal has added: it is known by what it lacks."""
    found = {MASTER.name: Client(has_client=True), WORKER.name: Client()}
    assert plan.clients([MASTER, WORKER], found) == [plan.Phase("NFS clients", (plan.Install(WORKER, "nfs_client"),))]
    assert plan.clients([MASTER], found) == []


def volume(name: str = "pv", server: str = "10.0.0.9", path: str = "/volume/a", digest: str = "d") -> PersistentVolume:
    return PersistentVolume(name, server, path, digest, "{}")


def live(name: str = "pv", **changes: Any) -> Live:
    return dataclasses.replace(Live(name, server="10.0.0.9", path="/volume/a", digest="d"), **changes)


@pytest.mark.parametrize(
    ("source", "is_refused"), [("10.0.0.2", False), ("10.2.0.2", True), ("", False)], ids=["inside", "outside", "no route"]
)
def test_a_worker_that_may_not_mount_is_refused_before_anything_is_done(source: str, is_refused: bool) -> None:
    found = {WORKER.name: Client(sources={"10.0.0.9": source} if source else {})}
    given = wanted().given
    if is_refused:
        with pytest.raises(InvalidRequest, match=f"worker-w0: has {source}, and /volume/a is exported to 10.0.0.0/24: change"):
            plan.check_exports(given, [volume()], [WORKER], found)
    else:
        plan.check_exports(given, [volume()], [WORKER], found)


@pytest.mark.parametrize(
    ("there", "force", "steps"),
    [
        ([], False, [plan.Apply(volume())]),
        ([live()], False, []),
        ([live(claim="ns/data", phase="Bound")], False, []),
        ([live(digest="old")], False, [plan.Apply(volume())]),
        ([live(digest="old", claim="ns/data")], False, [plan.Apply(volume())]),
        ([live(server="10.0.0.8")], False, [plan.Delete("pv"), plan.Apply(volume())]),
        ([live(path="/volume/b")], False, [plan.Delete("pv"), plan.Apply(volume())]),
        ([live(is_deleted=True)], False, [plan.Delete("pv"), plan.Apply(volume())]),
        ([live(server="10.0.0.8", claim="ns/data")], True, [plan.Delete("pv", forced=True), plan.Apply(volume())]),
    ],
    ids=["none", "right", "in use", "changed", "changed in use", "moved", "other path", "going", "moved in use, forced"],
)
def test_a_volume_is_applied_or_replaced_where_its_server_is_immutable(
    there: list[Live], force: bool, steps: list[plan.Step]
) -> None:
    phases = plan.register([volume()], {one.name: one for one in there}, force=force)
    assert [step for phase in phases for step in phase.steps] == steps


@pytest.mark.parametrize(
    ("there", "problem"),
    [
        (live(digest=""), "PersistentVolume pv: is there already, and not of the package; rename one of them"),
        (
            live(server="10.0.0.8", claim="ns/data"),
            "pv: leads to 10.0.0.8:/volume/a in place of 10.0.0.9:/volume/a, and the claim ns/data has it. Delete",
        ),
        (live(is_deleted=True, claim="ns/data"), "the claim ns/data has it"),
    ],
)
def test_a_volume_of_others_and_one_in_use_are_not_replaced(there: Live, problem: str) -> None:
    with pytest.raises(InvalidRequest, match=problem):
        plan.register([volume()], {"pv": there}, force=False)


def leave(*there: Live, pods: tuple[Pod, ...] = (), replaced: bool = False, force: bool = False) -> plan.Leave:
    return plan.leave(there, pods, {"10.0.0.9"}, {VOLUME: replaced}, force=force)


KEPT = f"data: the Cinder volume {ID} is kept with its data"
LOST = f"data: the Cinder volume {ID} is replaced by a new one, and its data are lost"


def test_before_the_server_is_replaced_its_unused_volumes_are_deleted_and_those_of_others_stay() -> None:
    """Upstream deletes none without a key that its own specification has not."""
    found = leave(live("a"), live("b"), live("of-user", digest=""), live("elsewhere", server="10.9.9.9", digest=""))
    assert found == plan.Leave((plan.Phase("volumes that nobody uses", (plan.Delete("a"), plan.Delete("b"))),), (KEPT,))


@pytest.mark.parametrize(
    ("there", "pods", "reason"),
    [
        ((live(phase="Bound", claim="ns/data"),), (), "PersistentVolume pv is Bound and has the claim ns/data"),
        ((live(claim="ns/data"),), (), "PersistentVolume pv is Available and has the claim ns/data"),
        ((live(phase="Released", claim="ns/data"),), (), "PersistentVolume pv is Released and has the claim ns/data"),
        ((live(phase="Bound", claim="ns/data", digest=""),), (), "PersistentVolume pv is Bound and has the claim ns/data"),
        ((), (Pod("ns/web", frozenset({"10.0.0.9"}), frozenset()),), "Pod ns/web mounts it"),
        (
            (live(phase="Bound", claim="ns/data"),),
            (Pod("ns/web", frozenset(), frozenset({"ns/data"})),),
            "Pod ns/web mounts it",
        ),
    ],
    ids=["bound", "claimed", "released", "bound, of the user", "mounted without a claim", "mounted by its claim"],
)
def test_a_server_whose_volumes_are_in_use_is_not_replaced(
    there: tuple[Live, ...], pods: tuple[Pod, ...], reason: str
) -> None:
    with pytest.raises(InvalidRequest) as failure:
        leave(*there, pods=pods)
    found = str(failure.value).splitlines()
    assert found[0] == "the storage server cannot be replaced while its volumes are in use"
    assert reason in found and KEPT in found and "storage_server.force: true" in found[-1]
    forced = leave(*there, pods=pods, force=True)
    assert forced.phases == () and f"{reason}: it is forced, and waits for the new server" in forced.report


def test_it_is_said_before_that_a_volume_is_replaced_with_its_data() -> None:
    with pytest.raises(InvalidRequest, match=LOST):
        leave(live(claim="ns/data"), replaced=True)
    assert leave(live(), replaced=True).report == (LOST,)


def test_of_many_who_use_volumes_some_are_named() -> None:
    with pytest.raises(InvalidRequest) as failure:
        leave(*(live(f"pv{number}", claim="ns/data") for number in range(500)))
    found = str(failure.value).splitlines()
    assert len(found) < 30 and "480 more" in found and found[-1].startswith("Delete the Pods and claims")


def test_pods_that_have_nothing_to_do_with_it_do_not_count() -> None:
    others = Pod("ns/web", frozenset({"10.9.9.9"}), frozenset({"ns/other"}))
    assert leave(live(), pods=(others,)).report == (KEPT,)
