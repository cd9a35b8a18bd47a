# SPDX-License-Identifier: Apache-2.0
"""The LCM verbs of Tacker's v2 API for vimType ETSINFV.KUBERNETES.V_1.

Each verb computes the set of desired objects and reconciles the cluster with it; in everything else the verbs are alike.
`problem_details` turns the errors of a verb into what Tacker expects.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping
from typing import Any

from tacker.sol_refactored import objects
from tacker.sol_refactored.common import config
from tacker.sol_refactored.common import exceptions as sol_ex
from tacker.sol_refactored.common import vnf_instance_utils as inst_utils
from tacker.sol_refactored.nfvo import nfvo_client
from tacker.sol_refactored.objects.v2 import fields

from k8s_cr_driver.engine.run.operation import Operation, WatchLimits
from k8s_cr_driver.engine.run.reconcile import Prune
from k8s_cr_driver.lcm import (
    desired,
    granted,
    intree_driver,
    left_in_cloud,
    permitted,
    registered_vim,
    renewed_kubeconfigs,
    request,
    scale_status,
)
from k8s_cr_driver.lcm.instance_info import StoredInstance
from k8s_cr_driver.lcm.problem_details import Verb, abandoning, boundary, is_current
from k8s_cr_driver.lcm.sync_round import once_in_a_round
from k8s_cr_driver.lcm.workers import most_of_a_project, worker_of
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.package.files import is_url
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.health import operator_rules
from k8s_cr_driver.vnf import counts, vdus
from k8s_cr_driver.vnf.additional_params import Options
from k8s_cr_driver.vnf.scale_in import Choice
from k8s_cr_driver.vnf.session import Session
from k8s_cr_driver.vnf.vdus import VduObjects
from k8s_cr_driver.vnf.vnfcs import Vnfc

CONF = config.CONF


class Driver:
    """Takes the place of Tacker's in-tree driver `Kubernetes`: stateless, Tacker creates one for each call."""

    def instantiate(self, req: Any, inst: Any, grant_req: Any, grant: Any, vnfd: Any) -> None:
        with boundary("instantiate", inst.id, req, grant_req, vnfd) as verb:
            stored = _stored(verb, inst)
            registered_vim.check_default(req, grant, inst, verb.initiator)
            wanted, options = desired.load(stored, vnfd, request.updated(Options(), req))
            with _session(verb, stored, options, applies=len(wanted)) as session:
                resources = _placed(verb, session, wanted, options, stored)
                level = req.instantiationLevelId if req.obj_attr_is_set("instantiationLevelId") else None
                assigned = desired.assigned_vdus(resources, vnfd, req.flavourId, options)
                assigned = counts.at_level(assigned, vnfd, req.flavourId, level)
                counts.check(assigned, {}, CONF.k8s_cr.max_vnfcs)
                session.reconcile(desired.merged(resources, assigned), prune=Prune(), first=True)
                stored.start(req.flavourId)
                stored.options, stored.vdus = options, session.with_explicit_counts(assigned)
                stored.vnfd_id, stored.is_tenants = vnfd.vnfd_id, permitted.is_tenant(stored, verb.initiator)
                stored.write(session.vnfcs(assigned), session.inventory, session.left)
                left_in_cloud.note(inst, [])

    def instantiate_rollback(self, req: Any, inst: Any, grant_req: Any, grant: Any, vnfd: Any) -> None:
        """Ignores the request's options: invalid options may be why instantiate failed.

        Also rolls back an instantiate that the in-tree driver has started.
        """
        with boundary("rollback of instantiate", inst.id, req, grant_req, vnfd) as verb:
            stored = _stored(verb, inst)
            namespace = request.namespace(req)
            with _session(verb, stored, Options(namespace=namespace)) as session:
                session.recover_inventory(desired.of_failed_instantiate(stored, vnfd, req))
                if recovered := session.inventory.remembered.kinds:
                    session.take_over(intree_driver.intree_driver(namespace, recovered))
                session.reconcile([], prune=Prune())

    def terminate(self, req: Any, inst: Any, grant_req: Any, grant: Any, vnfd: Any) -> None:
        """With `abandon`, objects that cannot be deleted until the deadline are left on the cluster, and logged."""
        with boundary("terminate", inst.id, req, grant_req, vnfd) as verb:
            stored = _stored(verb, inst)
            options, abandon = request.options_in_place(stored, req), request.is_set(req, "abandon")
            grace_period, delete_guests = request.grace_period(req), request.is_set(req, "delete-guests")
            delete_cloud_resources = request.is_set(req, "delete-cloud-resources")
            permitted.check_options(stored, verb.initiator, options, delete_guests=delete_guests)
            guard = abandoning(stored) if abandon else contextlib.nullcontext()
            with guard, _session(verb, stored, options, extra=grace_period, abandon=abandon) as session:
                left = session.mind_clouds(delete=delete_cloud_resources)
                left_in_cloud.note(inst, left)
                verb.note = left_in_cloud.sentence(left)
                session.reconcile([], prune=Prune(grace_period, delete_guests=delete_guests))

    def scale(self, req: Any, inst: Any, grant_req: Any, grant: Any, vnfd: Any) -> None:
        with boundary("scale", inst.id, req, grant_req, vnfd) as verb:
            stored = _stored(verb, inst)
            stored.check_applied(vnfd)
            sign = 1 if req.type == "SCALE_OUT" else -1
            deltas = vnfd.get_scale_vdu_and_num(stored.flavour, req.aspectId)
            changes = {vdu: sign * req.numberOfSteps * delta for vdu, delta in deltas.items()}
            choice = granted.to_remove(stored.info, grant_req, grant) if sign < 0 else None
            options = request.options_in_place(stored, req)
            permitted.check_options(stored, verb.initiator, options)
            self._scale(verb, stored, options, changes, choice)

    def scale_rollback(self, req: Any, inst: Any, grant_req: Any, grant: Any, vnfd: Any) -> None:
        """Ignores the request's options: invalid options may be why scale failed."""
        with boundary("rollback of scale", inst.id, req, grant_req, vnfd) as verb:
            stored = _stored(verb, inst)
            deltas = vnfd.get_scale_vdu_and_num(stored.flavour, req.aspectId)
            self._scale(verb, stored, stored.options, dict.fromkeys(deltas, 0), None)

    def _scale(
        self, verb: Verb, stored: StoredInstance, options: Options, changes: Mapping[str, int], choice: Choice | None
    ) -> None:
        """Stored count + change; never counted from the grant request, which is empty if there are no VNFCs.

        A rollback, which changes no count, leaves one to the autoscaler that owns it.
        """
        is_rollback = not any(changes.values())
        with _session(verb, stored, options, applies=len(changes), keep_autoscaled=is_rollback, yields=is_rollback) as session:
            assigned = session.stored_vdus(stored.vdus)
            stored.vdus = counts.scaled(assigned, changes, CONF.k8s_cr.max_vnfcs)
            session.scale({vdu: obj for vdu, obj in stored.vdus.items() if vdu in changes}, choice)
            stored.write(session.vnfcs(stored.vdus), session.inventory, session.left)

    def heal(self, req: Any, inst: Any, grant_req: Any, grant: Any, vnfd: Any) -> None:
        """Chosen VNFCs, or all: Pods and Machines are replaced, the objects of the others applied again."""
        with boundary("heal", inst.id, req, grant_req, vnfd) as verb:
            stored = _stored(verb, inst)
            options, recreate = request.options_in_place(stored, req), request.is_set(req, "recreate")
            everything = request.heals_all(req)
            if everything:
                stored.check_applied(vnfd)
            package = desired.load(stored, vnfd, options, in_place=True)[0] if everything else []
            chosen = granted.chosen_vnfcs(stored.info, grant_req)
            applies = len(package) if everything else len(chosen)
            with _session(verb, stored, options, applies=applies, keeps_versions=True) as session:
                assigned = session.stored_vdus(stored.vdus)
                if everything:
                    wanted = desired.merged(session.place(package, assigned), assigned)
                else:
                    wanted = vdus.whole_objects({vdu: assigned[vdu] for vdu in chosen})
                permitted.check(wanted, options, stored, verb.initiator, session)
                replacement = session.replacement(assigned, chosen, wanted, everything=everything, recreate=recreate)
                session.reconcile(wanted, prune=None, replacement=replacement)
                stored.write(session.vnfcs(assigned), session.inventory, session.left)

    def change_vnfpkg(self, req: Any, inst: Any, grant_req: Any, grant: Any, vnfd: Any) -> None:
        """`vnfd` is the new package. Counts and parameters stay unless the request gives new ones."""
        with boundary("change of the current VNF package", inst.id, req, grant_req, vnfd) as verb:
            stored = _stored(verb, inst)
            given, options = request.params(req).get("parameters") or {}, request.options(stored, req)
            stored.check_flavour(vnfd)
            wanted, options, former = desired.of_change(stored, vnfd, options, given)
            delete_guests = request.is_set(req, "delete-guests")
            permitted.check_options(stored, verb.initiator, options, delete_guests=delete_guests)
            self._change(verb, stored, options, wanted, vnfd, former, delete_guests=delete_guests)
            inst.vnfdId = req.vnfdId

    def change_vnfpkg_rollback(self, req: Any, inst: Any, grant_req: Any, grant: Any, vnfd: Any) -> None:
        """`vnfd` is the old package; the instance is as it was before the change."""
        with boundary("rollback of change of the current VNF package", inst.id, req, grant_req, vnfd) as verb:
            stored = _stored(verb, inst)
            stored.check_applied(vnfd)
            wanted, options = desired.load(stored, vnfd, stored.options, in_place=True)
            self._change(verb, stored, options, wanted, vnfd, wanted, is_rollback=True)

    def _change(
        self,
        verb: Verb,
        stored: StoredInstance,
        options: Options,
        wanted: list[Object],
        vnfd: Any,
        former: list[Object],
        *,
        is_rollback: bool = False,
        delete_guests: bool = False,
    ) -> None:
        """`former`: the objects of `wanted` with the parameters before the change; a count that differs is a new one.

        A rollback is not checked, because it restores what was permitted, unless a URL may have another content since, or the
        record does not say of which package the objects are.
        """
        with _session(
            verb, stored, options, applies=len(wanted), yields=is_rollback, keeps_versions=is_rollback
        ) as session:
            if is_rollback and stored.vnfd_id and not any(map(is_url, options.files)):
                resources = session.place(wanted, stored.vdus)
            else:
                resources = _placed(verb, session, wanted, options, stored, stored.vdus)
            assigned = desired.assigned_vdus(resources, vnfd, stored.flavour, options)
            before = session.stored_vdus(stored.vdus)
            given = counts.given(assigned, dict(zip((obj.key for obj in resources), former, strict=True)))
            # An account that may not read CRDs leaves a VDU that is no new one the count of its manifest.
            settable = {vdu: obj for vdu, obj in assigned.items() if not (obj.hides_count and vdu in before)}
            levelled = {**assigned, **counts.at_level(settable, vnfd, stored.flavour, lenient=is_rollback)}
            former_counts = session.scalable_vdus(stored.vdus) if is_rollback else before  # the live one is the failed change's
            kept = counts.carried_over(former_counts, stored.counts, levelled)
            assigned = counts.with_counts(kept, given)
            counts.check(assigned, before, CONF.k8s_cr.max_vnfcs)
            wanted_now = desired.merged(resources, assigned)
            session.change(wanted_now, checked=not is_rollback, delete_guests=delete_guests)
            stored.options, stored.vdus, stored.counts = options, session.with_explicit_counts(assigned), {}
            stored.vnfd_id = vnfd.vnfd_id
            if not is_rollback:
                stored.is_tenants = permitted.is_tenant(stored, verb.initiator)
            scale_status.remember_new_aspects(stored, vnfd)
            stored.write(session.vnfcs(assigned), session.inventory, session.left)

    def diff_check_inst(self, inst: Any, vim_info: Any) -> None:
        """Tacker's periodic check of an instance, without a lock: DbSyncNoDiff if the record and the cluster agree."""
        with boundary("look at the VNFCs", inst.id) as verb:
            stored = _stored(verb, inst)
            with _session(verb, stored, stored.options) as session:
                _differences(session, stored)

    def sync_db(self, context: Any, vnf_instance: Any, vim_info: Any) -> None:
        """
        Stores VNFCs, counts, scale levels and aspects that have changed; DbSyncNoDiff if none has.

        OtherOperationInProgress, also for an operation of another conductor, that may have completed meanwhile: Tacker's lock
        is by default one of this host.
        """
        read = vnf_instance.to_dict()
        _check_idle(context, vnf_instance.id)
        with boundary("database synchronization", vnf_instance.id) as verb:
            stored = _stored(verb, vnf_instance)
            if stored.vim is None:
                raise sol_ex.DbSyncNoDiff("It has been terminated since the round began.")
            with _session(verb, stored, stored.options) as session:
                before, now, found = _differences(session, stored)
                renewed = renewed_kubeconfigs.differing(session.connection, vnf_instance)
                if renewed is not None:
                    renewed_kubeconfigs.mark(vnf_instance, renewed)
                vnfd = nfvo_client.NfvoClient().get_vnfd(context, stored.vnfd_id or vnf_instance.vnfdId)
                scale_status.update_levels(stored, before, now, vnfd)
                scale_status.add_new_aspects(stored, now, vnfd)
                stored.vdus = now
                stored.write(found)
        _check_idle(context, vnf_instance.id, fields.LcmOperationStateType.FAILED_TEMP)
        if inst_utils.get_inst(context, vnf_instance.id).to_dict() != read:
            raise sol_ex.OtherOperationInProgress(inst_id=vnf_instance.id)


