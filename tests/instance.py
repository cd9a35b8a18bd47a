# SPDX-License-Identifier: Apache-2.0
"""One VNF instance on the fake API server, driven through the engine's public functions as the driver does."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

import pytest

from k8s_cr_driver.engine.apply.applier import Applier
from k8s_cr_driver.engine.delete.replacer import NO_REPLACEMENT, Replacement
from k8s_cr_driver.engine.run.loop import Loop
from k8s_cr_driver.engine.run.nodes import Desired
from k8s_cr_driver.engine.run.operation import Operation, WatchLimits
from k8s_cr_driver.engine.run.reconcile import Prune, reconcile
from k8s_cr_driver.errors import DriverError
from k8s_cr_driver.journal.inventory import Inventory
from k8s_cr_driver.journal.stored_form import NOTHING, InventoryContent
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.discovery import discover
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.objects.crds import crds_of
from k8s_cr_driver.objects.keys import Object, ObjectKey, key_of, kind_of
from k8s_cr_driver.objects.marks import KEEP
from k8s_cr_driver.package import manifests
from k8s_cr_driver.resources.registry import resource_for
from k8s_cr_driver.writes.context import WriteContext
from tests.fake_api import FakeApi
from tests.fake_api.cluster import DEFAULT_NAMESPACES

BLUE = "8f0e2ef0-5d8a-4a43-a1f0-000000000001"
GREEN = "8f0e2ef0-5d8a-4a43-a1f0-000000000002"
RED = "8f0e2ef0-5d8a-4a43-a1f0-000000000003"


class Instance:
    """`seconds` is the deadline of each run; `stop` ends it; `heard` is the progress it reported."""

    def __init__(
        self,
        url: str,
        id: str = BLUE,
        seconds: float = 60,
        authorization: str = "",
        inventory_namespace: str = "default",
        **target: Any,
    ) -> None:
        self.endpoint, self.id, self.seconds, self.target = Endpoint(url, authorization=authorization), id, seconds, target
        self.inventory_namespace = inventory_namespace
        self.stop, self.abandon, self.remembered = threading.Event(), False, NOTHING
        self.is_current: Callable[[], bool] = lambda: True
        self.heard: list[tuple[ObjectKey, str, str]] = []
        self.watches = WatchLimits()
        self.no_activity: float | None = None
        self._operation: Operation | None = None
        self._reported = threading.Condition()

    def reconcile(
        self,
        objects: Sequence[Object],
        *,
        prune: bool = True,
        replacement: Replacement = NO_REPLACEMENT,
        asks: bool = False,
    ) -> dict[ObjectKey, Object]:
        objects = copy.deepcopy(list(objects))
        with Connection(self.endpoint) as connection:
            resources = discover(connection)
            manifests.place(objects, resources.scope_of)
            crds = crds_of(objects)
            for crd in crds.values():
                resources.add_crd(crd)
            self._operation = operation = Operation(
                "test", self.id, self.seconds, self.stop, self._hear, abandon=self.abandon, is_current=self.is_current,
                watches=self.watches, no_activity=self.no_activity,
            )
            inventory = Inventory(connection, self.inventory_namespace, self.id, self.remembered)
            target = WriteContext(Client(connection, resources), inventory, **self.target)
            desired = [resource_for(obj, crds.get(kind_of(obj))) for obj in objects]
            how = Prune() if prune else None
            return reconcile(operation, target, desired, prune=how, replacement=replacement, asks=asks)

    def terminate(self) -> None:
        self.reconcile([])

    def record(self) -> None:
        """Has of the inventory what Tacker's record has of it."""
        with Connection(self.endpoint) as connection:
            found = Inventory(connection, self.inventory_namespace, self.id).read()
        assert found is not None
        known = {"uid": found.uid, "created": found.created}
        self.remembered = InventoryContent(found.kinds, found.namespaces, found.adopted, found.adopted_uids, **known)

    def start(self, objects: Sequence[Object], **options: Any) -> Future[dict[ObjectKey, Object]]:
        """`converge` in a thread of its own."""
        future: Future[dict[ObjectKey, Object]] = Future()

        def run() -> None:
            try:
                future.set_result(self.reconcile(objects, **options))
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        return future

    def end(self, seconds: float = 0) -> None:
        """The deadline of the run passes after so many seconds from now."""
        assert self._operation
        self._operation.deadline = time.monotonic() + seconds

    def wait_until_reported(self, name: str, state: str, words: str = "") -> None:
        """Until a run has reported that the object of that name is in that state, with these words in the message."""

        def is_reported() -> bool:
            return any(key.name == name and was == state and words in message for key, was, message in self.heard)

        with self._reported:
            assert self._reported.wait_for(is_reported, 60)

    def _hear(self, key: ObjectKey, state: str, message: str) -> None:
        with self._reported:
            self.heard.append((key, state, message))
            self._reported.notify_all()


