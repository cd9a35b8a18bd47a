"""An instance as Tacker stores it, in instantiatedVnfInfo: what this driver keeps there and reads again.

Changed in place, for Tacker keeps other things beside (scaleStatus would be lost in a rollback of a change of package).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oslo_log import log as logging
from tacker.sol_refactored import objects
from tacker.sol_refactored.common import vnf_instance_utils as inst_utils

from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, key_of, labels
from k8s_cr_driver.ownership.inventory import NOTHING, Inventory, InventoryContent
from k8s_cr_driver.ownership.labels import INSTANCE_LABEL
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.registry import resource_for
from k8s_cr_driver.vnf import vnfcs
from k8s_cr_driver.vnf.additional_params import FILES, Options
from k8s_cr_driver.vnf.vdus import VduObjects

LOG = logging.getLogger(__name__)
OPTIONS = "k8s_cr"
"""Key of instantiatedVnfInfo.metadata that keeps what instantiate was given."""

ENDPOINT = "endpoint"
"""Key beside the options: where the instance is."""

INVENTORY = "inventory"
"""Key beside the options: where its inventory is, whatever the option says by now, and what that said last."""

BY_TACKER = "made-by-tacker"
"""Key beside the options: whether Tacker's own driver has instantiated it."""

VDUS = "vdu_reses"
"""Key of instantiatedVnfInfo.metadata for the VDUs' manifests, as Tacker's own driver has it: their counts are wanted."""


def keep(inst: Any, options: Options, assigned: VduObjects, inventory: Inventory) -> None:
    """What later verbs need, and in Tacker's own keys what its own driver needs to go on with the instance."""
    by_tacker = is_by_tacker(inst)
    namespaces = {obj.key.namespace for obj in assigned.values()}
    namespace = namespaces.pop() if len(namespaces) == 1 else options.namespace
    inst.instantiatedVnfInfo.metadata.update(
        {
            "namespace": namespace,
            "tenant": namespace,
            FILES: list(options.files),
            VDUS: _labelled(inst, assigned),
        }
    )
    keep_options(inst, options, inventory, by_tacker=by_tacker)


def keep_options(inst: Any, options: Options, inventory: Inventory, *, by_tacker: bool) -> None:
    """What later verbs need beside Tacker's own keys."""
    vim = inst_utils.select_vim_info(inst.vimConnectionInfo)
    inst.instantiatedVnfInfo.metadata[OPTIONS] = {
        **options.as_params(),
        ENDPOINT: vim.interfaceInfo["endpoint"],
        BY_TACKER: by_tacker,
    }
    remember(inst.instantiatedVnfInfo, inventory)


def is_by_tacker(inst: Any) -> bool:
    """Whether Tacker's own driver has instantiated it."""
    metadata = metadata_of(inst)
    return bool(metadata) and (OPTIONS not in metadata or metadata[OPTIONS].get(BY_TACKER) is True)


def update_vdus(inst: Any, assigned: VduObjects) -> None:
    """Some of the VDUs' objects as they have now been written."""
    inst.instantiatedVnfInfo.metadata[VDUS].update(_labelled(inst, assigned))


def _labelled(inst: Any, assigned: VduObjects) -> dict[str, Object]:
    """With the label by which Tacker's own driver knows its objects, should an operator go back to it."""
    label = {INSTANCE_LABEL: inst.id}
    return {
        vdu: {**obj.manifest, "metadata": {**obj.manifest["metadata"], "labels": labels(obj.manifest) | label}}
        for vdu, obj in assigned.items()
    }


def remember(info: Any, inventory: Inventory) -> None:
    """Keeps what the inventory says, should somebody delete it."""
    info.metadata[OPTIONS][INVENTORY] = {
        "namespace": inventory.key.namespace,
        "kinds": sorted(map(str, inventory.content.kinds)),
        "namespaces": sorted(inventory.content.namespaces),
        "adopted": sorted(map(list, inventory.content.adopted)),
    }


def remembered(inst: Any) -> tuple[str | None, InventoryContent]:
    """The namespace of the instance's inventory and what that said last; None and nothing before it is instantiated."""
    kept = metadata_of(inst).get(OPTIONS, {}).get(INVENTORY)
    if kept is None:
        return None, NOTHING
    return kept["namespace"], InventoryContent(
        frozenset(map(GroupKind.parse, kept["kinds"])),
        frozenset(kept["namespaces"]),
        frozenset(ObjectKey(*one) for one in kept["adopted"]),
    )


