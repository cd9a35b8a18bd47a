"""The LCM verbs of Tacker's v2 API for vimType ETSINFV.KUBERNETES.V_1.

Each verb works out a set of objects and has the cluster converge on it; nothing else differs between them. What leaves
a verb is the matter of `boundary`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tacker.sol_refactored import objects
from tacker.sol_refactored.common import config
from tacker.sol_refactored.common import exceptions as sol_ex
from tacker.sol_refactored.common import vnf_instance_utils as inst_utils
from tacker.sol_refactored.nfvo import nfvo_client
from tacker.sol_refactored.objects.v2 import fields

from k8s_cr_driver.engine.operation import Operation
from k8s_cr_driver.engine.reconcile import Prune
from k8s_cr_driver.errors import DriverError, InvalidRequest
from k8s_cr_driver.lcm import instance_info, intree_driver, scale_status
from k8s_cr_driver.lcm.problem_details import abandoning, boundary
from k8s_cr_driver.lcm.vim import endpoint as vim_endpoint
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.package import manifests, parameters, substitution, tosca_meta
from k8s_cr_driver.resources import replicas
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.vnf import counts, vdus, vnfcs
from k8s_cr_driver.vnf.additional_params import Options, flag
from k8s_cr_driver.vnf.session import Session
from k8s_cr_driver.vnf.vdus import VduObjects

CONF = config.CONF


class Driver:
    """Stands where Tacker's own `Kubernetes` driver stands; made anew for each call, without state."""

    def instantiate(self, req: Any, inst: Any, grant_req: Any, grant: Any, vnfd: Any) -> None:
        with boundary("instantiate", inst, grant_req):
            options = Options().updated(_params(req))
            desired, options = _load(inst, vnfd, options)
            with _session(inst, grant_req, options) as session:
                resources = session.place(desired)
                level = req.instantiationLevelId if req.obj_attr_is_set("instantiationLevelId") else None
                assigned = _assigned(resources, vnfd, req.flavourId, options)
                assigned = counts.at_level(assigned, vnfd, req.flavourId, level)
                session.reconcile(_merged(resources, assigned), prune=Prune(unlabeled=False), first=True)
                inst.instantiatedVnfInfo = objects.VnfInstanceV2_InstantiatedVnfInfo(
                    flavourId=req.flavourId, vnfState="STARTED", metadata={}
                )
                instance_info.keep(inst, options, assigned, session.inventory)
                instance_info.tell(inst.instantiatedVnfInfo, session.vnfcs(assigned))

    def instantiate_rollback(self, req: Any, inst: Any, grant_req: Any, grant: Any, vnfd: Any) -> None:
        """Without the request's options, which may be what instantiate has failed for; be it that of Tacker's own driver."""
        with boundary("rollback of instantiate", inst, grant_req), _session(inst, grant_req, Options()) as session:
            session.recall(_written(inst, vnfd, req))
            if recalled := session.inventory.remembered.kinds:
                session.take_over(intree_driver.intree_driver(str(_params(req).get("namespace") or "default"), recalled))
            session.reconcile([], prune=Prune())

    def terminate(self, req: Any, inst: Any, grant_req: Any, grant: Any, vnfd: Any) -> None:
        """With `abandon`, what cannot be deleted until the deadline is left where it is, and logged."""
        with boundary("terminate", inst, grant_req):
            options, abandon, grace_period = _options(inst, req), _is_set(req, "abandon"), _grace_period(req)
            guard = abandoning(inst) if abandon else contextlib.nullcontext()
            with guard, _session(inst, grant_req, options, extra=grace_period, abandon=abandon) as session:
                session.reconcile([], prune=Prune(grace_period))

    def scale(self, req: Any, inst: Any, grant_req: Any, grant: Any, vnfd: Any) -> None:
        with boundary("scale", inst, grant_req):
            sign = 1 if req.type == "SCALE_OUT" else -1
            deltas = vnfd.get_scale_vdu_and_num(inst.instantiatedVnfInfo.flavourId, req.aspectId)
            changes = {vdu: sign * req.numberOfSteps * delta for vdu, delta in deltas.items()}
            self._scale(inst, grant_req, _options(inst, req), changes)

    def scale_rollback(self, req: Any, inst: Any, grant_req: Any, grant: Any, vnfd: Any) -> None:
        """Without the request's options, which may be what scale has failed for."""
        with boundary("rollback of scale", inst, grant_req):
            deltas = vnfd.get_scale_vdu_and_num(inst.instantiatedVnfInfo.flavourId, req.aspectId)
            self._scale(inst, grant_req, instance_info.stored_options(inst), dict.fromkeys(deltas, 0))

    def _scale(self, inst: Any, grant_req: Any, options: Options, changes: Mapping[str, int]) -> None:
        """Stored count + change; never counted from the grant, which is empty where there are no VNFCs."""
        info = inst.instantiatedVnfInfo
        with _session(inst, grant_req, options, keep_autoscaled=False) as session:
            assigned = session.restored(instance_info.assigned_vdus(info))
            scaled = {vdu: counts.changed(vdu, assigned, change) for vdu, change in changes.items()}
            session.reconcile(list(scaled.values()), prune=None, replacement=session.shrinkage(scaled))
            instance_info.update_vdus(inst, scaled)
            instance_info.remember(info, session.inventory)
            instance_info.tell(info, session.vnfcs({**assigned, **scaled}))

    def heal(self, req: Any, inst: Any, grant_req: Any, grant: Any, vnfd: Any) -> None:
        """Chosen VNFCs, or all: Pods and Machines are replaced, the objects of the others applied again."""
        with boundary("heal", inst, grant_req):
            info, options, recreate = inst.instantiatedVnfInfo, _options(inst, req), _is_set(req, "recreate")
            everything = not req.obj_attr_is_set("vnfcInstanceId")
            desired = _load(inst, vnfd, options)[0] if everything else []
            chosen = instance_info.chosen_vnfcs(info, grant_req)
            with _session(inst, grant_req, options) as session:
                assigned = session.restored(instance_info.assigned_vdus(info))
                wanted = _merged(session.place(desired), assigned) if everything else [assigned[vdu] for vdu in chosen]
                renewal = session.renewal(assigned, chosen, everything=everything, recreate=recreate)
                session.reconcile(wanted, prune=None, replacement=renewal)
                instance_info.remember(info, session.inventory)
                instance_info.tell(info, session.vnfcs(assigned))

    def change_vnfpkg(self, req: Any, inst: Any, grant_req: Any, grant: Any, vnfd: Any) -> None:
        """`vnfd` is the new package. Counts and parameters stay unless the request gives new ones."""
        with boundary("change of the current VNF package", inst, grant_req):
            given = _params(req).get("parameters") or {}
            options = _options(inst, req)
            instance_info.check_endpoint(inst)
            instance_info.check_flavour(inst, vnfd)
            desired, options = _load(inst, vnfd, options, given)
            former = _with_parameters_of(inst, vnfd, options) if given else None
            self._change(inst, grant_req, options, desired, vnfd, former or desired)
            scale_status.note_aspects(inst, vnfd)
            inst.vnfdId = req.vnfdId

    def change_vnfpkg_rollback(self, req: Any, inst: Any, grant_req: Any, grant: Any, vnfd: Any) -> None:
        """`vnfd` is the old package; the instance is as it was before the change."""
        with boundary("rollback of change of the current VNF package", inst, grant_req):
            desired, options = _load(inst, vnfd, instance_info.stored_options(inst))
            self._change(inst, grant_req, options, desired, vnfd, desired)

    def _change(
        self, inst: Any, grant_req: Any, options: Options, desired: list[Object], vnfd: Any, former: list[Object]
    ) -> None:
        """`former`: the same objects as `desired` with the parameters of before; a count that differs is a new one."""
        info = inst.instantiatedVnfInfo
        with _session(inst, grant_req, options) as session:
            resources = session.place(desired)
            pairs = zip(resources, former, strict=True)
            given = {obj.key for obj, was in pairs if replicas.count(obj) != replicas.count(obj, was)}
            assigned = counts.at_level(_assigned(resources, vnfd, info.flavourId, options), vnfd, info.flavourId)
            before = session.restored(instance_info.assigned_vdus(info))
            merged = {obj.key: obj for obj in resources}
            kept = counts.carried_over(before, assigned)
            assigned = {vdu: merged[obj.key] if obj.key in given else kept[vdu] for vdu, obj in assigned.items()}
            session.reconcile(_merged(resources, assigned), prune=Prune())
            instance_info.keep(inst, options, assigned, session.inventory)
            instance_info.tell(info, session.vnfcs(assigned))

    def diff_check_inst(self, inst: Any, vim_info: Any) -> None:
        """Tacker's periodic look at an instance, without a lock: DbSyncNoDiff if there is nothing to take over."""
        with boundary("look at the VNFCs", inst), _session(inst, None, instance_info.stored_options(inst)) as session:
            _differences(session, inst.instantiatedVnfInfo)

    def sync_db(self, context: Any, vnf_instance: Any, vim_info: Any) -> None:
        """Takes over VNFCs, counts, scale levels and aspects that have changed; DbSyncNoDiff if none has."""
        _check_idle(context, vnf_instance)
        info, options = vnf_instance.instantiatedVnfInfo, instance_info.stored_options(vnf_instance)
        with boundary("database synchronization", vnf_instance), _session(vnf_instance, None, options) as session:
            before, now, found = _differences(session, info)
            vnfd = nfvo_client.NfvoClient().get_vnfd(context, vnf_instance.vnfdId)
            scale_status.take_over_levels(info, before, now, vnfd)
            scale_status.take_over_aspects(info, now, vnfd)
            instance_info.update_vdus(vnf_instance, now)
            instance_info.tell(info, found)


