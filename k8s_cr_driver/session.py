"""One verb's dealings with one cluster: what is there to be called is discovered, sets converge, VNFCs are told.

Everything that the verbs share and that needs no word of Tacker's.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from types import TracebackType

from oslo_log import log as logging

from k8s_cr_driver import manifest, order, schema, vdus, vnfc
from k8s_cr_driver.builtin import is_builtin
from k8s_cr_driver.connection import Connection, Endpoint
from k8s_cr_driver.discovery import Resources, discover, read_crd
from k8s_cr_driver.engine.converge import converge
from k8s_cr_driver.engine.operation import Operation
from k8s_cr_driver.engine.renew import remove_children
from k8s_cr_driver.engine.unavailable import await_kinds
from k8s_cr_driver.engine.write import Target
from k8s_cr_driver.errors import ApiError, DriverError, NotReady, Refused, Report, redact
from k8s_cr_driver.inventory import Inventory
from k8s_cr_driver.keys import Key, Kind, Object, kind_of
from k8s_cr_driver.options import Options
from k8s_cr_driver.resources.base import Children, CustomResource
from k8s_cr_driver.resources.registry import resource_for
from k8s_cr_driver.vdus import Assigned

LOG = logging.getLogger(__name__)

UNDO_SECONDS = 120.0
DISCOVERY_SECONDS = 30.0
"""Seconds for which a server that answers discovery with 429 or 5xx is asked again."""
LOOK_EVERY = 1.0
"""Seconds between two looks at children whose owner is ready already."""


class Session:
    """A context manager for the length of one operation."""

    def __init__(
        self,
        endpoint: Endpoint,
        options: Options,
        operation: Operation,
        *,
        inventory_namespace: str,
        keep_autoscaled: bool = True,
    ) -> None:
        self.inventory_namespace = inventory_namespace
        self._connection = Connection(endpoint)
        self._options, self._operation = options, operation
        self._target = Target(
            self._connection,
            Inventory(self._connection, inventory_namespace, operation.instance),
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
        """An API server that is starting, or has too much to do, is asked again for a while; one to abandon until the end."""
        if self._operation.abandon:
            return self._operation.persist(lambda: discover(self._connection))
        patience = time.monotonic() + DISCOVERY_SECONDS
        while True:
            try:
                return discover(self._connection)
            except ApiError as error:
                passing = error.status == 429 or error.status >= 500
                if not passing or time.monotonic() > patience or self._operation.remaining() == 0:
                    raise
                self._operation.stop.wait(error.retry_after or LOOK_EVERY)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._connection.__exit__(kind, error, trace)

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
        recreate: Collection[Key] = (),
        undo: bool = False,
    ) -> None:
        """`engine.converge`; with `undo`, what a first run made before it was refused is removed again."""
        try:
            converge(
                self._operation,
                self._target,
                self._resources,
                wanted,
                prune=prune,
                grace_period=grace_period,
                recreate=recreate,
            )
        except Refused as error:
            if undo and self._target.inventory.is_new:
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
        return self._operation.persist(lambda: vnfc.collect(self._connection, self._resources, assigned))

    def refreshed(self, assigned: Assigned) -> dict[str, CustomResource]:
        """The VDUs' objects with the counts that they have on the cluster now."""
        found = {}
        for vdu, obj in assigned.items():
            resource = self._resources.find(obj.key.of)
            try:
                live = obj.read(self._connection, resource) if resource and obj.replicas() else None
            except ApiError as error:
                if error.status != 404:
                    raise
                live = None
            found[vdu] = vdus.with_replicas(obj, vnfc.count(obj, live)) if live else obj
        return found

    def remove_vnfcs(self, assigned: Assigned, chosen: Mapping[str, set[str]]) -> None:
        """Deletes the Pods or Machines that are VNFCs (VDU id -> ids) and waits until they are gone."""
        doomed: list[tuple[Children, set[str]]] = []
        for vdu, ids in chosen.items():
            children = assigned[vdu].children()
            if children is not None:
                doomed.append((children, ids))
        remove_children(self._operation, self._target, self._resources, doomed)

    def whole_vnfcs(self, assigned: Assigned) -> list[vnfc.Vnfc]:
        """The VNFCs once each VDU has as many as its object says: an owner may be ready before it has noticed a loss."""
        while True:
            found = self.vnfcs(assigned)
            lacking = [report for vdu, obj in assigned.items() if (report := _lacking(vdu, obj, found))]
            if not lacking:
                return found
            if self._operation.remaining() == 0:
                raise NotReady("VNFCs are missing:", lacking)
            self._operation.stop.wait(min(LOOK_EVERY, self._operation.remaining()))


def _lacking(vdu: str, obj: CustomResource, found: Sequence[vnfc.Vnfc]) -> Report | None:
    if obj.children() is None or not obj.replicas():
        return None
    there, wanted = sum(one.vdu == vdu for one in found), vnfc.count(obj)
    if there == wanted:
        return None
    return Report(obj.key, "Waiting", "Replicas", f"VDU {vdu} has {there} of {wanted} VNFCs")
