# SPDX-License-Identifier: Apache-2.0
"""The sample `ha_masters` with the storage server of `persistent_volumes`: the package of the demo."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import yaml

import sample_packages
from functional_tests.testbed import nodes
from k8s_cr_driver.package import csar
from sample_packages import vnfd

from . import ha_setting as setting
from .ha_setting import EXPORT, PERSISTENT_VOLUME, STORAGE

FROM = "persistent_volumes"
_SAMPLES = Path(sample_packages.__file__).parent
_TEMPLATES = "BaseHOT/simple"
# The kernel may have no NFS: a stand-in takes the place of mount.nfs, which libnfs serves by version 3 of the protocol.
_NFS = """
cat >/usr/sbin/mount.nfs.new <<'END_OF_PROGRAM'
%s
END_OF_PROGRAM
chmod 0755 /usr/sbin/mount.nfs.new
mv /usr/sbin/mount.nfs.new /usr/sbin/mount.nfs
[ -e /dev/fuse ] || mknod -m 0666 /dev/fuse c 10 229
"""


def make(folder: Path) -> Path:
    """The CSAR, in this folder."""
    package = Path(shutil.copytree(_SAMPLES / setting.SAMPLE, folder / setting.SAMPLE))
    (package / "Scripts" / "install.sh").write_text(setting.script() + _NFS % nodes.CLIENT.read_text())
    nested = f"{_TEMPLATES}/nested/{STORAGE}.yaml"
    shutil.copy(_SAMPLES / FROM / nested, package / nested)
    _add(package / _TEMPLATES / f"{setting.SAMPLE}.yaml", _SAMPLES / FROM / _TEMPLATES / f"{FROM}.yaml", ("resources",))
    _describe(package)
    manifest = package / PERSISTENT_VOLUME
    manifest.parent.mkdir(parents=True)
    manifest.write_text(yaml.safe_dump(_persistent_volume()))
    return csar.write(package, folder / f"{setting.SAMPLE}.csar")


def _describe(package: Path) -> None:
    own, other = (one / "Definitions" / f"{one.name}.yaml" for one in (package, _SAMPLES / FROM))
    _add(own, other, ("topology_template", "node_templates"))
    _add(own, other, ("topology_template", "substitution_mappings", "requirements"), "virtual_link_external_storage")
    content, source = (yaml.safe_load(file.read_text()) for file in (own, other))
    policies, found = (one["topology_template"]["policies"] for one in (content, source))
    policies.extend(policy for policy in found if next(iter(policy)).startswith("storage_"))
    own.write_text(yaml.safe_dump(content, sort_keys=False))
    link = {"virtual_link_external_storage": {"capability": "tosca.capabilities.nfv.VirtualLinkable", "occurrences": [0, 1]}}
    vnfd.change(package, lambda node_type, _: node_type["requirements"].append(link))
    vnfd.rename(package, STORAGE)


def _add(own: Path, other: Path, path: tuple[str, ...], prefix: str = STORAGE) -> None:
    """What the mapping at `path` has in the other file, by names with this prefix, becomes a part of the own one."""
    content, source = (yaml.safe_load(file.read_text()) for file in (own, other))
    into, parts = content, source
    for step in path:
        into, parts = into[step], parts[step]
    into.update({name: value for name, value in parts.items() if name.startswith(prefix)})
    own.write_text(yaml.safe_dump(content, sort_keys=False))


def _persistent_volume() -> dict[str, Any]:
    spec = {
        "capacity": {"storage": "64Mi"},
        "accessModes": ["ReadWriteMany"],
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "",
        "mountOptions": ["nfsvers=3", "hard"],
        "nfs": {"server": "0.0.0.0", "path": EXPORT},
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "one"}, "spec": spec}