def _differences(session: Session, info: Any) -> tuple[VduObjects, VduObjects, list[vnfcs.Vnfc]]:
    """The VDUs' objects as stored and with the counts of the cluster, and the VNFCs there; DbSyncNoDiff if all agree."""
    before = session.restored(instance_info.assigned_vdus(info))
    now = session.refreshed(before)
    found = session.vnfcs(now)
    agree = instance_info.known_vnfcs(info) == {one.id: one.metadata for one in found}
    if agree and counts.of(now) == counts.of(before) and not scale_status.new_aspects(info):
        raise sol_ex.DbSyncNoDiff("There are no differences in Vnfc resources.")
    return before, now, found


def _check_idle(context: Any, inst: Any) -> None:
    """OtherOperationInProgress, also for another conductor's: the lock that Tacker holds is by default one of this host."""
    states = fields.LcmOperationStateType
    for state in (states.STARTING, states.PROCESSING, states.ROLLING_BACK):
        if objects.VnfLcmOpOccV2.get_by_filter(context, vnfInstanceId=inst.id, operationState=state):
            raise sol_ex.OtherOperationInProgress(inst_id=inst.id)


@contextlib.contextmanager
def _session(
    inst: Any, grant_req: Any, options: Options, *, keep_autoscaled: bool = True, extra: int = 0, abandon: bool = False
) -> Iterator[Session]:
    """For one verb; those that write, which a grant tells, first take over what Tacker's own driver has made.

    `extra` are seconds beyond the time limit: what pods are given to end is no time in which anybody is late.
    """
    vim = inst_utils.select_vim_info(inst.vimConnectionInfo)
    seconds = (options.wait_timeout or CONF.v2_vnfm.kubernetes_vim_rsc_wait_timeout) + extra
    id = str(grant_req.vnfLcmOpOccId) if grant_req else "database synchronization"
    namespace, remembered = instance_info.remembered(inst)
    with Session(
        vim_endpoint(vim.interfaceInfo, vim.accessInfo, verify_without_ca=CONF.k8s_cr.verify_tls_without_ca),
        options,
        Operation.lasting(seconds, id=id, instance=inst.id, abandon=abandon),
        inventory_namespace=namespace or CONF.k8s_cr.inventory_namespace,
        remembered=remembered,
        keep_autoscaled=keep_autoscaled,
    ) as session:
        if grant_req and intree_driver.is_pending(inst):
            intree_driver.take_over(inst, session)
        yield session


