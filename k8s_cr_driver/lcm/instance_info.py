# SPDX-License-Identifier: Apache-2.0
"""Tacker's record of one VNF instance (SOL003 instantiatedVnfInfo): what this driver stores in it and reads again.

A verb reads the record once, at its start, into a `StoredInstance`, and writes it once, at its end. So a verb that fails
leaves the record as it was. The record is changed in place, because Tacker keeps other things in it: scaleStatus would be
lost in the rollback of a change of the VNF package.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tacker.sol_refactored import objects
from tacker.sol_refactored.common import vnf_instance_utils as inst_utils

from k8s_cr_driver.errors import InvalidRequest, Refused
from k8s_cr_driver.journal.inventory import Inventory
from k8s_cr_driver.journal.stored_form import InventoryContent
from k8s_cr_driver.lcm import recorded_inventory
from k8s_cr_driver.objects.keys import Object, labels
from k8s_cr_driver.objects.marks import INSTANCE_LABEL
from k8s_cr_driver.vnf import counts, vdus
from k8s_cr_driver.vnf.additional_params import FILES, OF_ONE_REQUEST, Options
from k8s_cr_driver.vnf.vdus import VduObjects
from k8s_cr_driver.vnf.vnfcs import Vnfc

OWN = "k8s_cr"
"""Key of instantiatedVnfInfo.metadata under which this driver keeps what Tacker's own driver has no key for: the options
of the instance, and the keys below."""

ENDPOINT = "endpoint"
"""Key in `OWN`: URL of the cluster on which the instance is."""

INVENTORY = "inventory"
"""Key in `OWN`: see `recorded_inventory`. [k8s_cr] inventory_namespace may have changed since."""

BY_INTREE_DRIVER = "made-by-tacker"
"""Key in `OWN`: whether the in-tree driver has instantiated the instance."""

NEW_ASPECTS = "new-scaling-aspects"
"""Key in `OWN`: scaling aspects of the package that Tacker's scaleStatus does not have yet."""

VERSION = "version"
"""Key in `OWN`: version of the record, an integer. Absent in records of the first form, which had no VNFC_MARK."""

RECORD_VERSION = 2
"""The version of a record with VDU_PARTS; others have 1. The driver reads older ones, and refuses newer ones: it would drop
what they add."""

VDU_PARTS = "vdu-parts"
"""Key in `OWN`: VDU id -> part, of the VDUs that are a part of an object."""

COUNTS = "counts"
"""Key in `OWN`: VDU id -> count in `VDUS`, of the VDUs of which only a CRD says where in the manifest it is."""

PROJECT = "project"
"""Key in `OWN`: the project that has instantiated the instance. Absent in records before it, until a user of one acts."""

TENANT = "tenant"
"""Key in `OWN`: whether a tenant has given the instance its package, see `permitted.is_tenant`. Absent in earlier records."""

VNFD_ID = "vnfd-id"
"""Key in `OWN`: the VNFD of the last instantiate or change of package; a MODIFY may have named another one since. Absent in
records before it, and not to be believed if the in-tree driver has acted since."""

LEFT = "optional-not-ready"
"""Key in `OWN`: a line for each optional object that was not ready at the end of the last operation, worst first. Tacker's
record of a completed operation has no field for it, and customers read this one."""

LEFT_LINES, LEFT_LENGTH = 20, 500
"""Lines of LEFT at most, and characters of each."""

VNFC_MARK = {"managed-by": "k8s-cr-driver"}
"""In the metadata of each VNFC that this driver stores. The in-tree driver stores all VNFCs again, without metadata."""

VDUS = "vdu_reses"
"""Key of instantiatedVnfInfo.metadata for the VDUs' manifests with the desired counts; the in-tree driver's key."""

_INTREE_VDUS = ("Pod", "Deployment", "DaemonSet", "StatefulSet", "ReplicaSet")
"""Kinds that can be a VDU for the in-tree driver."""


