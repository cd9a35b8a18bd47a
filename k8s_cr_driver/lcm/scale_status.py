# SPDX-License-Identifier: Apache-2.0
"""Scale levels and scaling aspects in instantiatedVnfInfo (SOL003 clause 5.5.3.2).

Tacker keeps both itself, from its own requests. The database synchronization adapts them to replica counts that somebody
has changed on the cluster, and to scaling aspects that a change of the VNF package has added.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oslo_log import log as logging
from tacker.sol_refactored import objects
from tacker.sol_refactored.common import exceptions as sol_ex

from k8s_cr_driver.lcm.instance_info import StoredInstance
from k8s_cr_driver.resources import replicas
from k8s_cr_driver.vnf.vdus import VduObjects

LOG = logging.getLogger(__name__)


def update_levels(stored: StoredInstance, before: VduObjects, now: VduObjects, vnfd: Any) -> None:
    """Sets the scale levels that match the counts in `now`: one level up for each delta added. DbSyncFailed if none does."""
    flavour = stored.flavour
    seen: set[str] = set()
    for status in _scale_status(stored.info):
        deltas = _deltas(vnfd, flavour, status.aspectId)
        deltas = {vdu: delta for vdu, delta in deltas.items() if vdu in now and vdu not in seen}
        seen |= set(deltas)
        steps = {divmod(replicas.count(now[vdu]) - replicas.count(before[vdu]), delta) for vdu, delta in deltas.items()}
        if not steps - {(0, 0)}:
            continue
        more, rest = min(steps)
        level = status.scaleLevel + more
        if len(steps) > 1 or rest or not 0 <= level <= vnfd.get_max_scale_level(flavour, status.aspectId):
            counts = ", ".join(f"VDU {vdu} has {replicas.count(now[vdu])} replicas" for vdu in sorted(deltas))
            raise sol_ex.DbSyncFailed(f"{counts}, which no level of the scaling aspect {status.aspectId} means.")
        status.scaleLevel = level


def remember_new_aspects(stored: StoredInstance, vnfd: Any) -> None:
    """
    Stores the names of the scaling aspects that are other ones in the new package, for `add_new_aspects`.

    They cannot be added at once: after a change of the package Tacker restores the scale status from before it (Tacker 16,
    `VnfLcmDriverV2._make_inst_info_common`).
    """
    policies = vnfd.get_policy_values_by_type(stored.flavour, "tosca.policies.nfv.ScalingAspects")
    aspects = {aspect for policy in policies for aspect in policy["properties"]["aspects"]}
    highest = {one.aspectId: one.scaleLevel for one in _highest(stored.info)}
    known = {one.aspectId for one in _scale_status(stored.info)}
    now = {aspect: vnfd.get_max_scale_level(stored.flavour, aspect) for aspect in aspects & highest.keys()}
    stored.new_aspects = sorted(aspects - known | {aspect for aspect in now if now[aspect] != highest[aspect]})
    if stored.new_aspects:
        LOG.warning(
            "VNF instance %s: the scaling aspects %s are new, or have another highest level; Tacker takes them over with its "
            "next database synchronization, and cannot scale new ones before",
            stored.id,
            ", ".join(stored.new_aspects),
        )


def add_new_aspects(stored: StoredInstance, now: VduObjects, vnfd: Any) -> None:
    """Adds the stored new aspects to scaleStatus, at the levels that match the counts, and sets their maxScaleLevels."""
    info, flavour, added = stored.info, stored.flavour, stored.new_aspects
    if not added:
        return
    stored.new_aspects = []
    highest = {aspect: vnfd.get_max_scale_level(flavour, aspect) for aspect in added}
    known = {one.aspectId for one in _scale_status(info)}
    levels = {aspect: _level(flavour, aspect, now, vnfd) for aspect in added if aspect not in known}
    info.scaleStatus = [*_scale_status(info), *_scale_infos(levels)]
    info.maxScaleLevels = [*(one for one in _highest(info) if one.aspectId not in added), *_scale_infos(highest)]


def _level(flavour: str, aspect: str, now: VduObjects, vnfd: Any) -> int:
    """The level that matches a VDU's count and its initial delta, else the one of the default instantiation level."""
    policies = vnfd.get_policy_values_by_type(flavour, "tosca.policies.nfv.VduInitialDelta")
    initial = {
        vdu: policy["properties"]["initial_delta"]["number_of_instances"] for policy in policies for vdu in policy["targets"]
    }
    for vdu, delta in _deltas(vnfd, flavour, aspect).items():
        if vdu in now and vdu in initial:
            level, rest = divmod(replicas.count(now[vdu]) - initial[vdu], delta)
            if not rest and 0 <= level <= vnfd.get_max_scale_level(flavour, aspect):
                return int(level)
    default = vnfd.get_scale_info_from_inst_level(flavour, vnfd.get_default_instantiation_level(flavour))
    return int(default.get(aspect, {}).get("scale_level", 0))


def _deltas(vnfd: Any, flavour: str, aspect: str) -> dict[str, int]:
    """VDU id -> instances that a scale level adds, of the VDUs that the aspect scales: not of those with a delta of 0."""
    return {vdu: delta for vdu, delta in vnfd.get_scale_vdu_and_num(flavour, aspect).items() if delta}


def _scale_status(info: Any) -> list[Any]:
    return list(info.scaleStatus) if info.obj_attr_is_set("scaleStatus") else []


def _highest(info: Any) -> list[Any]:
    return list(info.maxScaleLevels) if info.obj_attr_is_set("maxScaleLevels") else []


def _scale_infos(levels: Mapping[str, int]) -> list[Any]:
    return [objects.ScaleInfoV2(aspectId=aspect, scaleLevel=level) for aspect, level in levels.items()]
