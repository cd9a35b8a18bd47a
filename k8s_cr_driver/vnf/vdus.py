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
from collections.abc import Iterable, Mapping
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
    assigned, problems = _judged(objects, nodes, partial=partial)
    if problems:
        raise InvalidPackage(problems[0][1])
    return assigned


def problems(
    objects: Iterable[CustomResource], nodes: Mapping[str, Mapping[str, Any]], *, partial: bool = False
) -> list[tuple[str, str]]:
    """(VDU id, sentence) of all that `assign` would refuse; "" for what is of no single one."""
    return _judged(objects, nodes, partial=partial)[1]


def candidates(objects: Iterable[CustomResource], nodes: Mapping[str, Mapping[str, Any]]) -> dict[str, list[CustomResource]]:
    """
    VDU id -> the objects that are annotated with it, else those of its name that have VNFCs or a count.

    `assign` wants exactly one. Raises InvalidPackage.
    """
    names = {vdu: _name(node) for vdu, node in nodes.items()}
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


def stored(manifest: Object, part: str) -> CustomResource:
    """The object of a VDU, or the part of that name."""
    obj = resource_for(manifest)
    return next((one for one in obj.parts() if one.part == part), obj)


def whole_objects(assigned: VduObjects) -> list[CustomResource]:
    """The objects of the VDUs, each once."""
    return list({obj.key: obj.whole() for obj in assigned.values()}.values())


def _judged(
    objects: Iterable[CustomResource], nodes: Mapping[str, Mapping[str, Any]], *, partial: bool
) -> tuple[dict[str, CustomResource], list[tuple[str, str]]]:
    """What `assign` and `problems` return."""
    try:
        found = candidates(objects, nodes)
    except InvalidPackage as error:
        return {}, [("", str(error))]
    assigned = {vdu: several[0] for vdu, several in found.items() if len(several) == 1}
    wrong = [(vdu, _unclear(vdu, nodes, found[vdu])) for vdu in found if vdu not in assigned and (found[vdu] or not partial)]
    seen: dict[tuple[ObjectKey, str], str] = {}
    for vdu, obj in assigned.items():
        if (other := seen.setdefault((obj.key, obj.part), vdu)) != vdu:  # it has only one count
            remedy = f"Name another one for each in the property name of its node, or annotate one with {VDU}."
            wrong.append(("", f"VDUs {other} and {vdu} are one object: {obj}. {remedy}"))
    return assigned, wrong


def _name(node: Mapping[str, Any]) -> str:
    return str(field(node, "properties", "name"))


def _unclear(vdu: str, nodes: Mapping[str, Mapping[str, Any]], found: list[CustomResource]) -> str:
    remedy = f"Annotate exactly one object with {VDU}: {vdu}."
    if found:
        return f"VDU {vdu} is several objects: {', '.join(sorted(map(str, found)))}. {remedy}"
    return f"VDU {vdu} is no object of the manifests: none that can be scaled is named {_name(nodes[vdu])!r}. {remedy}"
