# SPDX-License-Identifier: Apache-2.0
"""The files of the storage server, as its NFS server reads them."""

from __future__ import annotations

import re

from k8s_cr_driver.node_clusters.storage import exports
from k8s_cr_driver.node_clusters.storage.exports import Mount
from k8s_cr_driver.node_clusters.storage.parameters import GANESHA, KERNEL, Export

EXPORTS = (Export("/volume/a", ("10.0.0.0/24",)), Export("/volume/b", ("10.0.0.0/24", "10.1.0.7/32")))
MOUNTS = (Mount("u1", "ext4", "/volume"), Mount("u2", "ext4", "/more"))


def test_the_kernels_server_has_a_file_of_our_own_with_one_line_a_directory() -> None:
    """Upstream appends to /etc/exports, where a second run has each line twice."""
    found, waits = exports.files(KERNEL, EXPORTS, MOUNTS)
    options = "(rw,sync,no_subtree_check,all_squash,anonuid=65534,anongid=65534)"
    assert found.path == "/etc/exports.d/k8s-cr.exports"
    assert found.content.splitlines()[1:] == [
        f"/volume/a 10.0.0.0/24{options}",
        f"/volume/b 10.0.0.0/24{options} 10.1.0.7/32{options}",
    ]
    assert waits.path == "/etc/systemd/system/nfs-server.service.d/k8s-cr.conf"
    assert waits.content.endswith("[Unit]\nRequiresMountsFor=/volume /more\n"), "no export of the root disk after a reboot"


def test_ganesha_has_one_file_with_an_export_for_each_directory() -> None:
    found, waits = exports.files(GANESHA, EXPORTS, MOUNTS)
    assert (found.path, waits.path) == (
        "/etc/ganesha/ganesha.conf",
        "/etc/systemd/system/nfs-ganesha.service.d/k8s-cr.conf",
    )
    assert found.content.count("EXPORT {") == 2 and "Access_Type = None;" in found.content
    assert "Clients = 10.0.0.0/24, 10.1.0.7/32; Access_Type = RW;" in found.content
    assert found.content.count("{") == found.content.count("}")


def test_an_export_keeps_its_number_when_others_come_and_go() -> None:
    some = exports.export_ids(f"/volume/{number}" for number in range(10))
    more = exports.export_ids(f"/volume/{number}" for number in range(5, 30))
    assert all(some[path] == more[path] for path in some.keys() & more.keys())
    many = exports.export_ids(f"/volume/{number}" for number in range(2000))
    assert len(set(many.values())) == 2000 and all(0 < number <= 60_000 for number in many.values())


def test_lines_of_others_in_fstab_stay_and_our_old_ones_go() -> None:
    present = ("UUID=root / ext4 defaults 0 1", "", Mount("old", "ext4", "/old").line, "#UUID=x /volume ext4 defaults 0 2")
    found = exports.fstab(present, MOUNTS)
    assert found.content.splitlines() == [present[0], "", present[3], MOUNTS[0].line, MOUNTS[1].line]
    assert all(re.fullmatch(r"UUID=\S+ \S+ ext4 defaults,nofail,x-k8s-cr 0 2", one.line) for one in MOUNTS)