@dataclass
class StoredInstance:
    """The record of one instance. A verb changes the attributes; `write` puts them into Tacker's record."""

    record: Any
    """Tacker's VnfInstanceV2; only `read` and `write` use it."""
    id: str
    vim: Any
    """The VimConnectionInfo of the operation."""
    info: Any
    """Tacker's instantiatedVnfInfo; None before instantiate."""
    options: Options
    """Those of instantiate or of a later change of the VNF package."""
    vdus: VduObjects
    """As last written, with the desired counts."""
    counts: dict[str, int]
    """See `COUNTS`; those of VDUs whose CRD the verb has read are written again."""
    is_pending: bool
    """Whether the in-tree driver was the last to write the record of an instance that is instantiated."""
    by_intree_driver: bool
    """Whether the in-tree driver has instantiated the instance."""
    endpoint: str
    """URL of the cluster on which the instance is; "" before instantiate."""
    inventory_namespace: str | None
    inventory_content: InventoryContent
    """As of the last verb, in case somebody deletes the inventory."""
    new_aspects: list[str]
    project: str
    """That of the instance's VIM; "" if it is not known."""
    vnfd_id: str
    """See `VNFD_ID`; "" if it is not known."""
    is_tenants: bool
    """See `TENANT`."""
    left: list[str]
    """See `LEFT`."""

    @classmethod
    def read(cls, record: Any) -> StoredInstance:
        info = record.instantiatedVnfInfo if record.obj_attr_is_set("instantiatedVnfInfo") else None
        metadata: dict[str, Any] = (info.metadata if info and info.obj_attr_is_set("metadata") else None) or {}
        own = metadata.get(OWN) or {}
        _check_version(record, own)
        namespace, content = recorded_inventory.parse(own.get(INVENTORY))
        is_pending = bool(metadata) and not (own and _is_written_by_us(own, info))
        return cls(
            record,
            str(record.id),
            inst_utils.select_vim_info(record.vimConnectionInfo),
            info if metadata else None,
            _options(metadata),
            _vdus(metadata, own.get(VDU_PARTS) or {}),
            own.get(COUNTS) or {},
            is_pending=is_pending,
            by_intree_driver=bool(metadata) and (not own or own.get(BY_INTREE_DRIVER) is True),
            endpoint=own.get(ENDPOINT) or "",
            inventory_namespace=namespace,
            inventory_content=content,
            new_aspects=own.get(NEW_ASPECTS) or [],
            project=own.get(PROJECT) or "",
            vnfd_id="" if is_pending or _has_other_files(metadata, own) else own.get(VNFD_ID) or "",
            is_tenants=own.get(TENANT) is True,
            left=own.get(LEFT) or [],
        )

    @property
    def flavour(self) -> str:
        return str(self.info.flavourId)

    @property
    def is_moved(self) -> bool:
        """Whether the operation has another endpoint than the last verb."""
        return bool(self.endpoint) and self.endpoint != self.vim.interfaceInfo["endpoint"]

    def start(self, flavour: str) -> None:
        """Begins the record of an instance that has been instantiated."""
        self.info = objects.VnfInstanceV2_InstantiatedVnfInfo(flavourId=flavour, vnfState="STARTED", metadata={})

    def write(self, found: Sequence[Vnfc], inventory: Inventory | None = None, left: Sequence[str] = ()) -> None:
        """Writes the attributes, the VNFCs in `found` (newest first) and what the inventory names into Tacker's record.

        With an inventory also what an operation has `left` not ready.

        Without an inventory, as in the database synchronization, an instance of the in-tree driver stays one.
        """
        metadata = self.info.metadata
        if inventory:
            self.is_pending = False
            self.inventory_namespace, self.inventory_content = inventory.key.namespace, inventory.content
            self.left = [line[:LEFT_LENGTH] for line in left[:LEFT_LINES]]
        if self.inventory_namespace is not None:
            namespace = self._namespace()
            metadata.update({"namespace": namespace, "tenant": namespace, FILES: list(self.options.files)})
            known = {**self.counts, **counts.recorded(self.vdus)}
            self.counts = {vdu: count for vdu, count in known.items() if vdu in self.vdus}
            metadata[OWN] = self._own()
        # With the label by which the in-tree driver selects its objects, should an operator go back to it.
        metadata[VDUS] = {vdu: _labelled(obj.manifest, self.id) for vdu, obj in self.vdus.items()}
        _write_vnfcs(self.info, found, {} if self.is_pending else VNFC_MARK)
        self.record.instantiatedVnfInfo = self.info

    def vnfcs(self) -> dict[str, dict[str, str]]:
        """VNFC id -> its metadata: a Pod or a Machine gets its node some time after it was created."""
        return {
            one.id: {key: value for key, value in _metadata(one).items() if key not in VNFC_MARK}
            for one in self.info.vnfcResourceInfo
        }

    def on_cluster(self, default_inventory_namespace: str) -> str:
        """What the record says about the instance's objects, for an operator who has to find them on the cluster."""
        vdus = {vdu: obj.key for vdu, obj in self.vdus.items()}
        namespaces = {self._namespace(), *(key.namespace for key in vdus.values())} - {""}
        inventory = self.inventory_namespace or default_inventory_namespace
        return (
            f"VDUs {', '.join(f'{vdu} ({key})' for vdu, key in sorted(vdus.items())) or 'none'}; "
            f"namespaces {', '.join(sorted(namespaces))}; the inventory ConfigMap {inventory}/k8s-cr-driver-{self.id}"
        )

    def check_flavour(self, vnfd: Any) -> None:
        """InvalidRequest if the package does not have the flavour of the instance."""
        if vnfd.get_vnfd_flavour(self.flavour) is None:
            raise InvalidRequest(
                f"vnfdId: the package has no flavour {self.flavour!r}, which is this instance's; add it"
            )

    def check_applied(self, vnfd: Any) -> None:
        """Refused if Tacker hands over another package than the one whose objects a scale, a heal or a rollback is about."""
        if self.vnfd_id not in ("", vnfd.vnfd_id):
            raise Refused(
                f"vnfdId: a MODIFY has named {vnfd.vnfd_id!r}, but the objects are those of {self.vnfd_id!r}: change the "
                "current VNF package to the one that you want; fail a failed operation before"
            )

    def _namespace(self) -> str:
        """The in-tree driver keeps one namespace for each instance."""
        namespaces = {obj.key.namespace for obj in self.vdus.values()} - {""}
        return namespaces.pop() if len(namespaces) == 1 else self.options.namespace

    def _own(self) -> dict[str, Any]:
        parts = {vdu: obj.part for vdu, obj in self.vdus.items() if obj.part}
        return {
            VERSION: RECORD_VERSION if parts else 1,
            **({VDU_PARTS: parts} if parts else {}),
            **({COUNTS: self.counts} if self.counts else {}),
            **self.options.as_params(),
            **({PROJECT: self.project} if self.project else {}),
            **({VNFD_ID: self.vnfd_id} if self.vnfd_id else {}),
            **({TENANT: True} if self.is_tenants else {}),
            **({LEFT: self.left} if self.left else {}),
            ENDPOINT: self.vim.interfaceInfo["endpoint"],
            BY_INTREE_DRIVER: self.by_intree_driver,
            INVENTORY: recorded_inventory.form(self.inventory_namespace, self.inventory_content),
            **({NEW_ASPECTS: self.new_aspects} if self.new_aspects else {}),
        }


