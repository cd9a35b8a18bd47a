"""
The LCM verbs of Tacker's v2 API for vimType ETSINFV.KUBERNETES.V_1.

Each verb works out a set of objects and has the cluster converge on it; nothing else differs between them. This is also
the one boundary towards Tacker: what leaves it is a SolException with a detail that may be read by every user of the API.
"""

from __future__ import annotations

import contextlib
import functools
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from oslo_log import log as logging
from tacker.sol_refactored import objects
from tacker.sol_refactored.common import config
from tacker.sol_refactored.common import exceptions as sol_ex
from tacker.sol_refactored.common import vnf_instance_utils as inst_utils

from k8s_cr_driver import manifest, order, parameters, schema, vdus, vnfc
from k8s_cr_driver.connection import Connection, Endpoint
from k8s_cr_driver.discovery import Resources, discover
from k8s_cr_driver.engine.converge import converge
from k8s_cr_driver.engine.operation import Operation
from k8s_cr_driver.engine.write import Target
from k8s_cr_driver.errors import DriverError, InvalidRequest, Refused, capped, redact
from k8s_cr_driver.inventory import Inventory
from k8s_cr_driver.keys import Object, kind_of
from k8s_cr_driver.options import Options
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.registry import resource_for

LOG = logging.getLogger(__name__)
CONF = config.CONF

OPTIONS = "k8s_cr"
"""Key of instantiatedVnfInfo.metadata that keeps what instantiate was given."""
UNDO_SECONDS = 120.0


class Driver:
    """Stands where Tacker's own `Kubernetes` driver stands; made anew for each call, without state."""

    def instantiate(self, req: Any, inst: Any, grant_req: Any, grant: Any, vnfd: Any) -> None:
        with _boundary("instantiate", inst):
            options = Options().updated(_params(req))
            desired = _load(vnfd, options)
            with _Session(inst, grant_req, options) as session:
                resources = session.place(desired)
                assigned = _with_levels(vdus.assign(resources, vnfd.get_vdu_nodes(req.flavourId)), req, vnfd)
                session.converge(_merged(resources, assigned), prune=True)
                inst.instantiatedVnfInfo = objects.VnfInstanceV2_InstantiatedVnfInfo(
                    flavourId=req.flavourId,
                    vnfState="STARTED",
                    metadata={
                        "namespace": options.namespace,
                        "tenant": options.namespace,
                        "lcm-kubernetes-def-files": list(options.files),
                        "vdu_reses": {vdu: obj.manifest for vdu, obj in assigned.items()},
                        OPTIONS: options.as_params(),
                    },
                )
                session.tell_vnfcs(inst.instantiatedVnfInfo, assigned)

    def instantiate_rollback(self, req: Any, inst: Any, grant_req: Any, grant: Any, vnfd: Any) -> None:
        """Without the request's options, which may be what instantiate has failed for."""
        with _boundary("rollback of instantiate", inst), _Session(inst, grant_req, Options()) as session:
            session.converge([], prune=True)

    def terminate(self, req: Any, inst: Any, grant_req: Any, grant: Any, vnfd: Any) -> None:
        with _boundary("terminate", inst), _Session(inst, grant_req, _options(inst, req)) as session:
            session.converge([], prune=True, grace_period=_grace_period(req))

    def scale(self, req: Any, inst: Any, grant_req: Any, grant: Any, vnfd: Any) -> None:
        with _boundary("scale", inst):
            sign = 1 if req.type == "SCALE_OUT" else -1
            deltas = vnfd.get_scale_vdu_and_num(inst.instantiatedVnfInfo.flavourId, req.aspectId)
            self._scale(req, inst, grant_req, {vdu: sign * req.numberOfSteps * delta for vdu, delta in deltas.items()})

    def scale_rollback(self, req: Any, inst: Any, grant_req: Any, grant: Any, vnfd: Any) -> None:
        with _boundary("rollback of scale", inst):
            deltas = vnfd.get_scale_vdu_and_num(inst.instantiatedVnfInfo.flavourId, req.aspectId)
            self._scale(req, inst, grant_req, dict.fromkeys(deltas, 0))

    def _scale(self, req: Any, inst: Any, grant_req: Any, changes: Mapping[str, int]) -> None:
        """Stored count + change; never counted from the grant, which is empty where there are no VNFCs."""
        info = inst.instantiatedVnfInfo
        with _Session(inst, grant_req, _options(inst, req), keep_autoscaled=False) as session:
            assigned = session.assigned(info)
            scaled = {vdu: _scaled(vdu, assigned, change) for vdu, change in changes.items()}
            session.converge(list(scaled.values()), prune=False)
            info.metadata["vdu_reses"].update({vdu: obj.manifest for vdu, obj in scaled.items()})
            session.tell_vnfcs(info, {**assigned, **scaled})

    def heal(self, req: Any, inst: Any, grant_req: Any, grant: Any, vnfd: Any) -> None:
        _not_yet("heal")

    def change_vnfpkg(self, req: Any, inst: Any, grant_req: Any, grant: Any, vnfd: Any) -> None:
        _not_yet("change_vnfpkg")

    def change_vnfpkg_rollback(self, req: Any, inst: Any, grant_req: Any, grant: Any, vnfd: Any) -> None:
        _not_yet("rollback of change_vnfpkg")

    def diff_check_inst(self, inst: Any, vim_info: Any) -> None:
        """Tacker's periodic look at an instance: DbSyncNoDiff says that there is nothing to take over."""
        raise sol_ex.DbSyncNoDiff("There are no differences in Vnfc resources.")

    def sync_db(self, context: Any, vnf_instance: Any, vim_info: Any) -> None:
        raise sol_ex.DbSyncNoDiff("There are no differences in Vnfc resources.")


