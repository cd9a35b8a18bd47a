# SPDX-License-Identifier: Apache-2.0
"""A cluster with a volume of Cinder over NFS, made by Tacker and Heat; the tests share it, in this order."""

from __future__ import annotations

from pathlib import Path

import openstack
import pytest
import yaml

from ..client import Body, Client
from ..conftest import Summary
from ..heat_servers import USER
from ..node_clusters import leaks
from ..objects import claim_of, pod_with_claim
from ..openstack.clusters import belongings
from ..openstack.servers import machine
from ..testbed.ledger import Ledger
from ..testbed.tacker import Conductor
from ..vnf import Vnf
from . import clusters
from .clusters import CANARY, MASTERS, WORKERS, Place
from .conftest import CIDR

pytestmark = pytest.mark.alone("tacker")
SAMPLE, PROJECT = "persistent_volumes", "volumes"
STORAGE = "storageServer"
VOLUME, MANIFEST = "data", "Files/volumes/data.yaml"
WITHIN = "300s"
_PROGRAM = Path(clusters.config.__file__).parent / "templates" / "mount.nfs"
_CLIENT = """\
cat >/usr/sbin/mount.nfs <<'END-OF-CLIENT'
%s
END-OF-CLIENT
chmod 0755 /usr/sbin/mount.nfs
[ -e /dev/fuse ] || mknod -m 0666 /dev/fuse c 10 229
"""


def adapt(folder: Path) -> None:
    """No kernel of the bed has NFS: what mounts it on nodes is a stand-in, by version 3 of the protocol."""
    (folder / "Scripts" / "install.sh").write_text(clusters.INSTALL + _CLIENT % _PROGRAM.read_text().strip())
    spec = {
        "capacity": {"storage": "32Mi"},
        "accessModes": ["ReadWriteMany"],
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "",
        "mountOptions": ["nfsvers=3", "hard"],
        "nfs": {"server": "0.0.0.0", "path": f"/{VOLUME}/pv"},
    }
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": VOLUME}, "spec": spec}
    (folder / MANIFEST).write_text(yaml.safe_dump(volume))


@pytest.fixture(scope="module")
def before(tenant: openstack.connection.Connection, place: Place) -> dict[str, list[str]]:
    """What the project has when there is no instance."""
    return belongings(tenant)


def given(place: Place) -> Body:
    server = {
        "ssh_cp_name": f"{STORAGE}_CP1_floating_ip",
        "username": USER,
        "password": CANARY,
        "nfs_server": "ganesha",
        "cinder_volume_setup_params": [{"volume_resource_id": f"{STORAGE}_volume", "mount_to": f"/{VOLUME}"}],
        "nfs_server_setup_params": [{"export_dir": f"/{VOLUME}/pv", "export_to": CIDR}],
    }
    sections = {
        "script_path": "Scripts/install.sh",
        "master_node": {"cluster_cp_name": f"{MASTERS}_CP1"},
        "storage_server": server,
        "pv_registration_params": [{"pv_manifest_file_path": MANIFEST, "nfs_server_cp": f"{STORAGE}_CP1"}],
    }
    return clusters.request(place, (MASTERS, WORKERS, STORAGE), sections, {"authorized_key": place.authorized})


def test_an_instantiate_outlives_its_conductor_and_makes_one_file_system(
    vnf: Vnf,
    tacker: Client,
    cloud: Body,
    place: Place,
    before: Body,
    tenant: openstack.connection.Connection,
    conductors: dict[str, Conductor],
    summary: Summary,
) -> None:
    """It dies while kubeadm makes the cluster; the volume is there by then."""
    operation = clusters.begin_instantiate(tacker, vnf, cloud, given(place))
    clusters.die(vnf, operation, conductors, lambda: clusters.runs(tenant, "k8s-cr-init"))
    [identifier] = [one.id for one in tenant.block_storage.volumes()]
    tacker.retry(operation)
    seconds = clusters.timed(vnf, operation)
    assert len(clusters.nodes(vnf)) == 2
    assert mounted(vnf, "UUID") == identifier, "mkfs has given it the id of the volume, once"
    assert phase(vnf) == "Available"
    summary(f"retry of the instantiate {seconds:.0f} s")


