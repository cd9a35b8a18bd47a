# SPDX-License-Identifier: Apache-2.0
"""Which objects a heal deletes, and which of them have been replaced.

VNFCs that are Pods or Machines are deleted, and their owner creates others. The object of a VDU without Pods or Machines
is applied again, which also undoes changes by others. With `recreate: true` it is deleted and created again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from k8s_cr_driver import logs
from k8s_cr_driver.engine.delete.replacer import Replacement
from k8s_cr_driver.engine.report.not_ready import Report
from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.objects.fields import field, text
from k8s_cr_driver.objects.keys import Object, ObjectKey, annotations_of, key_of, kind_of, labels
from k8s_cr_driver.objects.marks import ADOPTED, INSTANCE_LABEL, SHARED, is_kept
from k8s_cr_driver.resources import replicas
from k8s_cr_driver.resources.base import PODS, CustomResource
from k8s_cr_driver.resources.registry import health_of_made
from k8s_cr_driver.vnf import vnfcs
from k8s_cr_driver.vnf.descent import Descent
from k8s_cr_driver.vnf.vdus import VduObjects

LOG = logs.logger(__name__)


class Healing:
    """The heal of some VDUs (`touched`: VDU id -> its object) of an instance. `may_own` is that of `Descent`."""

    def __init__(self, client: Client, instance: str, touched: VduObjects, may_own: Callable[[Object], bool]) -> None:
        self._client, self._instance = client, instance
        self._touched, self._descent = touched, Descent(client, instance, may_own)

    def replacement(self, chosen: Mapping[str, set[str]], *, everything: bool, recreate: bool) -> Replacement:
        """
        For the VNFCs in `chosen` (VDU id -> names), or with `everything` all of their VDUs: the record may have others.

        If more VNFCs of a VDU are chosen than may be deleted at the same time: InvalidRequest, or with `everything` no
        VNFC of that VDU is replaced.
        """
        members = self._members()
        to_delete: list[tuple[str, list[Object]]] = []
        for vdu, several in members.children.items():
            obj = self._touched[vdu]
            children = obj.children(members.owners.get(obj.key))
            named = chosen.get(vdu, ())
            unwanted = several if everything and named else [one for one in several if one["metadata"]["name"] in named]
            if children and children.by_selector:
                unwanted = self._own(vdu, unwanted, lenient=everything)
            wanted = replicas.count(obj, members.owners.get(obj.key)) if _has_one_vnfc_per_replica(obj) else 0
            lost = max(0, wanted - len(several))
            if children and unwanted and self._may_replace(vdu, unwanted, several, lost, lenient=everything):
                to_delete.append((children.selector, unwanted))
        ended = {obj.key for obj in self._touched.values() if _has_failed(members.owners.get(obj.key))}
        single = {obj.key for vdu, obj in self._touched.items() if vdu not in members.children and not obj.part}
        if recreate:
            self._check_replaceable(single, lenient=everything)
        alone = sorted(ended | (single if recreate else set()))
        to_delete += [
            (self._selector(live), [live])
            for key in alone
            if (live := members.owners.get(key)) and key.group_kind not in SHARED
        ]
        deleted = {live["metadata"]["uid"] for _, several in to_delete for live in several}
        pods = {obj.key for vdu, obj in self._touched.items() if vdu in chosen and obj.key.group_kind == PODS}
        absent = frozenset((pods | single if recreate else pods) - members.owners.keys())
        before = {
            vdu: 1 if self._touched[vdu].key.group_kind == PODS else len(several)
            for vdu, several in members.children.items()
            if (vdu in chosen or self._touched[vdu].key in ended) and not (everything and self._touched[vdu].key in absent)
        }
        reruns = frozenset[ObjectKey]() if everything else absent  # what has run to its end is not chosen then
        return Replacement(to_delete, lambda: self._missing(before, members.owners, deleted), reruns)

    def _check_replaceable(self, keys: Iterable[ObjectKey], *, lenient: bool) -> None:
        """InvalidRequest for a Namespace or CRD, unless `lenient`: it is only applied again then."""
        shared = sorted(str(key) for key in keys if key.group_kind in SHARED)
        if shared and not lenient:
            raise InvalidRequest(
                f"vnfcInstanceId: {', '.join(shared)}: all that is in it or of it would be lost, so a heal never deletes it; "
                "heal it without recreate"
            )

    def _selector(self, live: Object) -> str:
        """One that finds the object, also if it has lost the label of the instance."""
        return f"{INSTANCE_LABEL}={self._instance}" if labels(live).get(INSTANCE_LABEL) == self._instance else ""

    def _own(self, vdu: str, chosen: list[Object], *, lenient: bool) -> list[Object]:
        """Those that the instance's objects control. InvalidRequest for others, unless `lenient`."""
        own = {key_of(one): one for one in chosen if self._descent.includes(one)}
        others = sorted(str(key) for key in map(key_of, chosen) if key not in own)
        if others and not lenient:
            raise InvalidRequest(
                f"vnfcInstanceId: {', '.join(others)} of VDU {vdu}: the selector in the status of {self._touched[vdu].key} "
                "finds it, but no object of this VNF instance controls it (ownerReferences), so it is never deleted"
            )
        if others:
            LOG.warning("VNF instance %s: %s of VDU %s: not controlled by it, left", self._instance, ", ".join(others), vdu)
        return list(own.values())

    def _may_replace(
        self, vdu: str, chosen: Sequence[Object], several: Sequence[Object], lost: int, *, lenient: bool
    ) -> bool:
        """Whether so many may be unavailable. VNFCs that are not ready already are.

        So are those that are missing or being deleted, `lost` in number; `several` has none of them.
        """
        obj = self._touched[vdu]
        scaling = obj.scaling()
        most = scaling.max_unavailable(len(several) + lost)
        names, unready = _names(chosen), _names(one for one in several if not _is_ready(one))
        if len(names | unready) + lost <= most:
            return True
        if not lenient:
            others = f", and these are not ready: {', '.join(sorted(unready))}" if unready else ""
            remedy = "choose fewer, and those that are not ready first"
            if lost:
                others += f", and {lost} are missing or being deleted"
            if len(unready) + lost > most:
                remedy = "more of them must be ready before any is replaced"
            raise InvalidRequest(
                f"vnfcInstanceId: VDU {vdu} is {obj}, of whose {len(several) + lost} VNFCs at most {most} may be unavailable "
                f"at the same time{scaling.few_unavailable}. {len(names)} are chosen{others}; {remedy}"
            )
        LOG.info("VNF instance %s: VNFCs of VDU %s are not replaced, %s is only applied again", self._instance, vdu, obj)
        return False

    def _missing(
        self, before: Mapping[str, int], former: Mapping[ObjectKey, Object], deleted: Collection[str]
    ) -> list[Report]:
        """Owners, before the heal `former`, whose VNFCs are not all ready again. They may not have noticed the deletion yet."""
        members = self._members()
        reports = []
        for vdu in before:
            obj, several = self._touched[vdu], members.children.get(vdu, [])
            owner = members.owners.get(obj.key)
            if obj.key.group_kind == PODS and owner and obj.has_finished(owner):
                continue
            left = [one for one in several if one["metadata"]["uid"] not in deleted]
            wanted, ready = _wanted(obj, former.get(obj.key), owner, before[vdu], len(left)), sum(map(_is_ready, left))
            if ready != wanted:
                reports.append(Report(obj.key, "Waiting", "Replicas", f"VDU {vdu} has {ready} of {wanted} VNFCs"))
        return reports

    def _members(self) -> vnfcs.Members:
        return vnfcs.members(self._client, self._instance, self._touched)