class _Session:
    """One verb's dealings with the instance's cluster."""

    def __init__(self, inst: Any, grant_req: Any, options: Options, *, keep_autoscaled: bool = True) -> None:
        vim = inst_utils.select_vim_info(inst.vimConnectionInfo)
        self._options, self._instance = options, inst.id
        self._connection = Connection(
            Endpoint.from_vim(
                vim.interfaceInfo, vim.accessInfo, verify_without_ca=CONF.k8s_cr.verify_tls_without_ca
            )
        )
        seconds = options.wait_timeout or CONF.v2_vnfm.kubernetes_vim_rsc_wait_timeout
        self._operation = Operation.lasting(seconds, id=str(grant_req.vnfLcmOpOccId), instance=inst.id)
        self._target = Target(
            self._connection,
            Inventory(self._connection, CONF.k8s_cr.inventory_namespace, inst.id),
            force=options.force_conflicts,
            adopt=options.adopt_existing,
            keep_autoscaled=keep_autoscaled,
        )
        self._resources: Resources

    def __enter__(self) -> _Session:
        self._connection.__enter__()
        self._resources = discover(self._connection)
        return self

    def __exit__(self, *error: Any) -> None:
        self._connection.__exit__(*error)

    def place(self, desired: list[Object]) -> list[CustomResource]:
        """The objects where they will be, checked against the package's own CRDs."""
        manifest.place(desired, self._resources.scope_of, self._options.namespace)
        crds = manifest.crds_of(desired)
        schema.check(desired)
        order.check(desired)
        for crd in crds.values():
            self._resources.add_crd(crd)
        return [resource_for(obj, crds.get(kind_of(obj))) for obj in desired]

    def converge(self, wanted: list[CustomResource], *, prune: bool, grace_period: int | None = None) -> None:
        run = functools.partial(converge, target=self._target, resources=self._resources, grace_period=grace_period)
        try:
            run(self._operation, wanted=wanted, prune=prune)
        except Refused as error:
            if wanted and self._target.inventory.is_new:
                self._undo(error)
            raise

    def _undo(self, refusal: Refused) -> None:
        """A package that the cluster refuses leaves nothing there: what was made before it was found out goes again."""
        LOG.info("%s: refused (%s); what was made is removed", self._operation.id, redact(str(refusal)))
        operation = Operation.lasting(UNDO_SECONDS, id=self._operation.id, instance=self._instance)
        try:
            converge(operation, self._target, self._resources, [], prune=True)
        except DriverError as error:
            LOG.warning("%s: not everything could be removed; rollback does it: %s", operation.id, redact(str(error)))

    def assigned(self, info: Any) -> dict[str, CustomResource]:
        """The VDUs' objects as they were last written."""
        return {vdu: resource_for(body) for vdu, body in info.metadata["vdu_reses"].items()}

    def tell_vnfcs(self, info: Any, assigned: Mapping[str, CustomResource]) -> None:
        """Sets vnfcResourceInfo (newest first: Tacker scales in from the front) and vnfcInfo."""
        found = vnfc.collect(self._connection, self._resources, assigned)
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
            objects.VnfcInfoV2(
                id=f"{one.vdu}-{one.id}", vduId=one.vdu, vnfcResourceInfoId=one.id, vnfcState="STARTED"
            )
            for one in found
        ]


