# SPDX-License-Identifier: Apache-2.0
"""The VNFCs that a grant, or the request for one, has removed (SOL003: `removeResources`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from k8s_cr_driver.vnf.scale_in import Choice


def chosen_vnfcs(info: Any, grant_req: Any) -> dict[str, set[str]]:
    """VDU id -> names of the VNFCs in the instantiatedVnfInfo that the grant request lists."""
    return _named(info, _removed(grant_req))


def to_remove(info: Any, grant_req: Any, grant: Any) -> Choice:
    """The VNFCs that a scale in is to remove: those that the NFVO grants, else those that Tacker has requested."""
    removed = _removed(grant) if grant else []
    if not removed:
        return Choice(chosen_vnfcs(info, grant_req))
    granted = {one.resourceDefinitionId for one in removed if one.obj_attr_is_set("resourceDefinitionId")}
    return Choice(_named(info, [one for one in _removed(grant_req) if one.id in granted]), by_nfvo=True)


def _named(info: Any, definitions: Sequence[Any]) -> dict[str, set[str]]:
    """VDU id -> names of the stored VNFCs that are among these ResourceDefinitions."""
    named = {(one.resourceTemplateId, one.resource.resourceId) for one in definitions if one.type == "COMPUTE"}
    chosen: dict[str, set[str]] = {}
    for one in info.vnfcResourceInfo:
        if (one.vduId, one.computeResource.resourceId) in named:
            chosen.setdefault(one.vduId, set()).add(one.computeResource.resourceId)
    return chosen


def _removed(grant: Any) -> Sequence[Any]:
    return (grant.removeResources or []) if grant.obj_attr_is_set("removeResources") else []
