# SPDX-License-Identifier: Apache-2.0
"""
Finds the object of each VDU of a VNFD, or the part of an object.

The annotation `k8s-cr-driver/vdu: <VDU id>` comes first; else it is the one object with VNFCs or a count whose name is the
property `name` of the VDU's node. None or two are an error, because scaling the wrong object, or none, would be noticed
much later. A request may list only some of a package's manifests; a VDU that is in none of them is then not part of the
instance, as with the in-tree driver.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.objects.fields import field
from k8s_cr_driver.objects.keys import Object, ObjectKey
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.registry import resource_for

VDU = "k8s-cr-driver/vdu"
VduObjects = Mapping[str, CustomResource]
"""VDU id -> its object, or the part of it. Those that are parts of one object have one manifest, with the counts of all."""


def assign(
    objects: Iterable[CustomResource], nodes: Mapping[str, Mapping[str, Any]], *, partial: bool = False
) -> dict[str, CustomResource]:
    """
    VDU id -> its object. `nodes` are the VNFD's node templates of type tosca.nodes.nfv.Vdu.Compute.

    With `partial` the objects are not all of the package's, and VDUs that are none of them are left out.
    """
    names = {vdu: str(field(node, "properties", "name")) for vdu, node in nodes.items()}
    found = candidates(objects, nodes)
    assigned = {vdu: _only(vdu, names[vdu], several) for vdu, several in found.items() if several or not partial}
    _check_distinct(assigned)
    return assigned


def candidates(objects: Iterable[CustomResource], nodes: Mapping[str, Mapping[str, Any]]) -> dict[str, list[CustomResource]]:
    """VDU id -> all objects that could be its object; `assign` wants exactly one. Raises InvalidPackage."""
    return _candidates(objects, {vdu: str(field(node, "properties", "name")) for vdu, node in nodes.items()})


def problems(
    objects: Iterable[CustomResource], nodes: Mapping[str, Mapping[str, Any]], *, partial: bool = False
) -> Iterator[tuple[str, str]]:
    """(VDU id, sentence) of each VDU that `assign` would refuse; "" for what is of no single one."""
    try:
        found = candidates(objects, nodes)
    except InvalidPackage as error:
        yield "", str(error)
        return
    assigned = {}
    for vdu, several in found.items():
        try:
            if several or not partial:
                assigned[vdu] = _only(vdu, str(field(nodes[vdu], "properties", "name")), several)
        except InvalidPackage as error:
            yield vdu, str(error)
    try:
        _check_distinct(assigned)
    except InvalidPackage as error:
        yield "", str(error)


def stored(manifest: Object, part: str) -> CustomResource:
    """The object of a VDU, or the part of that name."""
    obj = resource_for(manifest)
    return next((one for one in obj.parts() if one.part == part), obj)


def whole_objects(assigned: VduObjects) -> list[CustomResource]:
    """The objects of the VDUs, each once."""
    return list({obj.key: obj.whole() for obj in assigned.values()}.values())


def _check_distinct(assigned: VduObjects) -> None:
    """InvalidPackage if two VDUs are one object, or the same part of it, which has only one count."""
    seen: dict[tuple[ObjectKey, str], str] = {}
    for vdu, obj in assigned.items():
        if (other := seen.setdefault((obj.key, obj.part), vdu)) != vdu:
            raise InvalidPackage(
                f"VDUs {other} and {vdu} are one object: {obj}. Name another one for each in the property name of its "
                f"node, or annotate one with {VDU}."
            )


def _candidates(objects: Iterable[CustomResource], names: Mapping[str, str]) -> dict[str, list[CustomResource]]:
    """VDU id -> the objects that are annotated with it, else those of its name that have VNFCs or a count."""
    wanted = set(names.values())
    annotated: dict[str, list[CustomResource]] = defaultdict(list)
    named: dict[str, list[CustomResource]] = defaultdict(list)
    for whole in objects:
        for obj in (whole, *whole.parts()):
            vdu = obj.annotations().get(VDU)
            if vdu is not None and vdu not in names:
                raise InvalidPackage(
                    f"{obj}: annotation {VDU} names {vdu!r}, which the VNFD does not have. "
                    f"Its VDUs: {', '.join(sorted(names)) or 'none'}."
                )
            if vdu is not None:
                annotated[vdu].append(obj)
            elif obj.name in wanted and (obj.children() or obj.replicas()):
                named[obj.name].append(obj)
    return {vdu: annotated.get(vdu) or named.get(name, []) for vdu, name in names.items()}


def _only(vdu: str, name: str, found: list[CustomResource]) -> CustomResource:
    if len(found) == 1:
        return found[0]
    remedy = f"Annotate exactly one object with {VDU}: {vdu}."
    if not found:
        raise InvalidPackage(f"VDU {vdu} is no object of the manifests: none that can be scaled is named {name!r}. {remedy}")
    raise InvalidPackage(f"VDU {vdu} is several objects: {', '.join(sorted(map(str, found)))}. {remedy}")
