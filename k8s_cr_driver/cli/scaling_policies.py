# SPDX-License-Identifier: Apache-2.0
"""Whether the scaling policies of a VNFD fit together, in their names and their numbers (SOL001, "Policy types").

Tacker reads them when an instance is scaled, and not before: a slip in a name ends a SCALE of a running instance with "invalid
aspect" or "delta not defined", although the package was onboarded and instantiated without an error.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from k8s_cr_driver.cli.output import hint
from k8s_cr_driver.objects.fields import entries, field, integer, mapping, text, texts, type_name
from k8s_cr_driver.package import vnfd

_Named = Mapping[str, Mapping[str, Any]]


def problems(folder: Path) -> list[str]:
    """A sentence for each mistake."""
    flavours = vnfd.flavours(folder).items()
    return [f"Flavour {name}: {problem}" for name, template in flavours for problem in _problems(template)]


def warnings(folder: Path) -> list[str]:
    """A sentence for each number of instances that another one of the VNFD contradicts."""
    flavours = vnfd.flavours(folder).items()
    return [f"Flavour {name}: {problem}" for name, template in flavours for problem in _Counts(template).warnings()]


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
            yield f"policy {name}: the target {target} is no node of the VNFD{hint(target, nodes)}"
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
            yield f"policy {name}: the level {level} is not in the policy InstantiationLevels{hint(level, defined)}"
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
        yield f"policy {name}: the default_level {default} is none of its levels{hint(str(default), map(str, levels))}"
    for level in levels:
        for aspect in sorted(set(map(str, mapping(levels, level, "scale_info"))) - known.keys()):
            yield f"policy {name}: the aspect {aspect} of {level} is not in the policy ScalingAspects{hint(aspect, known)}"


def _deltas(name: str, policy: Mapping[str, Any], known: _Named) -> Iterator[str]:
    aspect = text(policy, "properties", "aspect")
    if aspect not in known:
        yield f"policy {name}: the aspect {aspect!r} is not in the policy ScalingAspects{hint(aspect, known)}"
    elif not (steps := texts(known[aspect], "step_deltas")):
        yield f"scaling aspect {aspect}: step_deltas is missing, the list with the name of its delta"
    elif field(policy, "properties", "deltas", steps[0], "number_of_instances") is None:
        yield f"policy {name}: deltas has no number_of_instances of {steps[0]}, which step_deltas of the aspect {aspect} names"


class _Scaling(NamedTuple):
    """What a VNFD's policies say of the steps of one aspect for one VDU."""

    aspect: str
    step: int
    most: int | None
    """The aspect's max_scale_level."""


class _Counts:
    """Whether the numbers of instances that a VNFD gives for a VDU agree: at level zero, at each level, and in its profile.

    SOL001 computes the number at a scale level: that of VduInitialDelta, and a delta of VduScalingAspectDeltas for each step.
    Tacker takes the number of VduInstantiationLevels, and stores the scale level beside it. So it accepts numbers that do not
    agree, and a later SCALE goes on from the wrong one.
    """

    def __init__(self, template: Mapping[str, Any]) -> None:
        self._nodes, self._aspects = mapping(template, "node_templates"), aspects(template)
        kinds = ("VduInstantiationLevels", "VduInitialDelta", "VduScalingAspectDeltas")
        self._of: dict[str, dict[str, list[Mapping[str, Any]]]] = {kind: defaultdict(list) for kind in kinds}
        for kind in kinds:
            for one in _policies(template, kind).values():
                for vdu in set(texts(one, "targets")):
                    self._of[kind][vdu].append(mapping(one, "properties"))
        levels = (mapping(one, "properties", "levels") for one in _policies(template, "InstantiationLevels").values())
        self._scale_infos = {str(name): mapping(one, name, "scale_info") for one in levels for name in one}

    def warnings(self) -> Iterator[str]:
        """A sentence for each number that another one contradicts."""
        yield from self._too_high_levels()
        for vdu in self._nodes:
            initial = self._initial(vdu)
            yield from self._at_levels(vdu, initial)
            if initial is not None:
                yield from self._scaled(vdu, initial)

    def _initial(self, vdu: str) -> int | None:
        found = (integer(one, "initial_delta", "number_of_instances") for one in self._of["VduInitialDelta"][vdu])
        return next((number for number in found if number is not None), None)

    def _scalings(self, vdu: str) -> Iterator[_Scaling]:
        """Without aspects whose steps differ: Tacker takes the first delta for each."""
        for one in self._of["VduScalingAspectDeltas"][vdu]:
            aspect = self._aspects.get(name := text(one, "aspect"), {})
            names = texts(aspect, "step_deltas")
            step = integer(one, "deltas", names[0], "number_of_instances") if len(set(names)) == 1 else None
            if step is not None:
                yield _Scaling(name, step, integer(aspect, "max_scale_level"))

    def _too_high_levels(self) -> Iterator[str]:
        for level, scale_info in self._scale_infos.items():
            for aspect in scale_info:
                scale_level = integer(scale_info, aspect, "scale_level")
                most = integer(self._aspects.get(str(aspect), {}), "max_scale_level")
                if scale_level is not None and most is not None and not 0 <= scale_level <= most:
                    what = f"scale_level {scale_level} of the aspect {aspect}, whose levels are 0 to {most} (max_scale_level)"
                    yield f"the instantiation level {level} has {what}; change one of them"

    def _at_levels(self, vdu: str, initial: int | None) -> Iterator[str]:
        for one in self._of["VduInstantiationLevels"][vdu]:
            for level, at_level in mapping(one, "levels").items():
                if (count := integer(at_level, "number_of_instances")) is not None:
                    yield from self._outside_profile(vdu, count, f"at level {level}")
                    if initial is not None and (scale_info := self._scale_infos.get(str(level))) is not None:
                        yield from self._not_computed(vdu, str(level), count, initial, scale_info)

    def _not_computed(self, vdu: str, level: str, count: int, initial: int, scale_info: Mapping[str, Any]) -> Iterator[str]:
        scalings = list(self._scalings(vdu))
        if not scalings or len(scalings) < len(self._of["VduScalingAspectDeltas"][vdu]):
            return
        numbers = {one.aspect: integer(scale_info, one.aspect, "scale_level") or 0 for one in scalings}
        computed = initial + sum(one.step * numbers[one.aspect] for one in scalings)
        if computed != count:
            at = ", ".join(f"{number} of the aspect {aspect}" for aspect, number in numbers.items())
            what = f"has {count} instances at level {level}, and {computed} by its initial_delta and its deltas"
            yield f"VDU {vdu}: {what} at scale_level {at}; change one of them"

    def _scaled(self, vdu: str, initial: int) -> Iterator[str]:
        yield from self._outside_profile(vdu, initial, "by its initial_delta")
        for scaling in self._scalings(vdu):
            if scaling.most is not None:
                count = initial + scaling.step * scaling.most
                yield from self._outside_profile(vdu, count, f"at scale_level {scaling.most} of the aspect {scaling.aspect}")

    def _outside_profile(self, vdu: str, count: int, when: str) -> Iterator[str]:
        profile = mapping(self._nodes, vdu, "properties", "vdu_profile")
        least, most = integer(profile, "min_number_of_instances"), integer(profile, "max_number_of_instances")
        if least is not None and most is not None and not least <= count <= most:
            yield f"VDU {vdu}: has {count} instances {when}, and its vdu_profile allows {least} to {most}; change one of them"