def project_of(record: Any) -> str:
    """The project of an instance by Tacker's record of it; "" if it is not known."""
    info = record.instantiatedVnfInfo if record.obj_attr_is_set("instantiatedVnfInfo") else None
    metadata = (info.metadata if info and info.obj_attr_is_set("metadata") else None) or {}
    return str((metadata.get(OWN) or {}).get(PROJECT) or "")


def _check_version(record: Any, own: dict[str, Any]) -> None:
    if own.get(VERSION, 0) > RECORD_VERSION:
        raise Refused(
            f"The record of VNF instance {record.id} has version {own[VERSION]}: a newer k8s-cr-driver has written it. This "
            f"one knows versions up to {RECORD_VERSION}; upgrade it on this conductor."
        )


def _has_other_files(metadata: dict[str, Any], own: dict[str, Any]) -> bool:
    """Whether container_update_mgmt_v2 has acted: of an instance without Pods as VNFCs, no VNFC shows that."""
    return FILES in own and list(own[FILES]) != list(metadata.get(FILES) or [])


def _vdus(metadata: dict[str, Any], parts: dict[str, str]) -> VduObjects:
    return {vdu: vdus.stored(manifest, parts.get(vdu, "")) for vdu, manifest in metadata.get(VDUS, {}).items()}


def _is_written_by_us(own: dict[str, Any], info: Any) -> bool:
    vnfcs = info.vnfcResourceInfo
    if VERSION in own:
        return all(VNFC_MARK.items() <= _metadata(one).items() for one in vnfcs)
    # Records of the first form have the node of each Pod, but a Pod may have none yet.
    pods = [one for one in vnfcs if one.computeResource.vimLevelResourceType in _INTREE_VDUS]
    return not pods or any(_metadata(one) for one in pods)


def _metadata(vnfc: Any) -> dict[str, str]:
    return dict(vnfc.metadata) if vnfc.obj_attr_is_set("metadata") and vnfc.metadata else {}


def _options(metadata: dict[str, Any]) -> Options:
    """The in-tree driver keeps two of the options, under the same names, in the metadata itself."""
    if not metadata:
        return Options()
    kept = metadata.get(OWN) or metadata
    # Tacker's management driver for a MODIFY of the package, container_update_mgmt_v2, writes other files there.
    kept = {**kept, FILES: metadata[FILES]}
    # Records of the first form have the options of one request, too.
    return Options().updated({key: value for key, value in kept.items() if key not in OF_ONE_REQUEST})


def _labelled(manifest: Object, instance: str) -> Object:
    label = {INSTANCE_LABEL: instance}
    return {**manifest, "metadata": {**manifest["metadata"], "labels": labels(manifest) | label}}


def _write_vnfcs(info: Any, found: Sequence[Vnfc], mark: Mapping[str, str]) -> None:
    """In the order of `found`: for a scale in Tacker puts the first ones into the grant request."""
    info.vnfcResourceInfo = [
        objects.VnfcResourceInfoV2(
            id=one.id,
            vduId=one.vdu,
            computeResource=objects.ResourceHandle(resourceId=one.name, vimLevelResourceType=one.kind),
            metadata={**one.metadata, **mark},
        )
        for one in found
    ]
    info.vnfcInfo = [
        objects.VnfcInfoV2(id=f"{one.vdu}-{one.name}", vduId=one.vdu, vnfcResourceInfoId=one.id, vnfcState="STARTED")
        for one in found
    ]