def kept(inst: Any) -> dict[str, Any]:
    """What this driver has stored; empty before instantiate, and for an instance that Tacker's own driver has made."""
    return metadata_of(inst).get(OPTIONS) or {}


def metadata_of(inst: Any) -> dict[str, Any]:
    """instantiatedVnfInfo.metadata; empty before instantiate."""
    if not inst.obj_attr_is_set("instantiatedVnfInfo") or not inst.instantiatedVnfInfo.obj_attr_is_set("metadata"):
        return {}
    return inst.instantiatedVnfInfo.metadata or {}


def tell(info: Any, found: Sequence[vnfcs.Vnfc]) -> None:
    """Sets vnfcResourceInfo (newest first: Tacker scales in from the front) and vnfcInfo."""
    info.vnfcResourceInfo = [
        objects.VnfcResourceInfoV2(
            id=one.id,
            vduId=one.vdu,
            computeResource=objects.ResourceHandle(resourceId=one.id, vimLevelResourceType=one.kind),
            metadata=one.metadata,
        )
        for one in found
    ]
    info.vnfcInfo = [
        objects.VnfcInfoV2(id=f"{one.vdu}-{one.id}", vduId=one.vdu, vnfcResourceInfoId=one.id, vnfcState="STARTED")
        for one in found
    ]


def known_vnfcs(info: Any) -> dict[str, dict[str, str]]:
    """VNFC id -> its metadata: a Pod or Machine has a Node some time after it was made."""
    return {one.id: dict(one.metadata) if one.obj_attr_is_set("metadata") else {} for one in info.vnfcResourceInfo}


def assigned_vdus(info: Any) -> dict[str, CustomResource]:
    """The VDUs' objects as they were last written."""
    return {vdu: resource_for(body) for vdu, body in info.metadata[VDUS].items()}


def chosen_vnfcs(info: Any, grant_req: Any) -> dict[str, set[str]]:
    """VDU id -> ids of the VNFCs that a heal replaces, as the grant names them."""
    named = {
        (one.resourceTemplateId, one.resource.resourceId)
        for one in (grant_req.removeResources if grant_req.obj_attr_is_set("removeResources") else [])
        if one.type == "COMPUTE"
    }
    chosen: dict[str, set[str]] = {}
    for one in info.vnfcResourceInfo:
        if (one.vduId, one.computeResource.resourceId) in named:
            chosen.setdefault(one.vduId, set()).add(one.id)
    return chosen


def told(inst: Any, inventory: str) -> str:
    """What the instance has on its cluster as far as Tacker knows, for an operator who looks for it there."""
    metadata = inst.instantiatedVnfInfo.metadata
    vdus = {vdu: key_of(body) for vdu, body in metadata[VDUS].items()}
    namespaces = {metadata["namespace"], *(key.namespace for key in vdus.values())} - {""}
    return (
        f"VDUs {', '.join(f'{vdu} ({key})' for vdu, key in sorted(vdus.items())) or 'none'}; "
        f"namespaces {', '.join(sorted(namespaces))}; the inventory ConfigMap {inventory}/k8s-cr-driver-{inst.id}"
    )


def check_endpoint(inst: Any) -> None:
    before = kept(inst).get(ENDPOINT)
    now = inst_utils.select_vim_info(inst.vimConnectionInfo).interfaceInfo.get("endpoint")
    if before and now != before:
        raise InvalidRequest(
            f"vimConnectionInfo: the endpoint cannot change with the package: the instance is on {before}, not on {now}"
        )


def check_flavour(inst: Any, vnfd: Any) -> None:
    flavour = inst.instantiatedVnfInfo.flavourId
    if vnfd.get_vnfd_flavour(flavour) is None:
        raise InvalidRequest(f"vnfdId: the package has no flavour {flavour!r}, which is this instance's; add it")


def stored_options(inst: Any) -> Options:
    """What instantiate, or a later request, was given; Tacker's own driver keeps two of the keys, under the same names."""
    metadata = inst.instantiatedVnfInfo.metadata
    # Tacker's management driver for a MODIFY of the package, container_update_mgmt_v2, writes other files there.
    return Options().updated({**(metadata.get(OPTIONS) or metadata), FILES: metadata[FILES]})
