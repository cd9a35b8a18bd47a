# SPDX-License-Identifier: Apache-2.0
"""The Heat templates of a package for servers: BaseHOT/FLAVOUR/NAME.yaml, and those in its folder `nested` (Tacker's Vnfd)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.objects.fields import entries, mapping, sequence, text
from k8s_cr_driver.package import vnfd

FOLDER = "BaseHOT"
GROUPS = ("OS::Heat::AutoScalingGroup", "OS::Heat::ResourceGroup")
PORT = "OS::Neutron::Port"


@dataclass(frozen=True)
class Hot:
    """The templates of one flavour; empty without any."""

    top: Mapping[str, Any] = field(default_factory=dict)
    nested: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By the names of their files."""

    @property
    def resources(self) -> Mapping[str, Mapping[str, Any]]:
        """Those of the top template."""
        return {name: mapping(one) for name, one in mapping(self.top, "resources").items()}

    def template_of(self, vdu: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """The template of a server of that VDU, and the properties that the top one gives it; both empty if there is none."""
        for name, resource in self.resources.items():
            is_group = resource.get("type") in GROUPS
            inner = mapping(resource, "properties", "resource") if is_group else resource
            template = mapping(self.nested, text(inner, "type"))
            if template and (vdu == name or vdu in mapping(template, "resources")):
                return template, mapping(inner, "properties")
        return {}, {}

    def pairs(self, vdu: str) -> list[Any]:
        """What stands in allowed_address_pairs of the ports of a server of that VDU, as the top template gives it."""
        template, given = self.template_of(vdu)
        found: list[Any] = []
        for port in mapping(template, "resources").values():
            if mapping(port).get("type") == PORT:
                for pair in entries(port, "properties", "allowed_address_pairs"):
                    value = pair.get("ip_address")
                    name = text(value, "get_param")
                    found.append(given.get(name) if name else value)
        return found

    def of_a_port(self, value: Any) -> str:
        """The port of the top template whose attribute a value is; "" for another value."""
        name = next(iter(sequence(value, "get_attr")), "")
        return str(name) if mapping(self.resources.get(str(name))).get("type") == PORT else ""


def read(folder: Path, flavour: str) -> Hot:
    """The templates of a flavour. Raises InvalidPackage."""
    place = f"{FOLDER}/{flavour}"
    tops = _files(folder, place)
    if len(tops) > 1:
        raise InvalidPackage(f"{place}: has several templates, of which Tacker takes any: {', '.join(sorted(tops))}; keep one")
    return Hot(next(iter(tops.values()), {}), _files(folder, f"{place}/nested"))


def servers(folder: Path, flavour: str) -> set[str]:
    """The VDUs that are servers of the flavour's templates."""
    template = vnfd.flavours(folder).get(flavour, {})
    found = read(folder, flavour)
    return {vdu for vdu in vnfd.vdu_nodes(template) if vdu in found.resources or found.template_of(vdu)[0]}


def _files(folder: Path, place: str) -> dict[str, Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    for path in sorted((folder / place).glob("*.y*ml")):
        documents = vnfd._documents(path, f"{place}/{path.name}")
        if len(documents) != 1 or not isinstance(documents[0], dict):
            raise InvalidPackage(f"{place}/{path.name} must be one template of Heat")
        found[path.name] = documents[0]
    return found