def _load(
    inst: Any, vnfd: Any, options: Options, given: Mapping[str, Any] | None = None
) -> tuple[list[Object], Options]:
    """The package's objects with parameters filled in, and the options with only the parameters that it declares.

    `given`: those of this request, which the package must declare; of stored ones another package may know fewer.
    """
    declared = parameters.declared(vnfd.definitions)
    if given is not None:
        kept = {name: value for name, value in options.parameters.items() if name in declared or name in given}
        options = replace(options, parameters=kept)
    values = parameters.resolve(declared, options.parameters)
    desired = manifests.load(
        Path(vnfd.csar_dir),
        options.files,
        fill=lambda value: substitution.fill(value, declared, values),
        allow_remote=CONF.k8s_cr.allow_remote_manifests,
    )
    return intree_driver.placed(inst, desired, options.namespace), options


def _written(inst: Any, vnfd: Any, req: Any) -> list[Object]:
    """
    What an instantiate may have written of its package: nothing, if that cannot be loaded.

    Nor is anything looked for that may be somebody else's: what was adopted, only the inventory knew.
    """
    try:
        options = Options().updated(_params(req))
        return [] if options.adopt_existing else _load(inst, vnfd, options)[0]
    except DriverError:
        return []


def _with_parameters_of(inst: Any, vnfd: Any, options: Options) -> list[Object] | None:
    """The package's objects with the parameters that the instance has had; None if the package does not take them."""
    stored = instance_info.stored_options(inst).parameters
    kept = {name: stored.get(name, value) for name, value in options.parameters.items()}
    with contextlib.suppress(InvalidRequest):
        return _load(inst, vnfd, replace(options, parameters=kept))[0]
    return None


