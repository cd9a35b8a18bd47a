"""One verb's dealings with one cluster: what is there to be called is discovered, sets converge, VNFCs are told.

Everything that the verbs share and that needs no word of Tacker's.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from types import TracebackType

from oslo_log import log as logging

from k8s_cr_driver import manifest, order, scaling, schema, vdus, vnfc
from k8s_cr_driver.builtin import is_builtin
from k8s_cr_driver.connection import Connection, Endpoint
from k8s_cr_driver.discovery import Resources, discover, read_crd
from k8s_cr_driver.engine.converge import converge
from k8s_cr_driver.engine.operation import Operation
from k8s_cr_driver.engine.renew import NO_RENEWAL, Renewal
from k8s_cr_driver.engine.succession import Predecessor, take_over
from k8s_cr_driver.engine.unavailable import await_kinds
from k8s_cr_driver.engine.write import Target, selector
from k8s_cr_driver.errors import ApiError, ConnectionFailed, DriverError, NotConnected, Refused, redact
from k8s_cr_driver.healing import Healing
from k8s_cr_driver.inventory import NOTHING, Inventory, Record
from k8s_cr_driver.keys import Key, Kind, Object, kind_of
from k8s_cr_driver.options import Options
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.registry import resource_for
from k8s_cr_driver.vdus import Assigned

LOG = logging.getLogger(__name__)

UNDO_SECONDS = 120.0
DISCOVERY_SECONDS = 30.0
"""Seconds for which a server is asked again that does not answer discovery, or with 429 or 5xx."""


class Session:
    """A context manager for the length of one operation."""

    def __init__(
        self,
        endpoint: Endpoint,
        options: Options,
        operation: Operation,
        *,
        inventory_namespace: str,
        remembered: Record = NOTHING,
        keep_autoscaled: bool = True,
    ) -> None:
        self._connection = Connection(endpoint)
        self._options, self._operation = options, operation
        self._target = Target(
            self._connection,
            Inventory(self._connection, inventory_namespace, operation.instance, remembered),
            force=options.force_conflicts,
            adopt=options.adopt_existing,
            keep_autoscaled=keep_autoscaled,
        )
        self._resources: Resources
        self._crds: dict[Kind, Object] = {}

    def __enter__(self) -> Session:
        self._connection.__enter__()
        try:
            self._resources = self._discovered()
        except BaseException:
            self._connection.__exit__(None, None, None)
            raise
        return self

    def _discovered(self) -> Resources:
        """A cluster is asked again for a while, for nothing is written yet; one to abandon until the end."""
        return self._operation.persist(self._discover, math.inf if self._operation.abandon else DISCOVERY_SECONDS)

    def _discover(self) -> Resources:
        try:
            return discover(self._connection)
        except NotConnected as error:
            if self._operation.abandon:
                raise
            # A wrong one is told at once.
            raise ConnectionFailed(f"{error}. Check vimConnectionInfo.interfaceInfo.endpoint, and the way there.") from None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._connection.__exit__(kind, error, trace)

    @property
    def inventory(self) -> Inventory:
        return self._target.inventory

    def recall(self, desired: Sequence[Object]) -> None:
        """
        If there is no inventory, has it made anew for those kinds of `desired` of which the instance has objects.

        For an instance of which nobody remembers more than its package; a kind that may not be listed was never written.
        """
        if self._operation.persist(self.inventory.read) is None:
            kinds = {kind_of(obj) for obj in desired}
            self.inventory.remembered = Record(frozenset(kind for kind in kinds if self._has(kind)))

    def _has(self, kind: Kind) -> bool:
        resource = self._resources.find(kind)
        if resource is None or "list" not in resource.verbs:
            return False
        query = [("labelSelector", selector(self._target.instance, kind)), ("limit", "1")]
        try:
            found = self._operation.persist(lambda: self._connection.request("GET", resource.path(), query=query))
        except ApiError as error:
            if error.status not in (403, 404):
                raise
            return False
        return bool(found.get("items"))

    def take_over(self, predecessor: Predecessor) -> None:
        """Makes what a predecessor has made of this instance ours; see `engine.succession`."""
        take_over(self._operation, self._target, self._resources, predecessor)

    def place(self, desired: list[Object]) -> list[CustomResource]:
        """The objects where they will be, checked against the package's own CRDs."""
        await_kinds(self._operation, self._connection, self._resources, manifest.foreign_kinds(desired))
        manifest.place(desired, self._resources.scope_of, self._options.namespace)
        crds = manifest.crds_of(desired)
        schema.check(desired)
        order.check(desired)
        for crd in crds.values():
            self._resources.add_crd(crd)
        return [self._scalable(resource_for(obj, crds.get(kind_of(obj)))) for obj in desired]

    def restored(self, assigned: Assigned) -> dict[str, CustomResource]:
        """The VDUs' objects of a record, with the CRDs that tell where their counts stand."""
        return {vdu: self._scalable(obj) for vdu, obj in assigned.items()}

    def _scalable(self, obj: CustomResource) -> CustomResource:
        """The object with its CRD, if the cluster has the kind's and only it says where the count is."""
        resource = self._resources.find(obj.key.of)
        asks = obj.crd is None and not obj.replicas() and not is_builtin(obj.key.of)
        if resource is None or not asks or "scale" not in resource.subresources:
            return obj
        if obj.key.of not in self._crds:
            try:
                self._crds[obj.key.of] = self._operation.persist(lambda: read_crd(self._connection, resource))
            except ApiError as error:
                LOG.warning("The CRD of %s cannot be read, so it cannot be scaled: %s", obj.key.of, error)
                return obj
        return type(obj)(obj.manifest, self._crds[obj.key.of])

    def converge(
        self,
        wanted: Sequence[CustomResource],
        *,
        prune: bool,
        grace_period: int | None = None,
        renewal: Renewal = NO_RENEWAL,
        first: bool = False,
    ) -> None:
        """`engine.converge`; what the `first` set of an instance made before it was refused is removed again."""
        run = functools.partial(converge, self._operation, self._target, self._resources)
        try:
            run(wanted, prune=prune, strays=not first, grace_period=grace_period, renewal=renewal)
        except Refused as error:
            if first and self._target.inventory.is_new:
                self._undo(error)
            raise

    def _undo(self, refusal: Refused) -> None:
        LOG.info("%s: refused (%s); what was made is removed", self._operation.id, redact(str(refusal)))
        operation = Operation.lasting(UNDO_SECONDS, id=self._operation.id, instance=self._operation.instance)
        inventory = self._target.inventory
        try:
            inventory.check(inventory.read())  # what another worker has taken over since is not ours to remove
            converge(operation, self._target, self._resources, [], prune=True)
        except DriverError as error:
            LOG.warning("%s: not everything could be removed; rollback does it: %s", operation.id, redact(str(error)))

    def vnfcs(self, assigned: Assigned) -> list[vnfc.Vnfc]:
        """The VNFCs of the VDUs, newest first."""
        instance = self._operation.instance
        return self._operation.persist(lambda: vnfc.collect(self._connection, self._resources, instance, assigned))

    def refreshed(self, assigned: Assigned) -> dict[str, CustomResource]:
        """The VDUs' objects with the counts that they have on the cluster now."""
        lives = self._operation.persist(lambda: self._owners(assigned))
        return {
            vdu: vdus.with_replicas(obj, vnfc.count(obj, lives[obj.key])) if obj.key in lives else obj
            for vdu, obj in assigned.items()
        }

    def renewal(self, assigned: Assigned, chosen: Mapping[str, set[str]], *, everything: bool, recreate: bool) -> Renewal:
        """What replaces the VNFCs in `chosen` (VDU id -> ids); see `Healing.renewal`."""
        touched = {vdu: assigned[vdu] for vdu in chosen}
        healing = Healing(self._connection, self._resources, self._operation.instance, touched)
        return self._operation.persist(lambda: healing.renewal(chosen, everything=everything, recreate=recreate))

    def shrinkage(self, scaled: Assigned) -> Renewal:
        """Waits for VNFCs to go that the new counts of VDUs have no use for; see `scaling.shrinkage`."""
        instance = self._operation.instance
        return self._operation.persist(lambda: scaling.shrinkage(self._connection, self._resources, instance, scaled))

    def _owners(self, assigned: Assigned) -> dict[Key, Object]:
        return vnfc.owners(self._connection, self._resources, self._operation.instance, assigned)