def _differences(session: Session, stored: StoredInstance) -> tuple[VduObjects, VduObjects, list[Vnfc]]:
    """The VDUs' objects as stored and with the live counts, and the live VNFCs; DbSyncNoDiff if all agree."""
    before = session.stored_vdus(stored.vdus)
    now, found = session.look(before, stored.counts)
    agree = stored.vnfcs() == {one.id: one.metadata for one in found}
    agree = agree and counts.of(now) == counts.of(before) and not stored.new_aspects
    if agree and renewed_kubeconfigs.differing(session.connection, stored.record) is None:
        raise sol_ex.DbSyncNoDiff("There are no differences in Vnfc resources.")
    return before, now, found


def _check_idle(context: Any, instance: str, *more: str) -> None:
    """`more`: states that an operation may have reached which began after this driver has asked for the first time."""
    states = fields.LcmOperationStateType
    for state in (states.STARTING, states.PROCESSING, states.ROLLING_BACK, *more):
        if objects.VnfLcmOpOccV2.get_by_filter(context, vnfInstanceId=instance, operationState=state):
            raise sol_ex.OtherOperationInProgress(inst_id=instance)


def _stored(verb: Verb, inst: Any) -> StoredInstance:
    """What the verb needs of Tacker's record, with the project of the instance."""
    stored = StoredInstance.read(inst)
    stored.project = registered_vim.project(stored, verb.initiator)
    return stored