def _load(vnfd: Any, options: Options) -> list[Object]:
    """The package's objects with parameters filled in; no cluster is asked."""
    declared = parameters.declared(vnfd.definitions)
    values = parameters.resolve(declared, options.parameters)
    return manifest.load(
        Path(vnfd.csar_dir),
        options.files,
        fill=lambda value: parameters.fill(value, declared, values),
        allow_remote=CONF.k8s_cr.allow_remote_manifests,
    )


def _with_levels(assigned: Mapping[str, CustomResource], req: Any, vnfd: Any) -> dict[str, CustomResource]:
    """With the counts of the VNFD's instantiation level; a VDU without one there keeps its manifest's."""
    level = req.instantiationLevelId if req.obj_attr_is_set("instantiationLevelId") else None
    level = level or vnfd.get_default_instantiation_level(req.flavourId)
    counts = {vdu: vnfd.get_vdu_num(req.flavourId, vdu, level) for vdu in assigned}
    return {vdu: vdus.with_replicas(obj, counts[vdu]) if counts[vdu] else obj for vdu, obj in assigned.items()}


def _merged(resources: list[CustomResource], assigned: Mapping[str, CustomResource]) -> list[CustomResource]:
    changed = {obj.key: obj for obj in assigned.values()}
    return [changed.get(obj.key, obj) for obj in resources]


def _scaled(vdu: str, assigned: Mapping[str, CustomResource], change: int) -> CustomResource:
    if vdu not in assigned:
        raise InvalidRequest(f"VDU {vdu} is not part of this instance; its VDUs: {', '.join(sorted(assigned))}")
    obj = assigned[vdu]
    if not obj.replicas():
        raise InvalidRequest(f"VDU {vdu} is {obj.key}, whose kind has no count to scale")
    return vdus.with_replicas(obj, vnfc.count(obj) + change)


def _params(req: Any) -> dict[str, Any]:
    return dict(req.additionalParams) if req.obj_attr_is_set("additionalParams") and req.additionalParams else {}


def _options(inst: Any, req: Any) -> Options:
    """What instantiate was given, overridden by what this request gives."""
    stored = inst.instantiatedVnfInfo.metadata.get(OPTIONS) or {}
    return Options().updated(stored).updated(_params(req))


def _grace_period(req: Any) -> int:
    if req.terminationType != "GRACEFUL":
        return 0
    if req.obj_attr_is_set("gracefulTerminationTimeout"):
        return int(req.gracefulTerminationTimeout)
    return int(CONF.v2_vnfm.default_graceful_termination_timeout)


def _not_yet(verb: str) -> None:
    raise sol_ex.SolException(
        sol_status=501, sol_title="Not implemented", sol_detail=f"k8s-cr-driver does not support {verb} yet."
    )


@contextlib.contextmanager
def _boundary(verb: str, inst: Any) -> Iterator[None]:
    """Every error leaves as a SolException without a chain: Tacker logs chains and sends details to every subscriber."""
    try:
        yield
    except sol_ex.SolException:
        raise
    except DriverError as error:
        text = redact(str(error))
        LOG.error("%s of VNF instance %s failed: %s", verb, inst.id, text)
        raise sol_ex.SolException(
            sol_status=error.status, sol_title=error.title, sol_detail=capped(text)
        ) from None
    except Exception as error:
        LOG.error("%s of VNF instance %s failed: %s", verb, inst.id, redact(traceback.format_exc()))
        raise sol_ex.SolException(
            sol_detail=f"{verb} failed in the driver itself ({type(error).__name__}); see the conductor's log"
        ) from None
