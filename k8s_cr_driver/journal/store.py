# SPDX-License-Identifier: Apache-2.0
"""
The requests for an inventory: reads, writes and deletes its ConfigMap, and finds those of other instances.

It is an ApplySet parent (KEP-3659). A write names the uid of the object that was claimed, because an apply would create a
deleted inventory again.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Iterable

from k8s_cr_driver.errors import ApiError, Contended, Forbidden, InvalidPackage, Refused, Said, Unreadable
from k8s_cr_driver.journal.stored_form import (
    CONFIG_MAP,
    INVENTORY_LABEL,
    INVENTORY_MANAGER,
    SPOILED,
    VERSION,
    InventoryContent,
    form,
    inventory_name,
    is_by_driver,
    is_inventory,
    parse,
    parse_foreign,
    parse_scope,
    version_of,
)
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.connection import APPLY, METADATA_LIST, Connection
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.kube.responses import checked
from k8s_cr_driver.objects.keys import NAMESPACE, Object, ObjectKey, labels

CONFIG_MAPS = Resource(CONFIG_MAP, "v1", "configmaps", True, frozenset({"get", "patch", "watch", "delete"}))
_ID_LABEL = "applyset.kubernetes.io/id"


def check_outlives(inventory: ObjectKey, keys: Iterable[ObjectKey]) -> None:
    """InvalidPackage if a set contains the inventory's Namespace: the inventory must outlive all objects of the set."""
    home = ObjectKey(*NAMESPACE, "", inventory.namespace)
    if home in keys:
        raise InvalidPackage(
            f"{home} holds the driver's inventory ([k8s_cr] inventory_namespace), so no package may bring it. Take it "
            "out of the package, or name another namespace there."
        )


class InventoryStore:
    """The ConfigMap of one instance on one cluster."""

    def __init__(self, connection: Connection, namespace: str, instance: str) -> None:
        self._connection, self._client, self.instance = connection, Client(connection), instance
        self.key = ObjectKey("", "ConfigMap", namespace, inventory_name(instance))
        self.uid = ""
        """Of the ConfigMap that this run has written; "" before the first write."""

    @property
    def applyset(self) -> str:
        """The ApplySet's ID (KEP-3659): members carry it in their part-of label."""
        return _applyset(self.key)

    def read(self) -> InventoryContent | None:
        """The stored content, or None; Refused if a newer driver has written it."""
        live = self._read()
        try:
            return parse(live) if live else None
        except Unreadable as error:
            raise Unreadable(f"{error}. {SPOILED}") from None

    def read_scope(self) -> InventoryContent | None:
        """The same without the objects, of which there may be many thousands: kinds, namespaces, and the token."""
        live = self._read()
        return parse_scope(live) if live else None

    def _read(self) -> Object | None:
        try:
            live = self._client.read(CONFIG_MAPS, self.key)
        except ApiError as error:
            if error.status == 404:
                return None
            raise self.explained(error) from None
        # A label that somebody has removed is set again by the next claim.
        if not is_by_driver(live) or labels(live).get(INVENTORY_LABEL, self.instance) != self.instance:
            raise Refused(
                f"{self.key} has the name of the inventory of VNF instance {self.instance}, but others have written it, or "
                f"its label {INVENTORY_LABEL} is of another instance. Delete it: the driver creates the inventory again from "
                "what Tacker remembers."
            )
        if version_of(live) > VERSION:
            raise Refused(
                f"{self.key}, the inventory of VNF instance {self.instance}, has version {version_of(live)}: a newer "
                "k8s-cr-driver has written it. Install that version again."
            )
        return live

    def write(self, desired: InventoryContent) -> InventoryContent:
        """Writes the content on the condition of its resourceVersion, ApiError 409; returns what is stored."""
        body = self._config_map(desired)
        query = [("fieldManager", INVENTORY_MANAGER), ("force", "true")]
        response = self._connection.request("PATCH", self._path(), query=query, body=body, content_type=APPLY)
        checked(response, CONFIG_MAP, f"PATCH {self._path()}")
        metadata = response["metadata"]
        self.uid = metadata["uid"]
        stored = {"resource_version": metadata["resourceVersion"], "created": metadata.get("creationTimestamp") or ""}
        return desired._replace(version=VERSION, uid=self.uid, **stored)

    def delete(self, resource_version: str) -> None:
        """Deletes it; ApiError 409 if it is not of that resourceVersion."""
        self._client.on_object("DELETE", CONFIG_MAPS, self.key, {"preconditions": {"resourceVersion": resource_version}})

    def others(self) -> list[InventoryContent | None]:
        """Kinds and namespaces of the other instances, None for an inventory that makes no sense.

        In all namespaces, as another Tacker may keep its inventories elsewhere.
        An account that may not list ConfigMaps in all namespaces sees the inventories beside its own.
        """
        try:
            found = self._client.list(CONFIG_MAPS, "", INVENTORY_LABEL, METADATA_LIST)
        except ApiError as error:
            if error.status != 403:
                raise
            found = self._client.list(CONFIG_MAPS, self.key.namespace, INVENTORY_LABEL, METADATA_LIST)
        return [parse_foreign(live) for live in found if is_inventory(live) and labels(live)[INVENTORY_LABEL] != self.instance]

    def explained(self, error: ApiError) -> Exception:
        """The error of a request, with the remedy."""
        namespace = self.key.namespace
        if Said.DENIED in error.said:
            return Forbidden(
                f"{error}. The driver keeps its inventory in {self.key}: exempt it from the webhook or policy, or delete that, "
                "also if it is of this VNF instance."
            )
        if error.status == 403:
            return Forbidden(
                f"{error}. The driver keeps its inventory in {self.key}: allow it, or set [k8s_cr] inventory_namespace."
            )
        if error.status == 404 and error.subject == ("namespaces", namespace):
            return Forbidden(
                f"{error}. Namespace {namespace} does not exist: create it, or set [k8s_cr] inventory_namespace."
            )
        if error.status in (404, 409):
            return Contended(f"{self.key}, the inventory, is changed by others all the time: {error}")
        return error

    def _path(self) -> str:
        return CONFIG_MAPS.path(self.key.namespace, self.key.name)

    def _config_map(self, desired: InventoryContent) -> Object:
        stored = form(desired)
        metadata = {
            "name": self.key.name,
            "namespace": self.key.namespace,
            "resourceVersion": desired.resource_version,
            "labels": {_ID_LABEL: self.applyset, INVENTORY_LABEL: self.instance},
            "annotations": stored.pop("annotations"),
            **({"uid": self.uid} if self.uid else {}),
        }
        return {**stored, "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


@functools.lru_cache(maxsize=1024)
def _applyset(parent: ObjectKey) -> str:
    name = f"{parent.name}.{parent.namespace}.{parent.kind}.{parent.group}"
    digest = base64.urlsafe_b64encode(hashlib.sha256(name.encode()).digest()).decode().rstrip("=")
    return f"applyset-{digest}-v1"