def _placed(
    verb: Verb,
    session: Session,
    wanted: list[Object],
    options: Options,
    stored: StoredInstance,
    before: VduObjects | None = None,
) -> list[CustomResource]:
    """The objects in their namespaces, if they and the options are permitted."""
    resources = session.place(wanted, before)
    permitted.check(resources, options, stored, verb.initiator, session)
    return resources


@contextlib.contextmanager
def _session(
    verb: Verb,
    stored: StoredInstance,
    options: Options,
    *,
    applies: int | None = None,
    keep_autoscaled: bool = True,
    yields: bool = False,
    keeps_versions: bool = False,
    extra: int = 0,
    abandon: bool = False,
) -> Iterator[Session]:
    """For one verb. A verb that writes, which is an LCM operation, first takes over objects of the in-tree driver.

    `applies` is the number of objects to apply, None for a verb that only deletes or reads.
    `extra` are seconds on top of the time limit: the grace period of a terminate does not count as a delay.
    """
    operator_rules.use_once(CONF.k8s_cr.health_rules)
    given = min(options.wait_timeout or 0.0, CONF.k8s_cr.max_wait_timeout)
    seconds = (given or CONF.v2_vnfm.kubernetes_vim_rsc_wait_timeout) + extra
    endpoint = registered_vim.endpoint(stored.vim, stored.project)
    verb.begins(endpoint.url, applies)
    operation = Operation(
        verb.operation or verb.name,
        stored.id,
        seconds if verb.operation else CONF.k8s_cr.sync_timeout,
        progress=verb.statistics.progress,
        abandon=abandon,
        traffic=verb.statistics.traffic,
        is_current=is_current(verb.operation),
        watches=WatchLimits(CONF.k8s_cr.max_watches, CONF.k8s_cr.max_process_watches),
        no_activity=options.no_activity_timeout,
    )
    worker = worker_of(stored.project, most_of_a_project(CONF))
    guard = worker if verb.operation else once_in_a_round(endpoint)
    with guard, Session(
        endpoint,
        options,
        operation,
        inventory_namespace=stored.inventory_namespace or CONF.k8s_cr.inventory_namespace,
        remembered=stored.inventory_content,
        keep_autoscaled=keep_autoscaled,
        yields=yields,
        keeps_versions=keeps_versions,
        request_deadline=math.inf if verb.operation else operation.deadline,
        adopts_crds=not permitted.is_tenant(stored, verb.initiator),
        max_vnfcs=CONF.k8s_cr.max_vnfcs,
    ) as session:
        if stored.is_moved:
            session.check_cluster(stored.endpoint)
        if verb.operation and stored.is_pending:
            intree_driver.take_over(stored, session)
        yield session
