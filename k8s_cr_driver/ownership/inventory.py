# SPDX-License-Identifier: Apache-2.0
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
import math
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import replace

from k8s_cr_driver.errors import ApiError, Contended, Forbidden, InvalidPackage, NotConnected, Superseded, TransportError
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.connection import APPLY, CONNECT_TIMEOUT, WRITE_TIMEOUT, Connection
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.kube.responses import checked
from k8s_cr_driver.objects.keys import NAMESPACE, GroupKind, Object, ObjectKey, labels
from k8s_cr_driver.ownership.inventory_content import CONFIG_MAP, NOTHING, InventoryContent, form, parse

INVENTORY_LABEL = "k8s-cr-driver/inventory"

WRITE_WITHIN, DELETE_WITHIN = 5.0, 1.0
"""Seconds for which a confirmed token is trusted before it is read again: at a write, and at a delete."""
TRAVEL = 1.0
"""Seconds for the way of a write that no webhook holds, and for etcd."""
IN_FLIGHT = CONNECT_TIMEOUT + WRITE_TIMEOUT + TRAVEL
"""Seconds after the token was trusted for a write until which that may take effect."""

_ID_LABEL = "applyset.kubernetes.io/id"
_MANAGER = "k8s-cr-driver"
_CONFIG_MAPS = Resource(CONFIG_MAP, "v1", "configmaps", True, frozenset({"get", "patch", "watch", "delete"}))


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
        self._uid, self._has_former = "", False
        self._recreated: set[ObjectKey] = set()
        self._finished: dict[ObjectKey, str] = {}
        self._stops_at = 0.0
        self._lost_token, self._lost_at = "", math.inf
        self._lock = threading.Lock()
        self._confirmed_at = 0.0

    @property
    def is_new(self) -> bool:
        """Whether this run has created it."""
        return self._creates and bool(self._uid)

    @property
    def has_former(self) -> bool:
        """Whether another run held the instance when this one claimed it, and may not have noticed yet."""
        return self._has_former

    def former_stops_in(self) -> float:
        """Seconds until that run trusts its token no longer, and what it has sent is written unless a webhook holds it."""
        return max(0.0, self._stops_at - time.monotonic())

    def former_expires_in(self) -> float:
        """Seconds until no write of that run can take effect any more."""
        return max(0.0, self._stops_at - TRAVEL + IN_FLIGHT - time.monotonic())

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

    def claim(
        self,
        operation: str,
        kinds: Iterable[GroupKind],
        namespaces: Iterable[str],
        *,
        create: bool,
        members: Iterable[ObjectKey] = (),
    ) -> bool:
        """
        Takes the instance over for this run and widens the inventory; False if there is none and `create` is not set.

        Any earlier run then stops with Superseded. Contended: another worker has claimed it meanwhile.
        """
        found = self.read()
        if found is None and not create and not self.remembered.kinds:
            return False
        self._check_lost(found)
        self._has_former |= bool(found and found.token not in ("", self._own_token) and not found.released)
        # One with our token was created by an earlier request whose response was lost
        self._creates = found is None or (self._creates and found.token == self._own_token)
        new = replace(self.remembered, members=None) if self.remembered.kinds else InventoryContent()
        base = found or replace(new, version="1")  # a resourceVersion that only a new object takes
        desired = replace(
            base,
            kinds=base.kinds | frozenset(kinds),
            namespaces=base.namespaces | frozenset(namespaces),
            token=self._own_token,
            operation=operation,
            released=False,
            members=None if base.members is None else base.members | frozenset(members),
        )
        asked_at = time.monotonic()
        try:
            self._write(desired)
        except NotConnected:  # nothing was sent
            raise
        except TransportError:
            self._lost_token, self._lost_at = base.token, asked_at
            raise
        except ApiError as error:
            raise _explained(error, self.key) from None
        self._stops_at = time.monotonic() + WRITE_WITHIN + TRAVEL
        return True

    def _check_lost(self, found: InventoryContent | None) -> None:
        """Superseded if a claim whose response was lost may have succeeded, and others have claimed the instance since.

        An inventory that such a claim created is not deleted until its token has expired: a terminate waits for that.
        """
        is_unchanged = found is not None and found.token in (self._lost_token, self._own_token)
        if not is_unchanged and time.monotonic() - self._lost_at > (-1 if found else WRITE_WITHIN):
            self.check(found)

    def finish(self, *, kinds: frozenset[GroupKind], namespaces: frozenset[str], members: frozenset[ObjectKey]) -> None:
        """Writes the exact content and releases the token."""
        adopted = self.content.adopted & members
        finished = frozenset(one for one in self.content.finished if one[0] in members)
        exact = replace(self.content, kinds=kinds, namespaces=namespaces, adopted=adopted, members=members, finished=finished)
        self._change(replace(exact, released=True))

    def release(self) -> None:
        """Gives the token back at the end of a run, so that the next one need not wait until it expires."""
        if self.content.token:
            self._change(replace(self.content, released=True))

    def _change(self, desired: InventoryContent) -> None:
        older = {one for one in desired.finished if one[0] not in self._finished}
        finished = frozenset(older | set(self._finished.items()))
        desired = replace(desired, adopted=desired.adopted - self._recreated, finished=finished)
        if desired == self.content:
            return
        self._until_written(lambda: self._write(replace(desired, version=self.content.version)))

    def adopt(self, keys: Iterable[ObjectKey]) -> None:
        """Records objects that exist already and are nobody's, in one write."""
        self._change(replace(self.content, adopted=self.content.adopted | frozenset(keys)))

    def add_members(self, keys: Iterable[ObjectKey]) -> None:
        """Records objects that were not part of the set, in one write."""
        added, content = frozenset(keys), self.content
        self._change(
            replace(
                content,
                kinds=content.kinds | {key.group_kind for key in added},
                namespaces=content.namespaces | {key.namespace for key in added} - {""},
                members=None if content.members is None else content.members | added,
            )
        )

    def note_finished(self, key: ObjectKey, digest: str) -> None:
        """Notes that an object has run to its end; written with the next change."""
        self._finished[key] = digest

    def created(self, key: ObjectKey) -> None:
        """Ends the adoption of an object: it was deleted, and this instance has created it again.

        Written with the next change: until then the object's own annotation says so.
        """
        self._recreated.add(key)

    def withdraw(self, *, namespace: str = "", kind: GroupKind | None = None) -> None:
        """Removes a namespace or kind in which the instance has no objects any more; see `others`."""
        content = self.content
        self._change(replace(content, kinds=content.kinds - {kind}, namespaces=content.namespaces - {namespace}))

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

    def before_write(self) -> None:
        """Superseded if the instance is no longer this run's."""
        self._confirm(WRITE_WITHIN)

    def before_delete(self) -> None:
        """Superseded if the instance is no longer this run's."""
        self._confirm(DELETE_WITHIN)

    def before_recreate(self) -> None:
        """Superseded if the instance is no longer this run's as of now: an object that vanished may be gone because of that."""
        self._confirm(-1)

    def _confirm(self, seconds: float) -> None:
        """Reads the inventory if the token was not confirmed for so long: its watch may be half-open.

        Watch events do not confirm it, for they may be late. A run without a claim, such as a dry run, has no token.
        """
        with self._lock:
            asked_at = time.monotonic()
            if self.content.token and asked_at - self._confirmed_at > seconds:
                self.check(self.read())
                self._confirmed_at = asked_at

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
        self.content = replace(self.content, released=True)

    def others(self) -> list[InventoryContent]:
        """The inventories of the other instances, in all namespaces: another Tacker may keep its own elsewhere.

        An account that may not list ConfigMaps in all namespaces sees those beside its own inventory.
        """
        client = Client(self._connection)
        try:
            found = client.list(_CONFIG_MAPS, "", INVENTORY_LABEL)
        except ApiError as error:
            if error.status != 403:
                raise
            found = client.list(_CONFIG_MAPS, self.key.namespace, INVENTORY_LABEL)
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
        stored = form(desired)
        annotations = stored.pop("annotations")
        body: Object = {
            **stored,
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": self.key.name,
                "namespace": self.key.namespace,
                "resourceVersion": desired.version,
                "labels": {_ID_LABEL: self.applyset, INVENTORY_LABEL: self.instance},
                "annotations": annotations,
            },
        }
        if self._uid:  # else an apply would create a deleted inventory again
            body["metadata"]["uid"] = self._uid
        query = [("fieldManager", _MANAGER), ("force", "true")]
        asked_at = time.monotonic()
        response = self._connection.request("PATCH", self._path(), query=query, body=body, content_type=APPLY)
        checked(response, _CONFIG_MAPS.group_kind, f"PATCH {self._path()}")
        metadata = response["metadata"]
        identity = {"uid": metadata["uid"], "created": metadata["creationTimestamp"]}
        self.content = replace(desired, version=metadata["resourceVersion"], **identity)
        self._uid, self._confirmed_at = metadata["uid"], asked_at


def _explained(error: ApiError, key: ObjectKey) -> Exception:
    if error.status == 403:
        return Forbidden(f"{error}. The driver keeps its inventory in {key}: allow it, or set [k8s_cr] inventory_namespace.")
    if error.status == 404:
        return Forbidden(f"{error}. Namespace {key.namespace} does not exist: create it, or set [k8s_cr] inventory_namespace.")
    if error.status == 409:
        return Contended(f"{key}, the inventory, is changed by others all the time: {error}")
    return error