def _has_failed(live: Object | None) -> bool:
    """Whether it is a bare Pod that was evicted, or has ended with an error: nothing makes it run again."""
    if live is None or kind_of(live) != PODS or is_kept(live) or ADOPTED in annotations_of(live):
        return False
    return text(live, "status", "phase") == "Failed"


def _is_ready(child: Object) -> bool:
    return health_of_made(child).settled


def _names(lives: Iterable[Object]) -> set[str]:
    return {live["metadata"]["name"] for live in lives}


def _wanted(obj: CustomResource, former: Object | None, owner: Object | None, before: int, found: int) -> int:
    """
    How many VNFCs are to be ready: one for each replica, or where that is not so all that are `found`.

    These are as many as `before` or more, if the owner is as its `former` self, or has only got more replicas. If others have
    made it again, or reduced it, it may need fewer, but at least one for each replica.
    """
    if _has_one_vnfc_per_replica(obj):
        return replicas.count(obj, owner)
    if obj.key.group_kind == PODS or _state(former) == _state(owner):
        return max(before, found)
    if not obj.replicas():
        return found
    count, is_same = replicas.count(obj, owner), former is not None and _state(former)[0] == _state(owner)[0]
    return max(before if is_same and count >= replicas.count(obj, former) else count, found)


def _state(live: Object | None) -> tuple[object, object]:
    """Another one if the object was made again, or its spec has changed."""
    return field(live, "metadata", "uid"), field(live, "metadata", "generation")


def _has_one_vnfc_per_replica(obj: CustomResource) -> bool:
    """False for a custom resource whose replicas are several Pods each: a shard of a database has a primary and copies."""
    children = obj.children()
    return bool(obj.replicas()) and not (children and children.by_selector and not children.one_each)
