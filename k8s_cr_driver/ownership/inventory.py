"""
The inventory of an instance: where its objects are, and which worker may write them.

One ConfigMap per instance, an ApplySet parent (KEP-3659), names the kinds and namespaces in which the instance may have
objects: a superset before the writes, exact after a prune, deleted last. So a later run finds all objects after a crash at
any point. It also holds the fencing token of the worker that runs: Tacker may start a second worker while the first still
runs, and the first must stop.
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
from k8s_cr_driver.ownership.labels import is_created

INVENTORY_LABEL = "k8s-cr-driver/inventory"

WRITE_WITHIN, DELETE_WITHIN = 5.0, 1.0
"""Seconds for which a confirmed token is trusted before it is read again: at a write, and at a delete."""

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
    """The data of an inventory."""

    kinds: frozenset[GroupKind] = frozenset()
    namespaces: frozenset[str] = frozenset()
    adopted: frozenset[ObjectKey] = frozenset()
    """Objects that existed before the instance; never deleted by us."""
    token: str = ""
    operation: str = ""
    version: str = ""
    """resourceVersion."""

    def is_adopted(self, live: Object) -> bool:
        """Whether the object existed before the instance and was not created again by it since."""
        return key_of(live) in self.adopted and not is_created(live)


NOTHING = InventoryContent()


class Inventory:
    """
    The inventory of one instance on one cluster, held by one run of one operation.

    `remembered`: its last content as stored in Tacker; a deleted inventory is created again from it.
    """

    def __init__(self, connection: Connection, namespace: str, instance: str, remembered: InventoryContent = NOTHING) -> None:
        self._connection = connection
        self.key = ObjectKey("", "ConfigMap", namespace, f"k8s-cr-driver-{instance}")
        self.instance = instance
        self.content = InventoryContent()
        self.remembered = remembered
        self._own_token, self._creates = uuid.uuid4().hex, False
        self._lock = threading.Lock()
        self._confirmed_at = 0.0

    @property
    def is_new(self) -> bool:
        """Whether this run has created it."""
        return self._creates and bool(self.content.token)

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

    def check_not_in_set(self, keys: Iterable[ObjectKey]) -> None:
        """InvalidPackage if the set contains the inventory's Namespace: the inventory must outlive all objects of the set."""
        home = ObjectKey(*NAMESPACE, "", self.key.namespace)
        if home in keys:
            raise InvalidPackage(
                f"{home} holds the driver's inventory ([k8s_cr] inventory_namespace), so no package may bring it. Take it "
                "out of the package, or name another namespace there."
            )

    def read(self) -> InventoryContent | None:
        """The stored content, or None; does not take the instance over."""
        try:
            return parse(self._connection.request("GET", self._path()))
        except ApiError as error:
            if error.status == 404:
                return None
            raise _explained(error, self.key) from None

    def claim(self, operation: str, kinds: Iterable[GroupKind], namespaces: Iterable[str], *, create: bool) -> bool:
        """
        Takes the instance over for this run and widens the inventory; False if there is none and `create` is not set.

        Any earlier run then stops with Superseded. Contended: another worker has claimed it meanwhile.
        """
        found = self.read()
        if found is None and not create and not self.remembered.kinds:
            return False
        # One with our token was created by an earlier request whose response was lost
        self._creates = found is None or (self._creates and found.token == self._own_token)
        base = found or replace(self.remembered, version="1")  # a resourceVersion that only a new object takes
        desired = replace(
            base,
            kinds=base.kinds | frozenset(kinds),
            namespaces=base.namespaces | frozenset(namespaces),
            token=self._own_token,
            operation=operation,
        )
        try:
            self._write(desired)
        except ApiError as error:
            raise _explained(error, self.key) from None
        return True

    def update(self, *, kinds: frozenset[GroupKind], namespaces: frozenset[str], adopted: frozenset[ObjectKey]) -> None:
        """Writes the new content if it differs; Superseded if another worker has taken over."""
        desired = replace(self.content, kinds=kinds, namespaces=namespaces, adopted=adopted)
        if desired == self.content:
            return
        self._until_written(lambda: self._write(replace(desired, version=self.content.version)))

    def adopt(self, key: ObjectKey) -> None:
        self.update(kinds=self.content.kinds, namespaces=self.content.namespaces, adopted=self.content.adopted | {key})

    def created(self, key: ObjectKey) -> None:
        """Ends the adoption of an object: it was deleted, and this instance has created it again."""
        self.update(kinds=self.content.kinds, namespaces=self.content.namespaces, adopted=self.content.adopted - {key})

    def withdraw(self, *, namespace: str = "", kind: GroupKind | None = None) -> None:
        """Removes a namespace or kind in which the instance has no objects any more; see `others`."""
        content = self.content
        self.update(
            kinds=content.kinds - {kind}, namespaces=content.namespaces - {namespace}, adopted=content.adopted
        )

    def check(self, content: InventoryContent | None) -> None:
        """Superseded unless `content`, which was just read or watched, has this run's token."""
        if content is None:
            raise Superseded(
                f"{self.key}, the inventory of VNF instance {self.instance}, was deleted while this worker ran, so it "
                "stopped. If nobody has terminated the instance, retry: the inventory is created again."
            )
        if content.token != self.content.token:
            raise Superseded(
                f"Another worker took over VNF instance {self.instance}; this one has stopped. "
                "See the operation that is running now."
            )
        self._confirmed_at = time.monotonic()

    def before_write(self) -> None:
        """Superseded if the instance is no longer this run's."""
        self._confirm(WRITE_WITHIN)

    def before_delete(self) -> None:
        """Superseded if the instance is no longer this run's."""
        self._confirm(DELETE_WITHIN)

    def _confirm(self, seconds: float) -> None:
        """Reads the inventory if the token was not confirmed for so long: its watch may be half-open.

        A run without a claim, such as a dry run, has no token to check.
        """
        with self._lock:
            if self.content.token and time.monotonic() - self._confirmed_at > seconds:
                self.check(self.read())

    def delete(self) -> None:
        """Deletes it, if it is still this run's."""

        def request() -> None:
            body = {"preconditions": {"resourceVersion": self.content.version}}
            self._connection.request("DELETE", self._path(), body=body)

        try:
            self._until_written(request)
        except ApiError as error:
            if error.status != 404:
                raise

    def others(self) -> list[InventoryContent]:
        """The inventories of the other instances."""
        found = Client(self._connection).list(_CONFIG_MAPS, self.key.namespace, INVENTORY_LABEL)
        return [parse(live) for live in found if labels(live).get(INVENTORY_LABEL) != self.instance]

    def _until_written(self, request: Callable[[], None]) -> None:
        """Repeats the request once after a 409: our own earlier write may have succeeded though its response was lost."""
        try:
            return request()
        except ApiError as error:
            if error.status != 409:
                raise
        found = self.read()
        self.check(found)
        self.content = replace(self.content, version=found.version if found else "")
        try:
            return request()
        except ApiError as error:
            raise (_explained(error, self.key) if error.status == 409 else error) from None

    def _path(self) -> str:
        return _CONFIG_MAPS.path(self.key.namespace, self.key.name)

    def _write(self, desired: InventoryContent) -> None:
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": self.key.name,
                "namespace": self.key.namespace,
                "resourceVersion": desired.version,
                "labels": {_ID_LABEL: self.applyset, INVENTORY_LABEL: self.instance},
                "annotations": {
                    _TOOLING: "k8s-cr-driver/v1",
                    _KINDS: ",".join(sorted(map(str, desired.kinds))),
                    _NAMESPACES: ",".join(sorted(desired.namespaces)),
                    _TOKEN: desired.token,
                    _OPERATION: desired.operation,
                    _ADOPTED: json.dumps(sorted(desired.adopted)),
                },
            },
        }
        query = [("fieldManager", _MANAGER), ("force", "true")]
        response = self._connection.request("PATCH", self._path(), query=query, body=body, content_type=APPLY)
        checked(response, _CONFIG_MAPS.group_kind, f"PATCH {self._path()}")
        self.content = replace(desired, version=response["metadata"]["resourceVersion"])
        self._confirmed_at = time.monotonic()


