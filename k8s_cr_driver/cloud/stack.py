# SPDX-License-Identifier: Apache-2.0
"""What a stack has created: the resources of its template and of the nested ones, with their ids.

One request lists them all. Where they are is in three more lists: the ports, the floating IPs and the volumes of the project.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from k8s_cr_driver.cloud.access import Cloud
from k8s_cr_driver.cloud.session import CloudError
from k8s_cr_driver.objects.fields import entries, text

DEPTH = 3
"""Nested stacks below the top: a group, a VDU in it, and what the VDU may nest."""
PORT, FLOATING_IP = "OS::Neutron::Port", "OS::Neutron::FloatingIP"


@dataclass(frozen=True)
class Resource:
    """One resource of a template."""

    stack: str
    """Id of the stack whose template has it."""
    name: str
    kind: str
    id: str
    """Of what it has created in another service."""


@dataclass(frozen=True)
class Port:
    """A port of Neutron and what leads to it."""

    id: str
    address: str
    floating: str
    """The floating IP that leads to it, "" without one."""
    pairs: tuple[str, ...]
    """Addresses beside its own that it may send from."""
    device: str = ""
    """The server that has it, "" without one."""

    def allows(self, address: str) -> bool:
        """Whether it may have `address`, as a virtual IP."""
        return address in self.pairs


@dataclass(frozen=True)
class Stack:
    """The resources of a stack, and the ports of its project."""

    id: str
    resources: Mapping[tuple[str, str], Resource]
    ports: Mapping[str, Port]
    floating: Mapping[str, str]
    """Id of a floating IP -> id of its port."""
    volumes: Mapping[str, tuple[str, ...]]
    """Id of a volume -> the servers that it is attached to."""

    def find(self, stack: str, name: str) -> Resource:
        """The resource `name` in the template of that stack. Raises CloudError, which lists those that there are."""
        found = self.resources.get((stack, name))
        if found is None:
            known = sorted({known for of, known in self.resources if of == stack})
            raise CloudError(f"Heat: the stack {stack} has no resource {name!r}; it has {', '.join(known) or 'none'}")
        return found

    def only(self, name: str) -> Resource:
        """The one resource `name`, in whichever template it is. Raises CloudError if there is none, or if there are several."""
        found = [one for one in self.resources.values() if one.name == name]
        if len(found) != 1:
            count = f"{len(found)} resources" if found else "no resource"
            raise CloudError(f"Heat: the stack {self.id} and those in it have {count} {name!r}, and must have one")
        return found[0]

    def port(self, stack: str, name: str) -> Port:
        """The port that a resource is: a port, or a floating IP that leads to one. Raises CloudError."""
        resource = self.find(stack, name)
        identifier = self.floating.get(resource.id, "") if resource.kind == FLOATING_IP else resource.id
        if identifier not in self.ports:
            raise CloudError(f"Heat: the resource {name!r} is a {resource.kind}, which has no port")
        return self.ports[identifier]

    def is_of(self, stack: str, name: str, server: str) -> bool:
        """Whether a server has the port that a resource is."""
        try:
            return self.port(stack, name).device == server
        except CloudError:
            return False

    def address(self, stack: str, name: str) -> str:
        """Where a resource is reached: the address of a port, or the floating IP itself. Raises CloudError."""
        port = self.port(stack, name)
        return port.floating if self.find(stack, name).kind == FLOATING_IP else port.address


def read(cloud: Cloud, name: str, identifier: str, *, volumes: bool = False) -> Stack:
    """The stack of that name and id. Four requests, three without `volumes`. Raises CloudError."""
    listed = cloud.get("orchestration", f"/stacks/{name}/{identifier}/resources", nested_depth=str(DEPTH))
    resources = [_resource(one) for one in entries(listed, "resources")]
    floating = entries(cloud.get("network", "/v2.0/floatingips"), "floatingips")
    ports = entries(cloud.get("network", "/v2.0/ports"), "ports")
    attached = entries(cloud.get("block-storage", "/volumes/detail"), "volumes") if volumes else []
    return Stack(
        identifier,
        {(one.stack, one.name): one for one in resources},
        {text(one, "id"): _port(one, floating) for one in ports},
        {text(one, "id"): text(one, "port_id") for one in floating},
        {text(one, "id"): tuple(text(at, "server_id") for at in entries(one, "attachments")) for one in attached},
    )


def console(cloud: Cloud, server: str) -> str:
    """What a server has printed on its console (Compute API, "Show Console Output"). Raises CloudError."""
    return text(cloud.post("compute", f"/servers/{server}/action", {"os-getConsoleOutput": {}}), "output")


def _resource(listed: Mapping[str, Any]) -> Resource:
    """Its stack is in its links only."""
    href = next((text(link, "href") for link in entries(listed, "links") if link.get("rel") == "stack"), "")
    return Resource(
        href.rpartition("/")[2],
        text(listed, "resource_name"),
        text(listed, "resource_type"),
        text(listed, "physical_resource_id"),
    )


def _port(listed: Mapping[str, Any], floating: Iterable[Mapping[str, Any]]) -> Port:
    identifier = text(listed, "id")
    return Port(
        identifier,
        next((text(one, "ip_address") for one in entries(listed, "fixed_ips")), ""),
        next((text(one, "floating_ip_address") for one in floating if one.get("port_id") == identifier), ""),
        tuple(text(one, "ip_address") for one in entries(listed, "allowed_address_pairs")),
        text(listed, "device_id"),
    )