def state(api: FakeApi) -> dict[ObjectKey, Object]:
    """All that is on the cluster but for what it began with, without what differs from one run to the next."""
    found = {}
    for kind in api.cluster.kinds():
        for live in api.objects(kind.kind, api_version=kind.api_version):
            metadata = live["metadata"]
            if live["kind"] == "Namespace" and metadata["name"] in DEFAULT_NAMESPACES:
                continue
            marks = {name: value for name, value in metadata.get("annotations", {}).items() if name not in _OF_A_RUN}
            rest = {name: value for name, value in live.items() if name not in ("metadata", "status")}
            found[key_of(live)] = {**rest, "labels": metadata.get("labels"), "annotations": marks}
    return found


def run_refused(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Is set when a run has a refusal, which ends it."""
    found, refuse = threading.Event(), Loop.refuse

    def noted(loop: Loop, error: DriverError) -> None:
        refuse(loop, error)
        found.set()

    monkeypatch.setattr(Loop, "refuse", noted)
    return found


def observed(monkeypatch: pytest.MonkeyPatch, what: Callable[[Object | None], bool]) -> threading.Event:
    """Is set when a watch has reported such a state of a desired object to a run; None: it no longer exists."""
    found, observe = threading.Event(), Applier.observe

    def noted(applier: Applier, node: Desired, live: Object | None) -> None:
        observe(applier, node, live)
        if what(live):
            found.set()

    monkeypatch.setattr(Applier, "observe", noted)
    return found


def wait_for(api: FakeApi, condition: Callable[[], bool]) -> None:
    """Until what a test asks of the cluster, or of a run, is so; a run changes without a word of the cluster."""
    until = time.monotonic() + 60
    with api.cluster.store.changed:
        while not condition():
            assert time.monotonic() < until
            api.cluster.store.changed.wait(0.1)


_OF_A_RUN = tuple(f"k8s-cr-driver/{name}" for name in ("token", "operation", "released", "worker"))


def obj(api_version: str, kind: str, name: str, namespace: str = "", **rest: Any) -> Object:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}


def kept(manifest: Object) -> Object:
    """With the annotation that it is to be kept."""
    return annotated(manifest, {KEEP: "true"})


def annotated(manifest: Object, annotations: dict[str, str]) -> Object:
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": annotations}}


def labelled(manifest: Object, **labels: str) -> Object:
    return {**manifest, "metadata": {**manifest["metadata"], "labels": labels}}


def config_map(name: str, namespace: str = "default", **data: str) -> Object:
    return obj("v1", "ConfigMap", name, namespace, data=data or {"a": "1"})


def crontab(name: str, namespace: str = "default", schedule: str = "* * * * *") -> Object:
    return obj("stable.example.com/v1", "CronTab", name, namespace, spec={"cronSpec": schedule})


def job(name: str, image: str, **annotations: str) -> Object:
    template = {"spec": {"containers": [{"name": "c", "image": image}], "restartPolicy": "Never"}}
    return annotated(obj("batch/v1", "Job", name, "default", spec={"template": template}), annotations)


def deployment(name: str = "web", app: str = "web", **pod: Any) -> Object:
    labels = {"app": app}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "c:1"}], **pod}}
    return obj("apps/v1", "Deployment", name, spec={"selector": {"matchLabels": labels}, "template": template})


def scalable(**paths: str) -> Object:
    """The CRD of CronTab with the subresource scale."""
    crd = crontab_crd(selector={"type": "string"})
    paths = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size", **paths}
    [version] = crd["spec"]["versions"]
    version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"] = {"type": "integer"}
    version["subresources"] = {"status": {}, "scale": paths}
    return crd


def stateful_set(name: str, **spec: Any) -> Object:
    marks = {"app": name}
    template = {"metadata": {"labels": marks}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    claims = [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]
    own = {"replicas": 1, "selector": {"matchLabels": marks}, "template": template, "volumeClaimTemplates": claims}
    return obj("apps/v1", "StatefulSet", name, "default", spec={**own, **spec})


def claim(name: str, **labels: str) -> Object:
    """As a user makes it, or with the labels of its selector the controller of a StatefulSet."""
    made = obj("v1", "PersistentVolumeClaim", name, "default", spec={"accessModes": ["ReadWriteOnce"]})
    return {**made, "metadata": {**made["metadata"], "labels": labels}} if labels else made


def owned(api: FakeApi, claimed: str, kind: str, api_version: str, name: str) -> str:
    """Gives a claim an owner; returns the uid of the claim."""
    owner = {"apiVersion": api_version, "kind": kind, "name": name}
    owner["uid"] = api.get(kind, "default", name)["metadata"]["uid"]
    api.edit("PersistentVolumeClaim", "default", claimed, lambda live: live["metadata"].update(ownerReferences=[owner]))
    return str(api.get("PersistentVolumeClaim", "default", claimed)["metadata"]["uid"])


def controlled_by(owner: Object) -> Object:
    name = {part: owner["metadata"][part] for part in ("name", "uid")}
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], **name, "controller": True}


def replaced(api: FakeApi, kind: str, namespace: str, name: str, **labels: str) -> Object:
    """As `kubectl replace` leaves it: with no label but those of the file."""
    live = api.get(kind, namespace, name)
    live["metadata"]["labels"] = labels
    return api.put(live, manager="kubectl-replace")


def created_again(api: FakeApi, kind: str, namespace: str, name: str) -> None:
    """As `kubectl replace --force` leaves it: another object, with the labels of the one before it."""
    live = api.get(kind, namespace, name)
    metadata = {field: live["metadata"][field] for field in ("name", "namespace", "labels")}
    api.delete(kind, namespace, name)
    api.put({**live, "metadata": metadata}, manager="kubectl-replace")


def restored(api: FakeApi, live: Object, namespace: str) -> None:
    """As a backup tool restores it under the name `copy`: with all labels and field managers."""
    metadata = {name: live["metadata"][name] for name in ("labels", "annotations") if name in live["metadata"]}
    api.put({**live, "metadata": {**metadata, "name": "copy", "namespace": namespace}}, manager="restore")
    fields = live["metadata"]["managedFields"]
    api.edit(live["kind"], namespace, "copy", lambda copy: copy["metadata"].update(managedFields=fields))


def status(state: str = "True", reason: str = "", message: str = "", generation: int = 1, type: str = "Ready") -> Object:
    """A status with one condition, by a controller that has seen that generation of the spec."""
    one = {"type": type, "status": state, "reason": reason, "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z"}
    return {"observedGeneration": generation, "conditions": [one]}


CONDITIONS = {
    "observedGeneration": {"type": "integer"},
    "conditions": {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
}
"""Properties of a status, for `crontab_crd`."""


def crontab_crd(**status: Any) -> Object:
    properties: Object = {"spec": {"type": "object", "properties": {"cronSpec": {"type": "string"}}}}
    if status:
        properties["status"] = {"type": "object", "properties": status}
    return obj(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "crontabs.stable.example.com",
        spec={
            "group": "stable.example.com",
            "scope": "Namespaced",
            "names": {"plural": "crontabs", "singular": "crontab", "kind": "CronTab"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
                    **({"subresources": {"status": {}}} if status else {}),
                }
            ],
        },
    )


def crontab_crd_of(plural: str) -> Object:
    """Another CRD of the same kind."""
    crd = crontab_crd()
    crd["metadata"]["name"], crd["spec"]["names"]["plural"] = f"{plural}.stable.example.com", plural
    return crd
