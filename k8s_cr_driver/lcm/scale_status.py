"""Scale levels and scaling aspects in instantiatedVnfInfo (SOL003 clause 5.5.3.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oslo_log import log as logging
from tacker.sol_refactored import objects
from tacker.sol_refactored.common import exceptions as sol_ex

from k8s_cr_driver.lcm.instance_info import OPTIONS
from k8s_cr_driver.resources import replicas
from k8s_cr_driver.vnf.vdus import VduObjects

LOG = logging.getLogger(__name__)

NEW_ASPECTS = "new-scaling-aspects"
"""Key beside the options: aspects that the package has and Tacker's scale status does not have yet."""


def take_over_levels(info: Any, before: VduObjects, now: VduObjects, vnfd: Any) -> None:
    """Scale levels that fit the new counts: a level more for each delta more than before. DbSyncFailed if none fits."""
    seen: set[str] = set()
    for status in _scale_status(info):
        deltas = vnfd.get_scale_vdu_and_num(info.flavourId, status.aspectId)
        deltas = {vdu: delta for vdu, delta in deltas.items() if vdu in now and vdu not in seen}
        seen |= set(deltas)
        steps = {divmod(replicas.count(now[vdu]) - replicas.count(before[vdu]), delta) for vdu, delta in deltas.items()}
        if not steps - {(0, 0)}:
            continue
        more, rest = min(steps)
        level = status.scaleLevel + more
        if len(steps) > 1 or rest or not 0 <= level <= vnfd.get_max_scale_level(info.flavourId, status.aspectId):
            counts = ", ".join(f"VDU {vdu} has {replicas.count(now[vdu])} replicas" for vdu in sorted(deltas))
            raise sol_ex.DbSyncFailed(f"{counts}, which no level of the scaling aspect {status.aspectId} means.")
        status.scaleLevel = level


def note_aspects(inst: Any, vnfd: Any) -> None:
    """
    Keeps which scaling aspects only the new package has, for `take_over_aspects`.

    They cannot be taken over at once: after a change of package Tacker restores the scale status of before (Tacker 16,
    `VnfLcmDriverV2._make_inst_info_common`).
    """
    info = inst.instantiatedVnfInfo
    policies = vnfd.get_policy_values_by_type(info.flavourId, "tosca.policies.nfv.ScalingAspects")
    aspects = {aspect for policy in policies for aspect in policy["properties"]["aspects"]}
    added = sorted(aspects - {one.aspectId for one in _scale_status(info)})
    if added:
        info.metadata[OPTIONS][NEW_ASPECTS] = added
        LOG.warning(
            "VNF instance %s: the scaling aspects %s are new; Tacker takes them over with its next database "
            "synchronization, and cannot scale them before",
            inst.id,
            ", ".join(added),
        )


def new_aspects(info: Any) -> list[str]:
    """Scaling aspects of the package that Tacker does not know of yet."""
    found: list[str] = (info.metadata.get(OPTIONS) or {}).get(NEW_ASPECTS) or []
    return found


def take_over_aspects(info: Any, now: VduObjects, vnfd: Any) -> None:
    """Has Tacker know of the new aspects, at the levels that fit the counts."""
    added = new_aspects(info)
    if not added:
        return
    info.metadata[OPTIONS].pop(NEW_ASPECTS)
    highest = {aspect: vnfd.get_max_scale_level(info.flavourId, aspect) for aspect in added}
    levels = {aspect: _level(info.flavourId, aspect, now, vnfd) for aspect in added}
    info.scaleStatus = [*_scale_status(info), *_scale_infos(levels)]
    known = info.maxScaleLevels if info.obj_attr_is_set("maxScaleLevels") else []
    info.maxScaleLevels = [*known, *_scale_infos(highest)]


def _level(flavour: str, aspect: str, now: VduObjects, vnfd: Any) -> int:
    """What the count of a VDU means above its initial delta, else the aspect's level in the default instantiation level."""
    policies = vnfd.get_policy_values_by_type(flavour, "tosca.policies.nfv.VduInitialDelta")
    initial = {
        vdu: policy["properties"]["initial_delta"]["number_of_instances"] for policy in policies for vdu in policy["targets"]
    }
    for vdu, delta in vnfd.get_scale_vdu_and_num(flavour, aspect).items():
        if vdu in now and vdu in initial:
            level, rest = divmod(replicas.count(now[vdu]) - initial[vdu], delta)
            if not rest and 0 <= level <= vnfd.get_max_scale_level(flavour, aspect):
                return int(level)
    default = vnfd.get_scale_info_from_inst_level(flavour, vnfd.get_default_instantiation_level(flavour))
    return int(default.get(aspect, {}).get("scale_level", 0))


def _scale_status(info: Any) -> list[Any]:
    return list(info.scaleStatus) if info.obj_attr_is_set("scaleStatus") else []


def _scale_infos(levels: Mapping[str, int]) -> list[Any]:
    return [objects.ScaleInfoV2(aspectId=aspect, scaleLevel=level) for aspect, level in levels.items()]