def _assigned(resources: list[CustomResource], vnfd: Any, flavour: str, options: Options) -> dict[str, CustomResource]:
    partial = tosca_meta.leaves_out(Path(vnfd.csar_dir), options.files)
    return vdus.assign(resources, vnfd.get_vdu_nodes(flavour), partial=partial)


def _merged(resources: Sequence[CustomResource], assigned: VduObjects) -> list[CustomResource]:
    changed = {obj.key: obj for obj in assigned.values()}
    return [changed.get(obj.key, obj) for obj in resources]


def _params(req: Any) -> dict[str, Any]:
    return dict(req.additionalParams) if req.obj_attr_is_set("additionalParams") and req.additionalParams else {}


def _is_set(req: Any, key: str) -> bool:
    """A flag of this request alone."""
    value = _params(req).get(key)
    return value is not None and flag(key, value)


def _options(inst: Any, req: Any) -> Options:
    """What is stored, overridden by what this request gives; parameters one by one."""
    stored, params = instance_info.stored_options(inst), _params(req)
    given = stored.updated(params)
    return replace(given, parameters={**stored.parameters, **given.parameters})


def _grace_period(req: Any) -> int:
    """Seconds to take the VNF out of service, before its time to go begins (SOL003 clause 5.5.2.8)."""
    if req.terminationType != "GRACEFUL":
        return 0
    if req.obj_attr_is_set("gracefulTerminationTimeout"):
        return int(req.gracefulTerminationTimeout)
    return int(CONF.v2_vnfm.default_graceful_termination_timeout)
