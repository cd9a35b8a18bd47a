# SPDX-License-Identifier: Apache-2.0
"""Whether the numbers of instances that a VNFD gives for a VDU agree: at level zero, at each level, and in its profile.

SOL001 computes the number at a scale level: that of VduInitialDelta, and a delta of VduScalingAspectDeltas for each step.
Tacker takes the number of VduInstantiationLevels, and stores the scale level beside it. So it accepts numbers that do not
agree, and a later SCALE goes on from the wrong one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from k8s_cr_driver.objects.fields import integer, mapping, text, texts

_Policies = Mapping[str, Mapping[str, Any]]


class Scaling(NamedTuple):
    """What a VNFD's policies say of the steps of one aspect for one VDU."""

    aspect: str
    step: int
    most: int | None
    """The aspect's max_scale_level."""


class Counts:
    """Of one flavour. `policies` are those of each type, without its prefix, by their names."""

    def __init__(self, nodes: Mapping[str, Any], policies: Mapping[str, _Policies], aspects: _Policies) -> None:
        self._nodes, self._aspects = nodes, aspects
        self._of: dict[str, dict[str, list[Mapping[str, Any]]]] = {kind: defaultdict(list) for kind in policies}
        for kind, named in policies.items():
            for one in named.values():
                for vdu in set(texts(one, "targets")):
                    self._of[kind][vdu].append(mapping(one, "properties"))
        levels = (mapping(one, "properties", "levels") for one in policies["InstantiationLevels"].values())
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

    def _scalings(self, vdu: str) -> Iterator[Scaling]:
        """Without aspects whose steps differ: Tacker takes the first delta for each."""
        for one in self._of["VduScalingAspectDeltas"][vdu]:
            aspect = self._aspects.get(name := text(one, "aspect"), {})
            names = texts(aspect, "step_deltas")
            step = integer(one, "deltas", names[0], "number_of_instances") if len(set(names)) == 1 else None
            if step is not None:
                yield Scaling(name, step, integer(aspect, "max_scale_level"))

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
