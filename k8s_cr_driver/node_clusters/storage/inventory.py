# SPDX-License-Identifier: Apache-2.0
"""The storage server of an instance, its volumes, and the addresses at which it serves.

It is known by the port that SSH uses, whose device in Neutron is the server. So it needs no name of a VDU, its resources may be
in the top template or in that of its VDU, and the server that replaces it is found in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from k8s_cr_driver.cloud.stack import Stack
from k8s_cr_driver.errors import InvalidPackage, InvalidRequest
from k8s_cr_driver.node_clusters import inventory
from k8s_cr_driver.node_clusters.inventory import Node, Role
from k8s_cr_driver.node_clusters.storage import parameters
from k8s_cr_driver.objects.fields import entries, text

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True)
class Volume:
    """A Cinder volume of the storage server."""

    id: str
    resource: str
    """Its name in the template."""
    mount_to: str


@dataclass(frozen=True)
class Inventory:
    """What the cloud has for the persistent volumes of an instance."""

    server: Node | None = None
    vdu: str = ""
    volumes: tuple[Volume, ...] = ()
    addresses: Mapping[str, str] = field(default_factory=dict)
    """Of each port that a registration names."""


def read(instance: Mapping[str, Any], given: parameters.Storage, stack: Stack, known_vdu: str = "") -> Inventory:
    """
    known_vdu: the storage server's, where its port has no server while Tacker replaces it.

    Raises InvalidPackage for a port or a volume of something else, and CloudError for none.
    """
    if given.server is None:
        return Inventory(addresses={one.server_cp: _address(stack, "", one.server_cp) for one in given.registrations})
    resource = stack.only(given.server.ssh_cp_name)
    port = stack.port(resource.stack, resource.name)
    vnfcs = entries(instance, "instantiatedVnfInfo", "vnfcResourceInfo")
    vnfc = next((one for one in vnfcs if port.device and inventory.server_of(one) == port.device), None)
    vnfc = vnfc or next((one for one in vnfcs if known_vdu and one.get("vduId") == known_vdu), None)
    if vnfc is None:
        problem = "is the port of no server of the VNF instance; ssh_cp_name has to name that of the storage server"
        raise InvalidPackage(f"{resource.name}: {problem}")
    vdu, server = text(vnfc, "vduId"), inventory.server_of(vnfc)
    ssh, is_there = stack.address(resource.stack, resource.name), port.device == server
    node = Node(server, Role.STORAGE, inventory.name_of(vdu, server), ssh, port.address, is_there)
    volumes = tuple(_volume(stack, resource.stack, one) for one in given.server.volumes)
    addresses = {one.server_cp: _address(stack, resource.stack, one.server_cp) for one in given.registrations}
    return Inventory(node, vdu, volumes, addresses)


def check_attached(found: Inventory, stack: Stack) -> None:
    """Raises InvalidRequest for a volume that another server has, too, or that none has."""
    for volume in found.volumes:
        servers = stack.volumes[volume.id]
        if found.server is not None and servers != (found.server.server,):
            where = f"attached to {', '.join(servers)}" if servers else "attached to no server"
            raise InvalidRequest(
                f"{volume.resource}: the volume {volume.id} is {where}, and must be attached to the storage server "
                f"{found.server.server} alone: correct this in the template or in OpenStack, then retry"
            )


def is_scaled(grant_request: Mapping[str, Any], vdu: str) -> bool:
    """Whether an operation adds or removes servers of that VDU."""
    changed = (*entries(grant_request, "addResources"), *entries(grant_request, "removeResources"))
    return any(one.get("type") == "COMPUTE" and one.get("resourceTemplateId") == vdu for one in changed)


def replaced(grant_request: Mapping[str, Any], volumes: Iterable[Volume]) -> list[Volume]:
    """Those that the operation removes; others are kept."""
    removed = entries(grant_request, "removeResources")
    gone = {text(one, "resource", "resourceId") for one in removed if one.get("type") == "STORAGE"}
    return [volume for volume in volumes if volume.id in gone]


def _name(stack: Stack, preferred: str, name: str) -> tuple[str, str]:
    """The stack that has the resource: that of the storage server, or the only one."""
    return (preferred, name) if (preferred, name) in stack.resources else (stack.only(name).stack, name)


def _address(stack: Stack, preferred: str, name: str) -> str:
    return stack.address(*_name(stack, preferred, name))


def _volume(stack: Stack, preferred: str, given: parameters.Volume) -> Volume:
    resource = stack.find(*_name(stack, preferred, given.resource))
    if resource.id not in stack.volumes or not _UUID.fullmatch(resource.id):
        raise InvalidPackage(f"{given.resource}: is no volume of Cinder in this project, but a {resource.kind}")
    return Volume(resource.id, given.resource, given.mount_to)
