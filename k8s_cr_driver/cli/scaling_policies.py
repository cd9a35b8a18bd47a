# SPDX-License-Identifier: Apache-2.0
"""Whether the scaling policies of a VNFD fit together (SOL001, "Policy types").

Tacker reads them when an instance is scaled, and not before: a slip in a name ends a SCALE of a running instance with "invalid
aspect" or "delta not defined", although the package was onboarded and instantiated without an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from k8s_cr_driver.cli.instance_counts import Counts
from k8s_cr_driver.objects.fields import entries, field, mapping, similar, text, texts, type_name
from k8s_cr_driver.package import vnfd

_Named = Mapping[str, Mapping[str, Any]]


def problems(folder: Path) -> list[str]:
    """A sentence for each mistake."""
    flavours = vnfd.flavours(folder).items()
    return [f"Flavour {name}: {problem}" for name, template in flavours for problem in _problems(template)]


def warnings(folder: Path) -> list[str]:
    """A sentence for each number of instances that another one of the VNFD contradicts."""
    kinds = ("InstantiationLevels", "VduInstantiationLevels", "VduInitialDelta", "VduScalingAspectDeltas")
    return [
        f"Flavour {name}: {problem}"
        for name, template in vnfd.flavours(folder).items()
        for problem in Counts(
            mapping(template, "node_templates"), {kind: _policies(template, kind) for kind in kinds}, aspects(template)
        ).warnings()
    ]


def aspects(template: Mapping[str, Any]) -> _Named:
    """The scaling aspects of a topology template, by their ids."""
    found = (mapping(policy, "properties", "aspects") for policy in _policies(template, "ScalingAspects").values())
    return {str(name): mapping(aspect) for one in found for name, aspect in one.items()}


def scaled(template: Mapping[str, Any]) -> set[str]:
    """The VDUs that a scaling aspect scales."""
    return _targets(template, "VduScalingAspectDeltas")


def counted(template: Mapping[str, Any]) -> set[str]:
    """The VDUs whose counts an instantiation level gives, so that those of the manifests are not used."""
    return _targets(template, "VduInstantiationLevels")


def _targets(template: Mapping[str, Any], kind: str) -> set[str]:
    return {vdu for policy in _policies(template, kind).values() for vdu in texts(policy, "targets")}


def _policies(template: Mapping[str, Any], kind: str) -> _Named:
    policies = (policy for entry in entries(template, "policies") for policy in entry.items())
    return {str(name): mapping(policy) for name, policy in policies if field(policy, "type") == f"tosca.policies.nfv.{kind}"}


def _problems(template: Mapping[str, Any]) -> Iterator[str]:
    known, deltas = aspects(template), _policies(template, "VduScalingAspectDeltas")
    of_vdus = _policies(template, "VduInstantiationLevels")
    nodes = {str(node) for part in ("node_templates", "groups") for node in mapping(template, part)}
    for name, policy in {**_policies(template, "VduInitialDelta"), **of_vdus, **deltas}.items():
        for target in sorted(set(texts(policy, "targets")) - nodes):
            yield f"policy {name}: the target {target} is no node of the VNFD{_hint(target, nodes)}"
    for name, policy in deltas.items():
        yield from _deltas(name, policy, known)
    levels = _policies(template, "InstantiationLevels")
    for name, policy in levels.items():
        yield from _levels(name, policy, known)
    yield from _malformed(levels, of_vdus, known)
    defined = {str(level) for policy in levels.values() for level in mapping(policy, "properties", "levels")}
    for name, policy in of_vdus.items() if levels else ():
        given = set(map(str, mapping(policy, "properties", "levels")))
        for level in sorted(given - defined) if defined - given else ():
            yield f"policy {name}: the level {level} is not in the policy InstantiationLevels{_hint(level, defined)}"
    for name in sorted(known.keys() - {text(policy, "properties", "aspect") for policy in deltas.values()}):
        yield f"scaling aspect {name}: no policy VduScalingAspectDeltas has this aspect, so Tacker would refuse to scale it"


def _malformed(levels: _Named, of_vdus: _Named, known: _Named) -> Iterator[str]:
    for name, aspect in known.items():
        if not isinstance(aspect.get("max_scale_level"), int):
            yield f"scaling aspect {name}: max_scale_level: must be an integer, or nobody can scale it"
    for name, policy in {**levels, **of_vdus}.items():
        for level in mapping(policy, "properties", "levels"):
            if not isinstance(level, str):
                yield f"policy {name}: the level {level} is {type_name(level)}, which no request can name; write it in quotes"
    for name, policy in of_vdus.items():
        if texts(policy, "targets") != policy.get("targets", []):
            yield f"policy {name}: targets: must be a list of ids of VDUs"


def _levels(name: str, policy: Mapping[str, Any], known: _Named) -> Iterator[str]:
    levels = mapping(policy, "properties", "levels")
    default = field(policy, "properties", "default_level")
    if default is not None and str(default) not in map(str, levels):
        yield f"policy {name}: the default_level {default} is none of its levels{_hint(str(default), map(str, levels))}"
    for level in levels:
        for aspect in sorted(set(map(str, mapping(levels, level, "scale_info"))) - known.keys()):
            yield f"policy {name}: the aspect {aspect} of {level} is not in the policy ScalingAspects{_hint(aspect, known)}"


def _deltas(name: str, policy: Mapping[str, Any], known: _Named) -> Iterator[str]:
    aspect = text(policy, "properties", "aspect")
    if aspect not in known:
        yield f"policy {name}: the aspect {aspect!r} is not in the policy ScalingAspects{_hint(aspect, known)}"
    elif not (steps := texts(known[aspect], "step_deltas")):
        yield f"scaling aspect {aspect}: step_deltas is missing, the list with the name of its delta"
    elif field(policy, "properties", "deltas", steps[0], "number_of_instances") is None:
        yield f"policy {name}: deltas has no number_of_instances of {steps[0]}, which step_deltas of the aspect {aspect} names"


def _hint(name: str, known: Iterable[str]) -> str:
    near = similar(name, known)
    return f"; did you mean {near}?" if near else ""