def parse(live: Object) -> InventoryContent:
    """The content of an inventory's ConfigMap; TransportError if it is none."""
    where = f"the inventory {field(live, 'metadata', 'namespace')}/{field(live, 'metadata', 'name')}"
    with understood(where):
        annotations = annotations_of(checked(live, _CONFIG_MAPS.group_kind, where))
        return InventoryContent(
            kinds=frozenset(map(GroupKind.parse, filter(None, annotations.get(_KINDS, "").split(",")))),
            namespaces=frozenset(filter(None, annotations.get(_NAMESPACES, "").split(","))),
            adopted=frozenset(ObjectKey(*entry) for entry in json.loads(annotations.get(_ADOPTED) or "[]")),
            token=annotations.get(_TOKEN, ""),
            operation=annotations.get(_OPERATION, ""),
            version=live["metadata"]["resourceVersion"],
        )


def _explained(error: ApiError, key: ObjectKey) -> Exception:
    if error.status == 403:
        return Forbidden(f"{error}. The driver keeps its inventory in {key}: allow it, or set [k8s_cr] inventory_namespace.")
    if error.status == 404:
        return Forbidden(f"{error}. Namespace {key.namespace} does not exist: create it, or set [k8s_cr] inventory_namespace.")
    if error.status == 409:
        return Contended(f"{key}, the inventory, is changed by others all the time: {error}")
    return error
