# SPDX-License-Identifier: Apache-2.0
"""Asks the controllers of VDUs to remove, in a scale in, the VNFCs that the grant names (SOL003 clause 9.5.2.3).

A controller is asked by annotations on its Pods or Machines, written before the count changes. They are applied by a field
manager of their own, so that an annotation that a user has set is not removed with them. A StatefulSet cannot be asked.
Annotations of a scale in that has failed are removed at its end, or else when the VNFCs are read next.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple

from k8s_cr_driver import logs
from k8s_cr_driver.errors import ApiError, Contended, DriverError, Forbidden, InvalidRequest
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.objects.fields import entries
from k8s_cr_driver.objects.keys import Object, bare, key_of, kind_of
from k8s_cr_driver.redaction import redact
from k8s_cr_driver.resources import replicas
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.vnf import vnfcs
from k8s_cr_driver.vnf.descent import Descent
from k8s_cr_driver.vnf.vdus import VduObjects
from k8s_cr_driver.writes.write_errors import is_denied, is_denied_for_good

LOG = logs.logger(__name__)

MANAGER = "k8s-cr-scale-in"
"""Unlike `marks.manager` of any instance, whatever its name."""


class Choice(NamedTuple):
    """The VNFCs that a scale in is to remove."""

    names: Mapping[str, Collection[str]]
    """VDU id -> names of VNFCs."""
    by_nfvo: bool = False
    """Whether the NFVO's grant names them. Otherwise only Tacker's request for the grant does, which names the newest."""


def concerned(scaled: VduObjects, choice: Choice) -> dict[str, CustomResource]:
    """
    The VDUs of which VNFCs are chosen while others stay, and whose controllers can be asked.

    If the NFVO has chosen, also those whose controllers cannot be asked: they may have an order of their own.
    """
    return {
        vdu: obj
        for vdu, obj in scaled.items()
        if choice.names.get(vdu) and replicas.count(obj) and (choice.by_nfvo or obj.scaling().removal_annotations)
    }


def request(
    client: Client, instance: str, scaled: VduObjects, choice: Choice, may_own: Callable[[Object], bool]
) -> None:
    """
    Annotates the chosen VNFCs, and no others, of the VDUs in `scaled`, which are their objects with the new counts.

    Before the first write: InvalidRequest, if the NFVO has chosen VNFCs that the kind of a VDU cannot remove first.
    """
    members = vnfcs.members(client, instance, scaled)
    if choice.by_nfvo:
        for vdu in scaled:
            _check(vdu, scaled, members, set(choice.names.get(vdu, ())))
    descent = Descent(client, instance, may_own)
    for vdu, several in members.children.items():
        for child, asked in _changes(scaled[vdu].scaling().removal_annotations, several, choice.names.get(vdu, ())):
            if _is_own(scaled[vdu], child, descent):
                _annotate(client, child, asked, must=choice.by_nfvo)


def withdraw(
    client: Client,
    instance: str,
    vdus: VduObjects,
    children: Mapping[str, list[Object]],
    may_own: Callable[[Object], bool],
) -> None:
    """Removes the annotations from VNFCs of VDUs (`children`: VDU id -> live objects) that a scale in has not removed."""
    descent = Descent(client, instance, may_own)
    for vdu, several in children.items():
        for child in filter(_is_annotated, several):
            try:
                if _is_own(vdus[vdu], child, descent):
                    _annotate(client, child, {}, must=False)
            except DriverError as error:
                LOG.warning("%s is still annotated for removal by a scale in: %s", key_of(child), redact(str(error)))


def _is_own(obj: CustomResource, child: Object, descent: Descent) -> bool:
    """Whether a VNFC is the instance's. The selector in a status may find those of others as well."""
    children = obj.children()
    return not (children and children.by_selector) or descent.includes(child)


def _check(vdu: str, scaled: VduObjects, members: vnfcs.Members, names: set[str]) -> None:
    obj, several = scaled[vdu], members.children.get(vdu, [])
    if obj.scaling().removal_annotations or not names:
        return
    order = obj.scaling().removal_order(several)
    if order is None:
        LOG.warning("%s decides itself which VNFCs of VDU %s a scale in removes, not the grant", obj.key, vdu)
        return
    less = replicas.count(obj, members.owners.get(obj.key)) - replicas.count(obj)
    removed = [one["metadata"]["name"] for one in order[: max(less, 0)]]
    if others := names & {one["metadata"]["name"] for one in several} - set(removed):
        raise InvalidRequest(
            f"removeResources: the grant chooses {', '.join(sorted(others))} of VDU {vdu}, but {obj.key} can only remove "
            f"{', '.join(removed) or 'none'}, its highest ordinals; have the NFVO grant these"
        )


def _changes(
    asked: Mapping[str, str], several: list[Object], names: Collection[str]
) -> Iterator[tuple[Object, Mapping[str, str]]]:
    """The chosen ones of `several`, and those that a scale in before has chosen, which failed or removed others."""
    for child in several:
        if child["metadata"]["name"] in names and asked:
            yield child, asked
        elif _is_annotated(child):
            yield child, {}


def _is_annotated(child: Object) -> bool:
    return any(entry.get("manager") == MANAGER for entry in entries(child, "metadata", "managedFields"))


def _annotate(client: Client, child: Object, asked: Mapping[str, str], *, must: bool) -> None:
    """By server-side apply, in place of what was applied before. With the uid, so that a deleted child is not created again."""
    resource = client.resources.find(kind_of(child))
    if resource is None:
        return
    key, metadata = key_of(child), {"uid": child["metadata"]["uid"], "annotations": asked}
    try:
        client.apply(resource, bare(key, resource.api_version, **metadata), MANAGER, force=True, live=child)
    except ApiError as error:
        if error.status == 404:  # an apply would create the object: the path is missing
            raise Contended(f"{key}: {error}") from None
        if error.status == 409 and not is_denied(error):
            return
        if error.status not in (403, 409) and not is_denied_for_good(error):
            raise
        if must:
            raise Forbidden(f"{key}: cannot be annotated, so that a scale in removes it: {error.message}") from None
        LOG.warning("%s cannot be annotated, a scale in may remove another one: %s", key, error.message)
