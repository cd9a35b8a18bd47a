# SPDX-License-Identifier: Apache-2.0
"""The images of the cloud: what servers boot, as root folders on this host that Glance has entries for.

What is uploaded is a block of zeros, whose property `os_distro` names the root folder.
"""

import openstack

from .. import rootfs
from . import kubernetes_node
from .server import Image
from .site import Site

DEBIAN = "debian"
EMPTY = "empty"
"""An image that Nova starts and that boots nothing."""
PACKAGES = (
    "cloud-init", "keepalived", "haproxy", "nfs-ganesha", "nfs-ganesha-vfs", "nfs-common", "python3-fusepy", "libnfs13",
)  # fmt: skip
"""Beside those of every machine: what the management drivers configure, which pull no packages here."""


def prepare() -> None:
    """Make the root folders and archives, which takes minutes at the first time."""
    for release in kubernetes_node.RELEASES:
        kubernetes_node.image(release, PACKAGES, kubernetes_node.of_a_cloud())


def publish(site: Site, connection: openstack.connection.Connection) -> None:
    """Enter the images into Glance, for every project."""
    folder = site.home("nova") / "machines"
    folder.mkdir()
    Image(str(rootfs.root_folder(PACKAGES))).save(folder / f"{DEBIAN}.json")
    for release in kubernetes_node.RELEASES:
        image = kubernetes_node.image(release, PACKAGES, kubernetes_node.of_a_cloud())
        image.save(folder / f"{kubernetes_node.name(release)}.json")
    for name in (DEBIAN, EMPTY, *map(kubernetes_node.name, kubernetes_node.RELEASES)):
        _upload(connection, name)


def _upload(connection: openstack.connection.Connection, name: str) -> None:
    connection.image.create_image(
        name=name, container_format="bare", disk_format="raw", visibility="public", data=bytes(1 << 16), os_distro=name
    )
