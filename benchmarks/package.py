# SPDX-License-Identifier: Apache-2.0
"""What is measured: a custom resource as small as they come, and the verbs of the engine as the driver calls them."""

from __future__ import annotations

import copy
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from k8s_cr_driver.engine.run.operation import Operation, Progress
from k8s_cr_driver.engine.run.reconcile import Prune, reconcile
from k8s_cr_driver.errors import ApiError
from k8s_cr_driver.journal.inventory import Inventory
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.connection import APPLY, Connection
from k8s_cr_driver.kube.discovery import discover
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.objects.crds import crds_of
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.package import manifests
from k8s_cr_driver.resources.registry import resource_for
from k8s_cr_driver.writes.context import WriteContext

GROUP, PLURAL = "benchmark.example.com", "crontabs"
COLLECTION = f"/apis/{GROUP}/v1/namespaces/default/{PLURAL}"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_NAME = f"{PLURAL}.{GROUP}"


def crontab(name: str, replicas: int = 1) -> Object:
    metadata = {"name": name, "namespace": "default"}
    spec = {"cronSpec": "*/5 * * * *", "image": "registry.example.com/cron:1", "replicas": replicas}
    return {"apiVersion": f"{GROUP}/v1", "kind": "CronTab", "metadata": metadata, "spec": spec}


@contextmanager
def served(connection: Connection, *, status: bool) -> Iterator[None]:
    """The cluster serves CronTabs in the block, and has none of them after it."""
    connection.request("POST", _CRDS, body=_crd(status))
    while not _is_established(connection):
        time.sleep(0.05)
    try:
        yield
    finally:
        connection.request("DELETE", f"{_CRDS}/{_NAME}")
        forget(connection)
        while is_there(connection, f"{_CRDS}/{_NAME}"):
            time.sleep(0.05)


@dataclass
class Instance:
    """One VNF instance; `requests` counts what its runs have sent, each of which ends after `seconds`."""

    endpoint: Endpoint
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    requests: int = 0
    seconds: float = 300

    def reconcile(self, objects: Sequence[Object], progress: Progress | None = None, *, asks: bool = False) -> None:
        """With `asks` what differs is a dry run before, as in a change of package."""
        with _Counting(self.endpoint) as connection:
            objects = copy.deepcopy(list(objects))
            resources = discover(connection)
            manifests.place(objects, resources.scope_of)
            for crd in crds_of(objects).values():
                resources.add_crd(crd)
            heard = {"progress": progress} if progress else {}
            operation = Operation("benchmark", self.id, self.seconds, **heard)
            target = WriteContext(Client(connection, resources), Inventory(connection, "default", self.id))
            reconcile(operation, target, [resource_for(obj) for obj in objects], prune=Prune(), asks=asks)
            self.requests += connection.count


class _Counting(Connection):
    count = 0

    def request(self, *args: Any, **options: Any) -> Object:
        self.count += 1
        return super().request(*args, **options)

    def stream(self, *args: Any, **options: Any) -> Any:
        self.count += 1
        return super().stream(*args, **options)


def set_ready(connection: Connection, name: str) -> None:
    """As a controller says that its work is done."""
    details = {"reason": "Done", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    status = {"conditions": [{"type": "Ready", "status": "True", **details}]}
    body = {"apiVersion": f"{GROUP}/v1", "kind": "CronTab", "metadata": {"name": name}, "status": status}
    query = [("fieldManager", "controller"), ("force", "true")]
    connection.request("PATCH", f"{COLLECTION}/{name}/status", query=query, body=body, content_type=APPLY)


def forget(connection: Connection) -> None:
    """Removes what stays of the ways: inventories and Helm's records."""
    for plural, selector in (("configmaps", "k8s-cr-driver/inventory"), ("secrets", "owner=helm,name=benchmark")):
        connection.request("DELETE", f"/api/v1/namespaces/default/{plural}", query=[("labelSelector", selector)])


def _crd(status: bool) -> Object:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    conditions = {"type": "object", "properties": {"conditions": {"type": "array", "items": anything}}}
    properties = {"spec": anything, **({"status": conditions} if status else {})}
    version = {
        "name": "v1", "served": True, "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
        "subresources": {"status": {}} if status else {},
    }
    names = {"plural": PLURAL, "singular": "crontab", "kind": "CronTab"}
    spec = {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]}
    head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return {**head, "metadata": {"name": _NAME}, "spec": spec}


def _is_established(connection: Connection) -> bool:
    """Discovery, too, has to have it, and the collection has to answer."""
    try:
        connection.request("GET", COLLECTION)
    except ApiError:
        return False
    groups = connection.request("GET", "/apis").get("groups") or []
    return any(group["name"] == GROUP for group in groups)


def is_there(connection: Connection, path: str) -> bool:
    try:
        connection.request("GET", path)
    except ApiError as error:
        if error.status != 404:
            raise
        return False
    return True
