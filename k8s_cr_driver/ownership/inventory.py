"""
Which objects belong to an instance, and which worker may write them.

One ConfigMap per instance, an ApplySet parent (KEP-3659), names the kinds and namespaces in which the instance may have
objects: a superset before the writes, exact after a prune, deleted last. So a crash at any point leaves nothing that a
later run cannot find. It also holds the token of the last worker that took the instance over: Tacker may start a second
one while the first still runs, and the first must stop.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from k8s_cr_driver.errors import ApiError, Contended, Forbidden, InvalidPackage, Superseded
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.connection import APPLY, Connection
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.kube.responses import checked, understood
from k8s_cr_driver.objects.fields import field
from k8s_cr_driver.objects.keys import NAMESPACE, GroupKind, Object, ObjectKey, annotations_of, key_of, labels
from k8s_cr_driver.ownership.labels import is_made

INVENTORY_LABEL = "k8s-cr-driver/inventory"

WRITE_WITHIN, DELETE_WITHIN = 5.0, 1.0
"""Seconds since the last word on the token for which it is believed when an object is written, or deleted."""

_ID_LABEL = "applyset.kubernetes.io/id"
_TOOLING = "applyset.kubernetes.io/tooling"
_KINDS = "applyset.kubernetes.io/contains-group-kinds"
_NAMESPACES = "applyset.kubernetes.io/additional-namespaces"
_TOKEN = "k8s-cr-driver/token"  # noqa: S105 (names a fencing token)
_OPERATION = "k8s-cr-driver/operation"
_ADOPTED = "k8s-cr-driver/adopted"
_MANAGER = "k8s-cr-driver"
_CONFIG_MAPS = Resource(GroupKind("", "ConfigMap"), "v1", "configmaps", True, frozenset({"get", "patch", "watch", "delete"}))


@dataclass(frozen=True)
class InventoryContent:
    """What an inventory says."""

    kinds: frozenset[GroupKind] = frozenset()
    namespaces: frozenset[str] = frozenset()
    adopted: frozenset[ObjectKey] = frozenset()
    """Objects that were somebody else's before; never deleted by us."""
    token: str = ""
    operation: str = ""
    version: str = ""
    """resourceVersion."""

    def keeps(self, live: Object) -> bool:
        """Whether the object was somebody else's before, and has not gone and been made anew by this instance since."""
        return key_of(live) in self.adopted and not is_made(live)


NOTHING = InventoryContent()


