# SPDX-License-Identifier: Apache-2.0
"""Scale levels and scaling aspects in instantiatedVnfInfo (SOL003 clause 5.5.3.2).

Tacker keeps both itself, from its own requests. The database synchronization adapts them to replica counts that somebody
has changed on the cluster, and to scaling aspects that a change of the VNF package has added.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacker.sol_refactored import objects
from tacker.sol_refactored.common import exceptions as sol_ex

from k8s_cr_driver import logs
from k8s_cr_driver.lcm.instance_info import StoredInstance
from k8s_cr_driver.objects.fields import field, integer, mapping, sequence, text, texts
from k8s_cr_driver.resources import replicas
from k8s_cr_driver.vnf.vdus import VduObjects

LOG = logs.logger(__name__)


class _Aspects:
    """
    The scaling aspects of a flavour, without what is malformed; k8s-cr validate reports that.

    Read at once: Tacker's Vnfd looks through all policies for each aspect, of which a VNFD may have thousands.
    """

    def __init__(self, vnfd: Any, flavour: str) -> None:
        self._vnfd, self._flavour = vnfd, flavour
        declared: dict[Any, Any] = {}
        for policy in reversed(self._policies("ScalingAspects")):  # of two with one name, the first counts
            declared |= mapping(policy, "properties", "aspects")
        levels = {name: integer(aspect, "max_scale_level") for name, aspect in declared.items()}  # Tacker stores "5" as 5, too
        self.highest = {name: level for name, level in levels.items() if level is not None and isinstance(name, str)}
        self._deltas: dict[str, dict[str, int]] = {name: {} for name in self.highest}
        for policy in self._policies("VduScalingAspectDeltas"):
            aspect, deltas = text(policy, "properties", "aspect"), dict[Any, Any](mapping(policy, "properties", "deltas"))
            for name in sequence(declared.get(aspect), "step_deltas")[:1]:
                if not isinstance(name, str | int | float):  # YAML reads an id without quotes as a number
                    continue
                delta = field(deltas.get(name), "number_of_instances")
                if aspect in self._deltas and isinstance(delta, int):
                    self._deltas[aspect].update(dict.fromkeys(texts(policy, "targets"), delta))

    def deltas(self, aspect: str) -> dict[str, int]:
        """VDU id -> instances that a scale level adds, of the VDUs that the aspect scales: not of those with a delta of 0."""
        return {vdu: delta for vdu, delta in self._deltas.get(aspect, {}).items() if delta}

    def allows(self, aspect: str, level: int) -> bool:
        return 0 <= level <= self.highest.get(aspect, 0)

    def initial(self) -> dict[str, int]:
        """VDU id -> instances at level 0."""
        found: dict[str, int] = {}
        for policy in self._policies("VduInitialDelta"):
            count = field(policy, "properties", "initial_delta", "number_of_instances")
            found |= dict.fromkeys(texts(policy, "targets"), count) if isinstance(count, int) else {}
        return found

    def at_default_level(self) -> dict[str, int]:
        """Aspect -> its scale level at the default instantiation level."""
        for policy in self._policies("InstantiationLevels")[:1]:
            default = field(policy, "properties", "default_level")
            named = [info for level, info in mapping(policy, "properties", "levels").items() if level == default]
            found = {aspect: field(info, "scale_level") for one in named for aspect, info in mapping(one, "scale_info").items()}
            return {aspect: level for aspect, level in found.items() if isinstance(level, int)}
        return {}

    def _policies(self, kind: str) -> list[Any]:
        return list(self._vnfd.get_policy_values_by_type(self._flavour, f"tosca.policies.nfv.{kind}"))


def update_levels(stored: StoredInstance, before: VduObjects, now: VduObjects, vnfd: Any) -> None:
    """Sets the scale levels that match the counts in `now`: one level up for each delta added. DbSyncFailed if none does."""
    aspects, seen = _Aspects(vnfd, stored.flavour), set[str]()
    for status in _scale_status(stored.info):
        deltas = aspects.deltas(status.aspectId)
        deltas = {vdu: delta for vdu, delta in deltas.items() if vdu in now and vdu not in seen}
        seen |= set(deltas)
        steps = {divmod(replicas.count(now[vdu]) - replicas.count(before[vdu]), delta) for vdu, delta in deltas.items()}
        if not steps - {(0, 0)}:
            continue
        more, rest = min(steps)
        level = status.scaleLevel + more
        if len(steps) > 1 or rest or not aspects.allows(status.aspectId, level):
            counts = ", ".join(f"VDU {vdu} has {replicas.count(now[vdu])} replicas" for vdu in sorted(deltas))
            raise sol_ex.DbSyncFailed(f"{counts}, which no level of the scaling aspect {status.aspectId} means.")
        status.scaleLevel = level


def remember_new_aspects(stored: StoredInstance, vnfd: Any) -> None:
    """
    Stores the names of the scaling aspects that are other ones in the new package, for `add_new_aspects`.

    They cannot be added at once: after a change of the package Tacker restores the scale status from before it (Tacker 16,
    `VnfLcmDriverV2._make_inst_info_common`).
    """
    now = _Aspects(vnfd, stored.flavour).highest
    highest = {one.aspectId: one.scaleLevel for one in _highest(stored.info)}
    known = {one.aspectId for one in _scale_status(stored.info)}
    stored.new_aspects = sorted(
        aspect for aspect, level in now.items() if aspect not in known or highest.get(aspect, level) != level
    )
    if stored.new_aspects:
        LOG.warning(
            "VNF instance %s: the scaling aspects %s are new, or have another highest level; Tacker takes them over with its "
            "next database synchronization, and cannot scale new ones before",
            stored.id,
            ", ".join(stored.new_aspects),
        )


def add_new_aspects(stored: StoredInstance, now: VduObjects, vnfd: Any) -> None:
    """Adds the stored new aspects to scaleStatus, at the levels that match the counts, and sets their maxScaleLevels."""
    info, added = stored.info, stored.new_aspects
    if not added:
        return
    stored.new_aspects = []
    aspects = _Aspects(vnfd, stored.flavour)
    highest = {aspect: aspects.highest.get(aspect, 0) for aspect in added}
    known = {one.aspectId for one in _scale_status(info)}
    initial, default = aspects.initial(), aspects.at_default_level()
    levels = {aspect: _level(aspects, aspect, initial, now, default) for aspect in added if aspect not in known}
    info.scaleStatus = [*_scale_status(info), *_scale_infos(levels)]
    info.maxScaleLevels = [*(one for one in _highest(info) if one.aspectId not in highest), *_scale_infos(highest)]


def _level(
    aspects: _Aspects, aspect: str, initial: Mapping[str, int], now: VduObjects, default: Mapping[str, int]
) -> int:
    """The level that matches a VDU's count and its initial delta, else the one of the default instantiation level."""
    for vdu, delta in aspects.deltas(aspect).items():
        if vdu in now and vdu in initial:
            level, rest = divmod(replicas.count(now[vdu]) - initial[vdu], delta)
            if not rest and aspects.allows(aspect, level):
                return level
    return default.get(aspect, 0)


def _scale_status(info: Any) -> list[Any]:
    return list(info.scaleStatus) if info.obj_attr_is_set("scaleStatus") else []


def _highest(info: Any) -> list[Any]:
    return list(info.maxScaleLevels) if info.obj_attr_is_set("maxScaleLevels") else []


def _scale_infos(levels: Mapping[str, int]) -> list[Any]:
    return [objects.ScaleInfoV2(aspectId=aspect, scaleLevel=level) for aspect, level in levels.items()]