def test_a_pod_writes_and_another_reads_and_the_storage_server_stays_meanwhile(vnf: Vnf) -> None:
    claim(vnf)
    run(vnf, "echo written >/data/file")
    assert run(vnf, "read -r line </data/file; echo $line") == "written\n"
    [server] = vnf.vnfcs(STORAGE)
    refused = clusters.refusal(vnf, clusters.begin_heal(vnf, server))
    assert "the storage server cannot be replaced while its volumes are in use" in refused
    assert f"PersistentVolume {VOLUME} is Bound and has the claim default/{VOLUME}" in refused
    assert "is kept with its data" in refused
    assert [one["id"] for one in vnf.vnfcs(STORAGE)] == [server["id"]]


def test_another_storage_server_serves_the_same_data(vnf: Vnf, summary: Summary) -> None:
    [old] = clusters.servers(vnf, STORAGE)
    identifier = mounted(vnf, "UUID")
    clusters.kubectl(vnf, "delete", "persistentvolumeclaim", VOLUME, "--timeout=240s")
    clusters.kubectl(vnf, "patch", "persistentvolume", VOLUME, "--type=merge", '--patch={"spec":{"claimRef":null}}')
    [server] = vnf.vnfcs(STORAGE)
    seconds = clusters.timed(vnf, clusters.begin_heal(vnf, server))
    assert clusters.servers(vnf, STORAGE) != [old]
    assert mounted(vnf, "UUID") == identifier
    claim(vnf)
    assert run(vnf, "read -r line </data/file; echo $line") == "written\n"
    summary(f"heal of the storage server {seconds:.0f} s")


def test_a_new_worker_has_the_volume(vnf: Vnf, summary: Summary) -> None:
    known = set(clusters.servers(vnf, WORKERS))
    out = clusters.timed(vnf, clusters.begin_scale(vnf, "SCALE_OUT"))
    [added] = set(clusters.servers(vnf, WORKERS)) - known
    [node] = [name for name in clusters.nodes(vnf) if name.endswith(added[:8])]
    assert run(vnf, "read -r line </data/file; echo $line", node=node) == "written\n"
    back = clusters.timed(vnf, clusters.begin_scale(vnf, "SCALE_IN"))
    assert len(clusters.nodes(vnf)) == 2
    summary(f"scale out {out:.0f} s, in {back:.0f} s")


def test_no_secret_is_shown(
    vnf: Vnf, tacker: Client, cloud: Body, place: Place, ledger: Ledger, arguments: leaks.Arguments
) -> None:
    clusters.discloses_nothing(vnf, tacker, cloud, place, ledger, arguments, MASTERS, WORKERS, STORAGE)


def test_a_terminate_leaves_nothing(
    vnf: Vnf, tacker: Client, place: Place, tenant: openstack.connection.Connection, before: dict[str, list[str]]
) -> None:
    vnf.terminate()
    clusters.leaves_nothing(vnf, tacker, place, tenant, before)


def mounted(vnf: Vnf, what: str) -> str:
    """Of the file system at the volume's folder."""
    [server] = clusters.servers(vnf, STORAGE)
    device = machine(server).run("findmnt", "--noheadings", "--output=SOURCE", f"/{VOLUME}").strip()
    return machine(server).run("blkid", "--probe", f"--match-tag={what}", "--output=value", device).strip()


def phase(vnf: Vnf) -> str:
    return clusters.kubectl(vnf, "get", "persistentvolume", VOLUME, "--output=jsonpath={.status.phase}")


def claim(vnf: Vnf) -> None:
    """A claim has the volume."""
    clusters.apply(vnf, claim_of(VOLUME))
    bound = "--for=jsonpath={.status.phase}=Bound"
    clusters.kubectl(vnf, "wait", f"persistentvolumeclaim/{VOLUME}", bound, f"--timeout={WITHIN}")


def run(vnf: Vnf, line: str, node: str = "") -> str:
    """What a Pod prints that has the claim at /data, after it has ended well."""
    clusters.apply(vnf, pod_with_claim("one", VOLUME, line, node))
    clusters.kubectl(vnf, "wait", "pod/one", "--for=jsonpath={.status.phase}=Succeeded", f"--timeout={WITHIN}")
    printed = clusters.kubectl(vnf, "logs", "one")
    clusters.kubectl(vnf, "delete", "pod", "one", "--timeout=240s")
    return printed
