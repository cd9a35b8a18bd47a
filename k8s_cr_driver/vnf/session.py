# SPDX-License-Identifier: Apache-2.0
"""The session of one verb with one cluster: discovers its kinds, reconciles sets of objects, lists VNFCs.

Contains what the verbs share and what needs nothing of Tacker.
"""

from __future__ import annotations

import contextlib
import functools
import math
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType

from k8s_cr_driver import logs
from k8s_cr_driver.engine.delete.replacer import NO_REPLACEMENT, Replacement
from k8s_cr_driver.engine.delete.webhooks import first_to_go
from k8s_cr_driver.engine.run.operation import Operation
from k8s_cr_driver.engine.run.reconcile import Prune, reconcile, release
from k8s_cr_driver.engine.run.takeover import InTreeDriver, take_over
from k8s_cr_driver.engine.watch.discovery_gaps import await_kinds
from k8s_cr_driver.errors import (
    ApiError,
    Concern,
    ConnectionFailed,
    DriverError,
    NotConnected,
    Refused,
    Superseded,
    may_have_taken_effect,
)
from k8s_cr_driver.journal.inventory import Inventory
from k8s_cr_driver.journal.stored_form import NOTHING, InventoryContent
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.discovery import Resources, discover
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.objects import dependencies, rule_files
from k8s_cr_driver.objects.crds import crds_of, defined_by
from k8s_cr_driver.objects.keys import CRD, NAMESPACE, Object, ObjectKey, key_of, kind_of
from k8s_cr_driver.objects.marks import is_kept
from k8s_cr_driver.package import manifests, schema
from k8s_cr_driver.redaction import redact
from k8s_cr_driver.resources import replicas
from k8s_cr_driver.resources.base import PODS, CustomResource
from k8s_cr_driver.resources.health.rules import of_texts
from k8s_cr_driver.resources.registry import resource_for
from k8s_cr_driver.vnf import (
    autoscalers,
    cloud_resources,
    counts,
    lost_inventory,
    planned,
    preflight,
    rotation,
    scale_in,
    shared_crds,
    surplus,
    vdus,
    vnfcs,
)
from k8s_cr_driver.vnf.additional_params import Options
from k8s_cr_driver.vnf.change_checks import changed_last
from k8s_cr_driver.vnf.heal import Healing
from k8s_cr_driver.vnf.scale_in import Choice
from k8s_cr_driver.vnf.stored_crds import StoredCrds
from k8s_cr_driver.vnf.vdus import VduObjects
from k8s_cr_driver.vnf.vnfcs import Members
from k8s_cr_driver.writes.context import WriteContext
from k8s_cr_driver.writes.members import made_by_others, owned

LOG = logs.logger(__name__)

UNDO_SECONDS = 120.0
DISCOVERY_SECONDS = 30.0
"""Seconds for which discovery is repeated if it gets no response, or 429 or 5xx."""


def _is_over(operation: Operation) -> bool:
    """Whether a list in several pages must not go on; what is refused near the deadline is still undone."""
    return operation.stop.is_set() or time.monotonic() > operation.deadline + UNDO_SECONDS


