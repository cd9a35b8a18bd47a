# SPDX-License-Identifier: Apache-2.0
"""The replica count of each VDU's object: from the VNFD's levels, from the instance before, or from a scale."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from k8s_cr_driver.errors import DriverError, InvalidPackage, InvalidRequest, Refused
from k8s_cr_driver.objects.fields import field, mapping, texts, type_name, walk
from k8s_cr_driver.objects.keys import Object, ObjectKey
from k8s_cr_driver.resources import replicas
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.vnf.vdus import VduObjects

VNFCS = 20_000
"""Of one instance: its record lists each, and Tacker reads and writes the whole record."""
FEWER = "lower the counts, or let the operator raise [k8s_cr] max_vnfcs"


def of(assigned: VduObjects) -> dict[str, int]:
    return {vdu: replicas.count(obj) for vdu, obj in assigned.items()}


def _named(assigned: VduObjects) -> dict[str, int]:
    """VDU id -> count, of those whose manifest names one. What its controller takes another for, nobody else knows."""
    found = {vdu: replicas.explicit_count(obj) for vdu, obj in assigned.items()}
    return {vdu: count for vdu, count in found.items() if count is not None}


def at_level(
    assigned: VduObjects, vnfd: Any, flavour: str, level: str | None = None, *, lenient: bool = False
) -> dict[str, CustomResource]:
    """
    With the counts of an instantiation level, else of the default one; a VDU without a count there keeps its manifest's.

    InvalidRequest for a level that the VNFD does not have, InvalidPackage for a policy whose VDUs are not known,
    unless `lenient`: earlier versions have accepted it.
    """
    if level and level not in (known := _levels(vnfd, flavour)):
        raise InvalidRequest(
            f"instantiationLevelId: the VNFD has no level {level!r}; its levels: {', '.join(known) or 'none'}. Name another "
            "one, or none for the default"
        )
    level = str(level or vnfd.get_default_instantiation_level(flavour))
    return with_counts(assigned, _counts_at(vnfd, flavour, level, lenient=lenient))


def with_counts(assigned: VduObjects, wanted: Mapping[str, int]) -> dict[str, CustomResource]:
    """With these counts (VDU id -> count); VDUs that are not in `wanted` keep theirs. Refused for one that cannot be set."""
    manifests: dict[ObjectKey, Object] = {}
    for vdu, obj in assigned.items():
        if vdu in wanted:
            if obj.hides_count:
                raise Refused(
                    f"VDU {vdu} is {obj}. Its count of {wanted[vdu]} cannot be set, because the account may not read the "
                    "CustomResourceDefinition of its kind; permit it to get customresourcedefinitions"
                )
            if obj.key not in manifests:
                manifests[obj.key] = copy.deepcopy(obj.manifest)
            replicas.set_count(obj.with_manifest(manifests[obj.key]), wanted[vdu])
    return {vdu: obj.with_manifest(manifests[obj.key]) if obj.key in manifests else obj for vdu, obj in assigned.items()}


def live(assigned: VduObjects, lives: Mapping[ObjectKey, Object]) -> dict[str, int]:
    """VDU id -> count, of those whose live object is in `lives` and names one."""
    found = {vdu: replicas.explicit_count(obj, lives[obj.key]) for vdu, obj in assigned.items() if obj.key in lives}
    return {vdu: count for vdu, count in found.items() if count is not None}


def _levels(vnfd: Any, flavour: str) -> list[str]:
    """A request names a level by a text, and YAML reads an id without quotes as a number."""
    types = ("tosca.policies.nfv.InstantiationLevels", "tosca.policies.nfv.VduInstantiationLevels")
    policies = [policy for name in types for policy in vnfd.get_policy_values_by_type(flavour, name)]
    levels = {level for policy in policies for level in mapping(policy, "properties", "levels")}
    return sorted(one if isinstance(one, str) else f"{one} ({type_name(one)}: write it in quotes)" for one in levels)


def _counts_at(vnfd: Any, flavour: str, level: str, *, lenient: bool) -> dict[str, int]:
    """VDU id -> number of instances. Tacker's Vnfd.get_vdu_num returns 0 also for a VDU without a number at that level."""
    policies = vnfd.get_policy_values_by_type(flavour, "tosca.policies.nfv.VduInstantiationLevels")
    counts: dict[str, Any] = {}
    for policy in reversed(policies):
        entries = {str(name): entry for name, entry in mapping(policy, "properties", "levels").items()}
        counts.update(dict.fromkeys(_targets(policy, lenient=lenient), field(entries, level, "number_of_instances")))
    return {vdu: count for vdu, count in counts.items() if isinstance(count, int)}