class Inventory:
    """
    The inventory of one instance on one cluster, held by one run of one operation.

    `remembered`: what it last said, as told elsewhere; it is made anew from that if somebody has deleted it.
    """

    def __init__(self, connection: Connection, namespace: str, instance: str, remembered: InventoryContent = NOTHING) -> None:
        self._connection = connection
        self.key = ObjectKey("", "ConfigMap", namespace, f"k8s-cr-driver-{instance}")
        self.instance = instance
        self.record = InventoryContent()
        self.remembered = remembered
        self._own_token, self._makes = uuid.uuid4().hex, False
        self._lock = threading.Lock()
        self._heard = 0.0

    @property
    def is_new(self) -> bool:
        """Whether this run has made it."""
        return self._makes and bool(self.record.token)

    @property
    def resource(self) -> Resource:
        return _CONFIG_MAPS

    @property
    def selector(self) -> str:
        return f"{INVENTORY_LABEL}={self.instance}"

    @property
    def applyset(self) -> str:
        """The ApplySet's ID (KEP-3659): members carry it in their part-of label."""
        name = f"{self.key.name}.{self.key.namespace}.{self.key.kind}.{self.key.group}"
        digest = base64.urlsafe_b64encode(hashlib.sha256(name.encode()).digest()).decode().rstrip("=")
        return f"applyset-{digest}-v1"

    def check_apart(self, keys: Iterable[ObjectKey]) -> None:
        """InvalidPackage if one is the Namespace in which the inventory is: it would go with what it has to outlive."""
        home = ObjectKey(*NAMESPACE, "", self.key.namespace)
        if home in keys:
            raise InvalidPackage(
                f"{home} holds the driver's inventory ([k8s_cr] inventory_namespace), so no package may bring it. Take it "
                "out of the package, or name another namespace there."
            )

    def read(self) -> InventoryContent | None:
        """What the cluster has, or None; does not take the instance over."""
        try:
            return parse(self._connection.request("GET", self._path()))
        except ApiError as error:
            if error.status == 404:
                return None
            raise _explained(error, self.key) from None

    def claim(self, operation: str, kinds: Iterable[GroupKind], namespaces: Iterable[str], *, create: bool) -> bool:
        """
        Takes the instance over for this run and widens the inventory; False if there is none and none is to be made.

        From now on any earlier run of any worker stops with Superseded. Contended: another one has claimed it meanwhile.
        """
        found = self.read()
        if found is None and not create and not self.remembered.kinds:
            return False
        # One that has our token was made by an earlier request, of which the answer was lost
        self._makes = found is None or (self._makes and found.token == self._own_token)
        base = found or replace(self.remembered, version="1")  # a resourceVersion that only a new object takes
        wanted = replace(
            base,
            kinds=base.kinds | frozenset(kinds),
            namespaces=base.namespaces | frozenset(namespaces),
            token=self._own_token,
            operation=operation,
        )
        try:
            self._write(wanted)
        except ApiError as error:
            raise _explained(error, self.key) from None
        return True

    def update(self, *, kinds: frozenset[GroupKind], namespaces: frozenset[str], adopted: frozenset[ObjectKey]) -> None:
        """Writes what has changed, if anything has; Superseded if the inventory is no longer ours."""
        wanted = replace(self.record, kinds=kinds, namespaces=namespaces, adopted=adopted)
        if wanted == self.record:
            return
        self._until_written(lambda: self._write(replace(wanted, version=self.record.version)))

    def adopt(self, key: ObjectKey) -> None:
        self.update(kinds=self.record.kinds, namespaces=self.record.namespaces, adopted=self.record.adopted | {key})

    def own(self, key: ObjectKey) -> None:
        """Says that an object, if it was adopted, has gone and is made anew by this instance."""
        self.update(kinds=self.record.kinds, namespaces=self.record.namespaces, adopted=self.record.adopted - {key})

    def leave(self, *, namespace: str = "", kind: GroupKind | None = None) -> None:
        """Says that nothing of this instance is in a namespace, or of a kind, any more; see `others`."""
        record = self.record
        self.update(
            kinds=record.kinds - {kind}, namespaces=record.namespaces - {namespace}, adopted=record.adopted
        )

    def check(self, record: InventoryContent | None) -> None:
        """Superseded unless `record`, just read or heard of, has this run's token."""
        if record is None:
            raise Superseded(
                f"{self.key}, the inventory of VNF instance {self.instance}, was deleted while this worker was busy, which has "
                "stopped. If nobody has terminated the instance, retry: the inventory is made anew."
            )
        if record.token != self.record.token:
            raise Superseded(
                f"Another worker took over VNF instance {self.instance}; this one has stopped. "
                "See the operation that is running now."
            )
        self._heard = time.monotonic()

    def before_write(self) -> None:
        """Superseded if the instance is no longer this run's."""
        self._confirm(WRITE_WITHIN)

    def before_delete(self) -> None:
        """Superseded if the instance is no longer this run's."""
        self._confirm(DELETE_WITHIN)

    def _confirm(self, seconds: float) -> None:
        """Asks a cluster that has said nothing of the token for so long: the stream of it may be half-open.

        Who has claimed nothing, as a dry run, has nothing to lose.
        """
        with self._lock:
            if self.record.token and time.monotonic() - self._heard > seconds:
                self.check(self.read())

    def delete(self) -> None:
        """Deletes it, if it is still this run's."""

        def request() -> None:
            body = {"preconditions": {"resourceVersion": self.record.version}}
            self._connection.request("DELETE", self._path(), body=body)

        try:
            self._until_written(request)
        except ApiError as error:
            if error.status != 404:
                raise

    def others(self) -> list[InventoryContent]:
        """What the other instances' inventories say."""
        found = Client(self._connection).list(_CONFIG_MAPS, self.key.namespace, INVENTORY_LABEL)
        return [parse(live) for live in found if labels(live).get(INVENTORY_LABEL) != self.instance]

    def _until_written(self, request: Callable[[], None]) -> None:
        """Once more after a write of our own whose answer was lost; Superseded if another worker has written."""
        try:
            return request()
        except ApiError as error:
            if error.status != 409:
                raise
        found = self.read()
        self.check(found)
        self.record = replace(self.record, version=found.version if found else "")
        try:
            return request()
        except ApiError as error:
            raise (_explained(error, self.key) if error.status == 409 else error) from None

    def _path(self) -> str:
        return _CONFIG_MAPS.path(self.key.namespace, self.key.name)

    def _write(self, wanted: InventoryContent) -> None:
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": self.key.name,
                "namespace": self.key.namespace,
                "resourceVersion": wanted.version,
                "labels": {_ID_LABEL: self.applyset, INVENTORY_LABEL: self.instance},
                "annotations": {
                    _TOOLING: "k8s-cr-driver/v1",
                    _KINDS: ",".join(sorted(map(str, wanted.kinds))),
                    _NAMESPACES: ",".join(sorted(wanted.namespaces)),
                    _TOKEN: wanted.token,
                    _OPERATION: wanted.operation,
                    _ADOPTED: json.dumps(sorted(wanted.adopted)),
                },
            },
        }
        query = [("fieldManager", _MANAGER), ("force", "true")]
        answer = self._connection.request("PATCH", self._path(), query=query, body=body, content_type=APPLY)
        checked(answer, _CONFIG_MAPS.group_kind, f"PATCH {self._path()}")
        self.record = replace(wanted, version=answer["metadata"]["resourceVersion"])
        self._heard = time.monotonic()


def parse(live: Object) -> InventoryContent:
    """The record of an inventory's ConfigMap; TransportError if it is none."""
    where = f"the inventory {field(live, 'metadata', 'namespace')}/{field(live, 'metadata', 'name')}"
    with understood(where):
        marks = annotations_of(checked(live, _CONFIG_MAPS.group_kind, where))
        return InventoryContent(
            kinds=frozenset(map(GroupKind.parse, filter(None, marks.get(_KINDS, "").split(",")))),
            namespaces=frozenset(filter(None, marks.get(_NAMESPACES, "").split(","))),
            adopted=frozenset(ObjectKey(*entry) for entry in json.loads(marks.get(_ADOPTED) or "[]")),
            token=marks.get(_TOKEN, ""),
            operation=marks.get(_OPERATION, ""),
            version=live["metadata"]["resourceVersion"],
        )


def _explained(error: ApiError, key: ObjectKey) -> Exception:
    if error.status == 403:
        return Forbidden(f"{error}. The driver keeps its inventory in {key}: allow it, or set [k8s_cr] inventory_namespace.")
    if error.status == 404:
        return Forbidden(f"{error}. Namespace {key.namespace} does not exist: make it, or set [k8s_cr] inventory_namespace.")
    if error.status == 409:
        return Contended(f"{key}, the inventory, is changed by others all the time: {error}")
    return error