class Session:
    """A context manager for the length of one operation."""

    def __init__(
        self,
        endpoint: Endpoint,
        options: Options,
        operation: Operation,
        *,
        inventory_namespace: str,
        remembered: InventoryContent = NOTHING,
        keep_autoscaled: bool = True,
        yields: bool = False,
        keeps_versions: bool = False,
        request_deadline: float = math.inf,
        max_vnfcs: int = counts.VNFCS,
        adopts_crds: bool = True,
    ) -> None:
        """No request lasts until after `request_deadline`, a time of time.monotonic()."""
        connection = Connection(endpoint, operation.traffic, request_deadline, functools.partial(_is_over, operation))
        inventory = Inventory(connection, inventory_namespace, operation.instance, remembered)
        self._client = Client(connection, is_adopted=lambda key: key in inventory.content.adopted)
        self._options, self._operation, self._max_vnfcs = options, operation, max_vnfcs
        self._context = WriteContext(
            self._client,
            inventory,
            force=options.force_conflicts,
            adopt=options.adopt_existing,
            keep_autoscaled=keep_autoscaled,
            yields=yields,
            keeps_versions=keeps_versions,
            adopts_crds=adopts_crds,
        )
        self._crds = StoredCrds(operation, self._client)
        given = rule_files.read({rule_files.LIST: list(options.health_rules)})
        self._rules = {kind: of_texts(rules, "rules of the request") for kind, rules in given.items()}
        self._recorded: InventoryContent | None = None
        self._holds = False
        """Whether the takeover has claimed the instance, and no run has begun since that gives it back."""

    def __enter__(self) -> Session:
        self._client.connection.__enter__()
        try:
            self._client.resources.refresh(self._discovered())
        except BaseException:
            self._client.connection.__exit__(None, None, None)
            raise
        return self

    def _discovered(self) -> Resources:
        """Repeats discovery for DISCOVERY_SECONDS, because nothing is written yet; with `abandon` until the deadline."""
        return self._operation.persist(self._discover, math.inf if self._operation.abandon else DISCOVERY_SECONDS)

    def _discover(self) -> Resources:
        try:
            return discover(self._client.connection)
        except NotConnected as error:
            if self._operation.abandon:
                raise
            # A wrong endpoint is reported at once.
            raise ConnectionFailed(f"{error}.", Concern.ENDPOINT) from None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        may_take_effect = error is not None and may_have_taken_effect(error)
        if self._holds and not (may_take_effect or isinstance(error, Superseded)):
            release(self._operation, self._context.inventory)
        self._client.connection.__exit__(kind, error, trace)

    @property
    def inventory(self) -> Inventory:
        return self._context.inventory

    @property
    def left(self) -> list[str]:
        """The optional objects that were not ready at the end, worst first, each with the reason."""
        return list(map(str, self._operation.left))

    def check_cluster(self, before: str) -> None:
        """Refused if this cluster, at another endpoint than `before`, does not have the inventory of the instance."""
        lost_inventory.check_cluster(self._operation, self._context, before, moved=self._options.moved)

    def recover_inventory(self, desired: Sequence[Object]) -> None:
        """If there is no inventory and the instance has objects, has it created again for the kinds of `desired`."""
        with contextlib.suppress(Refused):  # nothing of a package that cannot be placed was written
            manifests.place(desired, self._client.resources.scope_of, self._options.namespace)
        lost_inventory.recover(self._operation, self._context, self._options.namespace, desired)

    def owned(self, desired: Sequence[Object]) -> list[ObjectKey]:
        """What the instance has of the kinds of `desired`, whatever its inventory says: what bears its marks."""
        kinds = {kind_of(obj) for obj in desired}
        namespaces = {self._options.namespace, *(key_of(obj).namespace for obj in desired)} - {""}
        return self._operation.persist(lambda: owned(self._context, kinds, namespaces))

    def mind_clouds(self, *, delete: bool) -> list[str]:
        """What clouds would keep of the instance's workload clusters; no request for an instance without any."""
        if cloud_resources.CLUSTER not in self.inventory.remembered.kinds:
            return []
        return cloud_resources.mind(self._operation, self._client, lambda: self.inventory.read() or NOTHING, delete=delete)

    def take_over(self, intree_driver: InTreeDriver) -> None:
        """Makes the objects of the in-tree driver this driver's; see `engine.run.takeover`."""
        self._holds = True
        take_over(self._operation, self._context, intree_driver)

    def namespace(self, name: str) -> Object | None:
        """The Namespace of that name; None if there is none, ApiError if the account may not read it."""
        key = ObjectKey(*NAMESPACE, "", name)
        resource = self._client.resources.find(NAMESPACE)
        assert resource is not None, "every API server has Namespaces"
        try:
            return self._operation.persist(lambda: self._client.read(resource, key))
        except ApiError as error:
            if error.status != 404:
                raise
            return None

    def makes(self, namespaces: Iterable[str]) -> None:
        """Those of the instance's own making: one that others have made meanwhile refuses the operation."""
        self._context = replace(self._context, makes=frozenset(namespaces))

    def place(self, desired: list[Object], before: VduObjects | None = None) -> list[CustomResource]:
        """The objects in their namespaces, checked against the package's own CRDs.

        Of an instance with the VDUs `before` they may get other names; see `rotation`.
        """
        await_kinds(self._operation, self._client, manifests.foreign_kinds(desired))
        manifests.place(desired, self._client.resources.scope_of, self._options.namespace)
        crds = crds_of(desired)
        schema.remove_nulls(desired, lambda kind: crds.get(kind) or self._crds.of(kind))
        schema.check(desired)
        dependencies.check(desired)
        if before is None:
            rotation.mark(desired)
        else:
            lives = rotation.Lives(self._client, self._operation.instance, self._operation.persist)
            rotation.rotate(desired, lives, [obj.manifest for obj in before.values()])
        for crd in crds.values():
            self._client.resources.add_crd(crd)
        return [self._ruled(self._crds.scalable(resource_for(obj, crds.get(kind_of(obj))))) for obj in desired]

    def _ruled(self, obj: CustomResource) -> CustomResource:
        obj.request_rules = self._rules
        return obj

    def stored_vdus(self, assigned: VduObjects) -> dict[str, CustomResource]:
        """The stored objects of VDUs with their CRDs, which define the fields of their counts, and with explicit counts."""
        return self.with_explicit_counts(self.scalable_vdus(assigned))

    def scalable_vdus(self, assigned: VduObjects) -> dict[str, CustomResource]:
        """The stored objects of VDUs with their CRDs."""
        return {vdu: self._ruled(self._crds.scalable(obj)) for vdu, obj in assigned.items()}

    def with_explicit_counts(self, assigned: VduObjects) -> dict[str, CustomResource]:
        """With the live count of each object whose manifest names none: the API server has set a default there."""
        implicit = {vdu: obj for vdu, obj in assigned.items() if obj.replicas() and replicas.explicit_count(obj) is None}
        if not implicit:
            return dict(assigned)
        lives = self._operation.persist(lambda: vnfcs.owners(self._client, self._operation.instance, implicit))
        return counts.with_counts(assigned, counts.live(implicit, lives))

    def change(self, wanted: Sequence[CustomResource], *, checked: bool, delete_guests: bool = False) -> None:
        """
        Reconciles all objects of the instance.

        With `checked` their kinds and the cluster can refuse that before anything is written, or have some changed last.
        Refused if a CRD takes something from objects of others, except from those of users with `delete_guests`.
        """
        self._context = replace(self._context, narrows_crds=delete_guests)
        context = replace(self._context, delete_guests=delete_guests)
        wanted = shared_crds.guarded(context, wanted, self._operation.persist)
        last = self._operation.persist(lambda: changed_last(self._client, wanted)) if checked else set[ObjectKey]()
        keys = {obj.key for obj in wanted}
        first = NO_REPLACEMENT if checked else Replacement(self._operation.persist(lambda: first_to_go(self._context, keys)))
        self._reconcile(wanted, prune=Prune(), replacement=first, tries=not first.to_delete, asks=checked, last=last)

    def reconcile(
        self,
        wanted: Sequence[CustomResource],
        *,
        prune: Prune | None,
        replacement: Replacement = NO_REPLACEMENT,
        first: bool = False,
    ) -> None:
        """`engine.run.reconcile`, after a dry run if `replacement` deletes objects, and of the objects to keep in any case.

        If the `first` set of an instance is refused, what it has created is deleted again. Only by force can it make a CRD of
        the instance narrower: Refused if that takes something from objects of others.
        """
        if self._options.force_conflicts:
            wanted = shared_crds.guarded(self._context, wanted, self._operation.persist)
        self._reconcile(wanted, prune=prune, replacement=replacement, first=first)

    def _reconcile(
        self,
        wanted: Sequence[CustomResource],
        *,
        prune: Prune | None,
        replacement: Replacement = NO_REPLACEMENT,
        first: bool = False,
        tries: bool = True,
        asks: bool = False,
        last: Collection[ObjectKey] = (),
    ) -> None:
        """With `asks` the run itself begins with a dry run of all that differs. Nothing is tried before without `tries`."""
        tried = wanted if replacement.to_delete else [obj for obj in wanted if is_kept(obj.manifest)]
        tried = tried if tries and not asks else []
        crds = () if replacement.to_delete else wanted  # VNFCs are deleted before a CRD changes
        redefined = {defined_by(obj.manifest) for obj in crds if obj.key.group_kind == CRD}
        persist = self._operation.persist
        preflight.check(self._context, tried, persist, recreated=replacement.keys, redefined=redefined)
        run = functools.partial(reconcile, self._operation, self._context)
        if self._options.plan and wanted:  # a rollback of an instantiate wants nothing
            planned.check(self._context, wanted, self._options.plan, self._operation.id, persist)
        self._holds = False  # from now on the run knows whether a write of it may still take effect
        try:
            run(wanted, prune=prune, replacement=replacement, asks=asks, last=last)
        except Refused as error:
            if first and self._context.inventory.is_new:
                self._undo(error, wanted)
            raise

    def _undo(self, refusal: Refused, wanted: Sequence[CustomResource]) -> None:
        """Leaves all to the rollback if the instance had an inventory before, which was lost: only that knows its members."""
        LOG.info("%s: refused (%s); the objects created so far are deleted", self._operation.id, redact(str(refusal)))
        failed = self._operation
        operation = Operation(failed.id, failed.instance, UNDO_SECONDS, watches=failed.watches)
        inventory = self._context.inventory
        try:
            inventory.fence.check(inventory.read())  # Superseded if another worker has taken the instance over
            if others := operation.persist(lambda: made_by_others(self._context, {obj.key for obj in wanted})):
                LOG.warning("%s: %s has the label of the instance already; rollback deletes it", operation.id, others[0])
                return
            reconcile(operation, self._context, [], prune=Prune())
        except DriverError as error:
            LOG.warning("%s: not everything could be deleted; rollback does it: %s", operation.id, redact(str(error)))

    @property
    def connection(self) -> Connection:
        return self._client.connection

    def look(
        self, assigned: VduObjects, recorded: Mapping[str, int]
    ) -> tuple[dict[str, CustomResource], list[vnfcs.Vnfc]]:
        """The VDUs' objects with the counts that they have on the cluster, and the VNFCs, newest first.

        DriverError if an object is there that has a `recorded` count, and where it is cannot be known.
        """
        there = self._members(assigned)
        counts.check_known({vdu: assigned[vdu] for vdu in recorded if assigned[vdu].key in there.owners})
        now = counts.with_counts(assigned, counts.live(assigned, there.owners))
        return now, vnfcs.listed(now, there, self._max_vnfcs)

    def vnfcs(self, assigned: VduObjects) -> list[vnfcs.Vnfc]:
        """The VNFCs of the VDUs, newest first. Those that a scale in has annotated, and not removed, are so no longer."""
        there = self._members(assigned)
        scale_in.withdraw(self._client, self._operation.instance, assigned, there.children, self._may_own)
        return vnfcs.listed(assigned, there, self._max_vnfcs)

    def _members(self, assigned: VduObjects) -> Members:
        return self._operation.persist(lambda: vnfcs.members(self._client, self._operation.instance, assigned))

    def replacement(
        self,
        assigned: VduObjects,
        chosen: Mapping[str, set[str]],
        wanted: Sequence[CustomResource],
        *,
        everything: bool,
        recreate: bool,
    ) -> Replacement:
        """
        Replaces the VNFCs in `chosen` (VDU id -> names); see `Healing.replacement`.

        With `everything` also the bare Pods among `wanted` that have failed, and are no VNFCs.
        """
        of_vdus = {obj.key: vdu for vdu, obj in assigned.items()}
        pods = [obj for obj in wanted if everything and obj.key.group_kind == PODS]
        touched = {vdu: assigned[vdu] for vdu in chosen} | {of_vdus.get(obj.key, str(obj.key)): obj for obj in pods}
        healing = Healing(self._client, self._operation.instance, touched, self._may_own)
        return self._operation.persist(lambda: healing.replacement(chosen, everything=everything, recreate=recreate))

    def _may_own(self, live: Object) -> bool:
        """See `InventoryContent.may_own`; the inventory is read once, when this is asked first."""
        if self._recorded is None:
            self._recorded = self.inventory.read() or NOTHING
        return self._recorded.may_own(live, self._operation.instance)

    def scale(self, scaled: VduObjects, choice: Choice | None) -> None:
        """Reconciles the objects of VDUs with their new counts; a scale in has a `choice`, and removes these where it can."""
        self._mind_autoscalers(scaled)
        concerned = scale_in.concerned(scaled, choice) if choice else {}
        try:
            if choice and concerned:
                self._choose(scaled, concerned, choice)
            deleted = self._operation.persist(lambda: surplus.until_deleted(self._client, self._operation.instance, scaled))
            self.reconcile(vdus.whole_objects(scaled), prune=None, replacement=deleted)
        except Superseded:
            raise
        except DriverError:
            self._withdraw(concerned)
            raise

    def _mind_autoscalers(self, scaled: VduObjects) -> None:
        """InvalidRequest for a count that one would undo; later errors name them. A rollback leaves them their counts."""
        if not self._context.keep_autoscaled:
            found = self._operation.persist(lambda: autoscalers.of(self._client, [obj.key for obj in scaled.values()]))
            autoscalers.check(scaled, found)
            self._context = replace(self._context, autoscalers={key: str(one) for key, one in found.items()})

    def _choose(self, scaled: VduObjects, concerned: VduObjects, choice: Choice) -> None:
        """Has the chosen VNFCs removed first; a dry run shows before that whether the scale would be refused."""
        persist, client, instance = self._operation.persist, self._client, self._operation.instance
        preflight.check(self._context, vdus.whole_objects(scaled), persist)
        self._operation.check_current()
        persist(lambda: scale_in.request(client, instance, concerned, choice, self._may_own))

    def _withdraw(self, concerned: VduObjects) -> None:
        client, instance = self._client, self._operation.instance
        try:
            scale_in.withdraw(client, instance, concerned, vnfcs.members(client, instance, concerned).children, self._may_own)
        except DriverError as error:
            LOG.info("%s: the next operation removes annotations of this one: %s", self._operation.id, redact(str(error)))