def _targets(policy: Any, *, lenient: bool) -> list[str]:
    targets = policy.get("targets", [])
    if not isinstance(targets, list) or not all(isinstance(vdu, str) for vdu in targets):
        if lenient:
            return texts(policy, "targets")
        raise InvalidPackage("a policy VduInstantiationLevels of the VNFD: targets: must be a list of ids of VDUs")
    return targets


def recorded(assigned: VduObjects) -> dict[str, int]:
    """VDU id -> count, of those of which only the CRD says where the count is: it may have gone when they are read again."""
    return _named({vdu: obj for vdu, obj in assigned.items() if obj.crd is not None})


def check_known(counted: VduObjects) -> None:
    """DriverError for a VDU that has a count, where nothing says any more in which field."""
    for vdu, obj in counted.items():
        if not obj.replicas():
            raise DriverError(f"VDU {vdu} is {obj}, whose count is not known: its CustomResourceDefinition cannot be read")


def carried_over(before: VduObjects, recorded: Mapping[str, int], assigned: VduObjects) -> dict[str, CustomResource]:
    """With the counts of the instance before: of the same object, also if its VDU has another id now, else of the same VDU.

    `recorded` has those of objects whose CRD may have gone since: a change that failed has deleted it, perhaps.
    """
    implied = {vdu for vdu, count in recorded.items() if count == 1 and vdu in before and _names_no_one(before[vdu])}
    of_vdu = {**{vdu: count for vdu, count in recorded.items() if vdu not in implied}, **_named(before)}
    of_object = {(before[vdu].key, before[vdu].part): count for vdu, count in of_vdu.items()}
    kept = {vdu: of_object.get((obj.key, obj.part), of_vdu.get(vdu)) for vdu, obj in assigned.items()}
    return with_counts(assigned, {vdu: count for vdu, count in kept.items() if count is not None})


def _names_no_one(obj: CustomResource) -> bool:
    """
    Whether a recorded 1 is no count of the manifest: earlier versions have recorded one where nothing names a count.

    If a field of it is 1, that may be the count: the CRD of a change that has failed may have it in another field.
    """
    return bool(obj.replicas()) and not any(type(value) is int and value == 1 for _, value in walk(obj.manifest.get("spec")))


def given(assigned: VduObjects, former: Mapping[ObjectKey, Object]) -> dict[str, int]:
    """VDU id -> count, of those whose manifest in `former`, with the parameters from before, has another count."""
    return {
        vdu: count for vdu, obj in assigned.items() if (count := replicas.count(obj)) != replicas.count(obj, former[obj.key])
    }


def scaled(assigned: VduObjects, changes: Mapping[str, int], most: int = VNFCS) -> dict[str, CustomResource]:
    """With so many more replicas of the VDUs in `changes` (VDU id -> change), or fewer if it is negative."""
    after = with_counts(assigned, {vdu: _changed(vdu, assigned, change) for vdu, change in changes.items() if change})
    check(after, assigned, most)
    return after


def _changed(vdu: str, assigned: VduObjects, change: int) -> int:
    if vdu not in assigned:
        raise InvalidRequest(f"VDU {vdu} is not part of this instance; its VDUs: {', '.join(sorted(assigned))}")
    obj = assigned[vdu]
    if why := obj.scaling().autoscaler():
        raise InvalidRequest(f"aspectId: VDU {vdu} is {obj}. Its count cannot be scaled: {why}")
    path = obj.replicas()
    if not path:
        raise InvalidRequest(f"VDU {vdu} is {obj}, whose kind has no count to scale")
    count = replicas.explicit_count(obj)
    if count is None:
        raise InvalidRequest(
            f"VDU {vdu} is {obj}, {'.'.join(path)}: names no count to scale from, and only its controller knows what it takes "
            "that for; change the VNF package to one whose manifest names the count"
        )
    if count + change < 0:
        raise InvalidRequest(f"numberOfSteps: VDU {vdu} has {count} replicas and cannot lose {-change}; take fewer steps")
    return count + change


def check(after: VduObjects, before: VduObjects, most: int = VNFCS) -> None:
    """InvalidRequest for a count that is not the one before and that its kind cannot have, or for more than `most` in all."""
    former = of(before)
    total = sum(of(after).values())
    if total > max(most, sum(former.values())):
        raise InvalidRequest(f"the VDUs have {total:,} VNFCs together and may have {most:,}; {FEWER}")
    for vdu, obj in after.items():
        count = replicas.count(obj)
        if count != former.get(vdu) and (why := obj.scaling().error(count)):
            where = ".".join(obj.replicas() or ())
            raise InvalidRequest(f"VDU {vdu} is {obj}, {where}: cannot be {count}: {why}")
