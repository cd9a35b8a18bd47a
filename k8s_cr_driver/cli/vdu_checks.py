# SPDX-License-Identifier: Apache-2.0
"""Whether the VDUs of a VNFD are objects of the manifests, and have counts."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from k8s_cr_driver.cli import scaling_policies
from k8s_cr_driver.errors import InvalidPackage, InvalidRequest
from k8s_cr_driver.objects.api_groups import is_builtin
from k8s_cr_driver.objects.crds import crds_of
from k8s_cr_driver.objects.fields import field
from k8s_cr_driver.objects.keys import GroupKind, Object, annotations_of, kind_of
from k8s_cr_driver.package import hot, vnfd
from k8s_cr_driver.package.samples import Sampled
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.registry import resource_for
from k8s_cr_driver.vnf import counts, vdus
from k8s_cr_driver.vnf.vdus import VduObjects


def resources(objects: Sequence[Object]) -> list[CustomResource]:
    crds = crds_of(objects)
    return [resource_for(obj, crds.get(kind_of(obj))) for obj in objects]


def of_manifests(folder: Path, flavour: str, template: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The VDUs that are objects, and not servers of Heat."""
    servers = hot.servers(folder, flavour)
    return {name: node for name, node in vnfd.vdu_nodes(template).items() if name not in servers}


def _name(vdu: Mapping[str, Any] | None) -> str:
    """The name that a VDU has by its VNFD; empty where that is no text."""
    name = field(vdu, "properties", "name")
    return name if isinstance(name, str) else ""


class Checks:
    """Of the objects that one operation is given, by the topology template of each flavour."""

    def __init__(
        self, folder: Path, flavours: Mapping[str, Mapping[str, Any]], objects: Sequence[Object], sampled: Sampled
    ) -> None:
        self._folder, self._flavours, self._sampled = folder, flavours, sampled
        self._objects, self._resources = objects, resources(objects)

    def problems(self, unknown: Collection[GroupKind], *, partial: bool) -> Iterator[tuple[bool, str]]:
        """(whether it is sure, sentence): of an object of an unknown kind a CRD of the cluster may say that it has a count.

        `partial`: the objects are not all of the package's.
        """
        foreign = {obj["metadata"]["name"] for obj in self._objects if kind_of(obj) in unknown}
        for flavour, template in self._flavours.items():
            nodes = of_manifests(self._folder, flavour, template)
            for vdu, problem in vdus.problems(self._resources, nodes, partial=partial):
                yield _name(nodes.get(vdu)) not in foreign, f"Flavour {flavour}: {problem}"

    def without_object(self) -> Iterator[str]:
        """A sentence for each VDU of whose name there is no object at all."""
        names = {obj["metadata"]["name"] for obj in self._objects}
        annotated = [annotations_of(obj).get(vdus.VDU) for obj in self._objects]
        for flavour, template in self._flavours.items():
            nodes = of_manifests(self._folder, flavour, template)
            for vdu, problem in vdus.problems([], nodes):
                if _name(nodes.get(vdu)) not in names and vdu not in annotated:
                    yield f"Flavour {flavour}: {problem}"

    def wrong_counts(self) -> Iterator[str]:
        """A sentence for each flavour of which an instantiate with the counts of the manifests is refused."""
        for flavour, template, assigned in self._assigned():
            at_level = scaling_policies.counted(template)
            of_manifest = {vdu: obj for vdu, obj in assigned.items() if vdu not in at_level and not self._is_sampled(obj)}
            try:
                counts.check(of_manifest, {}, most=sys.maxsize)
            except InvalidRequest as error:
                yield f"Flavour {flavour}: {error}"

    def useless_counts(self) -> Iterator[str]:
        """A sentence for each VDU that cannot be scaled, or whose manifest gives a count in vain."""
        for flavour, template, assigned in self._assigned():
            scaled, at_level = scaling_policies.scaled(template), scaling_policies.counted(template)
            for vdu, obj in assigned.items():
                path = obj.replicas()
                if vdu in scaled and not path and (obj.crd is not None or is_builtin(obj.key.group_kind)):
                    yield (
                        f"Flavour {flavour}: VDU {vdu} is {obj}, whose kind has no count (no subresource scale), so it cannot "
                        "be scaled: take it out of the scaling aspects"
                    )
                if vdu in at_level and path and self._sampled.is_reference(obj.manifest, path):
                    yield (
                        f"Flavour {flavour}: VDU {vdu}: {'.'.join(path)} of {obj} is a parameter, and an instantiation level "
                        "gives the count in its place; write a number, or take the VDU out of VduInstantiationLevels"
                    )

    def _is_sampled(self, obj: CustomResource) -> bool:
        return self._sampled.is_at(obj.manifest, obj.replicas() or (), around=True)

    def _assigned(self) -> Iterator[tuple[str, Mapping[str, Any], VduObjects]]:
        """Each flavour with its topology template and the objects of its VDUs; not those whose VDUs do not fit the objects."""
        for flavour, template in self._flavours.items():
            with contextlib.suppress(InvalidPackage):
                nodes = of_manifests(self._folder, flavour, template)
                yield flavour, template, vdus.assign(self._resources, nodes, partial=True)
