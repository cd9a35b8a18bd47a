# SPDX-License-Identifier: Apache-2.0
"""The manifests of a package: PersistentVolumes with the address of the storage server, and nothing else."""

from __future__ import annotations

import json

import pytest

from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.node_clusters import parameters
from k8s_cr_driver.node_clusters.storage import persistent_volumes
from k8s_cr_driver.node_clusters.storage.persistent_volumes import ANNOTATION, PersistentVolume

from . import specification

PV = """\
apiVersion: v1
kind: PersistentVolume
metadata:
  name: NAME
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteMany]
  nfs: {server: 0.0.0.0, path: PATH}
"""


def pv(name: str = "one", path: str = "/volume/nfs/pv1") -> str:
    return PV.replace("NAME", name).replace("PATH", path)


def read(*texts: str, address: str = "10.0.2.9", has_server: bool = True) -> list[PersistentVolume]:
    rows = [{"pv_manifest_file_path": f"f{number}.yaml", "nfs_server_cp": "cp"} for number in range(len(texts))]
    server = specification.storage_server() if has_server else None
    given = specification.parameter(storage_server=server, pv_registration_params=rows)
    files = {f"f{number}.yaml": text for number, text in enumerate(texts)}
    return persistent_volumes.read(parameters.read(given, {}, "i").storage, files, {"cp": address})


def test_the_server_in_the_file_becomes_the_storage_servers_address() -> None:
    [one, two] = read(f"{pv()}---\n{pv('two', '/volume/nfs/pv2/below')}")
    manifest = json.loads(one.manifest)
    assert manifest["spec"] == {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteMany"],
        "nfs": {"server": "10.0.2.9", "path": "/volume/nfs/pv1"},
    }
    assert manifest["metadata"] == {"name": "one", "annotations": {ANNOTATION: one.digest}}
    assert (two.name, two.server, two.path) == ("two", "10.0.2.9", "/volume/nfs/pv2/below")


def test_another_address_is_another_volume() -> None:
    assert read(pv())[0].digest == read(pv())[0].digest != read(pv(), address="10.0.2.8")[0].digest


def test_without_a_storage_server_any_directory_is_taken() -> None:
    assert read(pv(path="/elsewhere"), has_server=False)[0].path == "/elsewhere"


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        ([""], "f0.yaml: is empty, and has to have a PersistentVolume"),
        (["- 1"], "f0.yaml, document 1: must be an object, not a list"),
        (["a: [1"], "f0.yaml, document 1"),
        ([f"{pv()}---\nkind: Pod\napiVersion: v1\n"], "f0.yaml, document 2: must be a PersistentVolume of v1; other objects"),
        ([pv().replace("nfs:", "local:")], "f0.yaml, document 1: needs metadata.name, and spec.nfs.path with a directory"),
        ([pv(path="/volume/other")], "spec.nfs.path /volume/other is not exported by the storage server, but /volume/nfs/pv1"),
        ([pv(path="/volume/nfs/pv10")], "spec.nfs.path /volume/nfs/pv10 is not exported"),
        ([pv(), pv()], "f1.yaml, document 1: metadata.name one is that of another PersistentVolume; names are unique"),
    ],
)
def test_a_mistake_of_a_package_is_named_with_its_file(texts: list[str], problem: str) -> None:
    with pytest.raises(InvalidPackage) as failure:
        read(*texts)
    assert problem in str(failure.value)
